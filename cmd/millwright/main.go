//go:build unix

// Command millwright is GitOps for software factories: it watches definition files, applies them, and
// serves the webhooks, runs and dashboard that they describe. See millwright help.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"millwright/cmd/cli"
	"millwright/cmd/server"
	"millwright/runs/worker/confine"
	"millwright/runs/worker/sandbox"
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case server.KeepRun:
			os.Exit(confine.Keep(os.Args[2:]))
		case server.EnterSandbox:
			os.Exit(sandbox.Enter())
		}
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once

	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes the command that args name and returns the exit status of the program.
func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	streams := cli.Streams{In: in, Out: out, Err: errw}
	return cli.Run(ctx, args, streams, server.NewServe, server.NewWorker, server.NewDemo)
}
