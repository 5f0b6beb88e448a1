package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newNotification(s Streams) *cobra.Command {
	var c Client
	cmd := &cobra.Command{
		Use:        "notification",
		SuggestFor: []string{"notifications", "events", "notify"},
		Short:      "List notifications and their events, replay events, and send test events",
		Args:       noCommand,
		RunE:       help,
	}

	addClientFlags(cmd, &c, true)
	cmd.AddCommand(
		notificationList(s, &c),
		notificationEvents(s, &c),
		notificationReplay(s, &c),
		notificationTest(s, &c),
	)

	return cmd
}

// notificationItem is what the program shows of a notification.
type notificationItem struct {
	Name          string
	URL           string
	URLSecretName string `json:"url_secret_name"`
	Format        string
	Events        []string
	Enabled       bool
	Waiting, Dead int
}

// to names the receiver.
func (n notificationItem) to() string {
	if n.URLSecretName != "" {
		return "secret " + n.URLSecretName
	}
	return n.URL
}

func notificationList(s Streams, c *Client) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "list", Short: "List notifications", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			factories, err := c.chosen(cmd.Context())
			if err != nil {
				return err
			}

			bodies := make([][]byte, len(factories))
			for i, f := range factories {
				path := "/factory/" + f.UID + "/notifications"
				if bodies[i], _, err = c.list(cmd.Context(), path, "notifications", nil, whole); err != nil {
					return err
				}
			}

			body, err := c.joined(bodies, "notifications")
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				var lines [][]string
				for i, f := range factories {
					var list struct{ Notifications []notificationItem }
					if err := c.Decode(bodies[i], &list); err != nil {
						return err
					}

					for _, n := range list.Notifications {
						standing := "enabled"
						if !n.Enabled {
							standing = "disabled"
						}
						lines = append(lines, []string{
							f.Name, n.Name, n.Format, standing, strconv.Itoa(n.Waiting), strconv.Itoa(n.Dead),
							strings.Join(n.Events, ","), n.to(),
						})
					}
				}

				return rows(s.Out, "FACTORY NAME FORMAT STATE WAITING DEAD EVENTS RECEIVER", lines)
			})
		},
	}

	addOutputFlag(cmd, &out)
	return cmd
}

// eventItem is what the program shows of an event.
type eventItem struct {
	EventUID     string `json:"event_uid"`
	Type         string
	Notification string
	RunID        string `json:"run_id"`
	State        string
	Attempts     int
	Reason       string
	CreatedAt    string        `json:"created_at"`
	AttemptList  []attemptItem `json:"attempt_list"`
}

// attemptItem is what the program shows of an attempt to send an event.
type attemptItem struct {
	Number         int
	At             string
	DurationMillis int64 `json:"duration_millis"`
	Status         int
	Error          string
	Answer         string
}

// result describes an attempt in a few words.
func (a attemptItem) result() string {
	said := a.Error
	if said == "" {
		said = fmt.Sprintf("it answered %d", a.Status)
	}
	return fmt.Sprintf("%s, after %d ms", said, a.DurationMillis)
}

func notificationEvents(s Streams, c *Client) *cobra.Command {
	var out output
	var state string
	var show listing
	cmd := &cobra.Command{
		Use:   "events [NOTIFICATION|EVENT]",
		Short: "List events, newest first; or show one with its attempts",
		Example: `  millwright notification events
  millwright notification events ops --state dead
  millwright notification events evt_… -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}

			path, q := eventsPath(f), url.Values{}
			if len(args) == 1 && isEvent(args[0]) {
				body, err := c.call(cmd.Context(), http.MethodGet, path+"/"+url.PathEscape(args[0]), nil)
				if err != nil {
					return err
				}
				return out.print(s.Out, body, func() error { return c.printEvent(s, body) })
			}
			if len(args) == 1 {
				q.Set("notification", args[0])
			}
			if state != "" {
				q.Set("state", state)
			}

			body, left, err := c.list(cmd.Context(), path, "events", q, show)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				defer left.note(s)

				var list struct{ Events []eventItem }
				if err := c.Decode(body, &list); err != nil {
					return err
				}

				var lines [][]string
				for _, e := range list.Events {
					lines = append(lines, []string{
						e.EventUID, e.Type, e.Notification, e.State, strconv.Itoa(e.Attempts), ago(e.CreatedAt),
						shorten(e.Reason, 90),
					})
				}
				return rows(s.Out, "EVENT TYPE NOTIFICATION STATE ATTEMPTS CREATED REASON", lines)
			})
		},
	}

	addOutputFlag(cmd, &out)
	show.add(cmd)
	cmd.Flags().StringVar(&state, "state", "", "only `pending|sent|dead|dropped`")
	return cmd
}

func eventsPath(f factoryRef) string { return "/factory/" + f.UID + "/events" }

func isEvent(text string) bool { return strings.HasPrefix(text, "evt_") }

// printEvent prints an event with its attempts.
func (c *Client) printEvent(s Streams, body []byte) error {
	var e eventItem
	if err := c.Decode(body, &e); err != nil {
		return err
	}

	for _, kv := range [][2]string{
		{"event", e.EventUID},
		{"type", e.Type},
		{"to", e.Notification},
		{"run", e.RunID},
		{"state", e.State},
		{"reason", e.Reason},
	} {
		if kv[1] != "" {
			fmt.Fprintf(s.Out, "%-8s %s\n", kv[0], clean(kv[1]))
		}
	}
	for _, a := range e.AttemptList {
		fmt.Fprintf(s.Out, "%-8s %s: %s\n", fmt.Sprintf("try %d", a.Number), clean(a.At), clean(a.result()))
		if a.Answer != "" {
			fmt.Fprintf(s.Out, "%-8s %s\n", "", shorten(clean(a.Answer), 200))
		}
	}
	return nil
}

func notificationReplay(s Streams, c *Client) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "replay EVENT… | --all NOTIFICATION",
		Short: "Send events again that are dead or were sent",
		Example: `  millwright notification replay evt_…
  millwright notification replay --all ops`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}

			for _, name := range args {
				switch {
				case all:
					var made struct{ Replayed int }
					path := "/factory/" + f.UID + "/notifications/" + url.PathEscape(name) + "/replay"
					if err := c.post(cmd.Context(), path, &made); err != nil {
						return err
					}
					fmt.Fprintf(s.Out, "%s: %d dead events are sent again\n", clean(name), made.Replayed)
				case !isEvent(name):
					return Usagef("%q is no event: for all dead events of a notification, add --all", clean(name))
				default:
					var e eventItem
					if err := c.post(cmd.Context(), eventsPath(f)+"/"+url.PathEscape(name)+"/replay", &e); err != nil {
						return err
					}
					fmt.Fprintf(s.Out, "%s is %s\n", clean(e.EventUID), clean(e.State))
				}
			}
			return nil
		},
	}

	cmd.Flags().BoolVar(&all, "all", false, "all dead events of the notifications")
	return cmd
}

// post posts nothing, and reads the answer.
func (c *Client) post(ctx context.Context, path string, into any) error {
	body, err := c.call(ctx, http.MethodPost, path, nil)
	if err != nil {
		return err
	}
	return c.Decode(body, into)
}

// testTime is how long the outcome of a test event is waited for.
const testTime = 30 * time.Second

func notificationTest(s Streams, c *Client) *cobra.Command {
	return &cobra.Command{
		Use:     "test NOTIFICATION",
		Short:   "Send a test event, and wait until the receiver answers",
		Example: `  millwright notification test ops`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}

			var e eventItem
			path := "/factory/" + f.UID + "/notifications/" + url.PathEscape(args[0]) + "/test"
			if err := c.post(cmd.Context(), path, &e); err != nil {
				return err
			}

			ctx, cancel := context.WithTimeout(cmd.Context(), testTime)
			defer cancel()

			for e.Attempts == 0 && e.State == "pending" {
				select {
				case <-ctx.Done():
					return &Exit{ExitProblem, errors.New("no server has sent the event within " + testTime.String())}
				case <-time.After(pollEvery):
				}
				if err := c.Get(ctx, eventsPath(f)+"/"+e.EventUID, &e); err != nil {
					return err
				}
			}

			said := e.Reason
			if last := len(e.AttemptList) - 1; last >= 0 {
				said = e.AttemptList[last].result()
			}
			if e.State != "sent" {
				return &Exit{ExitProblem, fmt.Errorf("%s is %s: %s", clean(e.EventUID), clean(e.State), clean(said))}
			}
			fmt.Fprintf(s.Out, "%s is sent: %s\n", clean(e.EventUID), clean(said))
			return nil
		},
	}
}
