package reconcile_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"millwright/reconcile"
	"millwright/reconcile/signers"
	"millwright/schema"
	"millwright/schema/agefile"
	"millwright/state"
	"millwright/state/statetest"
)

// signWith returns the header that signs a commit, and the line of the key in a file of allowed signers.
func signWith(tb testing.TB) (sign func(payload string) string, line string) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(tb, err)
	signer, err := ssh.NewSignerFromKey(key)
	must(tb, err)
	return func(payload string) string {
		sig, err := sshsig.Sign(strings.NewReader(payload), signer, sshsig.HashSHA512, "git")
		must(tb, err)
		armored := strings.TrimRight(string(sshsig.Armor(sig)), "\n")
		return "gpgsig " + strings.ReplaceAll(armored, "\n", "\n ") + "\n"
	}, "ada@example.com " + string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

// amend replaces the newest commit by itself with more headers, and pushes it.
func (r *repository) amend(headers func(payload string) string) string {
	r.Helper()
	payload := r.run(r.work, "cat-file", "commit", "HEAD") + "\n"
	top, message, _ := strings.Cut(payload, "\n\n")
	cmd := exec.Command("git", "hash-object", "-t", "commit", "-w", "--literally", "--stdin")
	cmd.Dir, cmd.Stdin = r.work, strings.NewReader(top+"\n"+headers(payload)+"\n"+message)
	out, err := cmd.Output()
	must(r, err)
	commit := strings.TrimSpace(string(out))
	r.git("update-ref", "HEAD", commit)
	r.git("push", "-q", "--force", "origin", "HEAD")
	return commit
}

func TestGitRefusesCommitsOfStrangers(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		r := newRepository(t)
		sign, line := signWith(t)
		keys, err := signers.Read([]byte(line), nil)
		must(t, err)
		secret(t, s, "CI_TOKEN", "x")
		b := newBench(t, s, gitSource(t, reconcile.GitConfig{URL: r.fileURL(), Signers: keys}), nil)

		refused := func(want string) {
			t.Helper()
			result := b.once(state.OutcomeRefused, true)
			if len(result.Problems) != 1 || result.Problems[0].Code != schema.RuleCommitSignature.Code() ||
				!strings.Contains(result.Message, want) {
				t.Errorf("refused with %v, want %s", result.Problems, want)
			}
			if attempted := b.now().Attempted; attempted.Signer != "" || attempted.Tree != "" {
				t.Errorf("the refused revision states %+v", attempted)
			}
			b.once(state.OutcomeRefused, false)
		}

		r.push(tree{"webhooks/a.yaml": hook("CI_TOKEN")}, "Unsigned")
		refused("it is not signed")
		hash := regexp.MustCompile(`[0-9a-f]{12}`)
		problem := b.now().Problems[0]
		want, err := os.ReadFile("../testdata/factories/err/commit-signature/expected.txt")
		must(t, err)
		if got := hash.ReplaceAllString(schema.Text(problem, nil), ""); got != hash.ReplaceAllString(strings.TrimSpace(string(want)), "") {
			t.Errorf("the page shows\n%s\ngot\n%s", want, got)
		}

		signed := r.amend(sign)
		b.once(state.OutcomeApplied, true)
		if a := b.now().Applied; a.ID != signed || !strings.HasPrefix(a.Signer, "ada@example.com (SHA256:") {
			t.Errorf("applied %+v", a)
		}
		b.wantWebhooks("a")

		// The same files from a stranger are not the same revision.
		stranger, _ := signWith(t)
		r.push(tree{"webhooks/a.yaml": hook("CI_TOKEN")}, "By a stranger")
		r.amend(stranger)
		refused("is not one of the trusted keys")

		// A header that no signature covers names the tree of the stranger.
		r.commit(tree{"webhooks/evil.yaml": hook("CI_TOKEN")}, "Evil")
		evil := r.git("rev-parse", "HEAD^{tree}")
		r.commit(tree{"webhooks/a.yaml": hook("CI_TOKEN"), "webhooks/b.yaml": hook("CI_TOKEN")}, "By Ada")
		r.amend(func(payload string) string { return sign(payload) + "gpgsig-sha256 x\n tree " + evil + "\n" })
		b.once(state.OutcomeApplied, true)
		b.wantWebhooks("a", "b")
	})
}

// TestHeadsOpenSecrets plans the head of a pull request with a file of secrets/ for another factory.
func TestHeadsOpenSecrets(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	r := newRepository(t)
	b := newBench(t, s, gitSource(t, reconcile.GitConfig{URL: r.fileURL()}), nil)
	heads, err := reconcile.NewHeads(reconcile.GitConfig{URL: r.fileURL(), CloneDir: t.TempDir()}, b.Loop)
	must(t, err)
	defer heads.Close()

	other, err := agefile.NewIdentity()
	must(t, err)
	for recipient, want := range map[string]string{b.factory.Recipient: "", other.Recipient(): "secret-file-unreadable"} {
		file, err := agefile.Seal(recipient, b.factory.UID, "TOKEN", []byte("sealed-value"))
		must(t, err)
		commit := r.push(tree{"webhooks/a.yaml": hook("TOKEN"), "secrets/TOKEN.age": string(file)}, "Seal "+recipient)

		p, err := heads.Plan(t.Context(), commit, false)
		must(t, err)
		code := ""
		if len(p.Problems) > 0 {
			code = p.Problems[0].Code
		}
		if code != want || p.WouldApply != (want == "") {
			t.Errorf("planned with %+v, want %q", p.Problems, want)
		}

		p, err = heads.Plan(t.Context(), commit, true)
		must(t, err)
		if !p.WouldApply || !slices.Contains(p.NotChecked, "secret-file-unreadable") {
			t.Errorf("the public learns %+v", p.Problems)
		}
	}
}

func TestGitSignedTags(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		r := newRepository(t)
		sign, line := signWith(t)
		keys, err := signers.Read([]byte(line), nil)
		must(t, err)
		secret(t, s, "CI_TOKEN", "x")
		r.commit(tree{"webhooks/a.yaml": hook("CI_TOKEN")}, "The commit that a tag names")
		r.amend(sign)
		r.git("tag", "-a", "-m", "The tag itself needs no signature.", "v1")
		r.git("push", "-q", "origin", "v1")

		b := newBench(t, s, gitSource(t, reconcile.GitConfig{URL: r.fileURL(), Tag: "v1", Signers: keys}), nil)
		b.once(state.OutcomeApplied, true)
		if b.now().Applied.Signer == "" {
			t.Error("the revision has no signer")
		}
	})
}

// TestGitSignerOfAnAppliedCommit starts to verify the commit that is in force.
func TestGitSignerOfAnAppliedCommit(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	r := newRepository(t)
	sign, line := signWith(t)
	_, other := signWith(t)
	secret(t, s, "CI_TOKEN", "x")
	r.commit(tree{"webhooks/a.yaml": hook("CI_TOKEN")}, "First")
	r.amend(sign)

	dir := t.TempDir()
	attempt := func(line string, want state.Outcome, recorded bool) *bench {
		t.Helper()
		cfg := reconcile.GitConfig{URL: r.fileURL(), CloneDir: dir}
		if line != "" {
			var err error
			cfg.Signers, err = signers.Read([]byte(line), nil)
			must(t, err)
		}
		source, err := reconcile.Git(cfg)
		must(t, err)
		defer source.Close()
		b := newBench(t, s, source, nil)
		b.once(want, recorded)
		return b
	}

	attempt("", state.OutcomeApplied, true)
	if b := attempt(line, state.OutcomeUnchanged, true); b.now().Applied.Signer == "" {
		t.Error("the revision has no signer")
	}
	b := attempt(other, state.OutcomeRefused, true)
	b.wantWebhooks("a")
	attempt(line, state.OutcomeUnchanged, true)
}
