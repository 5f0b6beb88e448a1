package cli

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

// webhookFlags describe a webhook of a managed factory.
type webhookFlags struct {
	authMode, scheme, secretName, deliveryID, window string

	perMinute          int
	enabled, handshake bool
}

func (w *webhookFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.authMode, "auth-mode", "", "senders authenticate by `token|url_token|signature`")
	f.StringVar(&w.scheme, "scheme", "", "senders sign by the `SCHEME` of a provider")
	f.StringVar(
		&w.secretName,
		"secret-name",
		"",
		"the `SECRET` with the credential, generated if it does not exist",
	)
	f.StringVar(&w.deliveryID, "delivery-id-header", "", "the `HEADER` that has the sender's ID of the event")
	f.StringVar(&w.window, "duplicate-window", "", "count an equal body as a new event after `10m`, up to 30d")
	f.IntVar(&w.perMinute, "deliveries-per-minute", 0, "take `N` deliveries a minute of each sender")
	f.BoolVar(&w.enabled, "enabled", true, "take deliveries; --enabled=false: answer 404")
	f.BoolVar(&w.handshake, "handshake", false, "answer the provider's handshake")
}

// body returns the members of a request for the flags that were given. --scheme alone means a signature.
func (w *webhookFlags) body(cmd *cobra.Command) map[string]any {
	given := cmd.Flags().Changed
	if w.scheme != "" && !given("auth-mode") {
		w.authMode = "signature"
	}

	in := map[string]any{}
	for flag, member := range map[string]struct {
		name  string
		value any
	}{
		"auth-mode":          {"auth_mode", w.authMode},
		"scheme":             {"signature_scheme", w.scheme},
		"secret-name":        {"secret_name", w.secretName},
		"delivery-id-header": {"delivery_id_header", w.deliveryID},
		"duplicate-window":   {"duplicate_window", w.window},
		"enabled":            {"enabled", w.enabled},
		"handshake":          {"handshake", w.handshake},

		"deliveries-per-minute": {"deliveries_per_minute", w.perMinute},
	} {
		if given(flag) || flag == "auth-mode" && w.authMode != "" {
			in[member.name] = member.value
		}
	}

	return in
}

func webhookCreate(s Streams, c *Client) *cobra.Command {
	var w webhookFlags
	var secretFile string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a webhook of a managed factory",
		Long: `Creates a webhook, which takes deliveries when the command returns. Prints its URL and, on
a line of its own, the secret that the server generated. The secret is shown once. There is
no such line if the secret exists, or if the provider issues it.`,
		Example: `  millwright webhook create alerts
  millwright webhook create pushes --scheme github --secret-file secret.txt
  millwright webhook create uptime --auth-mode url_token --delivery-id-header X-Event`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := w.body(cmd)
			in["name"] = args[0]
			if err := addSecret(in, secretFile); err != nil {
				return err
			}

			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}

			body, err := c.call(cmd.Context(), http.MethodPost, "/factory/"+f.UID+"/webhooks", in)
			if err != nil {
				return err
			}

			return printNewSecret(s, c, body)
		},
	}

	w.add(cmd)
	cmd.Flags().StringVar(
		&secretFile,
		"secret-file",
		"",
		"`FILE` with the signing secret that the provider issued",
	)
	return cmd
}

// addSecret adds the secret in a file, less one line end, to a request.
func addSecret(in map[string]any, file string) error {
	if file == "" {
		return nil
	}
	secret, err := secretFrom(file)
	in["secret"] = string(secret)
	return err
}

// printNewSecret prints a webhook's URL and the secret that it was just given.
func printNewSecret(s Streams, c *Client, body []byte) error {
	var w struct {
		webhookItem
		Secret string
	}
	if err := c.Decode(body, &w); err != nil {
		return err
	}

	fmt.Fprintln(s.Out, clean(w.IngressURL))
	switch {
	case w.Secret != "":
		fmt.Fprintf(s.Err, "the secret %s, shown once:\n", clean(w.SecretName))
		fmt.Fprintln(s.Out, w.Secret)
	case w.SecretPending:
		fmt.Fprintf(
			s.Err,
			"every request gets 401 until the secret has a value: "+
				"millwright webhook rotate %s --secret-file FILE\n",
			clean(w.Name),
		)
	}

	return nil
}

func webhookUpdate(s Streams, c *Client) *cobra.Command {
	var w webhookFlags
	var name string
	cmd := &cobra.Command{
		Use:   "update WEBHOOK",
		Short: "Change a webhook of a managed factory",
		Example: `  millwright webhook update alerts --enabled=false
  millwright webhook update pushes --scheme gitlab --secret-name GITLAB_SECRET
  millwright webhook update alerts --name outages`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := w.body(cmd)
			if name != "" {
				in["name"] = name
			}
			if len(in) == 0 {
				return Usagef("nothing to change: give a flag (see %s --help)", cmd.CommandPath())
			}

			f, ref, err := c.webhook(cmd.Context(), args[0])
			if err != nil {
				return err
			}

			body, err := c.call(cmd.Context(), http.MethodPatch, webhookPath(f, ref), in)
			if err != nil {
				return err
			}

			var now webhookItem
			if err := c.Decode(body, &now); err != nil {
				return err
			}

			fmt.Fprintf(s.Out, "webhook %s: %s, %s\n", clean(now.Name), now.mode(), now.standing())
			return nil
		},
	}

	w.add(cmd)
	cmd.Flags().StringVar(&name, "name", "", "give it a new `NAME`; its URL stays")
	return cmd
}

func webhookRotate(s Streams, c *Client) *cobra.Command {
	var secretFile string
	var shared bool
	cmd := &cobra.Command{
		Use:   "rotate WEBHOOK",
		Short: "Give a webhook a new secret; the old one stops working at once",
		Long: `Gives a webhook of a managed factory a new secret: a generated one, or that in
--secret-file. Prints the webhook's URL and, on a line of its own, the secret if the server
generated it. The secret is shown once.`,
		Example: `  millwright webhook rotate alerts
  millwright webhook rotate pushes --secret-file secret.txt`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := map[string]any{"shared": shared}
			if err := addSecret(in, secretFile); err != nil {
				return err
			}

			f, ref, err := c.webhook(cmd.Context(), args[0])
			if err != nil {
				return err
			}

			body, err := c.call(cmd.Context(), http.MethodPost, webhookPath(f, ref)+"/rotate", in)
			if err != nil {
				return err
			}

			return printNewSecret(s, c, body)
		},
	}

	cmd.Flags().StringVar(
		&secretFile,
		"secret-file",
		"",
		"`FILE` with the new signing secret that the provider issued",
	)
	cmd.Flags().BoolVar(&shared, "shared", false, "rotate although other webhooks use the secret too")
	return cmd
}

func webhookDelete(s Streams, c *Client) *cobra.Command {
	var withSecret, restorable bool
	var ask confirmation
	cmd := &cobra.Command{
		Use:   "delete WEBHOOK",
		Short: "Delete a webhook of a managed factory",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, ref, err := c.webhook(cmd.Context(), args[0])
			if err != nil {
				return err
			}

			err = ask.of(s, "delete webhook %s of factory %s: its URL will answer 404", ref.Name, f.Name)
			if err != nil {
				return err
			}

			path := fmt.Sprintf("%s?delete_secret=%t&restorable=%t", webhookPath(f, ref), withSecret, restorable)
			if _, err := c.call(cmd.Context(), http.MethodDelete, path, nil); err != nil {
				return err
			}

			fmt.Fprintf(s.Out, "webhook %s is deleted\n", clean(ref.Name))
			return nil
		},
	}

	cmd.Flags().BoolVar(
		&withSecret,
		"delete-secret",
		false,
		"delete its secret too, unless something else uses it",
	)
	cmd.Flags().BoolVar(
		&restorable,
		"restorable",
		false,
		"keep the URL for 30 days, for a webhook of this name",
	)
	ask.add(cmd)
	return cmd
}
