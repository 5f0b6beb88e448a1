//go:build unix

package checkout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"millwright/runs/worker/workspace"
)

// mirror is one mirror, with its lock.
type mirror struct {
	*Mirrors
	Source
	path     string
	protocol string
	lock     *flock.Flock
	refs     refs // of the repository
}

// refs has the objects of branches and tags, by their full names.
type refs map[string]string

// lockAgain is how often a lock that another worker may have is tried.
const lockAgain = 50 * time.Millisecond

// of returns the mirror of a repository.
func (m *Mirrors) of(s Source) (*mirror, error) {
	if _, err := protocol(s.URL); err != nil {
		return nil, err
	}
	scheme, err := protocol(s.address())
	if err != nil {
		return nil, err
	}

	sum := sha256.Sum256([]byte(s.URL))
	path := filepath.Join(m.dir, hex.EncodeToString(sum[:16]))
	return &mirror{Mirrors: m, Source: s, path: path, protocol: scheme, lock: flock.New(path + ".lock")}, nil
}

// do calls git in the mirror.
func (m *mirror) do(ctx context.Context, args ...string) (string, error) {
	out, err := m.run(ctx, command{dir: m.path, args: args})
	return strings.TrimSpace(string(out)), err
}

// ask calls git in the mirror with the credential. out reads its output, unless it is nil.
func (m *mirror) ask(ctx context.Context, out func(io.Reader) error, args ...string) error {
	c := command{dir: m.path, args: args, protocols: m.protocol, credential: m.Credential, out: out}
	if m.protocol == "file" { // another user's repository
		c.env = []string{"GIT_CONFIG_GLOBAL=" + m.path + ".config"}
	}

	_, err := m.run(ctx, c)
	return err
}

// make makes an empty mirror, unless there is one.
func (m *mirror) make(ctx context.Context) error {
	if m.protocol == "file" {
		config := "[safe]\n\tdirectory = *\n"
		if err := os.WriteFile(m.path+".config", []byte(config), 0o600); err != nil {
			return err
		}
	}

	if _, err := os.Stat(filepath.Join(m.path, "HEAD")); err == nil {
		return m.tidy()
	}
	if err := workspace.Remove(m.path); err != nil {
		return err
	}

	_, err := m.run(ctx, command{dir: m.dir, args: []string{"init", "--quiet", "--bare", "--template=", m.path}})
	return err
}

// tidy removes what commands left that were killed. The lock is held, so nothing works in the mirror.
func (m *mirror) tidy() error {
	var left []string
	patterns := []string{"tmp_*", "objects/pack/tmp_*", "objects/*/tmp_*", "objects/info/*.lock", "*.lock"}
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(m.path, pattern))
		if err != nil {
			return err
		}
		left = append(left, found...)
	}

	err := filepath.WalkDir(filepath.Join(m.path, "refs"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Ext(path) == ".lock" { // no ref has such a name
			left = append(left, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	for _, file := range left {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// fetch brings the mirror up to date and returns the commit to check out, with the branch that it is on if there
// is one.
func (m *mirror) fetch(ctx context.Context) (Made, error) {
	if err := m.make(ctx); err != nil {
		return Made{}, err
	}

	byDefault, err := m.look(ctx)
	if err != nil {
		return Made{}, err
	}

	have, err := m.have(ctx)
	if err != nil {
		return Made{}, err
	}
	if fresh := maps.Equal(have, m.refs); !fresh {
		if err := m.update(ctx); err != nil {
			m.tidy() // half a pack may fill the disk
			return Made{}, err
		}
	}

	now := time.Now()
	os.Chtimes(m.path, now, now) // used
	return m.resolve(ctx, byDefault)
}

// update fetches the branches and tags of the repository.
func (m *mirror) update(ctx context.Context) error {
	err := m.ask(ctx, nil, "fetch", "--quiet", "--force", "--prune", "--no-tags", "--no-write-fetch-head",
		"--no-recurse-submodules", "--", m.address(), "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
	if err != nil {
		return err
	}

	_, err = m.do(ctx, "-c", "gc.auto=6700", "gc", "--auto", "--quiet")
	return err
}

// errEmpty reports a repository without commits.
var errEmpty = errors.New("the repository is empty: push a first commit")

// maxRefs is how many branches and tags are compared. Of a repository that has more, all are fetched.
const maxRefs = 200_000

// look asks for the branches and tags of the repository, and returns the name of the branch that its HEAD
// names.
func (m *mirror) look(ctx context.Context) (byDefault string, err error) {
	m.refs = refs{}
	err = m.ask(ctx, lines('\n', func(line string) error {
		object, name, _ := strings.Cut(line, "\t")
		if branch, symbolic := strings.CutPrefix(object, "ref: refs/heads/"); symbolic {
			if name == "HEAD" {
				byDefault = branch
			}
			return nil
		}

		isRef := strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/")
		if isRef && !strings.HasSuffix(name, "^{}") && len(m.refs) <= maxRefs {
			m.refs[name] = object
		}
		return nil
	}), "ls-remote", "--quiet", "--symref", "--", m.address(), "HEAD", "refs/heads/*", "refs/tags/*")
	return byDefault, err
}

// have returns the branches and tags of the mirror, at most maxRefs.
func (m *mirror) have(ctx context.Context) (refs, error) {
	all := refs{}
	_, err := m.run(ctx, command{
		dir:  m.path,
		args: []string{"for-each-ref", "--format=%(objectname)\t%(refname)", "refs/heads/", "refs/tags/"},
		out: lines('\n', func(line string) error {
			if object, name, _ := strings.Cut(line, "\t"); len(all) < maxRefs {
				all[name] = object
			}
			return nil
		}),
	})
	return all, err
}

// resolve returns the commit that the source names.
func (m *mirror) resolve(ctx context.Context, byDefault string) (Made, error) {
	if m.Commit != "" && m.Proven {
		made, ok, err := m.prove(ctx)
		if err != nil || ok {
			return made, err
		}

		base := *m
		base.Commit, base.Ref = "", m.Base
		made, err = base.resolve(ctx, byDefault)
		made.Untrusted = true
		return made, err
	}
	if m.Commit != "" {
		return m.resolveCommit(ctx)
	}

	if m.Ref == "" {
		commit, err := m.commitOf(ctx, "refs/heads/"+byDefault)
		if err == nil && byDefault != "" {
			return Made{Commit: commit, Branch: byDefault}, nil
		}

		if m.has(ctx, "refs/heads/"+byDefault) {
			return Made{}, err // the mirror is damaged
		}

		any, err := m.do(ctx, "for-each-ref", "--count=1", "refs/heads/")
		if err != nil {
			return Made{}, err
		}
		if any == "" {
			return Made{}, errEmpty
		}
		return Made{}, errors.New("the repository has no default branch: name one in checkout.ref")
	}

	name := strings.TrimPrefix(strings.TrimPrefix(m.Ref, "refs/heads/"), "refs/tags/")
	if strings.HasPrefix(m.Ref, "-") {
		return Made{}, fmt.Errorf("%.100q is not the name of a branch or tag", m.Ref)
	}
	if _, err := m.do(ctx, "check-ref-format", "refs/heads/"+name); err != nil {
		return Made{}, fmt.Errorf("%.100q is not the name of a branch or tag", m.Ref)
	}

	if !strings.HasPrefix(m.Ref, "refs/tags/") {
		if commit, err := m.commitOf(ctx, "refs/heads/"+name); err == nil {
			return Made{Commit: commit, Branch: name}, nil
		}
	}
	commit, err := m.commitOf(ctx, "refs/tags/"+name)
	if err == nil {
		return Made{Commit: commit}, nil
	}
	if m.has(ctx, "refs/heads/"+name) || m.has(ctx, "refs/tags/"+name) {
		return Made{}, err // the mirror is damaged
	}

	return Made{}, fmt.Errorf("the repository has no branch or tag %q", name)
}

// prove reports whether a branch of the repository has the commit of the source.
func (m *mirror) prove(ctx context.Context) (made Made, ok bool, err error) {
	if !IsCommit(m.Commit) {
		return Made{}, false, nil
	}
	if _, err := m.commitOf(ctx, m.Commit); err != nil {
		return Made{}, false, nil
	}

	branches, err := m.do(ctx, "for-each-ref", "--format=%(refname)", "--contains", m.Commit, "refs/heads/")
	if err != nil || branches == "" {
		return Made{}, false, err
	}

	made = Made{Commit: m.Commit}
	if slices.Contains(strings.Split(branches, "\n"), "refs/heads/"+m.Ref) {
		made.Branch = m.Ref
	}
	return made, true, nil
}

// has reports whether the mirror has a ref, also if its commit cannot be read.
func (m *mirror) has(ctx context.Context, ref string) bool {
	_, err := m.do(ctx, "show-ref", "--verify", "--quiet", ref)
	return err == nil
}

// resolveCommit returns the commit of the source, which is fetched by its name if no branch has it.
func (m *mirror) resolveCommit(ctx context.Context) (Made, error) {
	if !IsCommit(m.Commit) {
		return Made{}, fmt.Errorf("%.100q is not the name of a commit", m.Commit)
	}

	if _, err := m.commitOf(ctx, m.Commit); err != nil {
		kept := "+" + m.Commit + ":refs/kept/" + m.Commit
		if err := m.ask(ctx, nil, "fetch", "--quiet", "--force", "--no-tags", "--no-write-fetch-head",
			"--no-recurse-submodules", "--", m.address(), kept); err != nil {
			return Made{}, err
		}
		if _, err := m.commitOf(ctx, m.Commit); err != nil {
			return Made{}, fmt.Errorf("the repository has no commit %s", m.Commit)
		}
	}

	return Made{Commit: m.Commit, Branch: strings.TrimPrefix(m.Ref, "refs/heads/")}, nil
}

// commitOf returns the commit that a full name of a ref, or a commit's name, stands for.
func (m *mirror) commitOf(ctx context.Context, name string) (string, error) {
	return m.do(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
}

// IsCommit reports whether a text is the full name of a commit.
func IsCommit(name string) bool {
	return len(name) == 40 && strings.Trim(name, "0123456789abcdef") == ""
}

// Expire removes the mirrors that nothing was checked out from for long.
func (m *Mirrors) Expire() error {
	entries, err := os.ReadDir(m.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	for _, e := range entries {
		info, failed := e.Info()
		if failed != nil || !e.IsDir() || time.Since(info.ModTime()) < unused {
			continue
		}

		path := filepath.Join(m.dir, e.Name())
		lock := flock.New(path + ".lock")
		if ok, failed := lock.TryLock(); failed != nil || !ok {
			continue
		}
		err = errors.Join(err, workspace.Remove(path))
		lock.Close()
	}

	return err
}
