//go:build unix

package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"millwright/runs/worker/workspace"
)

// AuthorEmail is the address in commits of runs.
const AuthorEmail = "automation@millwright.invalid"

// Checkout puts the files of a repository, with its history, into a new or empty directory, and a read-only copy
// of its objects into base. It uses the credential while it runs, and leaves it nowhere. The error is for people.
func (m *Mirrors) Checkout(ctx context.Context, s Source, into, base string) (Made, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took longer than %s", patience))
	defer cancel()

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return Made{}, underlying(err)
	}

	mirror, err := m.of(s)
	if err != nil {
		return Made{}, err
	}
	defer mirror.lock.Close()

	go m.watch(ctx, stop, mirror.path)

	made, err := mirror.checkout(ctx, into, base)
	if damaged(err) && ctx.Err() == nil {
		if err := mirror.discard(ctx, into, base); err != nil {
			return Made{}, explain(err)
		}
		made, err = mirror.checkout(ctx, into, base)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}

	return made, explain(err)
}

// checkout fetches the mirror and copies it.
func (m *mirror) checkout(ctx context.Context, into, base string) (Made, error) {
	if _, err := m.lock.TryLockContext(ctx, lockAgain); err != nil {
		return Made{}, err
	}

	made, err := m.fetch(ctx)
	if err != nil {
		return Made{}, err
	}

	// Others may copy at the same time, and none may fetch.
	if err := m.lock.Unlock(); err != nil {
		return Made{}, err
	}
	if _, err := m.lock.TryRLockContext(ctx, lockAgain); err != nil {
		return Made{}, err
	}

	if err := m.measure(ctx, made.Commit); err != nil {
		return Made{}, err
	}
	if err := m.copy(ctx, made, into); err != nil {
		return Made{}, err
	}
	if err := link(filepath.Join(m.path, "objects"), base); err != nil {
		return Made{}, err
	}

	return made, m.lock.Unlock()
}

// discard removes a damaged mirror, and what was copied from it.
func (m *mirror) discard(ctx context.Context, into, base string) error {
	if err := m.lock.Unlock(); err != nil {
		return err
	}
	if _, err := m.lock.TryLockContext(ctx, lockAgain); err != nil {
		return err
	}

	for _, dir := range []string{m.path, into, base} {
		if err := workspace.Remove(dir); err != nil {
			return err
		}
	}
	return os.Mkdir(into, 0o700)
}

// copy makes a checkout of the mirror.
func (m *mirror) copy(ctx context.Context, made Made, into string) error {
	clone := []string{
		"clone", "--quiet", "--local", "--no-hardlinks", "--template=", "--origin=origin",
		"--config=user.name=" + m.Author, "--config=user.email=" + AuthorEmail,
	}
	isTip := m.refs["refs/heads/"+made.Branch] == made.Commit
	if isTip { // only this commit was measured
		clone = append(clone, "--branch="+made.Branch)
	} else {
		clone = append(clone, "--no-checkout")
	}

	clone = append(clone, "--", m.path, into)
	if _, err := m.run(ctx, command{dir: m.dir, args: clone, protocols: "file"}); err != nil {
		return err
	}

	url := command{dir: into, args: []string{"config", "remote.origin.url", m.URL}}
	if _, err := m.run(ctx, url); err != nil {
		return err
	}

	if isTip && tipOf(into, made.Branch) == made.Commit {
		return nil
	}
	return m.move(ctx, into, made)
}

// tipOf returns the commit of the branch that a new clone is on; empty if it cannot be read.
func tipOf(dir, branch string) string {
	commit, err := os.ReadFile(filepath.Join(dir, ".git", "refs", "heads", filepath.FromSlash(branch)))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(commit))
}

// link makes a directory of objects that has the files of another one, which nobody changes.
func link(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}

		place := filepath.Join(to, name)
		if e.IsDir() {
			return os.MkdirAll(place, 0o755)
		}
		if name == filepath.Join("info", "alternates") || !e.Type().IsRegular() {
			return nil
		}
		return os.Link(path, place)
	})
}

// watch stops a checkout whose mirror has too many bytes, or that fills the disk.
func (m *Mirrors) watch(ctx context.Context, stop context.CancelCauseFunc, path string) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		if _, scarce := workspace.Reserve(m.dir); scarce {
			stop(errFull)
		}
		if workspace.Exceeds(path, m.max) {
			stop(fmt.Errorf("the repository has more than %d bytes", m.max))
		}
	}
}

var errFull = errors.New("the disk of the worker is full")

// ErrLater reports that a forge is away, has an error or limits requests, which passes by itself.
var ErrLater = errors.New("try again later")

// later is such an error, in words for people.
type later string

func (l later) Error() string { return string(l) }
func (later) Unwrap() error   { return ErrLater }

// What people read.
const (
	meansMoved   = "the repository was moved or renamed: write its new name"
	meansGone    = "the repository does not exist, or the credential may not read it"
	meansRefused = "the forge refuses the credential: it was revoked, has expired, or may not read this repository"
	meansAsked   = "the forge asks for a credential: the repository does not exist, or is private and " +
		"forges has no token"
	meansBusy        = "the forge limits requests"
	meansBroken      = "the forge has an error"
	meansUnreachable = "the forge cannot be reached"
	meansBroke       = "the connection to the forge broke"
	meansSHA256      = "the repository uses SHA-256 names, which are not supported"
)

// underlying removes paths of this machine from an error.
func underlying(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

// words has what git says, in lower case, and what it means. The first match counts.
var words = []struct{ said, means string }{
	{"no space left on device", errFull.Error()},
	{"disk quota exceeded", errFull.Error()},
	{"unable to write file", errFull.Error()},
	{"unable to update url base from redirection", meansMoved},
	{"the requested url returned error: 301", meansMoved},
	{"the requested url returned error: 302", meansMoved},
	{"authentication failed", meansRefused},
	{"could not read username", meansAsked},
	{"the requested url returned error: 401", meansRefused},
	{"the requested url returned error: 403", meansRefused},
	{"the requested url returned error: 404", meansGone},
	{"repository not found", meansGone},
	{"does not appear to be a git repository", "the repository does not exist"},
	{"repository '", meansGone},
	{"the requested url returned error: 429", meansBusy},
	{"the requested url returned error: 5", meansBroken},
	{"not valid: is this a git repository", "what answers at the repository's address is no git server"},
	{"could not resolve host", meansUnreachable},
	{"failed to connect", meansUnreachable},
	{"couldn't connect", meansUnreachable},
	{"connection refused", meansUnreachable},
	{"connection timed out", meansUnreachable},
	{"empty reply from server", meansUnreachable},
	{"rpc failed; curl 18", meansBroke},
	{"rpc failed; curl 56", meansBroke},
	{"rpc failed; curl 92", meansBroke},
	{"connection reset by peer", meansBroke},
	{"not our ref", "the repository does not have the commit"},
	{"mismatched algorithms", meansSHA256},
	{"bad object format", meansSHA256},
}

// meaning returns the meaning of what git said; empty if it is not known.
func meaning(err error) string {
	var failed *gitError
	if !errors.As(err, &failed) {
		return ""
	}

	said := strings.ToLower(failed.stderr)
	for _, w := range words {
		if strings.Contains(said, w.said) {
			return w.means
		}
	}
	return ""
}

// damaged reports whether an error may come from a damaged mirror.
func damaged(err error) bool {
	var failed *gitError
	var link *os.LinkError
	return errors.As(err, &failed) && meaning(err) == "" || errors.As(err, &link) && !isFull(err)
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// explain returns an error for people.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if isFull(err) {
		return errFull
	}
	switch text := meaning(err); text {
	case "":
		return underlying(err)
	case meansBusy, meansBroken, meansUnreachable, meansBroke:
		return later(text)
	default:
		return errors.New(text)
	}
}

// Continue brings a checkout to the commit of a bundle that continues it, and returns the commit. After an error, the
// checkout is as it was made.
func (m *Mirrors) Continue(ctx context.Context, dir, bundle string, made Made) (string, error) {
	out, err := m.run(ctx, command{dir: dir, args: []string{"bundle", "unbundle", bundle}})
	tip, _, _ := strings.Cut(string(out), " ")
	if err == nil && !IsCommit(tip) {
		err = errors.New("the bundle has no branch")
	}
	if err == nil {
		err = m.move(ctx, dir, Made{Commit: tip, Branch: made.Branch})
	}
	if err != nil && ctx.Err() == nil {
		if back := m.move(ctx, dir, made); back != nil {
			return "", explain(back)
		}
	}
	return tip, explain(err)
}

// move checks a commit out.
func (m *Mirrors) move(ctx context.Context, dir string, to Made) error {
	args := []string{"checkout", "--quiet", "--force", "--no-guess", "--detach", to.Commit, "--"}
	if to.Branch != "" {
		args = []string{"checkout", "--quiet", "--force", "--no-track", "-B", to.Branch, to.Commit, "--"}
	}
	_, err := m.run(ctx, command{dir: dir, args: args})
	return err
}
