package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"millwright/signature"
	"millwright/state"
)

func secretSet(s Streams, c *Client) *cobra.Command {
	var pending, generate bool
	var scheme string
	cmd := &cobra.Command{
		Use:   "set SECRET",
		Short: "Create a secret or give it a new value",
		Long: `Reads the value from standard input, and removes one trailing newline. On a terminal it
prompts for the value and does not echo it.

With --generate it generates the value and prints it once, alone on standard output: give
it to the sender. The value has only letters, digits, - and _. For a scheme like Standard
Webhooks it is a signing secret that starts with whsec_.`,
		Example: `  millwright secret set CI_TOKEN --generate
  millwright secret set CI_TOKEN < token.txt
  millwright secret set STRIPE_SECRET --pending      the provider issues it later`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var value string
			var err error
			body := map[string]any{"pending": true}
			switch {
			case generate:
				value, err = c.newSecret(cmd.Context(), args[0], scheme)
			case !pending:
				value, err = readSecret(s, args[0])
			}

			if err != nil {
				return err
			}
			if !pending {
				body = map[string]any{"value": value}
			}

			answer, err := c.call(cmd.Context(), http.MethodPut, "/secrets/"+url.PathEscape(args[0]), body)
			if err != nil {
				return err
			}

			var secret struct {
				Version  int64    `json:"version"`
				Webhooks []string `json:"webhooks"`
				Warnings []string `json:"warnings"`
			}
			if err := c.Decode(answer, &secret); err != nil {
				return err
			}

			out := s.Out
			if generate {
				out = s.Err // the value alone is on standard output
			}

			fmt.Fprintf(out, "secret %s has version %d\n", args[0], secret.Version)
			if len(secret.Webhooks) > 0 {
				fmt.Fprintf(
					out,
					"%d webhook(s) use the old value until the next apply: run millwright sync\n",
					len(secret.Webhooks),
				)
			}

			for _, warning := range secret.Warnings {
				fmt.Fprintf(s.Err, "warning: %s\n", clean(warning))
			}

			if generate {
				fmt.Fprintln(s.Err, "it is shown once:")
				fmt.Fprintln(s.Out, value)
			}

			return nil
		},
	}

	cmd.Flags().
		BoolVar(
			&pending,
			"pending",
			false,
			"create the secret without a value; its webhook answers 401 until it has one",
		)
	cmd.Flags().BoolVar(&generate, "generate", false, "generate the value, and print it once")
	cmd.Flags().
		StringVar(
			&scheme,
			"scheme",
			"",
			"with --generate: the signature `SCHEME` that uses the value (default that of the applied webhook)",
		)
	Exclusive(cmd, "pending", "generate")
	Exclusive(cmd, "pending", "scheme")
	return cmd
}

// newSecret makes up the value of a secret: a signing secret for the given scheme, or for that of the applied
// webhooks that use the secret, and else a token.
func (c *Client) newSecret(ctx context.Context, name, scheme string) (string, error) {
	if scheme != "" {
		if _, known := signature.Lookup(scheme); !known {
			return "", Usagef("--scheme %q: millwright webhook schemes lists them", scheme)
		}
		return newSecretFor(scheme), nil
	}

	factories, err := c.factories(ctx)
	if err != nil {
		return "", err
	}

	for _, f := range factories {
		hooks, err := c.webhooks(ctx, f, false)
		if err != nil {
			return "", err
		}

		for _, w := range hooks {
			if w.SecretName == name && w.SignatureScheme != "" {
				return newSecretFor(w.SignatureScheme), nil
			}
		}
	}

	return newSecretFor(""), nil
}

// newSecretFor makes up the value of a secret for a signature scheme, or a token.
func newSecretFor(scheme string) string {
	const standard = "standard_webhooks"
	wanted, known := signature.Lookup(scheme)
	if s, _ := signature.Lookup(standard); known && s == wanted {
		value, _ := signature.NewSecret(standard)
		return value
	}
	return state.NewToken(state.TokenPrefix)
}

// readSecret takes a value from a terminal, hidden, or from standard input less one line end.
func readSecret(s Streams, name string) (string, error) {
	var value []byte
	var err error
	if f, ok := s.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintf(s.Err, "value of %s: ", name)
		value, err = term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(s.Err)
	} else {
		value, err = io.ReadAll(io.LimitReader(bufio.NewReader(s.In), 1<<20))
	}

	if err != nil {
		return "", fmt.Errorf("reading the value: %w", err)
	}

	text := strings.TrimSuffix(strings.TrimSuffix(string(value), "\n"), "\r")
	if text == "" {
		return "", Usagef("the value of %s is empty: give it on standard input", name)
	}

	return text, nil
}

// secretItem is what the program shows of a secret.
type secretItem struct {
	Name      string
	Factory   string `json:"factory_uid"`
	Version   int64
	Pending   bool
	Webhooks  []string
	UsedBy    []string `json:"used_by"`
	UpdatedAt string   `json:"updated_at"`
}

// standing says whether the secret has a value, and if a definition holds it.
func (x secretItem) standing() string {
	switch {
	case x.Factory != "":
		return "definition"
	case x.Pending:
		return "pending"
	}
	return "set"
}

// factoryNames returns the names of the factories by UID, if a definition holds one of the secrets.
func (c *Client) factoryNames(ctx context.Context, secrets []secretItem) (map[string]string, error) {
	names := map[string]string{}
	if !slices.ContainsFunc(secrets, func(x secretItem) bool { return x.Factory != "" }) {
		return names, nil
	}

	factories, err := c.factories(ctx)
	for _, f := range factories {
		names[f.UID] = f.Name
	}
	return names, err
}

func secretList(s Streams, c *Client) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "list", Short: "List secrets: names, versions and users, never values", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			body, _, err := c.list(cmd.Context(), "/secrets", "secrets", nil, whole)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				var list struct{ Secrets []secretItem }
				if err := c.Decode(body, &list); err != nil {
					return err
				}

				names, err := c.factoryNames(cmd.Context(), list.Secrets)
				if err != nil {
					return err
				}

				var lines [][]string
				for _, x := range list.Secrets {
					lines = append(
						lines,
						[]string{
							x.Name,
							fmt.Sprint(x.Version),
							x.standing(),
							fmt.Sprint(len(x.Webhooks)),
							fmt.Sprint(len(x.UsedBy)),
							ago(x.UpdatedAt),
							cmp.Or(names[x.Factory], x.Factory),
						},
					)
				}

				return rows(s.Out, "NAME VERSION VALUE WEBHOOKS USERS UPDATED FACTORY", lines)
			})
		},
	}

	addOutputFlag(cmd, &out)
	return cmd
}

func secretDelete(s Streams, c *Client) *cobra.Command {
	return &cobra.Command{
		Use: "delete SECRET", Short: "Delete a secret that nothing uses", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "/secrets/" + url.PathEscape(args[0])
			if _, err := c.call(cmd.Context(), http.MethodDelete, path, nil); err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "secret %s is deleted\n", args[0])
			return nil
		},
	}
}
