package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newStatus(s Streams) *cobra.Command {
	var c Client
	var out output
	var wait, watch bool
	var revision string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the attempted and applied revision and the problems of each factory",
		Long: `Shows the state of each factory. With --wait it returns when each is applied, refused or
suspended. Exit status 1: the last attempt of a factory did not apply.

With --revision it checks one revision of one factory. Exit status 0: the server serves
that revision, or one that contains it; 1: the server refused it, or cannot apply it. A
commit may be short. The command looks it up in the git repository of the working
directory, and fetches newer commits to see whether they contain it.`,
		Example: `  millwright status
  millwright status --wait --factory payments --revision "$(git rev-parse HEAD)" --timeout 2m     in a pipeline
  millwright status --watch`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if wait {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, timeout)
				defer stop()
			}

			before, look := "", lookout{Client: &c, revision: revision}
			for {
				body, items, err := c.status(ctx)
				if err != nil && (!wait || !unreachable(err)) {
					return look.ended(err, wait, timeout)
				}

				if err != nil && ctx.Err() != nil && look.why != "" {
					return look.ended(ctx.Err(), wait, timeout)
				}

				v := notYet("the server does not answer")
				if err == nil {
					if v, err = look.at(ctx, items); err != nil {
						return look.ended(err, wait, timeout)
					}
				}

				if now := string(body); now != before && body != nil && (watch || !wait || v.settled) {
					before = now
					if err := out.print(s.Out, body, func() error { return c.printStatus(ctx, s, items) }); err != nil {
						return err
					}
				}

				if !watch && (!wait || v.settled) {
					if revision == "" {
						v.why = "" // the table says it
					}

					return v.end(s)
				}
				if wait && v.why != look.why {
					look.why = v.why
					fmt.Fprintf(s.Err, "waiting: %s\n", v.why)
				}

				select {
				case <-ctx.Done():
					return look.ended(ctx.Err(), wait, timeout)
				case <-time.After(pollEvery):
				}
			}
		},
	}

	addClientFlags(cmd, &c, true)
	addOutputFlag(cmd, &out)
	f := cmd.Flags()
	f.BoolVar(&wait, "wait", false, "wait until each factory, or --revision, is applied or refused")
	f.BoolVarP(&watch, "watch", "w", false, "continue, and print each change")
	f.StringVar(
		&revision,
		"revision",
		"",
		"check this `REVISION`: a commit, sha256:… of a directory, or r12 of a managed factory",
	)
	f.DurationVar(&timeout, "timeout", 5*time.Minute, "with --wait: give up after this `DURATION`, with status 3")
	return cmd
}

// unreachable reports an error that a server which is about to start, or to come back, makes go away.
func unreachable(err error) bool {
	var e *noServer
	return errors.As(err, &e)
}

// ended returns the error of a wait that an error ended.
func (l *lookout) ended(err error, wait bool, timeout time.Duration) error {
	if wait && errors.Is(err, context.DeadlineExceeded) && l.why != "" {
		return &Exit{ExitUnreachable, fmt.Errorf("not settled after %s: %s", timeout, l.why)}
	}
	if errors.Is(err, context.Canceled) {
		return &Exit{ExitGood, nil}
	}
	return err
}

// at judges how the factories stand.
func (l *lookout) at(ctx context.Context, items []FactoryItem) (verdict, error) {
	if l.revision == "" {
		return standing(items), nil
	}
	if len(items) != 1 {
		_, err := l.one(ctx)
		return verdict{}, err
	}
	return l.revisionAt(ctx, items[0])
}

// standing says whether every factory is settled, and whether none is refused or failed.
func standing(items []FactoryItem) verdict {
	v := verdict{settled: true, good: true}
	var open []string
	for _, f := range items {
		pending := f.Sync.State == "pending" || f.Sync.State == "failed"
		if pending && f.Suspended {
			continue
		}
		if pending {
			v.settled = false
			open = append(open, strings.TrimSuffix(f.Name+" is "+f.Sync.State+": "+f.Sync.Message, ": "))
		}
		if f.Sync.State != "applied" {
			v.good = false
		}
	}

	v.why = clean(strings.Join(open, "; "))
	return v
}

func (c *Client) status(ctx context.Context) ([]byte, []FactoryItem, error) {
	chosen, err := c.chosen(ctx)
	if err != nil {
		return nil, nil, err
	}

	items := make([]FactoryItem, len(chosen))
	list := struct {
		Factories []json.RawMessage `json:"factories"`
	}{Factories: []json.RawMessage{}}
	for i, f := range chosen {
		body, err := c.call(ctx, http.MethodGet, "/factory/"+f.UID, nil)
		if err != nil {
			return nil, nil, err
		}
		if err := c.Decode(body, &items[i]); err != nil {
			return nil, nil, err
		}

		list.Factories = append(list.Factories, body)
	}

	body, err := json.Marshal(list)
	return body, items, err
}

func (c *Client) printStatus(ctx context.Context, s Streams, items []FactoryItem) error {
	for _, f := range items {
		f.print(s.Out)
		hooks, err := c.webhooks(ctx, factoryRef{UID: f.UID, Name: f.Name}, false)
		if err != nil {
			return err
		}

		for _, w := range hooks {
			if w.SecretStale {
				fmt.Fprintf(
					s.Out,
					"  webhook %s: a new value of %s waits for the next apply (millwright sync)\n",
					clean(w.Name),
					clean(w.SecretName),
				)
			}
		}
	}

	return nil
}
