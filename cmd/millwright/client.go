package main

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
	"millwright/state"
)

// client calls a server's API for the commands that need one.
type client struct {
	server, key, factory string
	keyFile              string // where a local server's key was looked for; empty: nowhere
	http                 *http.Client
}

// addClientFlags gives cmd the flags that say which server and factory to talk about.
func addClientFlags(cmd *cobra.Command, c *client, factory bool) {
	cmd.PersistentFlags().StringVar(&c.server, "server", envOr("MILLWRIGHT_SERVER", "http://127.0.0.1:8080"), "the server's `URL` (MILLWRIGHT_SERVER)")
	if factory {
		cmd.PersistentFlags().StringVar(&c.factory, "factory", "", "the factory, by `NAME|UID`; needed when there is more than one")
	}
}

func envOr(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 20

func (c *client) prepare() error {
	if c.http != nil && c.key != "" {
		return nil
	}
	u, err := url.Parse(c.server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return usage("--server %q: want a URL like http://127.0.0.1:8080", c.server)
	}
	c.server = strings.TrimSuffix(strings.TrimSuffix(c.server, "/"), api.Base)
	if c.key = os.Getenv("MILLWRIGHT_API_KEY"); c.key == "" && isLoopback(u.Hostname()) {
		if path, ok := state.SQLitePath(envOr("MILLWRIGHT_STATE", defaultState)); ok {
			c.keyFile = adminKeyFile(path)
			key, _ := os.ReadFile(c.keyFile)
			c.key = strings.TrimSpace(string(key))
		}
	}
	c.http = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// call sends in as JSON (nothing when nil) and returns the body of a good answer.
func (c *client) call(ctx context.Context, method, path string, in any, header ...string) ([]byte, error) {
	resp, err := c.send(ctx, method, path, in, header...)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, &exit{exitUnreachable, fmt.Errorf("reading the answer of %s: %w", c.server, err)}
	}
	return body, nil
}

// send is call for answers that are read as they come.
func (c *client) send(ctx context.Context, method, path string, in any, header ...string) (*http.Response, error) {
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
	req, err := http.NewRequestWithContext(ctx, method, c.server+api.Base+path, body)
	if err != nil {
		return nil, usage("%w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized && c.key == "" {
		if err := c.prepare(); err == nil && c.key != "" {
			return c.send(ctx, method, path, in, header...) // a server that just started has made its first key
		}
	}
	return nil, c.refused(resp)
}

// noServer is the error of a server that does not answer, and may later.
type noServer struct{ error }

func (c *client) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return &exit{exitUnreachable, &noServer{fmt.Errorf("cannot reach %s: %w: is the server running? (millwright serve; or set --server)", c.server, err)}}
}

// refused makes an error of an answer that is not a success.
func (c *client) refused(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	var p api.Error
	if json.Unmarshal(body, &p) != nil || p.Code == "" {
		return &exit{exitUnreachable, fmt.Errorf("%s answered %s: is it a millwright server?", c.server, resp.Status)}
	}
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if p.Code == "authentication_required" {
		text += ": " + c.whereKeys()
	}
	status := exitProblem
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusTooManyRequests {
		status = exitUnreachable
	}
	return &exit{status, &refusal{p.Code, clean(text), resp.StatusCode}}
}

// whereKeys says where the API key of a request comes from, for one that was refused.
func (c *client) whereKeys() string {
	switch {
	case c.keyFile != "" && c.key == "":
		return fmt.Sprintf("set MILLWRIGHT_API_KEY; there is no key of a local server in %s (MILLWRIGHT_STATE says where its state is)", absolute(c.keyFile))
	case c.keyFile != "":
		return fmt.Sprintf("the key in %s is of another state, revoked or expired: set MILLWRIGHT_API_KEY, or make a key with millwright key create --local", absolute(c.keyFile))
	}
	return "set MILLWRIGHT_API_KEY"
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

// get reads a resource into out.
func (c *client) get(ctx context.Context, path string, out any) error {
	body, err := c.call(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return c.decode(body, out)
}

func (c *client) decode(body []byte, out any) error {
	if err := json.Unmarshal(body, out); err != nil {
		return &exit{exitUnreachable, fmt.Errorf("%s answered with something that is not the API's: %w", c.server, err)}
	}
	return nil
}

// factoryRef is what commands need to know of a factory.
type factoryRef struct {
	UID  string `json:"uid"`
	Name string `json:"name"`
}

func (c *client) factories(ctx context.Context) ([]factoryRef, error) {
	var list struct {
		Factories []factoryRef `json:"factories"`
	}
	if err := c.get(ctx, "/factory?limit=500", &list); err != nil {
		return nil, err
	}
	return list.Factories, nil
}

// chosen returns the factories that --factory names, or all.
func (c *client) chosen(ctx context.Context) ([]factoryRef, error) {
	all, err := c.factories(ctx)
	if err != nil || c.factory == "" {
		return all, err
	}
	var names []string
	for _, f := range all {
		if f.UID == c.factory || f.Name == c.factory {
			return []factoryRef{f}, nil
		}
		names = append(names, f.Name)
	}
	return nil, &exit{exitProblem, fmt.Errorf("no factory %q: there is %s", clean(c.factory), cmp.Or(strings.Join(names, ", "), "none"))}
}

// one returns the factory that --factory names, or the only one.
func (c *client) one(ctx context.Context) (factoryRef, error) {
	all, err := c.chosen(ctx)
	if err != nil {
		return factoryRef{}, err
	}
	if len(all) == 1 {
		return all[0], nil
	}
	if len(all) == 0 {
		return factoryRef{}, &exit{exitProblem, errors.New("the server has no factory")}
	}
	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}
	return factoryRef{}, &exit{exitUnreachable, fmt.Errorf("there are %d factories: choose one with --factory %s", len(all), strings.Join(names, "|"))}
}

// webhookRef is what commands need to know of a webhook.
type webhookRef struct {
	UID             string  `json:"uid"`
	Name            string  `json:"name"`
	AuthMode        string  `json:"auth_mode"`
	SignatureScheme string  `json:"signature_scheme"`
	IngressURL      string  `json:"ingress_url"`
	DeletedAt       *string `json:"deleted_at"`
}

// webhook finds a webhook by UID, or by a name that only one has, in the factories that --factory names.
func (c *client) webhook(ctx context.Context, ref string) (factoryRef, webhookRef, error) {
	factories, err := c.chosen(ctx)
	if err != nil {
		return factoryRef{}, webhookRef{}, err
	}
	var known, in []string // in: the factories that have one of this name
	var factory factoryRef
	var found webhookRef
	for _, f := range factories {
		var list struct {
			Webhooks []webhookRef `json:"webhooks"`
		}
		if err := c.get(ctx, "/factory/"+f.UID+"/webhooks?limit=500&include_deleted="+fmt.Sprint(strings.HasPrefix(ref, "wh_")), &list); err != nil {
			return factoryRef{}, webhookRef{}, err
		}
		for _, w := range list.Webhooks {
			if w.UID == ref {
				return f, w, nil
			}
			if w.Name == ref && w.DeletedAt == nil {
				factory, found, in = f, w, append(in, f.Name)
			}
			known = append(known, w.Name)
		}
	}
	switch len(in) {
	case 0:
		return factoryRef{}, webhookRef{}, &exit{exitProblem, fmt.Errorf("no webhook %q: there is %s", clean(ref), cmp.Or(strings.Join(known, ", "), "none"))}
	case 1:
		return factory, found, nil
	}
	return factoryRef{}, webhookRef{}, usage("%d factories have a webhook %q: choose one with --factory %s, or give its UID", len(in), clean(ref), strings.Join(in, "|"))
}

const pollEvery = 200 * time.Millisecond
