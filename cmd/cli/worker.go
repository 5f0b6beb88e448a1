package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// NewWorkerList returns the command that lists the workers of a server.
func NewWorkerList(s Streams) *cobra.Command {
	var c Client
	var out output
	cmd := &cobra.Command{
		Use: "list", Short: "List the workers that a server knows", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			body, _, err := c.list(cmd.Context(), "/workers", "workers", nil, whole)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				var list struct{ Workers []workerItem }
				if err := c.Decode(body, &list); err != nil {
					return err
				}

				var lines [][]string
				for _, w := range list.Workers {
					lines = append(lines, w.row())
				}

				return rows(s.Out, "WORKER NAME STATE RUNS SEEN HARNESSES VERSION KEY", lines)
			})
		},
	}

	addClientFlags(cmd, &c, false)
	addOutputFlag(cmd, &out)
	return cmd
}

// workerItem is what the program shows of a worker.
type workerItem struct {
	UID, Name, Version string
	Slots, Busy        int
	Harnesses          []string
	LastSeenAt         string `json:"last_seen_at"`
	Live               bool
	KeyUID             string `json:"key_uid"`
}

func (w workerItem) row() []string {
	state := "lost"
	if w.Live {
		state = "live"
	}

	return []string{
		w.UID,
		w.Name,
		state,
		fmt.Sprintf("%d of %d", w.Busy, w.Slots),
		ago(w.LastSeenAt),
		strings.Join(w.Harnesses, ","),
		w.Version,
		w.KeyUID,
	}
}

// harnessValues lists the harnesses of the live workers.
func harnessValues(ctx context.Context, at completion) ([]string, error) {
	var list struct{ Workers []workerItem }
	err := at.Get(ctx, "/workers?limit=500", &list)

	var found []string
	for _, w := range list.Workers {
		if w.Live {
			found = append(found, w.Harnesses...)
		}
	}
	return found, err
}
