package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

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
	var factories []string
	var local bool
	var f stateFlags
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an API key and show it once",
		Long: `Roles:
  planner  lists the factories and plans: for continuous integration
  viewer   also reads
  runner   also starts and steers runs, and plans the head of a source
  admin    everything
  worker   executes runs; it cannot use the API

With --factory the key is limited to these factories: others do not exist for it, and it
cannot use what concerns all, such as keys, secrets and workers. A worker with such a key
executes runs of these factories only.

Standard output has only the key.

With --local the command creates the key in the state itself, without an API key. Use it to
replace a lost admin key. Stop the server of a SQLite state first; a PostgreSQL state may be
in use. Beside a SQLite state, the file admin-key also gets an admin key, unless it has one
that works.`,
		Example: `  millwright key create ci --role runner
  millwright key create payments-ci --role planner --factory payments
  millwright key create build-host --role worker > worker.key
  millwright key create visitor --role viewer --expires-in 24h
  millwright key create admin --role admin --local`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := map[string]any{"name": args[0], "role": role}
			if expires != "" {
				in["expires_in"] = expires
			}

			if len(factories) > 0 {
				uids, err := c.factoryUIDs(cmd.Context(), factories)
				if err != nil {
					return err
				}
				in["factories"] = uids
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

	cmd.Flags().StringVar(&role, "role", "viewer", "`planner|viewer|runner|admin|worker`")
	cmd.Flags().
		StringSliceVar(&factories, "factory", nil, "limit the key to the factory of this `NAME`; may be repeated")
	cmd.Flags().StringVar(&expires, "expires-in", "", "let the key expire after this `DURATION`, such as 720h")
	cmd.Flags().BoolVar(&local, "local", false, "create the key in the state itself, without a server")
	f.add(cmd)
	cmd.MarkFlagsMutuallyExclusive("factory", "local")
	return cmd
}

// factoryUIDs returns the UIDs of factories, each named by its name or UID.
func (c *Client) factoryUIDs(ctx context.Context, named []string) (uids []string, err error) {
	all, err := c.factories(ctx)
	if err != nil {
		return nil, err
	}

	for _, name := range named {
		i := slices.IndexFunc(all, func(f factoryRef) bool { return f.Name == name || f.UID == name })
		if i < 0 {
			return nil, Usagef("--factory %q: the server has no such factory", name)
		}
		uids = append(uids, all[i].UID)
	}

	return uids, nil
}

// keyItem is what the program shows of an API key.
type keyItem struct {
	UID, Name, Role string
	Factories       []string
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

					limit := "all"
					if len(k.Factories) > 0 {
						limit = strings.Join(k.Factories, ",")
					}

					lines = append(lines, []string{k.UID, k.Name, k.Role, state, ago(k.CreatedAt), expires, limit})
				}

				return rows(s.Out, "UID NAME ROLE STATE CREATED EXPIRES FACTORIES", lines)
			})
		},
	}

	addOutputFlag(cmd, &out)
	return cmd
}

func keyRevoke(s Streams, c *Client) *cobra.Command {
	return &cobra.Command{
		Use: "revoke KEY", Short: "Revoke an API key", Args: cobra.ExactArgs(1),
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
		Long: `Seals every stored secret under a new master key, in one transaction. Stop every server of
the state first: the command refuses to run beside one.

It replaces the key in the master key file. Meanwhile the file has both keys, so the state
opens even if the command is killed. It renames the old key, which older backups need:
destroy it together with them.

With --new-key-file it takes the new key from that file, or generates one there, and
changes no other file. Give that key to the servers. A key in MILLWRIGHT_MASTER_KEY needs
this flag.`,
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
					"the command cannot replace a key in MILLWRIGHT_MASTER_KEY: " +
						"give --new-key-file FILE, and then its contents to the servers",
				)
			}

			if path, ok := state.SQLitePath(f.state); ok {
				if info, err := os.Stat(path); err != nil || info.Size() == 0 {
					return fmt.Errorf("state %s does not exist", path)
				}
				if keyFile == "" {
					keyFile = seal.KeyFile(path)
				}
			}

			key, err := seal.LoadKey(f.state, value, f.masterKeyFile)
			if err != nil {
				return err
			}

			r, err := seal.Rotate(atConsole(cmd.Context()), f.state, key, keyFile, newFile)
			if err != nil {
				return err
			}

			for _, name := range r.Unreadable[:min(len(r.Unreadable), 20)] {
				fmt.Fprintf(
					s.Err,
					"warning: the old key does not open %s, which stays as it is: set it again\n",
					name,
				)
			}

			if more := len(r.Unreadable) - 20; more > 0 {
				fmt.Fprintf(s.Err, "warning: %d more sealed values cannot be opened\n", more)
			}

			if newFile != "" {
				fmt.Fprintf(
					s.Out,
					"%d values are now sealed under the key in %s: "+
						"give it to every server (--master-key-file, MILLWRIGHT_MASTER_KEY)\n",
					r.Values,
					newFile,
				)
				return nil
			}

			fmt.Fprintf(s.Out, "%d values are now sealed under a new key, in %s\n", r.Values, keyFile)
			fmt.Fprintf(
				s.Err,
				"The old key is in %s, for older backups: destroy it together with them.\n",
				r.Kept,
			)
			return nil
		},
	}

	f.add(cmd)
	cmd.Flags().
		StringVar(
			&newFile,
			"new-key-file",
			"",
			"`FILE` with the new key, generated if it does not exist; the old key file stays",
		)
	return cmd
}
