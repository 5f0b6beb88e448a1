package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/gofrs/flock"

	"millwright/reconcile/signers"
)

// GitConfig configures a git source. URL and CloneDir are required.
type GitConfig struct {
	// URL is https://…, ssh://…, user@host:path or file:///…; the last runs the git program. It holds no
	// credential.
	URL string
	// Branch, Tag and Commit: at most one is set; the default is the branch main. Commit is 40 hexadecimal
	// digits.
	Branch, Tag, Commit string
	// Path is the root of the definition inside the repository; empty means its root.
	Path string
	// CloneDir is a directory that only this source uses. Its contents may be lost at any time.
	CloneDir string

	// Username goes with Token; empty means x-access-token, which most hosts accept.
	Username string
	// Token returns the password or access token for https. The source calls it for each fetch, so it uses
	// a new value at once. Nil: no authentication.
	Token func(context.Context) ([]byte, error)
	// SSHKey returns the private key for ssh, in PEM form.
	SSHKey func(context.Context) ([]byte, error)
	// KnownHosts is a known_hosts file, or lines of one. Required for ssh.
	KnownHosts string

	// Signers, if not nil, are the keys that must have signed a commit. The loop refuses any other.
	Signers *signers.Keys

	// Timeout bounds one fetch; zero means 5 minutes.
	Timeout time.Duration
	// MaxFetchBytes bounds the bytes that one fetch receives; zero means 256 MiB.
	MaxFetchBytes int64
	// MaxUnpackedBytes bounds the unpacked size of one fetch; zero means 1 GiB.
	MaxUnpackedBytes int64
	// MaxObjectBytes bounds one file of the repository; zero means 32 MiB.
	MaxObjectBytes int64
	// MaxObjects bounds the number of files and directories of one fetch; zero means 400,000.
	MaxObjects int64
	// Turns, if not nil, is a semaphore for sources that unpack a fetch. It bounds their memory.
	Turns chan struct{}
	// Log receives notices; nil discards them.
	Log *slog.Logger
}

// maxFetches is how many fetches a clone has before the source replaces it, to keep it small.
const maxFetches = 50

// remote is the connection to a repository.
type remote struct {
	endpoint  *transport.Endpoint
	transport transport.Transport
	cfg       GitConfig
	received  atomic.Int64  // bytes
	dialing   chan struct{} // capacity 1: held while connecting
}

// gitSource is a branch, tag or commit of a git repository.
type gitSource struct {
	cfg    GitConfig
	remote *remote
	lock   *flock.Flock
	clone  string // a directory with git's objects directory, and nothing else of git

	stored  *filesystem.Storage // open on clone; nil after a change of it
	objects *objects            // of the last snapshot
	target  plumbing.Hash       // target of the branch, tag or commit at that time
	snap    Snapshot

	over    plumbing.Hash // a commit over a limit, which is not fetched again
	overErr error
}

// storage opens the clone.
func (g *gitSource) storage() *filesystem.Storage {
	if g.stored == nil {
		g.stored = filesystem.NewStorageWithOptions(
			osfs.New(g.clone),
			cache.NewObjectLRU(4*cache.MiByte),
			filesystem.Options{ExclusiveAccess: true, KeepDescriptors: true},
		)
	}
	return g.stored
}

func (g *gitSource) closeStore() {
	if g.stored != nil {
		_ = g.stored.ObjectStorage.Close() // it was only read
		g.stored = nil
	}
}

// wipe empties the clone.
func (g *gitSource) wipe() error {
	g.closeStore()
	g.objects, g.target, g.snap = nil, plumbing.ZeroHash, Snapshot{}
	return os.RemoveAll(g.clone)
}

// remember records the last complete commits of the clone, one a line.
func (g *gitSource) remember(hash plumbing.Hash) error {
	file, err := os.OpenFile(filepath.Join(g.clone, "have"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, hash)
	return errors.Join(err, file.Close())
}

// have repairs the clone, and returns the remembered commit if it is still complete.
func (g *gitSource) have() plumbing.Hash {
	leftovers, _ := filepath.Glob(filepath.Join(g.clone, "objects", "pack", "tmp_*"))
	for _, file := range leftovers {
		_ = os.Remove(file)
	}

	text, _ := os.ReadFile(filepath.Join(g.clone, "have"))
	lines := strings.Fields(string(text))
	if len(lines) > 0 && len(lines) < maxFetches && plumbing.IsHash(lines[len(lines)-1]) {
		hash := plumbing.NewHash(lines[len(lines)-1])
		o := &objects{from: g.storage()}
		if commit, err := o.commit(hash); err == nil {
			if _, err := o.readTree(commit.TreeHash); err == nil {
				return commit.Hash
			}
		}
	}

	if err := g.wipe(); err != nil {
		g.cfg.Log.Warn("the clone cannot be made afresh", "dir", g.clone, "error", err)
	}

	return plumbing.ZeroHash
}
