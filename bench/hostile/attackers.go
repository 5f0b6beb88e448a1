package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"

	"millwright/bench/hostile/attack"
)

// attackers is a process that attacks a server, at the lowest priority: senders elsewhere take none of the
// server's processor time, and these take what the server and the honest sender leave.
type attackers struct {
	process *exec.Cmd
	input   io.Closer // ends the attacks
	started chan struct{}
}

// startAttackers starts the attack of this name, or all attacks if the name is that of none.
func startAttackers(target attack.Target, name string) (*attackers, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}

	line, err := json.Marshal(target)
	if err != nil {
		return nil, err
	}

	process := exec.Command("nice", "-n", "19", program, "-attack", name)
	process.Stderr = os.Stderr
	input, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}

	output, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}

	a := &attackers{process, input, make(chan struct{})}
	go func() {
		defer close(a.started)
		_, _ = bufio.NewReader(output).ReadString('\n')
	}()

	_, err = input.Write(append(line, '\n'))
	return a, err
}

// stop ends the attacks.
func (a *attackers) stop() {
	_ = a.input.Close()
	<-a.started
	_ = a.process.Wait()
}

// attackUntilEOF is the other side of startAttackers: it reads the target from a line of input, attacks until
// the input ends, and writes a line once every attack has been under way.
func attackUntilEOF(ctx context.Context, name string, input io.Reader, output io.Writer) error {
	lines := bufio.NewReader(input)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}

	var target attack.Target
	if err := json.Unmarshal(line, &target); err != nil {
		return err
	}

	attacks := attack.All()
	if i := slices.IndexFunc(attacks, func(a attack.Attack) bool { return a.Name == name }); i >= 0 {
		attacks = attacks[i : i+1]
	}

	started, stop := target.Run(attacks...)
	defer stop()

	go func() {
		<-started
		fmt.Fprintln(output, "started")
	}()

	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, lines)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}
