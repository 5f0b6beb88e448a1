package signers_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"millwright/reconcile/signers"
	"millwright/state/statetest"
)

const (
	treeA = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"
	treeB = "tree 1111111111111111111111111111111111111111\n"
)

// made is the time of the commits of these tests.
var made = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// payload is what is signed of a commit.
func payload(tree string, extra ...string) string {
	who := fmt.Sprintf("Ada <ada@example.com> %d +0000\n", made.Unix())
	return tree + "author " + who + "committer " + who + strings.Join(extra, "") + "\nA commit.\n"
}

// header returns a signature as git writes it into a commit.
func header(name, signature string) string {
	return name + " " + strings.ReplaceAll(strings.TrimRight(signature, "\n"), "\n", "\n ") + "\n"
}

// with puts headers before the message of a commit.
func with(payload string, headers ...string) []byte {
	top, message, _ := strings.Cut(payload, "\n\n")
	return []byte(top + "\n" + strings.Join(headers, "") + "\n" + message)
}

func sshSigner(tb testing.TB) ssh.Signer {
	tb.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return must(ssh.NewSignerFromKey(key))
}

func signSSH(s ssh.Signer, text, namespace string) string {
	return string(sshsig.Armor(must(sshsig.Sign(strings.NewReader(text), s, sshsig.HashSHA512, namespace))))
}

// line is the line of a key in a file of allowed signers.
func line(principals, options string, s ssh.Signer) string {
	key := string(ssh.MarshalAuthorizedKey(s.PublicKey()))
	return strings.Join(strings.Fields(principals+" "+options+" "+key), " ") + "\n"
}

// check verifies a commit. want begins with "!" for a refusal, and is part of it, or of the signer.
func check(t *testing.T, k *signers.Keys, commit []byte, want string) {
	t.Helper()
	by, err := k.Verify(commit)
	why, refused := strings.CutPrefix(want, "!")
	switch {
	case refused && (err == nil || !strings.Contains(err.Error(), why)):
		t.Errorf("signed by %v, error %v, want %q", by, err, why)
	case !refused && (err != nil || !strings.Contains(by.String(), want)):
		t.Errorf("signed by %v, error %v, want %q", by, err, want)
	}
}

func TestSSHSignatures(t *testing.T) {
	ada, eve := sshSigner(t), sshSigner(t)
	good := payload(treeA)
	signed := header("gpgsig", signSSH(ada, good, "git"))
	fingerprint := ssh.FingerprintSHA256(eve.PublicKey())
	merge := payload(treeA + "parent " + strings.Repeat("2", 40) + "\nparent " + strings.Repeat("3", 40) + "\n")
	tagged := payload(treeA, header("mergetag", "object "+strings.Repeat("2", 40)+"\ntype commit\ntag v1\n\nThe tag.\n"))
	large := payload(treeA) + strings.Repeat("x", 900_000)
	certificate := &ssh.Certificate{Key: ada.PublicKey(), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	if err := certificate.SignCert(rand.Reader, eve); err != nil {
		t.Fatal(err)
	}
	certified := must(ssh.NewCertSigner(certificate, ada))

	tests := map[string]struct {
		options string
		commit  []byte
		want    string
	}{
		"signed":                  {"", with(good, signed), "ada@example.com (SHA256:"},
		"a merge":                 {"", with(merge, header("gpgsig", signSSH(ada, merge, "git"))), "ada@"},
		"a merge of a signed tag": {"", with(tagged, header("gpgsig", signSSH(ada, tagged, "git"))), "ada@"},
		"before other headers":    {"", []byte(treeA + signed + strings.TrimPrefix(good, treeA)), "ada@"},
		"of 900 kB":               {"", with(large, header("gpgsig", signSSH(ada, large, "git"))), "ada@"},
		"also for SHA-256":        {"", with(good, signed, header("gpgsig-sha256", signSSH(eve, good, "git"))), "ada@"},
		"for a namespace of ours": {`namespaces="file,g*"`, with(good, signed), "ada@"},
		"valid then":              {`valid-after="20260228",valid-before="202603020000Z"`, with(good, signed), "ada@"},

		"unsigned":             {"", []byte(good), "!it is not signed"},
		"for SHA-256 alone":    {"", with(good, header("gpgsig-sha256", signSSH(ada, good, "git"))), "!it is not signed"},
		"by another":           {"", with(good, header("gpgsig", signSSH(eve, good, "git"))), "!" + fingerprint + ", which is not one of"},
		"over another commit":  {"", with(payload(treeB), signed), "!is not over this commit"},
		"over another message": {"", append(with(good, signed), '!'), "!is not over this commit"},
		"for another purpose":  {"", with(good, header("gpgsig", signSSH(ada, good, "file"))), `!namespace "file"`},
		"for other namespaces": {`namespaces="*,!git"`, with(good, signed), "!are not for git"},
		"expired":              {`valid-before="20260101Z"`, with(good, signed), "!which expired at 2026-01-01"},
		"not yet valid":        {`valid-after="20270101Z"`, with(good, signed), "!valid only after 2027-01-01"},
		"signed twice":         {"", with(good, signed, header("gpgsig", signSSH(eve, good, "git"))), "!several signatures"},
		"two in one header":    {"", with(good, header("gpgsig", signSSH(ada, good, "git")+signSSH(eve, good, "git"))), "!malformed"},
		"an unknown header":    {"", with(good, signed, "gpgsig-sha1 x\n "+treeB), `!unknown header "gpgsig-sha1"`},
		"with a certificate":   {"", with(good, header("gpgsig", signSSH(certified, good, "git"))), "!certificate"},
		"garbage":              {"", with(good, "gpgsig -----BEGIN SSH SIGNATURE-----\n AAAA\n -----END SSH SIGNATURE-----\n"), "!malformed"},
		"X.509":                {"", with(good, "gpgsig -----BEGIN SIGNED MESSAGE-----\n AAAA\n"), "!X.509"},
		"neither":              {"", with(good, "gpgsig hello\n"), "!unknown format"},
		"a long signature":     {"", with(good, header("gpgsig", strings.Repeat("A", 70<<10))), "!more than 64 KiB"},
		"over 1 MiB":           {"", with(good+strings.Repeat("x", 1<<20), signed), "!more than 1 MiB"},
		"empty":                {"", nil, "!it is not signed"},
		"an OpenPGP signature": {"", with(good, "gpgsig -----BEGIN PGP SIGNATURE-----\n \n AAAA\n -----END PGP SIGNATURE-----\n"), "!malformed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			keys, err := signers.Read([]byte("# The team.\n\n"+line("ada@example.com", test.options, ada)), nil)
			if err != nil {
				t.Fatal(err)
			}
			check(t, keys, test.commit, test.want)
		})
	}
}

func TestSSHKeyOnSeveralLines(t *testing.T) {
	ada := sshSigner(t)
	good := payload(treeA)
	file := line("old@example.com", `valid-before="20250101Z"`, ada) + line(`"ada l,ada@example.com"`, "", ada)
	keys, err := signers.Read([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	check(t, keys, with(good, header("gpgsig", signSSH(ada, good, "git"))), "ada l,ada@example.com (")
}

func TestReadRefusesFiles(t *testing.T) {
	ada := sshSigner(t)
	entity := must(openpgp.NewEntity("Ada", "", "ada@example.com", nil))
	var private bytes.Buffer
	if err := entity.SerializePrivate(&private, nil); err != nil {
		t.Fatal(err)
	}
	key := string(ssh.MarshalAuthorizedKey(ada.PublicKey()))
	for _, test := range []struct{ ssh, openpgp, want string }{
		{"# nobody\n", "", "names no key"},
		{"ada@example.com\n", "", "line 1: want principals"},
		{"\n" + key, "", "line 2: want principals"},
		{`"ada ` + key, "", "a quote is not closed"},
		{line("*", "cert-authority", ada), "", "cert-authority is not supported"},
		{line("ada", `valid-before="tomorrow"`, ada), "", `"tomorrow" is not a time`},
		{line("ada", `namespaces="[g]it"`, ada), "", "is not a pattern"},
		{line("ada", "no-touch-required", ada), "", `unknown option "no-touch-required"`},
		{"", "not a keyring", "no key that can be read"},
		{"", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n", "openpgp: "},
		{"", private.String(), "private key"},
	} {
		var sshFile, openpgpFile []byte
		if test.ssh != "" {
			sshFile = []byte(test.ssh)
		}
		if test.openpgp != "" {
			openpgpFile = []byte(test.openpgp)
		}
		if _, err := signers.Read(sshFile, openpgpFile); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.60q %.40q: %v, want %q", test.ssh, test.openpgp, err, test.want)
		}
	}
	if _, err := signers.Read(nil, nil); err == nil {
		t.Error("no files trust somebody")
	}
}

func at(when time.Time) *packet.Config {
	return &packet.Config{Time: func() time.Time { return when }, Algorithm: packet.PubKeyAlgoEdDSA}
}

func signOpenPGP(t *testing.T, by *openpgp.Entity, text string, when time.Time) string {
	t.Helper()
	var b bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&b, by, strings.NewReader(text), at(when)); err != nil {
		t.Fatal(err)
	}
	return header("gpgsig", b.String())
}

func TestOpenPGPSignatures(t *testing.T) {
	born := made.AddDate(-1, 0, 0)
	ada := must(openpgp.NewEntity("Ada", "", "ada@example.com", at(born)))
	eve := must(openpgp.NewEntity("Eve", "", "eve@example.com", at(born)))
	brief := at(born)
	brief.KeyLifetimeSecs = 3600
	expired := must(openpgp.NewEntity("Old", "", "old@example.com", brief))
	lost := must(openpgp.NewEntity("Lost", "", "lost@example.com", at(born)))
	retired := must(openpgp.NewEntity("Retired", "", "retired@example.com", at(born)))

	good := payload(treeA)
	byLost, byOld := signOpenPGP(t, lost, good, made), signOpenPGP(t, expired, good, born.Add(time.Minute))
	late := signOpenPGP(t, retired, good, made)
	early := signOpenPGP(t, retired, good, born.Add(time.Hour))
	if err := lost.RevokeKey(packet.KeyCompromised, "stolen", at(made.AddDate(0, 1, 0))); err != nil {
		t.Fatal(err)
	}
	if err := retired.RevokeKey(packet.KeyRetired, "left", at(made.AddDate(0, -1, 0))); err != nil {
		t.Fatal(err)
	}

	var ring bytes.Buffer
	for _, e := range []*openpgp.Entity{ada, expired, lost, retired} {
		w := must(armor.Encode(&ring, openpgp.PublicKeyType, nil))
		if err := e.Serialize(w); err != nil {
			t.Fatal(err)
		}
		w.Close()
		ring.WriteByte('\n')
	}
	keys, err := signers.Read(nil, ring.Bytes())
	if err != nil {
		t.Fatal(err)
	}

	// The library refuses to sign with an expired key: the time of the signature is put back.
	forged := *expired
	forged.Identities = map[string]*openpgp.Identity{}
	for name, id := range expired.Identities {
		self := *id.SelfSignature
		self.KeyLifetimeSecs = nil
		forged.Identities[name] = &openpgp.Identity{Name: id.Name, UserId: id.UserId, SelfSignature: &self}
	}

	signed := signOpenPGP(t, ada, good, made)
	twice := strings.TrimSuffix(signed, "\n") + "\n " + strings.TrimPrefix(signOpenPGP(t, eve, good, made), "gpgsig ")
	for name, test := range map[string]struct {
		commit []byte
		want   string
	}{
		"signed":               {with(good, signed), fmt.Sprintf("Ada <ada@example.com> (%X)", ada.PrimaryKey.Fingerprint)},
		"valid then":           {with(good, byOld), "Old <"},
		"before it retired":    {with(good, early), "Retired <"},
		"by another":           {with(good, signOpenPGP(t, eve, good, made)), fmt.Sprintf("!%X, which is not one of", eve.PrimaryKey.Fingerprint)},
		"over another commit":  {with(payload(treeB), signed), "!is not over this commit"},
		"by a compromised key": {with(good, byLost), "!is revoked"},
		"after it retired":     {with(good, late), "!is revoked"},
		"after it expired":     {with(good, signOpenPGP(t, &forged, good, made)), "!had expired"},
		"signed twice":         {with(good, twice), "!several signatures"},
		"an SSH signature":     {with(good, header("gpgsig", signSSH(sshSigner(t), good, "git"))), "!is not one of the trusted keys"},
	} {
		t.Run(name, func(t *testing.T) { check(t, keys, test.commit, test.want) })
	}
}

// TestProgramsSign verifies commits that git makes with the programs of OpenSSH and GnuPG.
func TestProgramsSign(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"git", "ssh-keygen", "gpg"} {
		statetest.Program(t, name)
	}
	home, err := os.MkdirTemp("", "gpg") // short: the agent's socket is in it
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = home
		cmd.Env = append(os.Environ(), "GNUPGHOME="+home, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
		}
		return string(out)
	}
	t.Cleanup(func() {
		run("gpgconf", "--kill", "all")
		os.RemoveAll(home)
	})
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}

	run("git", "init", "-q", "-b", "main", ".")
	run("ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-C", "ada", "-f", filepath.Join(home, "id"))
	run("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "Ada <ada@example.com>", "ed25519", "sign", "never")
	key, err := os.ReadFile(filepath.Join(home, "id.pub"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := signers.Read([]byte("ada@example.com namespaces=\"git\" "+string(key)), []byte(run("gpg", "--export", "--armor")))
	if err != nil {
		t.Fatal(err)
	}

	head := func() []byte { return []byte(run("git", "cat-file", "commit", "HEAD")) }
	run("git", "commit", "-q", "--allow-empty", "-m", "Unsigned")
	check(t, keys, head(), "!it is not signed")
	run("git", "-c", "gpg.format=ssh", "-c", "user.signingKey="+filepath.Join(home, "id"), "commit", "-q", "--allow-empty", "-S", "-m", "By SSH")
	check(t, keys, head(), "ada@example.com (SHA256:")
	run("git", "-c", "user.signingKey=ada@example.com", "commit", "-q", "--allow-empty", "-S", "-m", "By OpenPGP")
	check(t, keys, head(), "Ada <ada@example.com> (")
}

func FuzzVerify(f *testing.F) {
	ada := sshSigner(f)
	keys := must(signers.Read([]byte(line("ada", "", ada)), nil))
	good := payload(treeA)
	f.Add([]byte(good))
	f.Add(with(good, header("gpgsig", signSSH(ada, good, "git"))))
	f.Add(with(good, "gpgsig -----BEGIN PGP SIGNATURE-----\n \n AAAA\n -----END PGP SIGNATURE-----\n"))
	f.Fuzz(func(t *testing.T, commit []byte) {
		by, err := keys.Verify(commit)
		if err == nil && by.Name != "ada" {
			t.Errorf("signed by %v", by)
		}
	})
}
