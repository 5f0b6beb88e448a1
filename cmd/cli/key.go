package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"millwright/state"
	"millwright/state/seal"
)

func newKey(s Streams) *cobra.Command {
	var c Client
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Create, list and revoke API keys; rotate the master key",
		Args:  noCommand,
		RunE:  help,
	}
	addClientFlags(cmd, &c, false)
	cmd.AddCommand(keyCreate(s, &c), keyList(s, &c), keyRevoke(s, &c), keyRotateMaster(s))
	return cmd
}

func keyCreate(s Streams, c *Client) *cobra.Command {
	var role, expires string
	var local bool
	var f stateFlags
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an API key and show it once",
		Long: `Roles: viewer reads; runner also creates and steers runs and plans a source's
head; admin may do all; worker executes runs and has no API.

The key alone is printed on standard output, what is said about it on standard error.

With --local the key is made in the state itself, which needs no key: so a lost admin key
is replaced. Stop the server of a SQLite state first; a PostgreSQL state may be in use. An
admin key goes into the file admin-key beside a SQLite state too, unless a key that works
is there.`,
		Example: `  millwright key create ci --role runner
  millwright key create build-host --role worker > worker.key
  millwright key create visitor --role viewer --expires-in 24h
  millwright key create admin --role admin --local`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := map[string]any{"name": args[0], "role": role}
			if expires != "" {
				in["expires_in"] = expires
			}

			var key struct{ UID, Role, Secret string }
			if local {
				made, secret, err := localKey(cmd.Context(), s, &f, args[0], state.Role(role), expires)
				if err != nil {
					return err
				}

				key.UID, key.Role, key.Secret = made.UID, string(made.Role), secret
			} else {
				body, err := c.call(cmd.Context(), http.MethodPost, "/keys", in)
				if err != nil {
					return err
				}
				if err := c.Decode(body, &key); err != nil {
					return err
				}
			}

			fmt.Fprintf(s.Err, "API key %s, role %s; it is shown once:\n", key.UID, key.Role)
			if key.Role == "worker" {
				// The file that `millwright worker --nats-credentials` reads: the key's UID and its secret.
				fmt.Fprintf(s.Out, "%s %s\n", key.UID, key.Secret)
				return nil
			}

			fmt.Fprintln(s.Out, key.Secret)
			return nil
		},
	}

	cmd.Flags().StringVar(&role, "role", "viewer", "`viewer|runner|admin|worker`")
	cmd.Flags().StringVar(&expires, "expires-in", "", "end the key after this `DURATION`, for example 720h")
	cmd.Flags().BoolVar(&local, "local", false, "make the key in the state itself, without a server")
	f.add(cmd)
	return cmd
}

// keyItem is what the program shows of an API key.
type keyItem struct {
	UID, Name, Role string
	CreatedAt       string  `json:"created_at"`
	ExpiresAt       *string `json:"expires_at"`
	RevokedAt       *string `json:"revoked_at"`
}

func keyList(s Streams, c *Client) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "list", Short: "List API keys, without their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			body, _, err := c.list(cmd.Context(), "/keys", "keys", nil, whole)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				var list struct{ Keys []keyItem }
				if err := c.Decode(body, &list); err != nil {
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

				return rows(s.Out, "UID NAME ROLE STATE CREATED EXPIRES", lines)
			})
		},
	}

	addOutputFlag(cmd, &out)
	return cmd
}

func keyRevoke(s Streams, c *Client) *cobra.Command {
	return &cobra.Command{
		Use: "revoke KEY", Short: "End an API key", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := c.call(cmd.Context(), http.MethodDelete, "/keys/"+url.PathEscape(args[0]), nil); err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "API key %s is revoked\n", args[0])
			return nil
		},
	}
}

func keyRotateMaster(s Streams) *cobra.Command {
	var f stateFlags
	var newFile string
	cmd := &cobra.Command{
		Use:   "rotate-master",
		Short: "Seal the secrets under a new master key",
		Long: `Seals every secret at rest under a new master key, all in one transaction. Stop every
server of the state first; it is refused while one runs.

A new key takes the place of the old one in its file; while that happens the file holds
both, so that the state opens whenever this command is killed. The old key is kept beside
it, for backups made before: destroy it when they are gone. With --new-key-file, which a
key in MILLWRIGHT_MASTER_KEY needs, the new key is the one in that file, made when there
is none, and you hand it to the servers.`,
		Example: `  millwright key rotate-master
  millwright key rotate-master --state postgres://… --master-key-file old.key --new-key-file new.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.resolve(); err != nil {
				return err
			}

			value, keyFile := os.Getenv("MILLWRIGHT_MASTER_KEY"), f.masterKeyFile
			if value != "" && newFile == "" {
				return Usagef(
					"the key is in MILLWRIGHT_MASTER_KEY, where it cannot be replaced: give --new-key-file FILE, and its contents to the servers afterwards",
				)
			}

			if path, ok := state.SQLitePath(f.state); ok {
				if info, err := os.Stat(path); err != nil || info.Size() == 0 {
					return fmt.Errorf("state %s: there is none", path)
				}
				if keyFile == "" {
					keyFile = seal.KeyFile(path)
				}
			}

			key, err := seal.LoadKey(f.state, value, f.masterKeyFile)
			if err != nil {
				return err
			}

			r, err := seal.Rotate(cmd.Context(), f.state, key, keyFile, newFile)
			if err != nil {
				return err
			}

			for _, name := range r.Unreadable[:min(len(r.Unreadable), 20)] {
				fmt.Fprintf(
					s.Err,
					"warning: %s cannot be opened with the old key and stays as it is: set it anew\n",
					name,
				)
			}

			if more := len(r.Unreadable) - 20; more > 0 {
				fmt.Fprintf(s.Err, "warning: %d more sealed values cannot be opened\n", more)
			}

			if newFile != "" {
				fmt.Fprintf(
					s.Out,
					"%d sealed values are under the key in %s now: give it to every server (--master-key-file, MILLWRIGHT_MASTER_KEY)\n",
					r.Values,
					newFile,
				)
				return nil
			}

			fmt.Fprintf(s.Out, "%d sealed values are under a new key now, in %s\n", r.Values, keyFile)
			fmt.Fprintf(
				s.Err,
				"The old key is kept in %s, for backups made before: destroy it when they are gone.\n",
				r.Kept,
			)
			return nil
		},
	}

	f.add(cmd)
	cmd.Flags().
		StringVar(&newFile, "new-key-file", "", "`FILE` with the new key, made when there is none; the old key file is left alone")
	return cmd
}
