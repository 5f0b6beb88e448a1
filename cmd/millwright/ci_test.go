package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"millwright/state/statetest"
	"millwright/testdata/factories"
)

// snippets are the commands of deploy/ci, by a name for each.
type snippets map[string]string

// ciSnippets reads the commands that the files of deploy/ci give to people's pipelines.
func ciSnippets(t *testing.T) snippets {
	t.Helper()
	read := func(name string, into any) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("../../deploy/ci", name))
		if err == nil {
			err = yaml.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	out := snippets{}
	var actions struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Run string }
		}
	}
	read("github-actions.yml", &actions)
	for job, j := range actions.Jobs {
		for _, step := range j.Steps {
			if step.Run != "" {
				out["github "+job+" "+step.Name] = step.Run
			}
		}
	}
	var action struct {
		Runs struct {
			Steps []struct{ Name, Run string }
		}
	}
	read("action.yml", &action)
	for _, step := range action.Runs.Steps {
		out["action "+step.Name] = step.Run
	}

	text, err := os.ReadFile("../../deploy/ci/gitlab-ci.yml")
	if err != nil {
		t.Fatal(err)
	}
	gitlabJobs(t, out, "gitlab", text)

	text, err = os.ReadFile("../../deploy/ci/component.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, jobs, _ := bytes.Cut(text, []byte("\n---\n"))
	gitlabJobs(t, out, "component", jobs)

	var config struct {
		Repos []struct {
			Hooks []struct {
				Entry string
				Args  []string
			}
		}
	}
	read("pre-commit-config.yaml", &config)
	for _, h := range config.Repos[0].Hooks {
		out["pre-commit.com"] = h.Entry + " " + strings.Join(h.Args, " ")
	}
	var hooks []struct {
		Entry string
		Args  []string
	}
	read("../../.pre-commit-hooks.yaml", &hooks)
	out["pre-commit.com, ours"] = hooks[0].Entry + " " + strings.Join(hooks[0].Args, " ")
	return out
}

// gitlabJobs adds the commands of the jobs of GitLab CI.
func gitlabJobs(t *testing.T, out snippets, name string, text []byte) {
	t.Helper()
	var raw map[string]any
	if err := yaml.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	delete(raw, "variables")

	var jobs map[string]struct{ Script []string }
	text, err := yaml.Marshal(raw)
	if err == nil {
		err = yaml.Unmarshal(text, &jobs)
	}
	if err != nil {
		t.Fatal(err)
	}
	for job, j := range jobs {
		out[name+" "+job] = strings.Join(j.Script, "\n")
	}
}

// shell runs a command as a pipeline would, with the program on its path, and returns its status.
func shell(t *testing.T, dir, command string, env ...string) (int, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	wrapper := "#!/bin/sh\n" + runMain + "=1 exec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "millwright"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH")), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// demo writes the demonstration tree.
func demo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, factories.Demo()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCISnippets runs what deploy/ci tells people to run on the project's own example, and on one that is
// broken.
func TestCISnippets(t *testing.T) {
	statetest.Program(t, "bash")
	all := ciSnippets(t)
	want := map[string][]string{ // the files that each leaves behind
		"github validate Validate":   {"millwright.sarif", "summary.md"},
		"gitlab validate-factory":    {"gl-code-quality-report.json", "millwright.xml"},
		"action Validate":            {"summary.md"},
		"component validate-factory": {"gl-code-quality-report.json", "millwright.xml"},
		"pre-commit.com":             nil, "pre-commit.com, ours": nil,
	}
	for name, made := range want {
		t.Run(name, func(t *testing.T) {
			if all[name] == "" {
				t.Fatalf("deploy/ci has no such command: %v", all)
			}
			dir := demo(t)
			env := []string{"DEFINITION=.", "GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary.md")}
			if status, out := shell(t, dir, all[name], env...); status != 0 || !strings.Contains(out, "checked 6 files: no problems") {
				t.Errorf("the demonstration: status %d\n%s", status, out)
			}
			if err := os.WriteFile(filepath.Join(dir, "webhooks", "ci.yaml"), []byte("secretname: CI_TOKEN\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if status, out := shell(t, dir, all[name], env...); status != 1 || !strings.Contains(out, "secretname") {
				t.Errorf("a broken tree: status %d\n%s", status, out)
			}
			for _, file := range made {
				if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !bytes.Contains(text, []byte("unknown-key")) {
					t.Errorf("%s does not say it: %v\n%s", file, err, text)
				}
			}
		})
	}
}

// planSnippets are the commands that plan.
var planSnippets = []string{"github plan Plan", "gitlab plan-factory", "action Plan", "component plan-factory"}

func TestCISnippetsPlan(t *testing.T) {
	statetest.Program(t, "bash")
	s := newJudgeServer(t)
	all := ciSnippets(t)
	dir := files(t, map[string]string{"webhooks/ci.yaml": "secretName: CI_TOKEN\n"})
	reports := []string{"GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary.md"), "GITHUB_OUTPUT=" + filepath.Join(dir, "outputs")}
	env := append(reports[:2:2], "DEFINITION=.", "MILLWRIGHT_SERVER="+s.url, "MILLWRIGHT_API_KEY="+os.Getenv("MILLWRIGHT_API_KEY"))
	for _, name := range planSnippets {
		if all[name] == "" {
			t.Fatalf("deploy/ci has no command %s", name)
		}
		if status, out := shell(t, dir, all[name], env...); status != 1 || !strings.Contains(out, "secret-missing") {
			t.Errorf("%s, to be refused: status %d\n%s", name, status, out)
		}
		if status, out := shell(t, dir, all[name], append(reports[:2:2], "DEFINITION=.", "MILLWRIGHT_SERVER=http://127.0.0.1:1")...); status != 3 {
			t.Errorf("%s, without a server: status %d\n%s", name, status, out)
		}
	}
	s.secret("CI_TOKEN", "abc")
	for _, name := range planSnippets {
		if status, out := shell(t, dir, all[name], env...); status != 0 || !strings.Contains(out, "+ webhook ci") {
			t.Errorf("%s, with changes: status %d\n%s", name, status, out)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "plan.md")); err != nil || !bytes.Contains(text, []byte("would be applied")) {
			t.Errorf("%s: the comment: %v\n%s", name, err, text)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "outputs")); err != nil || string(text) != "changes=true\n" {
		t.Errorf("the outputs of the action: %v, %q", err, text)
	}
}

// TestCISnippetsToken has the step that gets an ID token ask a server like GitHub's.
func TestCISnippetsToken(t *testing.T) {
	for _, program := range []string{"bash", "curl", "jq"} {
		statetest.Program(t, program)
	}

	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer request-token" || r.FormValue("audience") != "millwright" {
			http.Error(w, "wrong request", http.StatusForbidden)
			return
		}
		fmt.Fprint(w, `{"count": 1, "value": "the-id-token"}`)
	}))
	t.Cleanup(srv.Close)

	env := filepath.Join(t.TempDir(), "env")
	status, out := shell(t, t.TempDir(), ciSnippets(t)["github plan Token"], "GITHUB_ENV="+env,
		"PATH=/usr/local/bin:/usr/bin:/bin", // before that of the tests is a curl of their own
		"ACTIONS_ID_TOKEN_REQUEST_TOKEN=request-token", "ACTIONS_ID_TOKEN_REQUEST_URL="+srv.URL+"/?api-version=2.0")
	text, err := os.ReadFile(env)
	if status != 0 || err != nil || string(text) != "MILLWRIGHT_API_KEY=the-id-token\n" ||
		strings.TrimSpace(out) != "::add-mask::the-id-token" {
		t.Errorf("status %d, %v, %q\n%s", status, err, text, out)
	}
}

// TestGitHook checks that the hook reads the staged files, not those of the working tree.
func TestGitHook(t *testing.T) {
	statetest.Program(t, "git")
	hook, err := filepath.Abs("../../deploy/ci/pre-commit")
	if err != nil {
		t.Fatal(err)
	}
	dir := files(t, map[string]string{"factory/webhooks/ci.yaml": "secretName: CI_TOKEN\n"})
	git := func(command string) (int, string) {
		return shell(t, dir, command, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "DEFINITION=factory",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	}
	if status, out := git("git init -q . && cp '" + hook + "' .git/hooks/pre-commit && git add . && git commit -q -m one"); status != 0 {
		t.Fatalf("a good commit: status %d\n%s", status, out)
	}
	if status, out := git("echo 'secretname: X' > factory/webhooks/ci.yaml && git add . && git commit -q -m two"); status == 0 || !strings.Contains(out, "factory/webhooks/ci.yaml:1:1: error") {
		t.Errorf("a bad commit: status %d\n%s", status, out)
	}
	if status, out := git("git checkout -q HEAD -- . && echo 'x: 1' > factory/webhooks/ci.yaml && echo hi > README && git add README && git commit -q -m three"); status != 0 {
		t.Errorf("a good commit beside a broken edit: status %d\n%s", status, out)
	}
}
