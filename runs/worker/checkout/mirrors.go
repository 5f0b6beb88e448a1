//go:build unix

package checkout

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"millwright/runs/worker/confine"
)

// Mirrors are the mirrors of a worker, in one directory. Workers with the same directory share them.
type Mirrors struct {
	dir string
	max int64
	git func() (string, error) // the program
}

// unused is how long a mirror is kept that nothing is checked out from.
const unused = 30 * 24 * time.Hour

// Open returns the mirrors in a directory, which it makes with the first one. A repository has at most max
// bytes.
func Open(dir string, max int64) *Mirrors {
	return &Mirrors{dir: dir, max: max, git: sync.OnceValues(Program)}
}

// Program returns the git program of this machine.
func Program() (string, error) {
	program, err := confine.LookUp("git", confine.DefaultPath)
	if err != nil {
		return "", errors.New("this worker has no git program: install git")
	}
	return program, nil
}

// Source names what to check out.
type Source struct {
	URL        string // without a credential
	Via        string // the address to fetch from in its place; empty: URL
	Credential Credential
	Ref        string // a branch or tag; with Commit the branch that it is for; empty: the default branch
	Commit     string // empty: that of Ref
	// Proven: Commit is checked out only if a branch of the repository has it, else the branch Base.
	Proven bool
	Base   string // empty: the default branch
	Author string // of commits that are made in the checkout
}

// Made describes a checkout that was made: its commit, and the branch if one is known.
type Made struct {
	Commit string
	Branch string // empty: the commit is on no branch that is known by name
	// Untrusted: no branch has the commit of the source, so another one is checked out.
	Untrusted bool
}

// address returns where the repository is fetched.
func (s Source) address() string { return cmp.Or(s.Via, s.URL) }
