package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millwright/forge"
	"millwright/runs/dispatch"
	"millwright/runs/worker"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// origin is a directory of bare repositories, by owner and name, which a forge of kind git serves.
type origin struct {
	t   *testing.T
	dir string
}

func newOrigin(t *testing.T) origin {
	t.Helper()
	return origin{t, t.TempDir()}
}

// git calls git and returns what it put out.
func (o origin) git(dir string, args ...string) string {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		o.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (o origin) bare(name string) string { return filepath.Join(o.dir, name+".git") }

// commit commits files to the branch main of a repository, which it makes, and returns the commit.
func (o origin) commit(name string, files map[string]string) string {
	o.t.Helper()
	work := filepath.Join(o.t.TempDir(), "work")
	if _, err := os.Stat(o.bare(name)); err != nil {
		o.git("/", "init", "--quiet", "--bare", "--initial-branch=main", o.bare(name))
		o.git("/", "init", "--quiet", "--initial-branch=main", work)
	} else {
		o.git("/", "clone", "--quiet", o.bare(name), work)
	}

	for file, body := range files {
		place := filepath.Join(work, file)
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			o.t.Fatal(err)
		}
		if err := os.WriteFile(place, []byte(body), 0o755); err != nil {
			o.t.Fatal(err)
		}
	}
	o.git(work, "add", "--all", "--force")
	o.git(work, "commit", "--quiet", "--message=x")
	o.git(work, "push", "--quiet", o.bare(name), "HEAD:refs/heads/main")
	return o.git(work, "rev-parse", "HEAD")
}

// newBenchWith is a bench whose factory f may use all repositories of an origin.
func newBenchWith(t *testing.T, s *state.Store, o origin) *bench {
	t.Helper()
	forges, err := forge.Open(forge.Config{
		Forges:  map[string]forge.Settings{"local": {Kind: "git", URL: "file://" + o.dir + "/{owner}/{name}.git"}},
		Allowed: map[string][]string{"f": nil},
	})
	if err != nil {
		t.Fatal(err)
	}

	d, err := dispatch.Start(t.Context(), dispatch.Config{Store: s, Forges: forges})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(context.Background()) })
	return &bench{t: t, store: s, d: d, dir: t.TempDir()}
}

// with applies a definition of the factory f with repositories and a runner, and returns the factory's UID.
func (b *bench) with(setUp []string, repositories ...string) string {
	b.t.Helper()
	f, err := b.store.EnsureFactory(b.t.Context(), "f", state.Source{Kind: "dir", Path: "x"}, false)
	if err != nil {
		b.t.Fatal(err)
	}

	file := &schema.FactoryFile{Name: "f"}
	for _, name := range repositories {
		owner, repo, _ := strings.Cut(name, "/")
		file.Repositories = append(file.Repositories, schema.Repository{Owner: owner, Name: repo})
	}
	change := state.ChangeSet{
		FactoryUID: f.UID, Base: f.Generation, BaseRevision: f.Applied.ID, Started: time.Now(),
		Revision: state.Revision{ID: fmt.Sprint("r", f.Generation)}, FileChanged: true, File: file,
	}
	if f.Applied.ID == "" {
		runner := schema.Runner{Name: "small", SetupCommands: setUp}
		change.Resources = []state.ResourceChange{{Kind: "runner", Name: runner.Name, Spec: runner}}
	}
	if err := b.store.Apply(b.t.Context(), change); err != nil {
		b.t.Fatal(err)
	}
	return f.UID
}

// in makes a run of a factory, with a runner if it has set-up commands.
func (b *bench) in(factory string, files ...state.Attachment) string {
	b.t.Helper()
	return b.create(func(n *state.NewRun) {
		n.FactoryUID, n.Title = factory, "Mend the shop"
		n.Config = []byte(`{"name":"mender","runner_id":"small"}`)
	}, files...)
}

// left returns the content of an artifact of a run; "" when there is none.
func (b *bench) left(r state.Run, path string) string {
	b.t.Helper()
	all, err := b.store.Artifacts(b.t.Context(), r.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, a := range all[r.ID] {
		if a.Path == path {
			body, err := io.ReadAll(b.store.ArtifactContent(b.t.Context(), a))
			if err != nil {
				b.t.Fatal(err)
			}
			return string(body)
		}
	}
	return ""
}

// succeeded waits for the end of a run.
func (b *bench) succeeded(id string) state.Run {
	b.t.Helper()
	r := b.end(id)
	if r.State != state.RunSucceeded {
		b.t.Fatalf("run is %s: %s: %s", r.State, r.ErrorCode, r.StatusMessage)
	}
	return r
}

// harnesses are the ways to run a harness whose changes are collected.
func harnesses(t *testing.T, script string) map[string]worker.Harness {
	all := map[string]worker.Harness{"same user": sh(script)}
	if os.Getuid() == 0 {
		all["account"] = as(sh(script), "70000-70003")
	}
	return all
}

// each runs a test with every harness of a script.
func each(t *testing.T, script string, test func(t *testing.T, h worker.Harness)) {
	for name, h := range harnesses(t, script) {
		t.Run(name, func(t *testing.T) { test(t, h) })
	}
}

func configOf(h worker.Harness) worker.Config {
	return worker.Config{Harnesses: map[string]worker.Harness{"h": h}, Default: "h"}
}

// applied returns a checkout of a repository with the bundle of a run.
func (o origin) applied(name, bundle string) string {
	o.t.Helper()
	dir := filepath.Join(o.t.TempDir(), "applied")
	file := filepath.Join(o.t.TempDir(), "changes.bundle")
	if err := os.WriteFile(file, []byte(bundle), 0o600); err != nil {
		o.t.Fatal(err)
	}
	o.git("/", "clone", "--quiet", o.bare(name), dir)
	o.git(dir, "fetch", "--quiet", file, "refs/heads/changes:refs/heads/changes")
	o.git(dir, "checkout", "--quiet", "changes")
	o.git(dir, "fsck", "--strict")
	return dir
}

// TestRunInACheckout has a harness change a repository, with and without a commit of its own, and continue on another
// worker.
func TestRunInACheckout(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		each(t, `set -e; pwd; ls -A; cat a.txt; cat "$MILLWRIGHT_DIR/prompt.md"; cat "$MILLWRIGHT_DIR/event-payload.json"; cat event-payload.json
			git status --porcelain; git log -1 --format=%an
			if [ -e new ]; then echo "found $(cat new)"; echo third > third; exit; fi
			echo two > a.txt; git commit -qam "My change"; echo 3 > new; rm gone; mkdir -p .millwright/artifacts
			echo hello > .millwright/artifacts/report.txt; echo '{"type":"comment","body":"hi"}' > .millwright/outputs.jsonl`,
			func(t *testing.T, h worker.Harness) {
				o := newOrigin(t)
				base := o.commit("acme/shop", map[string]string{
					"a.txt": "one", "gone": "x", ".mcp.json": "{}", "event-payload.json": "of the repository",
				})
				b := newBenchWith(t, s, o)
				factory := b.with(nil, "acme/shop")
				stop := b.work(configOf(h))

				id := b.in(factory,
					state.Attachment{Name: "event-payload.json", MimeType: "application/json", Body: []byte(`{"of":"the delivery"}`)},
					state.Attachment{Name: "note !#[x].txt", MimeType: "text/plain", Body: []byte("note")})
				r := b.succeeded(id)
				wantIn(t, b.said(r), "one", "do it", "of the repository", `{"of":"the delivery"}`, "event-payload.json", "note !#[x].txt")

				applied := o.applied("acme/shop", b.left(r, "changes.bundle"))
				want := "mender Mend the shop\na My change\na x"
				if got := o.git(applied, "log", "--format=%an %s"); got != strings.Replace(want, "a My", "mender My", 1) {
					t.Errorf("commits:\n%s", got)
				}
				if got := o.git(applied, "diff", "--name-status", base, "HEAD"); got != "M\ta.txt\nD\tgone\nA\tnew" {
					t.Errorf("changes:\n%s", got)
				}
				wantIn(t, b.left(r, "changes.patch"), "-one", "+two", "+3")
				if got := b.left(r, "report.txt"); got != "hello\n" {
					t.Errorf("the report is %q", got)
				}

				repos, err := s.Repositories(t.Context(), id)
				if err != nil || len(repos) != 1 || repos[0].BaseCommit != base || repos[0].BaseBranch != "main" || repos[0].Untrusted {
					t.Errorf("repositories %+v %v", repos, err)
				}

				stop()
				b.dir = t.TempDir()
				o.commit("acme/shop", map[string]string{"later": "x"})
				b.work(configOf(h))
				r = b.goOn(id, "go on")
				wantIn(t, b.said(r), "found 3")
				applied = o.applied("acme/shop", b.left(r, "changes.bundle"))
				if got := o.git(applied, "log", "--format=%s"); got != "Mend the shop\nMend the shop\nMy change\nx" {
					t.Errorf("commits:\n%s", got)
				}
			})
	})
}

// TestSeveralRepositories has a harness start in the directory that holds its repositories.
func TestSeveralRepositories(t *testing.T) {
	o := newOrigin(t)
	o.commit("acme/shop", map[string]string{"a": "of shop"})
	o.commit("acme/tool", map[string]string{"a": "of tool"})
	o.commit("other/tool", map[string]string{"a": "of the other tool"})
	b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
	b.work(configOf(sh(`cat shop/a acme-tool/a other-tool/a; echo changed > acme-tool/a; ls -A .millwright`)))

	r := b.succeeded(b.in(b.with(nil, "acme/shop", "acme/tool", "other/tool")))
	wantIn(t, b.said(r), "of shop", "of tool", "of the other tool", "prompt.md")
	wantIn(t, b.left(r, "acme-tool/changes.patch"), "+changed")
	if b.left(r, "shop/changes.patch") != "" {
		t.Error("a repository without changes has a patch")
	}
}

// TestSetUpCommands has them run before a command harness, and what they change is no change of the harness.
func TestSetUpCommands(t *testing.T) {
	each(t, `cat made locked a; echo changed > a`, func(t *testing.T, h worker.Harness) {
		o := newOrigin(t)
		o.commit("acme/shop", map[string]string{"a": "x", "locked": "old", "both": "1"})
		b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
		b.work(configOf(h))

		r := b.succeeded(b.in(b.with([]string{"echo of set-up > made", "echo new > locked; echo told"}, "acme/shop")))
		wantIn(t, b.said(r), "of set-up", "new")
		patch := b.left(r, "changes.patch")
		if !strings.Contains(patch, "+changed") || strings.Contains(patch, "locked") || strings.Contains(patch, "made") {
			t.Errorf("patch:\n%s", patch)
		}

		var step []string
		for _, block := range b.blocks(r) {
			if block.Name == "set_up" {
				step = append(step, block.Type+" "+block.State+string(block.Input)+string(block.Output))
			}
		}
		wantIn(t, strings.Join(step, "\n"), "action ", "echo told", "action_result completed", "told")
	})
}

// TestSetUpCommandsThatFail has them fail, and take too long.
func TestSetUpCommandsThatFail(t *testing.T) {
	for _, tt := range []struct {
		commands []string
		want     string
	}{
		{[]string{"echo cannot install >&2; exit 3"}, "the set-up commands failed: cannot install\nexit status 3"},
		{[]string{"echo one", "false", "echo two"}, "the set-up commands failed: one\nexit status 1"},
		{[]string{"exec sleep 600"}, "the set-up commands did not end within 1s"},
	} {
		each(t, `echo never`, func(t *testing.T, h worker.Harness) {
			o := newOrigin(t)
			o.commit("acme/shop", map[string]string{"a": "x"})
			b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
			h.Timeout = time.Second
			if strings.Contains(tt.commands[0], "echo") {
				h.Timeout = time.Hour
			}
			b.work(configOf(h))

			r := b.end(b.in(b.with(tt.commands, "acme/shop")))
			if r.State != state.RunError || r.ErrorCode != "environment_setup_failed" || !strings.Contains(r.StatusMessage, tt.want) {
				t.Errorf("run is %s: %s: %s", r.State, r.ErrorCode, r.StatusMessage)
			}
		})
	}
}

// TestRepositoriesThatFail has repositories that cannot be checked out. The worker goes on.
func TestRepositoriesThatFail(t *testing.T) {
	o := newOrigin(t)
	o.commit("acme/shop", map[string]string{"a": "x"})
	o.commit("acme/own", map[string]string{".millwright/x": "y"})
	b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
	b.work(configOf(sh(`echo never`)))
	for name, want := range map[string]string{
		"acme/none":   "repository acme/none: the repository does not exist",
		"acme/own":    "the repository has a file or directory .millwright",
		"acme/..":     "want letters",
		"acme/-x":     "want letters",
		"acme/a b":    "want letters",
		"../../etc/x": "want letters",
	} {
		r := b.end(b.in(b.with(nil, name)))
		if r.State != state.RunError || r.ErrorCode != "environment_setup_failed" || !strings.Contains(r.StatusMessage, want) {
			t.Errorf("%s: run is %s: %s: %s", name, r.State, r.ErrorCode, r.StatusMessage)
		}
	}
	b.succeeded(b.in(b.with(nil, "acme/shop")))
}

// TestFailedRunsAreCollected has a harness fail, and one be cancelled.
func TestFailedRunsAreCollected(t *testing.T) {
	each(t, `echo changed > a; [ "$(cat b)" = wait ] || exit 3; exec sleep 600`, func(t *testing.T, h worker.Harness) {
		for b, want := range map[string]state.RunState{"x": state.RunFailed, "wait": state.RunCancelled} {
			o := newOrigin(t)
			o.commit("acme/shop", map[string]string{"a": "x", "b": b})
			bench := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
			bench.work(configOf(h))

			id := bench.in(bench.with(nil, "acme/shop"))
			if want == state.RunCancelled {
				bench.until(id, func(state.Run) bool {
					found, _ := filepath.Glob(filepath.Join(bench.dir, "worker-*", "run-*", "work", "a"))
					body, _ := os.ReadFile(strings.Join(found, ""))
					return string(body) == "changed\n"
				})
				if _, err := bench.store.RequestCancel(t.Context(), id, "tester"); err != nil {
					t.Fatal(err)
				}
			}
			r := bench.end(id)
			if r.State != want {
				t.Fatal(r.State, r.StatusMessage)
			}
			wantIn(t, bench.left(r, "changes.patch"), "+changed")
		}
	})
}

// TestFilesAndRequests has a harness leave files and requests within and beyond the bounds.
func TestFilesAndRequests(t *testing.T) {
	b := newBench(t, 0)
	b.work(configOf(sh(`mkdir -p .millwright/artifacts/deep; cd .millwright; echo one > artifacts/one; echo two > artifacts/deep/two
		ln -s /etc/passwd artifacts/link; ln artifacts/one artifacts/zz; mkfifo artifacts/pipe
		i=0; while [ $i -lt 20 ]; do echo $i > artifacts/f$i; i=$((i+1)); done
		printf '{"type":"comment","body":"a"}\ngarbage\n[1]\n\n{"type":"label"}\n' > outputs.jsonl; head -c 70000 /dev/zero | tr '\0' x >> outputs.jsonl`)))
	r := b.succeeded(b.create(nil))
	if got := b.left(r, "deep/two"); got != "two\n" {
		t.Errorf("deep/two is %q", got)
	}
	if got := b.left(r, "link"); got != "" {
		t.Errorf("a link was followed: %q", got)
	}
	if got := b.events(r, "artifact_refused"); len(got) < 4 {
		t.Errorf("left out: %s", got)
	}
	wantIn(t, strings.Join(b.events(r, "output_refused"), ""), "line 2: not a JSON object", "line 3", "line 6: more than",
		`"line":5,"type":"label"`)
}

// TestCredentialIsGone searches for the token of a forge from inside the harness.
func TestCredentialIsGone(t *testing.T) {
	const token = "s3cret-token-of-the-forge"
	const search = `look='index($0, a b) { print "FOUND in " FILENAME }'
		{ env; cat /proc/*/environ /proc/*/cmdline; git config --list --show-origin; } 2>/dev/null | tr '\0' '\n' |
			awk -v a=s3cret-token -v b=-of-the-forge "$look"
		find . "$TMPDIR" MIRRORS -type f -exec awk -v a=s3cret-token -v b=-of-the-forge "$look" {} + 2>/dev/null
		cat a; echo; echo searched`
	for name, h := range harnesses(t, search) {
		t.Run(name, func(t *testing.T) { searchedFor(t, token, h) })
	}
}

// searchedFor runs a harness in a repository that only the holder of a token can fetch.
func searchedFor(t *testing.T, token string, h worker.Harness) {
	t.Helper()
	o := newOrigin(t)
	o.commit("acme/shop", map[string]string{"a": "the text"})
	server := serveGit(t, o.dir, token)
	b := newBenchAt(t, statetest.Open(t, statetest.SQLite(t)), server.URL, token)
	h.Command[2] = strings.ReplaceAll(h.Command[2], "MIRRORS", b.dir)
	b.work(configOf(h))

	said := b.said(b.succeeded(b.in(b.with(nil, "acme/shop"))))
	wantIn(t, said, "the text", "searched")
	if strings.Contains(said, "FOUND") || bytes.Contains([]byte(said), []byte(token)) {
		t.Error(said)
	}
}
