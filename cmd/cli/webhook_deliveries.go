package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"millwright/schema"
	"millwright/state"
)

func webhookDeliveries(s Streams, c *Client) *cobra.Command {
	var out output
	var outcome string
	var show listing
	cmd := &cobra.Command{
		Use:   "deliveries WEBHOOK [DELIVERY]",
		Short: "List recent deliveries, newest first; or show one with its payload and verdicts",
		Example: `  millwright webhook deliveries ci
  millwright webhook deliveries ci --outcome rejected_auth
  millwright webhook deliveries ci dlv_… -o json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, w, err := c.webhook(cmd.Context(), args[0])
			if err != nil {
				return err
			}

			path := webhookPath(f, w) + "/deliveries"
			if len(args) == 2 {
				body, err := c.call(cmd.Context(), http.MethodGet, path+"/"+url.PathEscape(args[1]), nil)
				if err != nil {
					return err
				}

				return out.print(s.Out, body, func() error {
					var d deliveryItem
					if err := c.Decode(body, &d); err != nil {
						return err
					}

					return d.print(s.Out)
				})
			}

			q := url.Values{}
			if outcome != "" {
				q.Set("outcome", outcome)
			}

			body, left, err := c.list(cmd.Context(), path, "deliveries", q, show)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				defer left.note(s)

				var list struct{ Deliveries []deliveryItem }
				if err := c.Decode(body, &list); err != nil {
					return err
				}

				var lines [][]string
				for _, d := range list.Deliveries {
					lines = append(
						lines,
						[]string{
							d.DeliveryID,
							d.outcome(),
							shorten(d.Event, 40),
							d.size(),
							ago(d.ReceivedAt),
							d.Sender,
							shorten(d.reason(), 80),
						},
					)
				}

				return rows(s.Out, "DELIVERY OUTCOME EVENT BYTES RECEIVED SENDER REASON", lines)
			})
		},
	}

	addOutputFlag(cmd, &out)
	show.add(cmd)
	cmd.Flags().StringVar(
		&outcome,
		"outcome",
		"",
		"only `accepted|duplicate|rejected_auth|rejected_invalid_json|rejected_too_large|handshake`",
	)
	return cmd
}

// deliveryItem is what the program shows of a delivery.
type deliveryItem struct {
	DeliveryID     string `json:"delivery_id"`
	Label          string
	Reason         string
	SizeBytes      *int64 `json:"size_bytes"`
	ReceivedAt     string `json:"received_at"`
	Count          int
	Identity       string
	IdentitySource string `json:"identity_source"`
	Sender         string
	Event          string
	RequestHeaders map[string]string `json:"request_headers"`
	Answer         *struct {
		Status int
		Code   string
	}
	StartedNothing bool   `json:"started_nothing"`
	DuplicateOf    string `json:"duplicate_of"`
	ReplayOf       string `json:"replay_of"`
	Runs           []struct {
		RunID    string `json:"run_id"`
		State    string
		Title    string
		WaitsFor string `json:"waits_for"`
	}
	Flow []struct {
		AutomationID string `json:"automation_id"`
		Decision     string
		RunID        string `json:"run_id"`
		Detail       string
	}
	Payload     json.RawMessage
	Automations []struct {
		AutomationID  string `json:"automation_id"`
		Name, Verdict string
		NoKey         []string `json:"no_key"`
		Triggers      []struct {
			Provider, Event string
			Explanation     schema.Explanation
		}
	}
	TriggerEvents     []string `json:"trigger_events"`
	DefinitionChanged bool     `json:"definition_changed"`
}

func (d deliveryItem) outcome() string {
	if d.StartedNothing {
		return d.Label + ", started nothing"
	}
	if d.Count > 1 {
		return fmt.Sprintf("%s ×%d", d.Label, d.Count)
	}
	return d.Label
}

func (d deliveryItem) size() string {
	if d.SizeBytes == nil {
		return ""
	}
	return fmt.Sprint(*d.SizeBytes)
}

// automation returns the name of an automation or, of one that is gone, its UID.
func (d deliveryItem) automation(uid string) string {
	for _, a := range d.Automations {
		if a.AutomationID == uid {
			return a.Name
		}
	}
	return uid
}

// reason returns why the delivery was refused, or the decision of its flow.
func (d deliveryItem) reason() string {
	texts := []string{}
	if d.Reason != "" {
		texts = append(texts, d.Reason)
	}
	for _, made := range d.Flow {
		if !slices.Contains(texts, made.Decision) {
			texts = append(texts, made.Decision)
		}
	}
	return strings.Join(texts, "; ")
}

func (d deliveryItem) print(w io.Writer) error {
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-12s %s\n", key, clean(value))
		}
	}
	line("delivery", d.DeliveryID)
	line("outcome", d.outcome())
	line("reason", d.Reason)
	line("received", d.ReceivedAt)
	line("sender", d.Sender)
	line("bytes", d.size())
	line("event", d.Event)
	if d.Answer != nil {
		line("answer", fmt.Sprintf("%d %s", d.Answer.Status, d.Answer.Code))
	}
	for _, name := range slices.Sorted(maps.Keys(d.RequestHeaders)) {
		line("header", name+": "+d.RequestHeaders[name])
	}
	line("is", strings.Join(d.TriggerEvents, ", "))
	if d.Identity != "" {
		line("identity", d.Identity+" ("+d.IdentitySource+")")
	}

	line("duplicate of", d.DuplicateOf)
	line("replay of", d.ReplayOf)
	for _, r := range d.Runs {
		line("run", r.RunID+" "+runItem{State: r.State, WaitsFor: r.WaitsFor}.state()+" "+r.Title)
	}

	for _, made := range d.Flow {
		text := strings.TrimSpace(d.automation(made.AutomationID) + ": " + made.Decision + " " + made.RunID)
		if made.Detail != "" {
			text += ": " + made.Detail
		}
		line("flow", text)
		line("", state.FlowDecision{Decision: made.Decision}.Why())
	}

	for _, a := range d.Automations {
		line("automation", a.Name+": "+map[string]string{
			"matched":     "matches",
			"not_matched": "does not match",
			"disabled":    "is disabled",
			"unknown":     "unknown: the payload is not kept",
		}[a.Verdict])
		for _, reason := range a.NoKey {
			line("  no key", reason)
		}
		for _, t := range a.Triggers {
			verdict := "matches"
			if !t.Explanation.Matched {
				verdict = "does not match"
			}
			if t.Explanation.Reason != "" {
				verdict += ": " + t.Explanation.Reason
			}

			line("  trigger", t.Provider+"/"+t.Event+" "+verdict)
			printLeaves(w, t.Explanation)
		}
	}

	if d.DefinitionChanged {
		fmt.Fprintln(w, "The definition has changed since: these verdicts are those of the present one.")
	}
	if len(d.Payload) == 0 {
		return nil
	}

	var payload bytes.Buffer
	if json.Indent(&payload, d.Payload, "", "  ") != nil {
		payload.Write(d.Payload)
	}

	_, err := fmt.Fprintf(w, "\n%s\n", cleanText(payload.String()))
	return err
}

// maxReplayed is how many deliveries a command replays.
const maxReplayed = 100

func webhookReplay(s Streams, c *Client) *cobra.Command {
	return &cobra.Command{
		Use:   "replay WEBHOOK DELIVERY...",
		Short: "Start the matching runs of accepted deliveries again, each as a new delivery",
		Long: `Replays deliveries one after the other, in the order in which they are given, and prints
the new delivery of each. For several it prints the old one first. It continues after one that the
server refuses, and then exits with status 1.`,
		Example: `  millwright webhook replay ci dlv_…
  millwright webhook deliveries ci --outcome accepted -o json |
    jq -r '.deliveries[] | select(.started_nothing) | .delivery_id' | xargs millwright webhook replay ci`,
		Args: cobra.RangeArgs(2, 1+maxReplayed),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, w, err := c.webhook(cmd.Context(), args[0])
			if err != nil {
				return err
			}

			uids, failed := args[1:], 0
			for _, uid := range uids {
				made, err := c.replay(cmd.Context(), f, w, uid)
				refused := (*refusal)(nil)
				switch {
				case err == nil && len(uids) == 1:
					fmt.Fprintln(s.Out, made)
				case err == nil:
					fmt.Fprintln(s.Out, clean(uid), made)
				case len(uids) > 1 && errors.As(err, &refused) && refused.status < 500 && refused.status != 403:
					failed++
					fmt.Fprintf(s.Err, "%s: %s\n", clean(uid), clean(err.Error()))
				default:
					return err
				}
			}

			if failed > 0 {
				return &Exit{ExitProblem, fmt.Errorf("%d of %d deliveries were not replayed", failed, len(uids))}
			}
			return nil
		},
	}
}

// replay replays a delivery, and returns the ID of the new one.
func (c *Client) replay(ctx context.Context, f factoryRef, w webhookRef, uid string) (string, error) {
	path := webhookPath(f, w) + "/deliveries/" + url.PathEscape(uid) + "/replay"
	body, err := c.call(ctx, http.MethodPost, path, map[string]any{})
	if err != nil {
		return "", err
	}

	var d struct {
		DeliveryID string `json:"delivery_id"`
	}
	err = c.Decode(body, &d)
	return d.DeliveryID, err
}
