package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"millwright/schema"
)

// FactoryItem is what the program shows of a Factory.
type FactoryItem struct {
	UID, Name string
	Source    struct{ Kind, URL, Branch, Path string }
	Sync      struct {
		State             string
		AttemptedRevision string  `json:"attempted_revision"`
		AppliedRevision   string  `json:"applied_revision"`
		LastAppliedAt     *string `json:"last_applied_at"`
		LastAttemptedAt   *string `json:"last_attempted_at"`
		Message           string
		Problems          []schema.Problem
	}
	Conditions []struct {
		Type, Status, Reason, Message string
		Since                         string `json:"last_transition_time"`
	}
	Counts map[string]int
}

func newSync(s Streams) *cobra.Command {
	var c Client
	var prune, rename, wait bool
	cmd := &cobra.Command{
		Use:        "sync",
		SuggestFor: []string{"apply", "deploy", "reconcile"},
		Short:      "Apply now, also when the revision is the same, and so pick up new secret values",
		Long: `Asks the server to read its sources and apply them, without waiting for the next
look. Without --factory it means all factories. The command returns when they are
applied (status 0) or one of them is refused (status 1).`,
		Example: `  millwright sync
  millwright sync --factory payments --allow-prune`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !wait {
				return Usagef("--wait=false: sync always waits until the source is applied or refused")
			}

			factories, err := c.chosen(cmd.Context())
			if err != nil {
				return err
			}

			var refused error
			for _, f := range factories {
				if err := syncOne(cmd.Context(), s, &c, f, map[string]any{"allow_prune": prune, "allow_rename": rename}); err != nil {
					refused = err
				}
			}

			return refused
		},
	}

	addClientFlags(cmd, &c, true)
	cmd.Flags().BoolVar(&prune, "allow-prune", false, "allow this apply to delete all or most webhooks")
	cmd.Flags().
		BoolVar(&rename, "allow-rename", false, "allow this apply to replace a webhook by one of another name and a new URL")
	cmd.Flags().BoolVar(&wait, "wait", true, "wait until applied or refused, as it always does")
	return cmd
}

func syncOne(ctx context.Context, s Streams, c *Client, f factoryRef, in any) error {
	_, err := c.call(ctx, http.MethodPost, "/factory/"+f.UID+"/sync", in)
	var r *refusal
	if err != nil && !errors.As(err, &r) {
		return err
	}

	var item FactoryItem
	if err := c.Get(ctx, "/factory/"+f.UID, &item); err != nil {
		return err
	}

	item.print(s.Out)
	if err != nil {
		return err
	}
	if item.Sync.State != "applied" {
		return &Exit{ExitProblem, nil}
	}

	return nil
}

// ShortRevision returns what people see of a revision: the first characters of a commit, anything else whole.
func ShortRevision(id string) string {
	if len(id) == 40 {
		return id[:12]
	}
	if len(id) > 19 {
		return id[:19]
	}
	return id
}

func (f FactoryItem) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s", clean(f.Name), clean(f.Sync.State))
	if f.Sync.AppliedRevision != "" {
		fmt.Fprintf(w, ", serving %s", clean(ShortRevision(f.Sync.AppliedRevision)))
	}
	if f.Sync.AttemptedRevision != f.Sync.AppliedRevision && f.Sync.AttemptedRevision != "" {
		fmt.Fprintf(w, ", attempted %s", clean(ShortRevision(f.Sync.AttemptedRevision)))
	}
	if f.Sync.LastAppliedAt != nil {
		fmt.Fprintf(w, ", applied %s", ago(*f.Sync.LastAppliedAt))
	}

	fmt.Fprintln(w)
	said := ""
	for _, c := range f.Conditions {
		fmt.Fprintf(w, "  %-11s %-5s %s, %s", clean(c.Type), clean(c.Status), clean(c.Reason), ago(c.Since))
		if c.Message != said {
			said = c.Message
			fmt.Fprintf(w, ": %s", clean(said))
		}

		fmt.Fprintln(w)
	}

	for _, p := range f.Sync.Problems {
		fmt.Fprintf(
			w,
			"  %s:%d:%d: %s: %s [%s]\n",
			clean(p.Path),
			p.Line,
			p.Column,
			p.Severity,
			clean(p.Message),
			p.Code,
		)
		if p.Hint != "" {
			fmt.Fprintf(w, "    hint: %s\n", clean(p.Hint))
		}
	}
}

func newStatus(s Streams) *cobra.Command {
	var c Client
	var out output
	var wait, watch bool
	var revision string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the attempted and applied revision and the problems of each factory",
		Example: `  millwright status
  millwright status --wait --revision "$(git rev-parse HEAD)" --timeout 2m     in a pipeline
  millwright status --watch`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if wait {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, timeout)
				defer stop()
			}

			before := ""
			for {
				body, items, err := c.status(ctx)
				if err != nil && (!wait || !unreachable(err)) {
					return waited(err, wait, timeout)
				}

				settled, good := standing(items, revision)
				settled = settled && err == nil
				if now := string(body); now != before && err == nil && (watch || !wait || settled) {
					before = now
					if err := out.print(s.Out, body, func() error { return c.printStatus(ctx, s, items) }); err != nil {
						return err
					}
				}

				if !watch && (!wait || settled) {
					if !good {
						return &Exit{ExitProblem, nil}
					}
					return nil
				}

				select {
				case <-ctx.Done():
					return waited(ctx.Err(), wait, timeout)
				case <-time.After(pollEvery):
				}
			}
		},
	}

	addClientFlags(cmd, &c, true)
	addOutputFlag(cmd, &out)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until every factory is applied or refused")
	cmd.Flags().BoolVar(&watch, "watch", false, "go on, and print whenever something changes")
	cmd.Flags().StringVar(&revision, "revision", "", "with --wait: until this `REVISION` was attempted")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "with --wait: give up after this time, with status 3")
	return cmd
}

// unreachable reports an error that a server which is about to start, or to come back, makes go away.
func unreachable(err error) bool {
	var e *noServer
	return errors.As(err, &e)
}

func waited(err error, wait bool, timeout time.Duration) error {
	if wait && errors.Is(err, context.DeadlineExceeded) {
		return &Exit{ExitUnreachable, fmt.Errorf("not settled after %s", timeout)}
	}
	if errors.Is(err, context.Canceled) {
		return &Exit{ExitGood, nil}
	}
	return err
}

// standing says whether every factory has attempted the revision, and whether all are applied.
func standing(items []FactoryItem, revision string) (settled, good bool) {
	settled, good = true, true
	for _, f := range items {
		if f.Sync.State == "pending" || f.Sync.State == "failed" ||
			revision != "" && f.Sync.AttemptedRevision != revision {
			settled = false
		}
		if f.Sync.State != "applied" {
			good = false
		}
	}

	return settled, good
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
		var list struct{ Webhooks []webhookItem }
		if err := c.Get(ctx, "/factory/"+f.UID+"/webhooks?limit=500", &list); err != nil {
			return err
		}

		for _, w := range list.Webhooks {
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
