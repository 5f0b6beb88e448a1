package forge

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

const (
	// MaxBundle bounds a bundle, in bytes.
	MaxBundle = 50 << 20
	// maxBundleHeader bounds the header of a bundle, in bytes.
	maxBundleHeader = 64 << 10
	// maxCommits bounds the commits between the head of a bundle and the branch.
	maxCommits = 10_000
)

// Change is what Push brings to a branch.
type Change struct {
	// Bundle is a file of git bundle, packed without --thin, whose objects the caller has checked.
	Bundle io.Reader
	Base   string // the commit that the bundle builds on, which the forge has
	Head   string // the commit to push
	Branch string
	Prefix string // of the names of branches that may be pushed, as agent/
	// Old is the commit that the branch is at; empty: the branch must not exist. Head descends from it.
	Old string
}

// Push creates a branch, or moves it forward, with the objects of a bundle. It needs no clone, and never
// forces a branch. A branch that is at Head already is a success. It returns ErrConflict if the branch
// exists, moved, or is protected.
func Push(ctx context.Context, f Forge, repo Repository, c Change) error {
	doing := fmt.Sprintf("push branch %q of %s", c.Branch, repo)
	return explain(ctx, f.Name(), doing, pushChange(ctx, f, repo, c))
}

func pushChange(ctx context.Context, f Forge, repo Repository, c Change) error {
	if err := c.check(); err != nil {
		return err
	}

	pack, err := c.unwrap()
	if err != nil {
		return err
	}
	defer os.Remove(pack.Name())
	defer pack.Close()

	address, credential, err := f.push(ctx, repo)
	if err != nil {
		return err
	}

	client, ep, auth, err := connect(address, credential)
	if err != nil {
		return err
	}

	session, err := client.NewReceivePackSession(ep, auth)
	if err != nil {
		return gitError(err)
	}
	defer session.Close()

	adv, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return gitError(err)
	}

	name := plumbing.NewBranchReferenceName(c.Branch)
	now, exists := adv.References[name.String()]
	switch {
	case exists && now.String() == c.Head:
		return nil
	case exists && c.Old == "":
		return &Error{Kind: ErrConflict, Words: "the branch exists"}
	case exists && now.String() != c.Old:
		return &Error{Kind: ErrConflict, Words: "the branch moved to " + now.String()}
	case !exists && c.Old != "":
		return &Error{Kind: ErrConflict, Words: "the branch is gone"}
	case exists && c.Old != c.Base:
		if err := c.descends(pack); err != nil {
			return err
		}
	}

	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}

	said := &prefix{max: maxErrorAnswer}
	req := packp.NewReferenceUpdateRequestFromCapabilities(adv.Capabilities)
	req.Commands = []*packp.Command{{Name: name, Old: now, New: plumbing.NewHash(c.Head)}}
	req.Packfile = io.NopCloser(pack)
	req.Progress = said
	if adv.Capabilities.Supports(capability.Sideband64k) {
		if err := req.Capabilities.Set(capability.Sideband64k); err != nil {
			return err
		}
	}

	report, err := session.ReceivePack(ctx, req)
	return pushError(report, err, said.data)
}

// prefix keeps the first bytes of what is written to it.
type prefix struct {
	data []byte
	max  int
}

// Write never fails.
func (p *prefix) Write(b []byte) (int, error) {
	p.data = append(p.data, b[:min(len(b), p.max-len(p.data))]...)
	return len(b), nil
}

// pushError returns the error of a push. said is what the forge printed meanwhile.
func pushError(report *packp.ReportStatus, err error, said []byte) error {
	if err == nil || report == nil {
		return gitError(err)
	}

	words := printable(string(bytes.ReplaceAll(said, []byte("remote: "), nil)))
	if report.UnpackStatus != "ok" {
		return &Error{Kind: ErrRefused, Words: cmp.Or(words, printable(report.UnpackStatus))}
	}
	for _, s := range report.CommandStatuses {
		if s.Status != "ok" {
			return &Error{Kind: ErrConflict, Words: strings.TrimSuffix(printable(s.Status)+": "+words, ": ")}
		}
	}

	return gitError(err)
}

// check returns an error if the change does not say what it must, or would leave its place.
func (c Change) check() error {
	refused := func(words string) error { return &Error{Kind: ErrRefused, Words: words} }
	switch {
	case !commitForm.MatchString(c.Base), !commitForm.MatchString(c.Head), c.Old != "" && !commitForm.MatchString(c.Old):
		return refused("want commits as 40 hexadecimal digits")
	case c.Prefix == "" || !strings.HasPrefix(c.Branch, c.Prefix) || c.Branch == c.Prefix:
		return refused(fmt.Sprintf("the branch is not below %q", c.Prefix))
	case plumbing.NewBranchReferenceName(c.Branch).Validate() != nil, strings.HasPrefix(c.Branch, "-"):
		return refused("the branch has no valid name")
	}

	return nil
}

// unwrap returns a file with the pack of the bundle, after checking the bundle's header.
func (c Change) unwrap() (_ *os.File, err error) {
	in := bufio.NewReaderSize(io.LimitReader(c.Bundle, MaxBundle+1), maxBundleHeader)
	if err := c.header(in); err != nil {
		return nil, &Error{Kind: ErrRefused, Words: "the bundle: " + printable(err.Error())}
	}

	file, err := os.CreateTemp("", "millwright-push-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()

	n, err := io.Copy(file, in)
	if err == nil && n > MaxBundle {
		err = &Error{Kind: ErrRefused, Words: fmt.Sprintf("the bundle has more than %d MiB", MaxBundle>>20)}
	}

	return file, err
}

// header reads the header of a bundle (gitformat-bundle), which must name Base and Head.
func (c Change) header(in *bufio.Reader) error {
	left := maxBundleHeader
	line := func() (string, error) {
		text, err := in.ReadSlice('\n')
		if left -= len(text); err != nil || left < 0 {
			return "", errors.New("its header ends too early, or is too long")
		}
		return strings.TrimSuffix(string(text), "\n"), nil
	}

	first, err := line()
	if err != nil {
		return err
	}
	if first != "# v2 git bundle" && first != "# v3 git bundle" {
		return errors.New("it is not a git bundle of version 2 or 3")
	}

	var base, head bool
	for {
		text, err := line()
		switch {
		case err != nil:
			return err
		case text == "" && (!base || !head):
			return errors.New("it does not lead from the base to the head")
		case text == "":
			return nil
		case strings.HasPrefix(text, "@") && text != "@object-format=sha1":
			return fmt.Errorf("it needs %q", text)
		}

		base = base || strings.HasPrefix(text, "-"+c.Base)
		head = head || strings.HasPrefix(text, c.Head+" ")
	}
}

// descends returns ErrConflict if the pack has no line of commits from Head back to Old.
func (c Change) descends(pack *os.File) error {
	dir, err := os.MkdirTemp("", "millwright-push-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}

	store := filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRU(cache.MiByte))
	if err := packfile.UpdateObjectStorage(store, pack); err != nil {
		return &Error{Kind: ErrRefused, Words: "the bundle is damaged: " + printable(err.Error())}
	}

	old := plumbing.NewHash(c.Old)
	seen := map[plumbing.Hash]bool{}
	next := []plumbing.Hash{plumbing.NewHash(c.Head)}
	for len(next) > 0 && len(seen) < maxCommits {
		hash := next[0]
		next = next[1:]
		if hash == old {
			return nil
		}
		if seen[hash] {
			continue
		}

		seen[hash] = true
		commit, err := object.GetCommit(store, hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue // the base, or older
		}
		if err != nil {
			return &Error{Kind: ErrRefused, Words: "the bundle is damaged: " + printable(err.Error())}
		}

		next = append(next, commit.ParentHashes...)
	}

	return &Error{Kind: ErrConflict, Words: "the new commits do not follow those of the branch"}
}
