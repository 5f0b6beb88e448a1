//go:build unix

// Package checkout makes the working directories of runs from git repositories, with the git program of the
// machine. Repositories are hostile: nothing in one is executed here. There are no hooks, filters, submodules or
// file system monitors, no configuration of the machine is read, and refs are data.
//
// A mirror is a bare clone, one for each address, shared by the workers of a machine under a lock. A checkout is
// a copy of a mirror: no run can reach the mirror through it.
package checkout

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode"

	"millwright/runs/worker/confine"
)

// Bounds of git's output, in bytes.
const (
	maxOutput = 1 << 20
	maxErrors = 4 << 10
)

// Config is what git is told on every command line here. It overrides the configuration of a repository.
var Config = []string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.untrackedCache=false",
	"core.attributesFile=/dev/null",
	"core.excludesFile=/dev/null",
	"core.sshCommand=false",
	"core.askPass=",
	"core.protectHFS=true",
	"core.protectNTFS=true",
	"core.autocrlf=false",
	"core.safecrlf=false",
	"commit.gpgSign=false",
	"credential.helper=",
	"diff.external=",
	"fetch.recurseSubmodules=false",
	"submodule.recurse=false",
	"gc.auto=0",
	"gc.autoDetach=false",
	"maintenance.auto=false",
	"http.followRedirects=false",
	"protocol.allow=never",
	"advice.detachedHead=false",
	"checkout.workers=0",
}

// Environment returns the environment of a git command that may use the given protocols, with colons between
// them. It has nothing of this process's environment but the proxies and certificates.
func Environment(protocols string) []string {
	env := []string{
		"PATH=" + confine.DefaultPath,
		"HOME=/nonexistent",
		"XDG_CONFIG_HOME=/nonexistent",
		"LC_ALL=C.UTF-8",
		"LANGUAGE=en",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_LFS_SKIP_SMUDGE=1",
		"GIT_PROTOCOL_FROM_USER=0",
		"GIT_ALLOW_PROTOCOL=" + protocols,
	}

	for _, name := range []string{
		"http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
	} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}

	if file, ok := os.LookupEnv("SSL_CERT_FILE"); ok { // git may be linked to a library that does not read it
		env = append(env, "GIT_SSL_CAINFO="+file)
	}
	return env
}

// Arguments returns a command line of git with Config.
func Arguments(args ...string) []string {
	var all []string
	for _, setting := range Config {
		all = append(all, "-c", setting)
	}
	return append(all, args...)
}

// gitError is a git command that failed.
type gitError struct {
	command string
	stderr  string
}

func (e *gitError) Error() string { return fmt.Sprintf("git %s: %s", e.command, e.stderr) }

// command is a call of git.
type command struct {
	dir        string // to work in
	args       []string
	protocols  string
	credential Credential
	env        []string // more of it
	out        func(io.Reader) error
}

// run calls git and returns what it put out, at most maxOutput bytes, unless c.out reads it. When ctx ends, git
// and all that it started are killed.
func (m *Mirrors) run(ctx context.Context, c command) ([]byte, error) {
	program, err := m.git()
	if err != nil {
		return nil, err
	}

	args := Arguments()
	env := append(Environment(c.protocols), c.env...)

	helper, done, err := c.credential.pipe()
	if err != nil {
		return nil, err
	}
	defer done()

	if helper != nil {
		args = append(args, "-c", "credential.helper="+credentialHelper)
	}

	cmd := exec.Command(program, append(args, c.args...)...)
	cmd.Dir, cmd.Env = c.dir, env
	cmd.SysProcAttr = confine.GroupAttributes()
	if helper != nil {
		cmd.ExtraFiles = []*os.File{helper} // descriptor 3
	}

	runtime.LockOSThread() // as confine.GroupAttributes asks
	defer runtime.UnlockOSThread()

	stderr := &end{}
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}

	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("git cannot be started: %w", err)
	}

	stop := context.AfterFunc(ctx, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()

	var out bytes.Buffer
	read := c.out
	if read == nil {
		read = func(r io.Reader) error {
			if _, err := io.Copy(&out, io.LimitReader(r, maxOutput+1)); err != nil {
				return err
			}
			if out.Len() > maxOutput {
				return errors.New("git's output is too long")
			}
			return nil
		}
	}

	failed := read(stdout)
	if failed != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case failed != nil:
		return nil, failed
	case err != nil:
		text := c.credential.redact(stderr.text())
		if text == "" {
			text = err.Error()
		}
		return nil, &gitError{c.args[0], text}
	}

	return out.Bytes(), nil
}

// end keeps the end of what is written to it.
type end struct{ kept []byte }

func (e *end) Write(p []byte) (int, error) {
	e.kept = append(e.kept, p...)
	if len(e.kept) > 2*maxErrors {
		e.kept = append(e.kept[:0], e.kept[len(e.kept)-maxErrors:]...)
	}
	return len(p), nil
}

// text returns the kept text as one line of printable characters.
func (e *end) text() string {
	kept := e.kept[max(0, len(e.kept)-maxErrors):]
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(kept), "?"))
	return strings.Join(strings.Fields(text), " ")
}

// protocol returns the protocol of an address of a repository, or an error if none is fetched from it.
func protocol(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || strings.ContainsFunc(address, unicode.IsControl) {
		return "", errors.New("the repository's address is not a URL")
	}

	switch {
	case u.User != nil:
		return "", errors.New("the repository's address has a credential")
	case (u.Scheme == "https" || u.Scheme == "http") && u.Host != "",
		u.Scheme == "file" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		return u.Scheme, nil
	}

	return "", fmt.Errorf("the repository's address has the scheme %.20q: want https, http or file", u.Scheme)
}

// patience is how long one command may take that talks to a forge, or copies a repository.
const patience = 30 * time.Minute

// lines calls f with each part of git's output that ends with a byte, without this byte.
func lines(end byte, f func(string) error) func(io.Reader) error {
	return func(r io.Reader) error {
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadString(end)
			if errors.Is(err, io.EOF) && line == "" {
				return nil
			}
			if err != nil {
				return err
			}
			if err := f(line[:len(line)-1]); err != nil {
				return err
			}
		}
	}
}
