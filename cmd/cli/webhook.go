package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"millwright/signature"
)

func newWebhook(s Streams) *cobra.Command {
	var c Client
	cmd := &cobra.Command{
		Use:        "webhook",
		SuggestFor: []string{"deliveries", "listen", "replay", "send", "uids"},
		Short:      "Look at webhooks and their deliveries, and send to them",
		Args:       noCommand,
		RunE:       help,
	}

	addClientFlags(cmd, &c, true)
	cmd.AddCommand(
		webhookList(s, &c),
		webhookShow(s, &c),
		webhookDeliveries(s, &c),
		webhookReplay(s, &c),
		webhookListen(s, &c),
		webhookSend(s),
		webhookExplain(s),
		webhookSchemes(s),
		webhookUIDs(s, &c),
	)

	return cmd
}

// webhookItem is what the program shows of a webhook.
type webhookItem struct {
	webhookRef
	SecretName       string `json:"secret_name"`
	SecretVersion    int64  `json:"secret_version"`
	SecretStale      bool   `json:"secret_stale"`
	DeliveryIDHeader string `json:"delivery_id_header"`
	Enabled          bool
	CreatedAt        string  `json:"created_at"`
	DeletedAt        *string `json:"deleted_at"`
	File             string
	Counts           map[string]int64
}

func (w webhookItem) mode() string {
	if w.SignatureScheme != "" {
		return w.SignatureScheme
	}
	return w.AuthMode
}

func (w webhookItem) standing() string {
	switch {
	case w.DeletedAt != nil:
		return "deleted"
	case !w.Enabled:
		return "disabled"
	case w.SecretStale:
		return "enabled, secret waits for the next apply"
	}
	return "enabled"
}

func webhookList(s Streams, c *Client) *cobra.Command {
	var out output
	var deleted bool
	cmd := &cobra.Command{
		Use: "list", Short: "List webhooks with their URLs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			factories, err := c.chosen(cmd.Context())
			if err != nil {
				return err
			}

			if out != "table" && len(factories) != 1 {
				if _, err := c.one(cmd.Context()); err != nil {
					return err
				}
			}

			var lines [][]string
			for _, f := range factories {
				body, err := c.call(
					cmd.Context(),
					http.MethodGet,
					fmt.Sprintf("/factory/%s/webhooks?limit=500&include_deleted=%t", f.UID, deleted),
					nil,
				)
				if err != nil {
					return err
				}
				if out != "table" {
					return out.print(s.Out, body, nil)
				}

				var list struct{ Webhooks []webhookItem }
				if err := c.Decode(body, &list); err != nil {
					return err
				}

				for _, w := range list.Webhooks {
					lines = append(lines, []string{f.Name, w.Name, w.UID, w.mode(), w.standing(), w.IngressURL})
				}
			}

			return rows(s.Out, "FACTORY NAME UID AUTH STATE URL", lines)
		},
	}

	addOutputFlag(cmd, &out)
	cmd.Flags().BoolVar(&deleted, "deleted", false, "deleted ones too")
	return cmd
}

func webhookShow(s Streams, c *Client) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "show NAME|UID", Short: "Show one webhook", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, ref, err := c.webhook(cmd.Context(), args[0])
			if err != nil {
				return err
			}

			body, err := c.call(cmd.Context(), http.MethodGet, "/factory/"+f.UID+"/webhooks/"+ref.UID, nil)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				var w webhookItem
				if err := c.Decode(body, &w); err != nil {
					return err
				}

				for _, kv := range [][2]string{
					{"name", w.Name},
					{"uid", w.UID},
					{"factory", f.Name},
					{"url", w.IngressURL},
					{"auth", w.mode()},
					{"state", w.standing()},
					{"secret", fmt.Sprintf("%s, version %d", w.SecretName, w.SecretVersion)},
					{"identity", w.DeliveryIDHeader},
					{"file", w.File},
					{"created", w.CreatedAt},
				} {
					if kv[1] != "" {
						fmt.Fprintf(s.Out, "%-10s %s\n", kv[0], clean(kv[1]))
					}
				}

				for _, outcome := range []string{"accepted", "duplicate", "handshake", "rejected_auth", "rejected_invalid_json", "rejected_too_large"} {
					if n := w.Counts[outcome]; n > 0 {
						fmt.Fprintf(s.Out, "%-10s %d %s\n", "", n, strings.ReplaceAll(outcome, "_", " "))
					}
				}

				return nil
			})
		},
	}

	addOutputFlag(cmd, &out)
	return cmd
}

func webhookDeliveries(s Streams, c *Client) *cobra.Command {
	var out output
	var outcome string
	var limit int
	cmd := &cobra.Command{
		Use:   "deliveries NAME|UID [DELIVERY]",
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

			path := "/factory/" + f.UID + "/webhooks/" + w.UID + "/deliveries"
			if len(args) == 2 {
				body, err := c.call(cmd.Context(), http.MethodGet, path+"/"+url.PathEscape(args[1]), nil)
				if err != nil {
					return err
				}
				if out == "table" {
					out = "yaml"
				}

				return out.print(s.Out, body, nil)
			}

			q := url.Values{"limit": {fmt.Sprint(limit)}}
			if outcome != "" {
				q.Set("outcome", outcome)
			}

			body, err := c.call(cmd.Context(), http.MethodGet, path+"?"+q.Encode(), nil)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				var list struct {
					Deliveries []struct {
						DeliveryID string `json:"delivery_id"`
						Label      string
						Reason     string
						SizeBytes  *int64 `json:"size_bytes"`
						ReceivedAt string `json:"received_at"`
						Sender     string
						Count      int
					}
				}
				if err := c.Decode(body, &list); err != nil {
					return err
				}

				var lines [][]string
				for _, d := range list.Deliveries {
					size := ""
					if d.SizeBytes != nil {
						size = fmt.Sprint(*d.SizeBytes)
					}

					label := d.Label
					if d.Count > 1 {
						label = fmt.Sprintf("%s ×%d", label, d.Count)
					}

					lines = append(
						lines,
						[]string{d.DeliveryID, label, size, ago(d.ReceivedAt), d.Sender, shorten(d.Reason, 80)},
					)
				}

				return rows(s.Out, "DELIVERY OUTCOME BYTES RECEIVED SENDER REASON", lines)
			})
		},
	}

	addOutputFlag(cmd, &out)
	cmd.Flags().
		StringVar(&outcome, "outcome", "", "only this outcome: `accepted|duplicate|rejected_auth|rejected_invalid_json|rejected_too_large|handshake`")
	cmd.Flags().IntVar(&limit, "limit", 20, "at most so many, 1 to 500")
	return cmd
}

func webhookReplay(s Streams, c *Client) *cobra.Command {
	return &cobra.Command{
		Use: "replay NAME|UID DELIVERY", Short: "Start the matching runs of an accepted delivery again, as a new delivery", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, w, err := c.webhook(cmd.Context(), args[0])
			if err != nil {
				return err
			}

			body, err := c.call(
				cmd.Context(),
				http.MethodPost,
				"/factory/"+f.UID+"/webhooks/"+w.UID+"/deliveries/"+url.PathEscape(args[1])+"/replay",
				map[string]any{},
			)
			if err != nil {
				return err
			}

			var d struct {
				DeliveryID string `json:"delivery_id"`
			}
			if err := c.Decode(body, &d); err != nil {
				return err
			}

			fmt.Fprintln(s.Out, d.DeliveryID)
			return nil
		},
	}
}

// schemeItem is what the program shows of a signature scheme.
type schemeItem struct {
	Name            string   `json:"name"`
	Aliases         []string `json:"aliases"`
	SignedIn        []string `json:"signed_in"`
	DeliveryHeaders []string `json:"delivery_headers"`
	Handshake       bool     `json:"handshake"`
	Confidence      string   `json:"confidence"`
	Doc             string   `json:"doc"`
}

func schemeItemOf(sch *signature.Scheme) schemeItem {
	item := schemeItem{
		Name: sch.Name(), Aliases: append([]string{}, sch.Aliases()...), SignedIn: []string{}, DeliveryHeaders: []string{},
		Handshake: sch.HasHandshake(), Confidence: sch.Confidence(), Doc: sch.Doc(),
	}
	add := func(names *[]string, name string) {
		if name != "" && !slices.Contains(*names, name) {
			*names = append(*names, name)
		}
	}
	for _, d := range sch.Descriptors() {
		if d.Numbered > 0 {
			d.Header = fmt.Sprintf("%s-1 to -%d", d.Header, d.Numbered)
		}

		for _, name := range append([]string{d.Header}, d.AlsoHeaders...) {
			add(&item.SignedIn, name)
		}

		for _, name := range append([]string{d.DeliveryHeader}, d.AlsoDelivery...) {
			add(&item.DeliveryHeaders, name)
		}
	}

	return item
}

func webhookSchemes(s Streams) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "schemes", Short: "List the signature schemes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list struct {
				Schemes []schemeItem `json:"schemes"`
			}
			for _, sch := range signature.Schemes() {
				list.Schemes = append(list.Schemes, schemeItemOf(sch))
			}

			body, err := json.Marshal(list)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				var lines [][]string
				for _, item := range list.Schemes {
					lines = append(
						lines,
						[]string{
							item.Name,
							strings.Join(item.Aliases, ","),
							strings.Join(item.SignedIn, ","),
							strings.Join(item.DeliveryHeaders, ","),
						},
					)
				}

				return rows(s.Out, "SCHEME ALIASES SIGNED-IN DELIVERY-ID", lines)
			})
		},
	}

	addOutputFlag(cmd, &out)
	return cmd
}
