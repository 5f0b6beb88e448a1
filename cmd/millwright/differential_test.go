package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"millwright/api"
	"millwright/cmd/cli"
	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// FuzzDecisionsAgree shows one tree to everyone who decides about trees: the program without a server, with
// a list of secrets and with a server; the API without a key; and the plan that every apply makes. They
// must find the same problems at the same places, and decide alike.
func FuzzDecisionsAgree(f *testing.F) {
	for _, pattern := range []string{"../../testdata/factories/ok/*", "../../testdata/factories/err/*"} {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, dir := range dirs {
			seed := func(glob string) string {
				if found, _ := filepath.Glob(filepath.Join(dir, glob)); len(found) > 0 {
					text, _ := os.ReadFile(found[0])
					if len(text) < 8<<10 {
						return string(text)
					}
				}
				return ""
			}
			f.Add("ci", seed("webhooks/*.yaml"), seed("automations/*/automation.md"), seed("agents/*/agent.md"), seed("factory.yaml"))
		}
	}
	f.Add("x y", "secretName: A\n", automationOf("x y"), "---\nagentType: FOREMAN\n---\n", "")
	f.Add("spaced", "authMode: url_token\nsecretName: SPACED\n", automationOf("webhooks/spaced.yaml"), "", "")
	f.Add("gone", "secretName: GOD\nauthMode: token\n", automationOf("GONE"), "", "schemaVersion: v1alpha1\n")
	f.Setenv("CI", "") // there a directory without a definition is an error
	collectAsUsual(f)
	s := newJudgeServer(f)
	secrets := map[string]string{"GOOD": "abc", "SPACED": "hush hush", "CI_TOKEN": "abc.def", "GITHUB_SECRET": "~"}
	var list strings.Builder
	for name, value := range secrets {
		s.secret(name, value)
		fmt.Fprintf(&list, "%s=%s\n", name, value)
	}
	secretsFile := filepath.Join(f.TempDir(), "secrets")
	if err := os.WriteFile(secretsFile, []byte(list.String()), 0o600); err != nil {
		f.Fatal(err)
	}
	cur, err := s.store.Current(context.Background(), s.uid)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name, webhook, automation, agent, factory string) {
		tree := map[string]string{}
		for p, text := range map[string]string{
			"webhooks/" + name + ".yaml": webhook, "automations/a/automation.md": automation, "agents/x/agent.md": agent, "factory.yaml": factory,
		} {
			if text != "" {
				tree[p] = text
			}
			if !utf8.ValidString(p+text) || !fs.ValidPath(p) || strings.ContainsAny(p, "\\\x00") || len(name) > 200 || strings.Contains(name, "/") || len(text) > 64<<10 {
				t.Skip("not for JSON, or not for this system's files")
			}
		}
		agree(t, s, cur, secretsFile, tree)
	})
}

// needState are the rules that only some of those asked can run.
func needState(code string) bool {
	rule, known := schema.LookupRule(code)
	return !known || rule.NeedsState
}

// onlyServer are the rules among them that a list of secrets does not run.
func onlyServer(code string) bool {
	return slices.Contains([]string{"webhook-unknown", "webhook-last", "deliveries-limit", "webhook-renamed", "prune-guard", "sender-contract", "harness-unknown", "trigger-no-forge"}, code)
}

// ordered sorts problems, which the API tells apart by severity.
func ordered(problems []schema.Problem) []schema.Problem {
	slices.SortFunc(problems, func(a, b schema.Problem) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	return problems
}

func agree(t *testing.T, s *judgeServer, cur state.Current, secretsFile string, tree map[string]string) {
	dir := files(t, tree)
	alone, aloneStatus := checked(t, dir)
	listed, listedStatus := checked(t, dir, "--secrets", secretsFile)
	asked, askedStatus := checked(t, dir, "--server", s.url)
	remote, valid := overHTTP(t, s, tree)
	p, app := plan.Make(cur, os.DirFS(dir), plan.Options{
		HarnessTypes: []string{"echo"}, ForgeKinds: []string{}, Reserved: map[string]string{},
	})

	same := func(what string, a, b []schema.Problem, but func(code string) bool) {
		t.Helper()
		if diff := cmp.Diff(ordered(without(a, but)), ordered(without(b, but))); diff != "" {
			t.Errorf("%s disagree about %v:\n%s", what, tree, diff)
		}
	}
	same("the program and the API", alone, remote, func(string) bool { return false })
	same("the program and the plan", alone, p.Problems, needState)
	same("the program with secrets and the plan", listed, p.Problems, onlyServer)
	same("the program with a server and the plan", asked, p.Problems, func(string) bool { return false })

	for _, d := range []struct {
		who  string
		good bool
		by   []schema.Problem
	}{
		{"the program", aloneStatus == cli.ExitGood, alone},
		{"the program with secrets", listedStatus == cli.ExitGood, listed},
		{"the program with a server", askedStatus == cli.ExitGood, asked},
		{"the API", valid, remote},
		{"the plan", p.WouldApply, p.Problems},
		{"the application", app != nil, p.Problems},
	} {
		if errors := slices.ContainsFunc(d.by, func(p schema.Problem) bool { return p.Severity == schema.SeverityError }); d.good == errors {
			t.Errorf("%s: good is %v, with %v", d.who, d.good, d.by)
		}
	}
}

// without returns the problems of other rules, without excerpts and facts of the state.
func without(problems []schema.Problem, but func(code string) bool) []schema.Problem {
	out := []schema.Problem{}
	for _, p := range problems {
		if !but(p.Code) {
			p.Fix, p.Hint, p.Excerpt = nil, "", ""
			out = append(out, p)
		}
	}
	return out
}

// checked runs the program on a tree and returns the problems, with paths in the tree. It leaves out that a
// directory has no definition, which the program alone reports.
func checked(t *testing.T, dir string, args ...string) ([]schema.Problem, int) {
	t.Helper()
	status, out, errs := program(t, append([]string{"validate", dir, "--format", "json"}, args...)...)
	var doc struct{ Problems []schema.Problem }
	if err := json.Unmarshal([]byte(out), &doc); err != nil || status == cli.ExitUnreachable || status == cli.ExitUsage {
		t.Fatalf("status %d, %v: %s%s", status, err, out, errs)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range doc.Problems {
		rel, err := filepath.Rel(dir, filepath.Join(wd, filepath.FromSlash(p.Path)))
		if err != nil {
			t.Fatal(err)
		}
		doc.Problems[i].Path = filepath.ToSlash(rel)
	}
	empty := func(p schema.Problem) bool { return p.Code == "missing-path" }
	return slices.DeleteFunc(doc.Problems, empty), status
}

var callers atomic.Uint32 // each request comes from an address of its own, since there is a limit for each

func overHTTP(t *testing.T, s *judgeServer, tree map[string]string) ([]schema.Problem, bool) {
	t.Helper()
	in := struct {
		Files []schema.File `json:"files"`
	}{[]schema.File{}}
	for p, text := range tree {
		in.Files = append(in.Files, schema.File{Path: p, Content: text})
	}
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var rec *httptest.ResponseRecorder
	statetest.Until(t, "the API is not busy", func() bool {
		req := httptest.NewRequest(http.MethodPost, api.Base+"/factory-files/validate", bytes.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		n := callers.Add(1)
		req.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1", byte(n>>16), byte(n>>8), byte(n))
		rec = httptest.NewRecorder()
		s.handler.ServeHTTP(rec, req)
		return rec.Code != http.StatusTooManyRequests && rec.Code != http.StatusServiceUnavailable
	})
	if rec.Code != http.StatusOK {
		t.Fatalf("status %d: %s", rec.Code, rec.Body)
	}
	var out struct {
		Valid              bool
		Diagnostics, Infos []schema.Problem
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return append(out.Diagnostics, out.Infos...), out.Valid
}
