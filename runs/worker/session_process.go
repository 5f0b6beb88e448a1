//go:build unix

package worker

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"millwright/runs/worker/confine"
)

// exitTime is how long an agent may take to end when its session is over.
const exitTime = 2 * time.Second

// converse runs cmd, and speaks with it until its session is over or ctx ends. Then it ends every process
// that the command started.
func converse(ctx context.Context, cmd *exec.Cmd, start starter, t Task) exit {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return exit{start: err}
	}
	defer in.Close()

	out, theirOut, err := os.Pipe()
	if err != nil {
		theirIn.Close()
		return exit{start: err}
	}
	defer out.Close()

	errs, theirErrs, err := os.Pipe()
	if err != nil {
		theirIn.Close()
		theirOut.Close()
		return exit{start: err}
	}
	defer errs.Close()

	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, theirErrs
	process, err := start(cmd)
	for _, f := range []*os.File{theirIn, theirOut, theirErrs} {
		f.Close()
	}
	if err != nil {
		return exit{start: fmt.Errorf("%s: %w", filepath.Base(cmd.Path), underlying(err))}
	}

	stderr := &tail{}
	var reading sync.WaitGroup
	reading.Go(func() { io.Copy(stderr, errs) })

	over := make(chan spoken, 1)
	go func() { over <- t.session.run(ctx, in, out) }()

	exited := make(chan error, 1)
	go func() { exited <- process.Wait() }()

	var result spoken
	var crash error
	select {
	case result = <-over:
		in.Close()
		if end := leave(process, exited); result.gone {
			crash = end
		}
	case crash = <-exited: // its last words are still to be read
		out.SetReadDeadline(time.Now().Add(exitTime))
		result = <-over
	}

	alive := process.Kill()
	errs.SetReadDeadline(time.Now().Add(exitTime))
	reading.Wait()
	e := exit{
		alive:   alive,
		failure: cut(t.out.redact.text(result.failure), maxTail),
		blocked: result.blocked,
		stderr:  stderr.text(t.out.redact),
	}
	if result.failure != "" && crash != nil {
		e.err = crash
	}
	return e
}

// leave waits for a process whose session is over, and ends one that stays. It returns the error of one that
// ends by itself.
func leave(p confine.Process, exited <-chan error) error {
	for _, end := range []func(){p.Terminate, func() { p.Kill() }} {
		patience := time.NewTimer(exitTime)
		select {
		case err := <-exited:
			patience.Stop()
			return err
		case <-patience.C:
			end()
		}
	}

	<-exited
	return nil
}
