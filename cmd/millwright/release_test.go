package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"millwright/state/statetest"
)

// snapshot builds the release of one system, and returns the directory of its files.
func snapshot(t *testing.T) string {
	t.Helper()
	program := os.Getenv("MILLWRIGHT_TEST_GORELEASER")
	if program == "" {
		t.Skip("MILLWRIGHT_TEST_GORELEASER is not set: .ci/goreleaser sets it")
	}

	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(source, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	dist := t.TempDir()
	config = bytes.Replace(config, []byte("goos: [linux, darwin, windows]"), []byte("goos: [linux]"), 1)
	config = bytes.Replace(config, []byte("goarch: [amd64, arm64]"), []byte("goarch: [amd64]"), 1)
	config = append(config, "\ndist: "+filepath.Join(dist, "dist")+"\n"...)
	file := filepath.Join(dist, "goreleaser.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}

	t.Log("not signed: a signature needs the identity of a workflow")
	for _, args := range [][]string{
		{"check", "--config", filepath.Join(source, ".goreleaser.yaml")},
		{"release", "--snapshot", "--clean", "--skip=sign", "--config", file},
	} {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = source
		cmd.Env = append(os.Environ(), "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("goreleaser %s: %v\n%s", args[0], err, out)
		}
	}
	return filepath.Join(dist, "dist")
}

// TestAcceptanceRelease builds a snapshot of a release, looks into its archive and its SBOM, and installs its package in a
// clean Debian.
func TestAcceptanceRelease(t *testing.T) {
	dist := snapshot(t)
	only := func(pattern string) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dist, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		return found[0]
	}

	binary := only("*/millwright")
	text, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if source, _ := filepath.Abs("../.."); bytes.Contains(text, []byte(source+"/cmd")) {
		t.Error("the program has a path of the machine that built it")
	}
	out, err := exec.Command("go", "version", "-m", binary).CombinedOutput()
	for _, want := range []string{"-trimpath=true", "CGO_ENABLED=0"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("there is no %s: %v\n%s", want, err, out)
		}
	}

	listed, err := exec.Command("tar", "-tzf", only("millwright_*_linux_amd64.tar.gz")).CombinedOutput()
	for _, want := range []string{"millwright\n", "LICENSE\n", "man/millwright-serve.1.gz\n", "completions/_millwright\n"} {
		if err != nil || !strings.Contains(string(listed), want) {
			t.Errorf("the archive has no %q: %v\n%s", want, err, listed)
		}
	}

	sums, err := os.ReadFile(only("checksums.txt"))
	if err != nil || len(regexp.MustCompile(`(?m)^[0-9a-f]{64}  \S+\.(tar\.gz|deb|rpm|cdx\.json)$`).FindAll(sums, -1)) != 4 {
		t.Errorf("checksums: %v\n%s", err, sums)
	}

	t.Run("sbom", func(t *testing.T) { readSBOM(t, only("*.cdx.json"), binary) })
	t.Run("debian", func(t *testing.T) { installDebian(t, only("*.deb")) })
	t.Run("rpm", func(t *testing.T) { readRPM(t, only("*.rpm")) })
	t.Run("rpm installed", func(t *testing.T) { installRPM(t, only("*.rpm")) })
}

// readSBOM compares the components of an SBOM with the modules that a program was built from.
func readSBOM(t *testing.T, file, program string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var sbom struct {
		Format     string `json:"bomFormat"`
		Components []struct{ Name, Version, PURL string }
	}
	if err := json.Unmarshal(text, &sbom); err != nil || sbom.Format != "CycloneDX" {
		t.Fatalf("format %q: %v", sbom.Format, err)
	}
	listed := map[string]string{}
	for _, c := range sbom.Components {
		listed[c.Name] = c.Version
		if !strings.HasPrefix(c.PURL, "pkg:golang/"+c.Name+"@"+c.Version) {
			t.Errorf("%s %s has the address %q", c.Name, c.Version, c.PURL)
		}
	}

	build, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if len(build.Deps) == 0 || len(listed) != len(build.Deps) {
		t.Errorf("%d components of %d modules", len(listed), len(build.Deps))
	}
	for _, module := range build.Deps {
		if listed[module.Path] != module.Version {
			t.Errorf("%s is listed as %q, want %q", module.Path, listed[module.Path], module.Version)
		}
	}
}

// debianStory installs, changes, upgrades, removes and purges the package.
const debianStory = `set -eu
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
cd /
apt-get install -y --no-install-recommends ./millwright.deb
millwright version
test -f /usr/lib/systemd/system/millwright.service
grep -q '^ExecStart=/usr/bin/millwright serve --config /etc/millwright/millwright.yaml$' /usr/lib/systemd/system/millwright.service
grep -q '^User=millwright$' /usr/lib/systemd/system/millwright.service
test -f /usr/share/bash-completion/completions/millwright -a -f /usr/share/zsh/vendor-completions/_millwright
test -n "$(dpkg -L millwright | grep /usr/share/man/man1/millwright-serve.1.gz)"
test "$(stat -c '%U %a' /var/lib/millwright)" = 'millwright 700'

# The service's user can use the settings and the state.
as() { setpriv --reuid millwright --regid millwright --clear-groups env HOME=/var/lib/millwright "$@"; }
as millwright init --demo /var/lib/millwright/demo --state /var/lib/millwright/state.db >/dev/null
as millwright key create ops --role admin --local --config /etc/millwright/millwright.yaml >/dev/null

# An upgrade keeps changed settings.
echo '# mine' >> /etc/millwright/millwright.yaml
apt-get install -y --reinstall --no-install-recommends ./millwright.deb
grep -q '^# mine$' /etc/millwright/millwright.yaml

# A removal leaves settings and state, a purge nothing.
apt-get remove -y millwright
test ! -e /usr/bin/millwright -a ! -e /usr/lib/systemd/system/millwright.service
test -f /etc/millwright/millwright.yaml -a -f /var/lib/millwright/state.db
apt-get purge -y millwright
test ! -e /etc/millwright -a ! -e /var/lib/millwright
! getent passwd millwright
echo story told
`

// debian unpacks a clean Debian, and returns its directory.
func debian(t *testing.T) string {
	t.Helper()
	archive := os.Getenv("MILLWRIGHT_TEST_DEBIAN")
	if archive == "" {
		t.Skip("MILLWRIGHT_TEST_DEBIAN is not set: .ci/debian sets it")
	}

	root := t.TempDir()
	if out, err := exec.Command("tar", "-C", root, "-xpf", archive).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return root
}

func installDebian(t *testing.T, deb string) {
	root := debian(t)
	text, err := os.ReadFile(deb)
	err = errors.Join(err,
		os.WriteFile(filepath.Join(root, "millwright.deb"), text, 0o644),
		os.WriteFile(filepath.Join(root, "story"), []byte(debianStory), 0o755))
	if err != nil {
		t.Fatal(err)
	}

	out, err := exec.CommandContext(t.Context(), statetest.Program(t, "chroot"), root, "/bin/sh", "-x", "/story").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("story told")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// installRPM installs the other package into a root, runs the program there, and removes the package. The
// root is a Debian, so rpm resolves no dependencies.
func installRPM(t *testing.T, file string) {
	rpm, chroot := statetest.Program(t, "rpm"), statetest.Program(t, "chroot")
	root := debian(t)
	run := func(program string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", filepath.Base(program), args, err, out)
		}
	}
	inside := func(script string) { t.Helper(); run(chroot, root, "/bin/sh", "-euxc", script) }

	run(rpm, "--root", root, "--initdb")
	run(rpm, "--root", root, "--nodeps", "--nosignature", "--install", file)
	inside(`millwright version
test -f /usr/lib/systemd/system/millwright.service -a -f /etc/millwright/millwright.yaml
test -f /usr/share/man/man1/millwright-serve.1.gz -a -f /usr/share/bash-completion/completions/millwright
test "$(stat -c '%U %a' /var/lib/millwright)" = 'millwright 700'
touch /var/lib/millwright/state.db
echo '# mine' >> /etc/millwright/millwright.yaml`)

	run(rpm, "--root", root, "--nodeps", "--nosignature", "--upgrade", "--replacepkgs", file)
	inside(`grep -q '^# mine$' /etc/millwright/millwright.yaml`)

	run(rpm, "--root", root, "--nodeps", "--erase", "millwright")
	inside(`test ! -e /usr/bin/millwright -a ! -e /usr/lib/systemd/system/millwright.service
test -f /var/lib/millwright/state.db -a -f /etc/millwright/millwright.yaml.rpmsave`)
}

// readRPM checks what the other package says of itself.
func readRPM(t *testing.T, file string) {
	rpm := statetest.Program(t, "rpm")
	for query, want := range map[string][]string{
		"--list": {
			"/usr/bin/millwright\n", "/usr/lib/systemd/system/millwright.service\n",
			"/usr/share/zsh/site-functions/_millwright\n",
		},
		"--configfiles": {"/etc/millwright/millwright.yaml\n"},
		"--scripts":     {"useradd --system"},
	} {
		out, err := exec.Command(rpm, "-qp", "--nosignature", query, file).CombinedOutput()
		for _, text := range want {
			if err != nil || !strings.Contains(string(out), text) {
				t.Errorf("%s has no %q: %v\n%s", query, text, err, out)
			}
		}
	}
}

// TestAcceptanceSystems builds and vets the program for systems that the tests do not run on.
func TestAcceptanceSystems(t *testing.T) {
	for _, system := range []string{"windows/amd64", "darwin/arm64"} {
		t.Run(system, func(t *testing.T) {
			goos, goarch, _ := strings.Cut(system, "/")
			for _, args := range [][]string{
				{"build", "-o", filepath.Join(t.TempDir(), "millwright"), "."},
				{"vet", "../cli", "../settings", "../../schema/language"},
			} {
				cmd := exec.CommandContext(t.Context(), "go", args...)
				cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("go %s: %v\n%s", args[0], err, out)
				}
			}
		})
	}
}

// TestAcceptanceReproducible builds the program of a release from two copies of its source, the second with
// an empty build cache: the bytes are the same.
func TestAcceptanceReproducible(t *testing.T) {
	var sums [2][sha256.Size]byte
	for i := range sums {
		source := filepath.Join(t.TempDir(), strings.Repeat("deep/", 3*i), "source")
		cmd := exec.CommandContext(t.Context(), "git", "checkout-index", "--all", "--prefix="+source+"/")
		cmd.Dir = filepath.Join("..", "..")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}

		program := filepath.Join(t.TempDir(), "millwright")
		cmd = exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false",
			"-ldflags", "-s -w -buildid= -X millwright/cmd/cli.version=1.2.3", "-o", program, "./cmd/millwright")
		cmd.Dir = source
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if i > 0 {
			cmd.Env = append(cmd.Env, "GOCACHE="+t.TempDir())
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}

		text, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = sha256.Sum256(text)
	}

	if sums[0] != sums[1] {
		t.Errorf("two builds differ: %x, %x", sums[0], sums[1])
	}
}

// TestFormula makes the Homebrew formula of a release, and refuses checksums that lack an archive.
func TestFormula(t *testing.T) {
	var sums strings.Builder
	for i, target := range []string{"darwin_arm64", "darwin_amd64", "linux_arm64", "linux_amd64"} {
		sums.WriteString(strings.Repeat(string("abcd"[i]), 64) + "  millwright_1.2.3_" + target + ".tar.gz\n")
	}

	dir := files(t, map[string]string{"all.txt": sums.String(), "few.txt": strings.SplitAfter(sums.String(), "\n")[0]})
	script := filepath.Join(deployDir, "packages", "formula")
	out, err := exec.Command(script, "1.2.3", "https://example.com/v1.2.3", filepath.Join(dir, "all.txt")).CombinedOutput()
	for _, want := range []string{
		`url "https://example.com/v1.2.3/millwright_1.2.3_darwin_arm64.tar.gz"` + "\n      sha256 \"" + strings.Repeat("a", 64),
		`sha256 "` + strings.Repeat("d", 64), `man1.install`,
	} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("there is no %s: %v\n%s", want, err, out)
		}
	}

	out, err = exec.Command(script, "1.2.3", "https://example.com", filepath.Join(dir, "few.txt")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "has no archive for darwin_amd64") || strings.Contains(string(out), "class") {
		t.Errorf("few checksums: %v\n%s", err, out)
	}
}
