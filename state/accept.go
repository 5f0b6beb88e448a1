package state

import "context"

type acceptor struct{}

func newAcceptor(*Store) *acceptor { return &acceptor{} }

func (a *acceptor) run(ctx context.Context) { <-ctx.Done() }
