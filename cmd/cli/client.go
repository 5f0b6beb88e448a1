package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"millwright/api"
	"millwright/cmd/settings"
	"millwright/schema"
	"millwright/state"
)

// Client calls a server's API for the commands that need one.
type Client struct {
	Server, Key, factory string // Server: a URL or the name of a login; empty: the current login or localServer
	keyFile              string // where a local server's key was looked for; empty: nowhere
	login, loginKey      string // the login of the server, and its key
	foreign              bool   // the working directory may be a stranger's: no key is read from it
	HTTP                 *http.Client
}

// addClientFlags gives cmd the flags that say which server and factory to talk about.
func addClientFlags(cmd *cobra.Command, c *Client, factory bool) {
	f := cmd.PersistentFlags()
	f.StringVar(&c.Server, "server", defaultServer(),
		"the server's `URL` (MILLWRIGHT_SERVER, default that of millwright login, else "+localServer+")")
	if factory {
		f.StringVar(&c.factory, "factory", "", "name or UID of the `FACTORY`; needed if there are several")
	}
}

// defaultServer returns the server that the environment names: MILLWRIGHT_BASE_URL is how the SDKs call it.
func defaultServer() string {
	return EnvOr("MILLWRIGHT_SERVER", os.Getenv("MILLWRIGHT_BASE_URL"))
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 20

func (c *Client) prepare() error {
	if c.HTTP != nil && c.Key != "" {
		return nil
	}

	if err := c.locate(); err != nil {
		return err
	}

	address, err := serverURL(c.Server)
	if err != nil {
		return Usagef("--server %q: %w", c.Server, err)
	}
	u, err := url.Parse(address)
	if err != nil {
		return Usagef("--server %q: %w", c.Server, err)
	}

	c.Server = address
	c.Key = cmp.Or(c.givenKey(), c.loginKey)
	if c.Key == "" && IsLoopback(u.Hostname()) && !c.foreign && os.Getenv("MILLWRIGHT_STATE") == "" {
		c.Key = c.localKey(settings.DefaultState)
	}

	c.HTTP = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return nil
}

// locate replaces the name of a login by its server, and takes the current login if nothing names a server.
// Only the login of the server that it finds may give a key.
func (c *Client) locate() error {
	named := strings.Contains(c.Server, "/")
	if named && c.givenKey() != "" {
		return nil
	}

	all, err := readLogins()
	if err != nil {
		return err
	}

	if name := cmp.Or(c.Server, all.Current); !named && name != "" {
		one, known := all.Servers[name]
		if !known {
			return Usagef("--server %q: want a URL like %s, or the name of a login: there is %s",
				name, localServer, all.named())
		}
		c.Server, c.login, c.loginKey = one.URL, name, one.Key
		return nil
	}

	c.Server = cmp.Or(c.Server, localServer)
	if address, err := serverURL(c.Server); err == nil {
		c.login = all.of(address)
		c.loginKey = all.Servers[c.login].Key
	}
	return nil
}

// givenKey returns the key that flags and the environment give.
func (c *Client) givenKey() string {
	key := cmp.Or(c.Key, os.Getenv("MILLWRIGHT_API_KEY"))
	if u, err := url.Parse(c.Server); key == "" && err == nil && IsLoopback(u.Hostname()) {
		key = c.localKey(os.Getenv("MILLWRIGHT_STATE"))
	}
	return key
}

// localKey returns the first key of a SQLite state on this machine, and notes where it looked.
func (c *Client) localKey(dsn string) string {
	path, sqlite := state.SQLitePath(dsn)
	if dsn == "" || !sqlite {
		return ""
	}

	c.keyFile = settings.AdminKeyFile(path)
	key, _ := os.ReadFile(c.keyFile)
	return strings.TrimSpace(string(key))
}

// IsLoopback reports whether host is this machine: localhost or a loopback address.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// call sends in as JSON (nothing when nil) and returns the body of a good answer.
func (c *Client) call(ctx context.Context, method, path string, in any, header ...string) ([]byte, error) {
	resp, err := c.send(ctx, method, path, in, header...)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, &Exit{ExitUnreachable, fmt.Errorf("reading the answer of %s: %w", c.Server, err)}
	}
	return body, nil
}

// send is call for answers that are read as they come.
func (c *Client) send(ctx context.Context, method, path string, in any, header ...string) (*http.Response, error) {
	if err := c.prepare(); err != nil {
		return nil, err
	}

	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}

		body = bytes.NewReader(b)
	}

	req, err := http.NewRequestWithContext(ctx, method, c.Server+api.Base+path, body)
	if err != nil {
		return nil, Usagef("%w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}

	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}

	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()

	if resp.StatusCode == http.StatusUnauthorized && c.Key == "" {
		if err := c.prepare(); err == nil && c.Key != "" {
			return c.send(ctx, method, path, in, header...) // a server that just started has made its first key
		}
	}

	return nil, c.refused(resp)
}

// noServer is the error of a server that does not answer, and may later.
type noServer struct{ error }

func (e *noServer) Unwrap() error { return e.error }

func (c *Client) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}

	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}

	return &Exit{
		ExitUnreachable,
		&noServer{
			fmt.Errorf(
				"cannot reach %s: %w: is the server running? (millwright serve; or set --server)",
				c.address(),
				err,
			),
		},
	}
}

// address names the server in errors, with the login that it comes from.
func (c *Client) address() string {
	if c.login != "" {
		return c.Server + ", the server of the login " + c.login
	}
	return c.Server
}

// refused makes an error of an answer that is not a success.
func (c *Client) refused(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	var p api.Error
	if json.Unmarshal(body, &p) != nil || p.Code == "" {
		return &Exit{ExitUnreachable, fmt.Errorf("%s answered %s: is it a millwright server?", c.Server, resp.Status)}
	}

	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if p.Code == "authentication_required" {
		text += ": " + c.whereKeys()
	}

	status := ExitProblem
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusUnauthorized ||
		resp.StatusCode == http.StatusForbidden ||
		resp.StatusCode == http.StatusTooManyRequests {
		status = ExitUnreachable
	}

	text = clean(text)
	for _, e := range p.Errors { // the first is in the detail
		if line := clean(e.Field + ": " + e.Message); !strings.Contains(text, clean(e.Message)) {
			text += "\n  " + line
		}
	}

	return &Exit{status, &refusal{p.Code, text, resp.StatusCode}}
}

// whereKeys names the origin of the API key of a refused request.
func (c *Client) whereKeys() string {
	switch {
	case c.login != "" && c.Key == c.loginKey:
		return fmt.Sprintf("the key of the login %s is revoked or expired: run millwright login --server %s",
			c.login, c.login)
	case c.keyFile != "" && c.Key == "":
		return fmt.Sprintf(
			"set MILLWRIGHT_API_KEY, or call the command where the server was started: %s does not exist "+
				"(MILLWRIGHT_STATE names a state elsewhere)",
			absolute(c.keyFile),
		)
	case c.keyFile != "":
		return fmt.Sprintf(
			"the key in %s is of another state, revoked or expired: set MILLWRIGHT_API_KEY, "+
				"or make a key with millwright key create --local",
			absolute(c.keyFile),
		)
	}

	return "set MILLWRIGHT_API_KEY, or run millwright login"
}

func absolute(file string) string {
	if abs, err := filepath.Abs(file); err == nil {
		return abs
	}
	return file
}

// refusal is a problem that the server answered with.
type refusal struct {
	code, text string
	status     int
}

func (r *refusal) Error() string { return r.text }

// Code returns the kind of the problem.
func (r *refusal) Code() string { return r.code }

// Get reads a resource into out.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	body, err := c.call(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return c.Decode(body, out)
}

// Decode reads an answer of the server into out. The error names the server.
func (c *Client) Decode(body []byte, out any) error {
	if err := json.Unmarshal(body, out); err != nil {
		return &Exit{
			ExitUnreachable,
			fmt.Errorf("%s answered with something that is not the API's: %w", c.Server, err),
		}
	}
	return nil
}

const pollEvery = 200 * time.Millisecond

// cause returns why a tree could not be read, in a few words: the problem of its root, or else the error.
func cause(loaded *schema.Result) string {
	for _, p := range loaded.Problems {
		if p.Path == "." && (p.Code == "missing-path" || p.Code == "unreadable") {
			return p.Message
		}
	}
	return loaded.Err.Error()
}
