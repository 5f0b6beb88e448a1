package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// loginName is the form of the name of a login.
var loginName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)

func newLogin(s Streams) *cobra.Command {
	var server, name string
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Store a server and its key for all commands",
		Long: `Asks for an API key of the server, checks it there, and stores both in your configuration
directory, in millwright/logins.json with mode 0600. Without a terminal it reads the key
from MILLWRIGHT_API_KEY or standard input.

Commands then use this server and this key. --server, MILLWRIGHT_SERVER and
MILLWRIGHT_API_KEY take precedence. With several logins, --server takes a login's name too.
On Windows the file has the permissions of its directory.`,
		Example: `  millwright login --server https://hooks.example.com
  millwright login --server https://staging.example.com --name staging < key
  millwright status --server staging
  millwright login list
  millwright login use staging`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return storeLogin(cmd.Context(), s, server, name) },
	}

	cmd.Flags().StringVar(&server, "server", defaultServer(), "the server's `URL` (MILLWRIGHT_SERVER)")
	cmd.Flags().StringVar(&name, "name", "", "the login's `NAME` (default the server's host)")
	cmd.AddCommand(loginList(s), loginUse(s))
	return cmd
}

func storeLogin(ctx context.Context, s Streams, server, name string) error {
	all, err := readLogins()
	if err != nil {
		return err
	}
	if server == "" {
		return Usagef("no server: give --server URL")
	}
	if one, known := all.Servers[server]; known { // its key is to be replaced
		name, server = cmp.Or(name, server), one.URL
	}

	address, err := serverURL(server)
	if err != nil {
		return Usagef("--server %q: %w", server, err)
	}
	at, err := url.Parse(address)
	if err != nil {
		return Usagef("--server %q: %w", server, err)
	}

	name = cmp.Or(name, all.of(address), strings.Trim(at.Host, "[]"))
	if !loginName.MatchString(name) {
		return Usagef("--name %q: want up to 128 letters, digits, '.', '_', ':' or '-'", name)
	}
	if at.Scheme == "http" && !IsLoopback(at.Hostname()) {
		fmt.Fprintf(s.Err, "warning: %s is not https: the key travels in clear\n", clean(address))
	}

	key := os.Getenv("MILLWRIGHT_API_KEY")
	if key == "" {
		if key, err = readSecret(s, "the API key of "+clean(address)); err != nil {
			return err
		}
	}

	key = strings.TrimSpace(key)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Usagef("this is no API key: want one line of letters, digits and '_'")
	}

	c := Client{Server: address, Key: key}
	resp, err := c.send(ctx, http.MethodGet, "/factory?limit=1", nil)
	if err != nil {
		return notStored(err)
	}
	resp.Body.Close()

	if all.Servers == nil {
		all.Servers = map[string]login{}
	}
	all.Servers[name] = login{URL: address, Key: key}
	all.Current = name
	if err := all.write(); err != nil {
		return fmt.Errorf("the key was not stored: %w", err)
	}

	file, err := loginsFile()
	fmt.Fprintf(s.Out, "logged in to %s as %s; the key is in %s\n", clean(address), name, file)
	return err
}

// notStored adds to the error of a check that it had no effect.
func notStored(err error) error {
	var e *Exit
	if !errors.As(err, &e) {
		return err
	}

	if r, ok := errors.AsType[*refusal](err); ok && r.status == http.StatusUnauthorized {
		return &Exit{ExitProblem, errors.New("the server refused the key, which was not stored: " +
			"make one with millwright key create NAME")}
	}
	return &Exit{e.Status, fmt.Errorf("the key was not stored: %w", e.err)}
}

func loginList(s Streams) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "list", Short: "List the stored logins, without their keys", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all, err := readLogins()
			if err != nil {
				return err
			}

			type item struct {
				Name    string `json:"name"`
				Server  string `json:"server"`
				Current bool   `json:"current"`
			}
			list := struct {
				Logins []item `json:"logins"`
			}{[]item{}}
			var lines [][]string
			for _, name := range slices.Sorted(maps.Keys(all.Servers)) {
				one := item{name, all.Servers[name].URL, name == all.Current}
				current := ""
				if one.Current {
					current = "yes"
				}

				list.Logins = append(list.Logins, one)
				lines = append(lines, []string{one.Name, one.Server, current})
			}

			body, err := json.Marshal(list)
			if err != nil {
				return err
			}
			return out.print(s.Out, body, func() error { return rows(s.Out, "NAME SERVER CURRENT", lines) })
		},
	}

	addOutputFlag(cmd, &out)
	return cmd
}

func loginUse(s Streams) *cobra.Command {
	return &cobra.Command{
		Use: "use LOGIN", Short: "Choose the login that commands use", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := readLogins()
			if err != nil {
				return err
			}

			one, known := all.Servers[args[0]]
			if !known {
				return noLogin(args[0], all)
			}

			all.Current = args[0]
			if err := all.write(); err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "commands use %s\n", clean(one.URL))
			return nil
		},
	}
}

func newLogout(s Streams) *cobra.Command {
	var every bool
	cmd := &cobra.Command{
		Use:   "logout [LOGIN]",
		Short: "Remove a stored server and its key",
		Long: `Removes a login (default the current one) from your configuration directory. The key still
works: millwright key revoke ends it.`,
		Example: `  millwright logout
  millwright logout staging
  millwright logout --all`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if every && len(args) > 0 {
				return Usagef("--all and LOGIN exclude one another: give one of them")
			}
			if every {
				return removeAllLogins(s)
			}

			all, err := readLogins()
			if err != nil {
				return err
			}

			name := all.Current
			if len(args) == 1 {
				name = args[0]
			}
			one, known := all.Servers[name]
			if !known {
				return noLogin(name, all)
			}

			delete(all.Servers, name)
			if all.Current == name {
				all.Current = ""
			}
			if err := all.write(); err != nil {
				return err
			}

			fmt.Fprintf(s.Out, "logged out of %s\n", clean(one.URL))
			if all.Current == "" && len(all.Servers) > 0 {
				fmt.Fprintf(s.Out, "choose another with millwright login use %s\n",
					strings.Join(slices.Sorted(maps.Keys(all.Servers)), "|"))
			}
			return nil
		},
	}

	cmd.Flags().BoolVar(&every, "all", false, "remove every login, also from a damaged file")
	return cmd
}

func removeAllLogins(s Streams) error {
	file, err := loginsFile()
	if err != nil {
		return err
	}
	if err := removeLogins(file); err != nil {
		return err
	}

	fmt.Fprintf(s.Out, "%s has no logins\n", file)
	return nil
}

func noLogin(name string, all logins) error {
	if name == "" {
		return &Exit{ExitProblem, fmt.Errorf("no login is current: there is %s", all.named())}
	}
	return &Exit{ExitProblem, fmt.Errorf("no login %q: there is %s", clean(name), all.named())}
}

// loginValues lists the names of the logins for a shell.
func loginValues(context.Context, completion) ([]string, error) {
	all, err := readLogins()
	if err != nil {
		return nil, err
	}

	var found []string
	for _, name := range slices.Sorted(maps.Keys(all.Servers)) {
		found = append(found, described(name, all.Servers[name].URL))
	}
	return found, nil
}
