package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"millwright/signature"
)

// deliveryOutcomes are what may become of a delivery.
var deliveryOutcomes = []string{
	"accepted",
	"duplicate",
	"handshake",
	"rejected_auth",
	"rejected_invalid_json",
	"rejected_too_large",
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

			bodies := make([][]byte, len(factories))
			for i, f := range factories {
				if bodies[i], err = c.webhookList(cmd.Context(), f, deleted); err != nil {
					return err
				}
			}

			body, err := c.joined(bodies, "webhooks")
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				var lines [][]string
				for i, f := range factories {
					var list struct{ Webhooks []webhookItem }
					if err := c.Decode(bodies[i], &list); err != nil {
						return err
					}

					for _, w := range list.Webhooks {
						lines = append(lines, []string{f.Name, w.Name, w.UID, w.mode(), w.standing(), w.IngressURL})
					}
				}

				return rows(s.Out, "FACTORY NAME UID AUTH STATE URL", lines)
			})
		},
	}

	addOutputFlag(cmd, &out)
	cmd.Flags().BoolVar(&deleted, "deleted", false, "also list deleted webhooks")
	return cmd
}

func webhookShow(s Streams, c *Client) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "show WEBHOOK", Aliases: []string{"get"}, Short: "Show one webhook", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, ref, err := c.webhook(cmd.Context(), args[0])
			if err != nil {
				return err
			}

			body, err := c.call(cmd.Context(), http.MethodGet, webhookPath(f, ref), nil)
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
					{"register", w.Registration.String()},
					{"file", w.File},
					{"created", w.CreatedAt},
				} {
					if kv[1] != "" {
						fmt.Fprintf(s.Out, "%-10s %s\n", kv[0], clean(kv[1]))
					}
				}

				for _, outcome := range deliveryOutcomes {
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
		Name: sch.Name(), Aliases: append([]string{}, sch.Aliases()...),
		SignedIn: []string{}, DeliveryHeaders: []string{},
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
