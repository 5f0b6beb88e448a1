package worker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright/runs/worker"
	"millwright/state"
	"millwright/state/statetest"
)

// TestHostileGit has harnesses leave a .git that wants to execute something, or to reach other files, while the
// changes are collected.
func TestHostileGit(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "executed")
	evil := "#!/bin/sh\ntouch " + mark + "\n"
	script := filepath.Join(t.TempDir(), "evil")
	if err := os.WriteFile(script, []byte(evil), 0o755); err != nil {
		t.Fatal(err)
	}
	passThrough(t, mark, script)
	if err := os.Chmod(filepath.Dir(mark), 0o777); err != nil {
		t.Fatal(err)
	}

	other := newOrigin(t)
	foreign := other.commit("secret/plans", map[string]string{"plan": "the secret plan"})
	shop := newOrigin(t)
	shop.commit("acme/shop", map[string]string{"a": "w"})
	shop.commit("acme/shop", map[string]string{"a": "x", "b": "y"})
	for name, test := range map[string]struct{ script, want string }{
		"hooks":           {`for h in pre-commit post-checkout post-index-change reference-transaction; do cp EVIL .git/hooks/$h 2>/dev/null || { mkdir -p .git/hooks; cp EVIL .git/hooks/$h; }; done`, ""},
		"file monitor":    {`git config core.fsmonitor EVIL; git config core.hooksPath /tmp; git config core.sshCommand EVIL; git config diff.external EVIL; git config core.pager EVIL; git config core.editor EVIL`, ""},
		"filters":         {`git config filter.e.clean EVIL; git config filter.e.smudge EVIL; git config filter.e.process EVIL; git config diff.e.textconv EVIL; git config diff.e.command EVIL; echo '* filter=e diff=e merge=e' > .gitattributes`, ""},
		"gitfile":         {`mv .git .moved; echo "gitdir: .moved" > .git`, "squashed"},
		"linked .git":     {`mv .git .moved; ln -s .moved .git`, "squashed"},
		"no .git":         {`rm -rf .git`, "squashed"},
		"another .git":    {`rm -rf .git; git init -q; git add -A; git -c user.name=x -c user.email=x commit -qm y`, "squashed"},
		"rewritten":       {`git checkout -q --orphan new; git commit -qm "all anew"`, "squashed"},
		"amended":         {`git commit -q --amend --allow-empty -m y`, "squashed"},
		"before the base": {`git reset -q HEAD~1`, "squashed"},
		"merge of a branch from before": {`git checkout -q -b old HEAD~1; echo z > z; git add z; git commit -qm old
			git checkout -q main; git merge -q -m m old`, "squashed"},
		"alternates":     {`mkdir -p .git/objects/info; echo OTHER/objects > .git/objects/info/alternates; git update-ref refs/heads/main FOREIGN 2>/dev/null || echo FOREIGN > .git/refs/heads/main`, "squashed"},
		"linked objects": {`ln -s OTHER/objects/pack .git/objects/pack/x`, "squashed"},
		"odd HEAD":       {`echo "ref: refs/heads/../../../etc/passwd" > .git/HEAD`, "squashed"},
		"HEAD is a pipe": {`rm .git/HEAD; mkfifo .git/HEAD`, "squashed"},
		"bad object":     {`echo 1234567890123456789012345678901234567890 > .git/refs/heads/main`, "squashed"},
		"index":          {`echo garbage > .git/index; echo garbage > .git/packed-refs; echo "[core" > .git/config`, ""},
		"nested":         {`git init -q sub; echo x > sub/y; git -C sub add y; git -C sub -c user.name=x -c user.email=x commit -qm y; git -C sub config core.fsmonitor EVIL`, ""},
		"replaced":       {`git replace --graft HEAD 2>/dev/null; mkdir -p .git/info; echo "$(git rev-parse HEAD)" > .git/info/grafts; echo "* -text" > .git/info/attributes`, ""},
	} {
		test.script = strings.NewReplacer("EVIL", script, "OTHER", other.bare("secret/plans"), "FOREIGN", foreign).Replace(test.script)
		each(t, test.script+"\necho changed > a", func(t *testing.T, h worker.Harness) {
			t.Run(name, func(t *testing.T) {
				o := origin{t, shop.dir} // which runs only read
				b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
				b.work(configOf(h))

				r := b.succeeded(b.in(b.with(nil, "acme/shop")))
				wantIn(t, b.left(r, "changes.patch"), "+changed")
				if got := b.events(r, "changes_squashed"); (len(got) > 0) != (test.want != "") {
					t.Errorf("squashed: %s", got)
				}
				if _, err := os.Lstat(mark); err == nil {
					t.Error("something was executed")
					os.Remove(mark)
				}

				bundle := b.left(r, "changes.bundle")
				applied := o.applied("acme/shop", bundle)
				if got := o.git(applied, "show", "HEAD:a"); got != "changed" {
					t.Errorf("a is %q", got)
				}
				if found := o.git(applied, "log", "--all", "--format=%H"); strings.Contains(found, foreign) {
					t.Error("the bundle has commits of another repository")
				}
			})
		})
	}
}

// TestCollectInASandbox collects changes in sandboxes, of a checkout that is a link too.
func TestCollectInASandbox(t *testing.T) {
	wantSandbox(t)
	o := newOrigin(t)
	o.commit("acme/shop", map[string]string{"a": "x"})
	o.commit("acme/lib", map[string]string{"b": "y"})
	b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
	b.work(configOf(boxed(`set -e; cd shop; echo changed > a; git commit -qam "My change"; echo z > new; cd ..
		mv lib moved; ln -s moved lib; echo changed > lib/b`)))

	r := b.succeeded(b.in(b.with([]string{"echo set up > shop/made"}, "acme/shop", "acme/lib")))
	wantIn(t, b.left(r, "shop/changes.patch"), "+changed", "+z")
	wantIn(t, b.left(r, "lib/changes.patch"), "+changed")
	applied := o.applied("acme/shop", b.left(r, "shop/changes.bundle"))
	if got := o.git(applied, "log", "--format=%s"); !strings.HasPrefix(got, "Mend the shop\nMy change\n") {
		t.Errorf("commits %q", got)
	}
	if _, err := os.Lstat(filepath.Join(applied, "made")); err == nil {
		t.Error("the changes have what the set-up commands left")
	}
}

// TestReplacedPrompt has set-up commands put something else in place of the prompt: the harness does not
// read through it what only the worker can.
func TestReplacedPrompt(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("of the worker"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, setUp := range []string{
		"ln -sf " + secret + " prompt.md",
		"rm prompt.md; mkfifo prompt.md",
		"rm prompt.md; mkdir prompt.md",
		"rm prompt.md",
	} {
		each(t, "cat", func(t *testing.T, h worker.Harness) {
			b := newBench(t, 0)
			b.work(configOf(h))
			r := b.end(b.in(b.with([]string{setUp})))
			if r.State != state.RunError || !strings.HasPrefix(r.StatusMessage, "prompt: ") {
				t.Errorf("%s: %s %s: said %q", setUp, r.State, r.StatusMessage, b.said(r))
			}
		})
	}
}

// TestOddChanges has files that are hard to pack.
func TestOddChanges(t *testing.T) {
	each(t, `printf 'x' > "$(printf 'new\nline')"; printf 'x' > "$(printf '\377\376')"; printf 'a\r\nb\r\n' > crlf; head -c 3000 /dev/urandom > binary
		ln -s /etc/passwd link; mkdir empty; printf '#!/bin/sh\n' > tool; chmod +x tool; echo no > ignored; mkfifo pipe; : > -option
		git checkout -q -b side; echo s > side; git add side; git commit -qm side; git checkout -q main; echo m > main; git add main; git commit -qm main; git merge -q -m merge side`,
		func(t *testing.T, h worker.Harness) {
			o := newOrigin(t)
			o.commit("acme/shop", map[string]string{"a": "x", ".gitignore": "ignored\n"})
			b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
			b.work(configOf(h))

			r := b.succeeded(b.in(b.with(nil, "acme/shop")))
			applied := o.applied("acme/shop", b.left(r, "changes.bundle"))
			names := strings.Split(o.git(applied, "ls-tree", "-r", "-z", "--name-only", "HEAD"), "\x00")
			want := []string{"-option", ".gitignore", "a", "binary", "crlf", "link", "main", "new\nline", "side", "tool", "\xff\xfe", ""}
			if strings.Join(names, "|") != strings.Join(want, "|") {
				t.Errorf("files %q", names)
			}
			if body, err := os.ReadFile(filepath.Join(applied, "crlf")); err != nil || string(body) != "a\r\nb\r\n" {
				t.Errorf("crlf is %q %v", body, err)
			}
			if to, err := os.Readlink(filepath.Join(applied, "link")); err != nil || to != "/etc/passwd" {
				t.Errorf("link is %q %v", to, err)
			}
		})
}

// TestTooManyChanges has changes beyond the bounds: an event tells so, and the run keeps its state.
func TestTooManyChanges(t *testing.T) {
	for name, script := range map[string]string{
		"files":  `i=0; while [ $i -lt 10001 ]; do : > f$i; i=$((i+1)); done`,
		"bytes":  `head -c 210000000 /dev/zero > big`,
		"bundle": `head -c 60000000 /dev/urandom > big`,
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			o.commit("acme/shop", map[string]string{"a": "x"})
			b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
			b.work(configOf(sh(script)))

			r := b.succeeded(b.in(b.with(nil, "acme/shop")))
			if got := b.events(r, "changes_not_collected"); len(got) != 1 || !strings.Contains(got[0], "more than") {
				t.Errorf("events %s", got)
			}
		})
	}
}

// TestSubmodulesChange has harnesses change what a submodule's directory holds, and the commit of a
// submodule.
func TestSubmodulesChange(t *testing.T) {
	commit := strings.Repeat("1", 40)
	for name, test := range map[string]struct {
		script, want string // commit of the submodule afterwards; empty: the server refuses the changes
		leftOut      bool
	}{
		"repository in its place": {`git init -q sub; cd sub; echo x > y; git add y; git commit -qm y`, commit, true},
		"files in its place":      {`echo x > sub/y`, commit, false},
		"directory gone":          {`rmdir sub`, commit, true},
		"another commit":          {`git update-index --cacheinfo 160000,` + strings.Repeat("2", 40) + `,sub; git commit -qm y`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			o.commit("acme/shop", map[string]string{"a": "x", ".gitmodules": "[submodule \"sub\"]\n\tpath = sub\n\turl = ../sub.git\n"})
			tree := o.git(o.bare("acme/shop"), "rev-parse", "main^{tree}")
			o.git(o.bare("acme/shop"), "read-tree", tree)
			o.git(o.bare("acme/shop"), "update-index", "--add", "--cacheinfo", "160000,"+commit+",sub")
			made := o.git(o.bare("acme/shop"), "commit-tree", "-m", "y", "-p", "main", o.git(o.bare("acme/shop"), "write-tree"))
			o.git(o.bare("acme/shop"), "update-ref", "refs/heads/main", made)
			b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
			b.work(configOf(sh(`set -e; (` + test.script + `); echo changed > a`)))

			r := b.succeeded(b.in(b.with(nil, "acme/shop")))
			if got := b.events(r, "changes_left_out"); (len(got) > 0) != test.leftOut {
				t.Errorf("left out: %s", got)
			}
			refused := strings.Join(b.events(r, "artifact_refused"), "")
			if test.want == "" {
				wantIn(t, refused, "another commit of the submodule")
				return
			}
			if refused != "" {
				t.Errorf("refused: %s", refused)
			}

			applied := o.applied("acme/shop", b.left(r, "changes.bundle"))
			if got := o.git(applied, "rev-parse", "HEAD:sub"); got != test.want {
				t.Errorf("the submodule is at %s, want %s", got, test.want)
			}
		})
	}
}

// submodule makes a repository with the file a and the submodule sub.
func (o origin) submodule(repository, url, commit string) {
	o.t.Helper()
	o.commit(repository, map[string]string{
		"a": "x", ".gitmodules": "[submodule \"sub\"]\n\tpath = sub\n\turl = " + url + "\n",
	})

	bare := o.bare(repository)
	o.git(bare, "read-tree", "main")
	o.git(bare, "update-index", "--add", "--cacheinfo", "160000,"+commit+",sub")
	o.git(bare, "update-ref", "refs/heads/main",
		o.git(bare, "commit-tree", "-m", "y", "-p", "main", o.git(bare, "write-tree")))
}

// TestSubmodulesOfOtherHosts has set-up commands fetch a submodule in a sandbox that does not allow its host.
func TestSubmodulesOfOtherHosts(t *testing.T) {
	wantSandbox(t)
	o := newOrigin(t)
	o.submodule("acme/shop", "https://evil.example.org/sub.git", strings.Repeat("1", 40))
	b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
	h := boxed("echo never")
	h.Sandbox.Network.Allow = []string{"git.example.com"}
	b.work(configOf(h))

	r := b.end(b.in(b.with([]string{"git submodule update --init"}, "acme/shop")))
	if r.State != state.RunError || r.ErrorCode != "environment_setup_failed" ||
		!strings.Contains(r.StatusMessage, "evil.example.org") {
		t.Errorf("run is %s: %s: %s", r.State, r.ErrorCode, r.StatusMessage)
	}
	if refused := b.events(r, "network_refused"); len(refused) != 1 ||
		!strings.Contains(refused[0], `"host":"evil.example.org"`) {
		t.Errorf("events %s", refused)
	}
}

// TestSetUpFetchesASubmodule has the set-up commands fill the directory of a submodule. The changes of the harness are
// those of the repository alone.
func TestSetUpFetchesASubmodule(t *testing.T) {
	o := newOrigin(t)
	commit := o.commit("acme/sub", map[string]string{"inner": "of the submodule"})
	o.submodule("acme/shop", "file://"+o.bare("acme/sub"), commit)
	b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
	b.work(configOf(sh(`cat sub/inner && echo changed > a`)))

	fetch := "git -c protocol.file.allow=always submodule update --init --quiet"
	r := b.succeeded(b.in(b.with([]string{fetch}, "acme/shop")))
	wantIn(t, b.said(r), "of the submodule")
	applied := o.applied("acme/shop", b.left(r, "changes.bundle"))
	if got := o.git(applied, "diff", "--name-only", "HEAD~1"); got != "a" {
		t.Errorf("changes of %s", got)
	}
}

// TestCancelledWhileCollected cancels a run while its many changes are collected: they are not lost.
func TestCancelledWhileCollected(t *testing.T) {
	o := newOrigin(t)
	o.commit("acme/shop", map[string]string{"a": "x"})
	b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
	b.work(configOf(sh(`i=0; while [ $i -lt 3000 ]; do echo $i > f$i; i=$((i+1)); done`)))
	id := b.in(b.with(nil, "acme/shop"))
	b.until(id, func(r state.Run) bool {
		found, _ := filepath.Glob(filepath.Join(b.dir, "worker-*", "run-*", "collect-0"))
		return len(found) > 0 || r.Ended()
	})
	if _, err := b.store.RequestCancel(t.Context(), id, "tester"); err != nil {
		t.Fatal(err)
	}

	r := b.end(id)
	if lost := b.events(r, "changes_not_collected"); len(lost) > 0 {
		t.Errorf("events %s", lost)
	}
	wantIn(t, b.left(r, "changes.patch"), "+2999")
	b.succeeded(b.in(b.with(nil)))
}
