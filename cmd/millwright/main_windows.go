package main

import (
	"context"
	"os"
	"os/signal"

	"millwright/cmd/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once

	streams := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	status := cli.Run(ctx, os.Args[1:], streams,
		cli.Elsewhere("serve"), cli.Elsewhere("worker"), cli.Elsewhere("demo"))
	os.Exit(status)
}
