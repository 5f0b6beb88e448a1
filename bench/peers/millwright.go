package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"millwright/ingress/conformance"
)

// adminKey is the key of the server's first administrator.
const adminKey = "mw_peers-key-of-thirty-two-characters"

// startMillwright starts a server with the definition of the kit.
func startMillwright(ctx context.Context, dir, program string) (receiver, error) {
	if program == "" {
		program = filepath.Join(dir, "millwright")
		build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/millwright")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return receiver{}, err
		}
	}
	factory, err := filepath.Abs("testdata/conformance/factory")
	if err != nil {
		return receiver{}, err
	}

	port, err := freePort()
	if err != nil {
		return receiver{}, err
	}
	config := filepath.Join(dir, "millwright.yaml")
	settings := "listen: 127.0.0.1:" + port + "\nworkers: 0\ntrustedProxies: [127.0.0.0/8]\n" +
		"factories:\n  - name: kit\n    source: {dir: " + factory + "}\n"
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		return receiver{}, err
	}

	var log bytes.Buffer
	server := exec.CommandContext(ctx, program, "serve", "--config", config, "--log-level", "error")
	server.Env = append(os.Environ(), "MILLWRIGHT_STATE="+filepath.Join(dir, "state.db"),
		"MILLWRIGHT_BOOTSTRAP_KEY="+adminKey)
	server.Stderr = &log
	if err := server.Start(); err != nil {
		return receiver{}, err
	}

	api := "http://127.0.0.1:" + port + "/api/v1"
	if err := answers(ctx, api); err != nil {
		return receiver{}, err
	}
	targets, err := targetsOf(ctx, api)
	if err != nil {
		return receiver{}, fmt.Errorf("%w\n%s", err, log.String())
	}
	return receiver{"millwright", "", targets}, nil
}

// targetsOf gives the server its secrets, and returns its webhooks once all are active that have one.
func targetsOf(ctx context.Context, api string) (map[string]conformance.Target, error) {
	bodies := map[string]string{"CONFORMANCE_PENDING": `{"pending": true}`}
	for name, value := range secrets() {
		bodies[name] = fmt.Sprintf(`{"value": %q}`, value)
	}
	for name, body := range bodies {
		if err := call(ctx, http.MethodPut, api+"/secrets/"+name, body, nil); err != nil {
			return nil, err
		}
	}

	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		targets, pending, err := webhooks(ctx, api)
		if err != nil || len(targets) > 0 && pending == 2 {
			return targets, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d webhooks have no secret: %w", pending, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// webhooks returns the webhooks as targets, and how many have no secret.
func webhooks(ctx context.Context, api string) (map[string]conformance.Target, int, error) {
	var factories struct{ Factories []struct{ UID string } }
	if err := call(ctx, http.MethodGet, api+"/factory", "", &factories); err != nil {
		return nil, 0, err
	}
	if len(factories.Factories) == 0 {
		return nil, 0, nil
	}

	var list struct {
		Webhooks []struct {
			Name       string
			IngressURL string `json:"ingress_url"`
			AuthMode   string `json:"auth_mode"`
			Scheme     string `json:"signature_scheme"`
			Pending    bool   `json:"secret_pending"`
		}
	}
	path := api + "/factory/" + factories.Factories[0].UID + "/webhooks?limit=100"
	if err := call(ctx, http.MethodGet, path, "", &list); err != nil {
		return nil, 0, err
	}

	origin := strings.TrimSuffix(api, "/api/v1")
	pending := 0
	targets := map[string]conformance.Target{}
	for _, w := range list.Webhooks {
		t := conformance.Target{Mode: w.AuthMode, Scheme: w.Scheme, Secret: secrets()["CONFORMANCE_TOKEN"]}
		t.URL = origin + w.IngressURL[strings.Index(w.IngressURL, "/webhooks/"):]
		switch {
		case strings.HasPrefix(w.Name, "pending_"):
			t.Secret = ""
		case w.Name == "standard_webhooks":
			t.Secret = secrets()["CONFORMANCE_WHSEC"]
		case w.Name == "url_token": // the list does not show the token
			t.URL, _, _ = strings.Cut(t.URL, "/{")
		}
		if w.Pending {
			pending++
		}
		targets[w.Name] = t
	}
	return targets, pending, nil
}

// call makes a request of the server's API.
func call(ctx context.Context, method, url, body string, out any) error {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+adminKey)
	r.Header.Set("Content-Type", "application/json")

	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d %s: %w", method, url, resp.StatusCode, text, err)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}
