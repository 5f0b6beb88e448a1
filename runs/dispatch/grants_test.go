package dispatch_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"millwright/runs/dispatch"
	"millwright/runs/wire"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// define applies a factory.yaml that grants secrets, and has an MCP server "a" unless server is empty.
func define(t *testing.T, s *state.Store, secrets []string, server string) state.Factory {
	t.Helper()
	f, err := s.EnsureFactory(t.Context(), "acme", state.Source{Kind: "dir", Path: "x"}, false)
	if err != nil {
		t.Fatal(err)
	}
	file := &schema.FactoryFile{Secrets: secrets}
	if server != "" {
		file.MCPServers = map[string]json.RawMessage{"a": json.RawMessage(server)}
	}
	err = s.Apply(t.Context(), state.ChangeSet{
		FactoryUID: f.UID, Base: f.Generation, BaseRevision: f.Applied.ID, Started: time.Now(),
		Revision: state.Revision{ID: state.NewRunID()}, FileChanged: true, File: file,
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestGrantsAreCheckedWhenARunIsClaimed has the definition change between the making of a run and its claim.
func TestGrantsAreCheckedWhenARunIsClaimed(t *testing.T) {
	const (
		server  = `{"url":"https://x","headers":{"Authorization":"Bearer ${secret:TOKEN}"}}`
		plain   = `{"url":"https://x","args":[]}`
		command = `{"command":"tool","args":["a"],"env":{"T":"${secret:TOKEN}"}}`
	)
	tests := []struct {
		name    string
		secrets []string // of the definition when the run is claimed
		defined string
		env     []string // what the run was made with
		servers string
		creator state.Role
		want    string // of the message; empty: the run is handed out
	}{
		{"granted to the environment", []string{"TOKEN"}, "", []string{"TOKEN"}, "", "", ""},
		{"environment, no longer granted", []string{"OTHER"}, "", []string{"TOKEN"}, "", "", "no longer grants"},
		{"environment, of an admin's run", nil, "", []string{"TOKEN"}, "", state.RoleAdmin, "no longer grants"},
		{"in the definition's server", nil, server, nil, server, "", ""},
		{"command in the definition", nil, command, nil, command, "", ""},
		{"granted, to the definition's server", []string{"TOKEN"}, plain, nil, server, "", ""},
		{"granted, to another address", []string{"TOKEN"}, strings.Replace(server, "//x", "//y", 1), nil, server, "", "does not give"},
		{"granted, to another command", []string{"TOKEN"}, strings.Replace(command, "tool", "evil", 1), nil, command, "", "does not give"},
		{"granted, to other arguments", []string{"TOKEN"}, strings.Replace(command, `"a"`, `"b"`, 1), nil, command, "", "does not give"},
		{"granted, in another environment", []string{"TOKEN"}, strings.Replace(command, `"T"`, `"U"`, 1), nil, command, "", "does not give"},
		{"granted, to no server", []string{"TOKEN"}, "", nil, server, "", "does not give"},
		{"not granted", nil, plain, nil, server, "", "does not give"},
		{"by a runner", nil, "", nil, server, state.RoleRunner, "does not give"},
		{"by an admin", nil, "", nil, server, state.RoleAdmin, ""},
		{"by an admin, of a secret that is gone", nil, "", nil, strings.Replace(server, "TOKEN", "GONE", 1), state.RoleAdmin, "does not exist"},
	}
	named := regexp.MustCompile(`"(TOKEN|GONE)"`)
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		if _, err := s.SetSecret(t.Context(), "TOKEN", []byte("s3cret-value")); err != nil {
			t.Fatal(err)
		}
		c := localClient(t, startDispatch(t, dispatch.Config{Store: s}))
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				f := define(t, s, test.secrets, test.defined)
				r := create(t, s, func(n *state.NewRun) {
					n.FactoryUID, n.Secrets = f.UID, test.env
					if test.servers != "" {
						n.Sealed = []byte(`{"a":` + test.servers + `}`)
					}
					if test.creator != "" {
						key, _, err := s.CreateKey(t.Context(), "k", test.creator, nil)
						if err != nil {
							t.Fatal(err)
						}
						n.Creator.UID = key.UID
					}
				})
				sentinel := create(t, s, nil)
				o := order(t, c)
				if test.want == "" {
					body, _ := json.Marshal(o)
					if o.RunID != r.ID || test.env == nil && len(o.Redact) == 0 {
						t.Fatalf("order %s", body)
					}
					if err := c.Release(t.Context(), o); err != nil {
						t.Fatal(err)
					}
					if _, err := s.RequestCancel(t.Context(), r.ID, "tester"); err != nil {
						t.Fatal(err)
					}
				} else if o.RunID != sentinel.ID {
					t.Fatalf("order for %s, want that of %s", o.RunID, sentinel.ID)
				}
				if got := run(t, s, r.ID); test.want != "" && (got.State != state.RunError || got.ErrorCode != "environment_setup_failed" || !strings.Contains(got.StatusMessage, test.want) || !named.MatchString(got.StatusMessage)) {
					t.Errorf("run is %s %s: %s", got.State, got.ErrorCode, got.StatusMessage)
				}
				if test.want == "" {
					o = order(t, c)
				}
				if o.RunID != sentinel.ID {
					t.Fatalf("order for %s", o.RunID)
				}
				if _, err := c.Start(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Finish(t.Context(), o, wire.Result{State: wire.Succeeded}); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
}
