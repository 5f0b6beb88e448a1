package main

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func newKey(s streams) *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Create, list and revoke API keys",
		Args:  noCommand,
		RunE:  help,
	}
	addClientFlags(cmd, &c, false)
	cmd.AddCommand(keyCreate(s, &c), keyList(s, &c), keyRevoke(s, &c))
	return cmd
}

func keyCreate(s streams, c *client) *cobra.Command {
	var role, expires string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an API key and show it once",
		Long: `Roles: viewer reads; runner also creates and steers runs and plans a source's
head; admin may do all; worker executes runs and has no API.

The key alone is printed on standard output, what is said about it on standard error.`,
		Example: `  millwright key create ci --role runner
  millwright key create build-host --role worker > worker.key
  millwright key create visitor --role viewer --expires-in 24h`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := map[string]any{"name": args[0], "role": role}
			if expires != "" {
				in["expires_in"] = expires
			}
			body, err := c.call(cmd.Context(), http.MethodPost, "/keys", in)
			if err != nil {
				return err
			}
			var key struct{ UID, Role, Secret string }
			if err := c.decode(body, &key); err != nil {
				return err
			}
			fmt.Fprintf(s.err, "API key %s, role %s; it is shown once:\n", key.UID, key.Role)
			if key.Role == "worker" {
				// The file that `millwright worker --credentials` reads: the key's UID and its secret.
				fmt.Fprintf(s.out, "%s %s\n", key.UID, key.Secret)
				return nil
			}
			fmt.Fprintln(s.out, key.Secret)
			return nil
		},
	}
	cmd.Flags().StringVar(&role, "role", "viewer", "`viewer|runner|admin|worker`")
	cmd.Flags().StringVar(&expires, "expires-in", "", "end the key after this `DURATION`, for example 720h")
	return cmd
}

func keyList(s streams, c *client) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "list", Short: "List API keys, without their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			body, err := c.call(cmd.Context(), http.MethodGet, "/keys?limit=500", nil)
			if err != nil {
				return err
			}
			return out.print(s.out, body, func() error {
				var list struct {
					Keys []struct {
						UID, Name, Role string
						CreatedAt       string  `json:"created_at"`
						ExpiresAt       *string `json:"expires_at"`
						RevokedAt       *string `json:"revoked_at"`
					}
				}
				if err := c.decode(body, &list); err != nil {
					return err
				}
				var lines [][]string
				for _, k := range list.Keys {
					state := "active"
					if k.RevokedAt != nil {
						state = "revoked"
					}
					expires := ""
					if k.ExpiresAt != nil {
						expires = *k.ExpiresAt
					}
					lines = append(lines, []string{k.UID, k.Name, k.Role, state, ago(k.CreatedAt), expires})
				}
				return rows(s.out, "UID NAME ROLE STATE CREATED EXPIRES", lines)
			})
		},
	}
	addOutputFlag(cmd, &out)
	return cmd
}

func keyRevoke(s streams, c *client) *cobra.Command {
	return &cobra.Command{
		Use: "revoke UID", Short: "End an API key", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := c.call(cmd.Context(), http.MethodDelete, "/keys/"+url.PathEscape(args[0]), nil); err != nil {
				return err
			}
			fmt.Fprintf(s.out, "API key %s is revoked\n", args[0])
			return nil
		},
	}
}
