package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/gofrs/flock"

	"millwright/forge/bundle"
	"millwright/schema"
	"millwright/state"
)

// Git returns the source that reads a commit of a git repository. It stores the files of the last commit,
// without history, in its own clone without a working tree. From the first Fetch to Close it locks that
// directory: the Fetch of another source fails.
func Git(cfg GitConfig) (Source, error) {
	cfg.Branch, cfg.Username = cmp.Or(cfg.Branch, "main"), cmp.Or(cfg.Username, "x-access-token")
	cfg.Timeout = cmp.Or(cfg.Timeout, 5*time.Minute)
	cfg.MaxFetchBytes, cfg.MaxUnpackedBytes = cmp.Or(cfg.MaxFetchBytes, 256<<20), cmp.Or(cfg.MaxUnpackedBytes, 1<<30)
	cfg.MaxObjectBytes, cfg.MaxObjects = cmp.Or(cfg.MaxObjectBytes, 32<<20), cmp.Or(cfg.MaxObjects, 400_000)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}

	cfg.Path = path.Clean(strings.Trim(filepath.ToSlash(cfg.Path), "/"))
	if !fs.ValidPath(cfg.Path) {
		return nil, fmt.Errorf("git path %q: want a path inside the repository", cfg.Path)
	}
	if cfg.Commit != "" && !plumbing.IsHash(cfg.Commit) {
		return nil, fmt.Errorf("git commit %q: want 40 hexadecimal digits", cfg.Commit)
	}

	branch, tag := plumbing.NewBranchReferenceName(cfg.Branch), plumbing.NewTagReferenceName(cmp.Or(cfg.Tag, "x"))
	for _, name := range []plumbing.ReferenceName{branch, tag} {
		if err := name.Validate(); err != nil {
			return nil, fmt.Errorf("%q cannot be the name of a branch or tag", name.Short())
		}
	}

	if cfg.CloneDir == "" {
		return nil, errors.New("the directory for the clone is not set")
	}

	r, err := newRemote(cfg)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.CloneDir, 0o700); err != nil {
		return nil, fmt.Errorf("directory for the clone: %w", err)
	}

	return &gitSource{
		cfg:    cfg,
		remote: r,
		lock:   flock.New(filepath.Join(cfg.CloneDir, "lock")),
		clone:  filepath.Join(cfg.CloneDir, "clone.git"),
	}, nil
}

func (g *gitSource) Describe() state.Source {
	return state.Source{
		Kind:   "git",
		URL:    g.cfg.URL,
		Branch: cmp.Or(g.cfg.Commit, g.cfg.Tag, g.cfg.Branch),
		Path:   g.cfg.Path,
	}
}

// Watch does nothing: hosts announce changes by push notices only.
func (g *gitSource) Watch(context.Context, func()) {}

func (g *gitSource) Close() error {
	g.closeStore()
	return g.lock.Close()
}

func (g *gitSource) Fetch(ctx context.Context) (Snapshot, error) {
	before := g.remote.received.Load()
	limited, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()

	snap, err := g.fetch(limited)
	if err != nil {
		snap = Snapshot{}
		if ctx.Err() == nil {
			err = g.remote.explain(limited, err)
		}
	}

	snap.Bytes = g.remote.received.Load() - before
	return snap, err
}

func (g *gitSource) fetch(ctx context.Context) (Snapshot, error) {
	// Lock it only now: a previous source has the directory until it is closed.
	if ok, err := g.lock.TryLock(); err != nil || !ok {
		return Snapshot{}, errors.Join(err, fmt.Errorf("%s is in use by another source", g.cfg.CloneDir))
	}

	if g.objects != nil && g.objects.damaged {
		g.cfg.Log.Warn("the clone is damaged; it is made afresh", "dir", g.clone)
		if err := g.wipe(); err != nil {
			return Snapshot{}, err
		}
	}

	if hash := plumbing.NewHash(g.cfg.Commit); g.cfg.Commit != "" {
		if hash == g.target {
			return g.snap, nil
		}
		if snap, err := g.read(hash); err == nil {
			return snap, nil // it is stored, and never changes
		}
	}

	session, err := g.remote.session(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	defer session.Close()

	adv, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return Snapshot{}, err
	}

	want, err := g.wanted(adv)
	if err != nil {
		return Snapshot{}, err
	}
	if want == g.target {
		return g.snap, nil
	}
	if want == g.over {
		return Snapshot{}, g.overErr
	}

	snap, err := g.read(want)
	if settled(err) {
		return snap, err
	}

	have := g.have()
	err = g.download(ctx, session, adv, want, have)
	if errors.As(err, new(limitError)) {
		g.over, g.overErr = want, err
	}
	if err != nil && !errors.Is(err, bundle.ErrDamaged) {
		return Snapshot{}, err
	}

	g.closeStore()
	if err == nil {
		snap, err = g.read(want)
	}
	if settled(err) || have.IsZero() {
		return snap, err
	}

	// The host omitted objects that it assumed to be here. Without a have it cannot.
	g.cfg.Log.Info("the clone lacks a part of the new commit; it is made afresh", "dir", g.clone, "error", err)
	if err := g.wipe(); err != nil {
		return Snapshot{}, err
	}

	again, err := g.remote.session(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	defer again.Close()

	if adv, err = again.AdvertisedReferencesContext(ctx); err != nil {
		return Snapshot{}, err
	}
	if want, err = g.wanted(adv); err != nil {
		return Snapshot{}, err
	}
	if err := g.download(ctx, again, adv, want, plumbing.ZeroHash); err != nil {
		return Snapshot{}, err
	}

	return g.read(want)
}

// wanted returns the target of the branch, tag or commit at the host.
func (g *gitSource) wanted(adv *packp.AdvRefs) (plumbing.Hash, error) {
	if g.cfg.Commit != "" {
		return plumbing.NewHash(g.cfg.Commit), nil
	}

	kind, name := "branch", plumbing.NewBranchReferenceName(g.cfg.Branch)
	if g.cfg.Tag != "" {
		kind, name = "tag", plumbing.NewTagReferenceName(g.cfg.Tag)
	}

	hash, found := adv.References[name.String()]
	if !found {
		return hash, fmt.Errorf("there is no %s %q", kind, name.Short())
	}

	return hash, nil
}

// read returns the snapshot of a commit in the clone, after reading its directories down to the root of the
// definition.
func (g *gitSource) read(target plumbing.Hash) (Snapshot, error) {
	objects := g.objects.after(g.storage())
	commit, err := objects.commit(target)
	if err != nil {
		return Snapshot{}, fmt.Errorf("commit %s: %w", target, err)
	}

	root, err := objects.subtree(commit.TreeHash, g.cfg.Path)
	if err != nil && !errors.As(err, new(schema.Malformed)) {
		return Snapshot{}, fmt.Errorf("commit %s: %w", commit.Hash, err)
	}

	revision := revisionOf(commit)
	signer, refusal, unread := g.verify(objects, commit)
	if unread != nil {
		return Snapshot{}, fmt.Errorf("commit %s: %w", commit.Hash, unread)
	}

	revision.Signer = signer
	if err == nil && refusal == nil {
		revision.Tree = root.String()
	}

	g.objects, g.target = objects, target
	tree := freeze(&treeBacking{objects: objects, root: root, broken: err, dirs: map[string]directory{}})
	g.snap = Snapshot{Revision: revision, FS: tree, loaded: refusal, untrusted: refusal != nil, release: func() {
		tree.close()
		objects.from, objects.before = nil, nil
		g.closeStore()
	}}
	return g.snap, g.remember(target)
}

func revisionOf(commit *object.Commit) state.Revision {
	at := commit.Committer.When.UTC()
	subject, _, _ := strings.Cut(strings.TrimSpace(commit.Message), "\n")
	return state.Revision{
		ID:      commit.Hash.String(),
		Author:  oneLine(commit.Author.Name, 100),
		Subject: oneLine(subject, 200),
		At:      &at,
	}
}
