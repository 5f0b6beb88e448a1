package forge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"millwright/forge/bundle"
)

// Change is what Push brings to a branch.
type Change struct {
	Bundle io.Reader // as bundle.Open accepts it
	Base   string    // the commit that the bundle builds on, which the forge has
	Head   string    // the commit to push
	Branch string
	Prefix string // of the names of branches that may be pushed, as agent/
	// Old is the commit that the branch is at; empty: the branch must not exist. Head descends from it.
	Old string
}

// Push creates a branch, or moves it forward, with the objects of a bundle. It needs no clone, and never
// forces a branch. A branch that is at Head already is a success. It returns ErrConflict if the branch
// exists, moved, or is protected, and ErrLater while another push holds the lock of the branch.
func Push(ctx context.Context, f Forge, repo Repository, c Change) error {
	doing := fmt.Sprintf("push branch %q of %s", c.Branch, repo)
	return explain(ctx, f.Name(), doing, pushChange(ctx, f, repo, c))
}

func pushChange(ctx context.Context, f Forge, repo Repository, c Change) error {
	if err := c.check(); err != nil {
		return err
	}

	changes, err := c.open()
	if err != nil {
		return err
	}
	defer changes.Close()

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
	}

	if exists {
		follows, err := changes.Follows(c.Old)
		if err != nil {
			return err
		}
		if !follows {
			return &Error{Kind: ErrConflict, Words: "the new commits do not follow those of the branch"}
		}
	}

	pack, err := changes.Pack()
	if err != nil {
		return err
	}
	defer pack.Close()

	said := &prefix{max: maxErrorAnswer}
	req := packp.NewReferenceUpdateRequestFromCapabilities(adv.Capabilities)
	req.Commands = []*packp.Command{{Name: name, Old: now, New: plumbing.NewHash(c.Head)}}
	req.Packfile = pack
	req.Progress = said
	if adv.Capabilities.Supports(capability.Sideband64k) {
		if err := req.Capabilities.Set(capability.Sideband64k); err != nil {
			return err
		}
	}

	report, err := session.ReceivePack(ctx, req)
	if secret := []byte(credential.Password); len(secret) > 0 {
		said.data = bytes.ReplaceAll(said.data, secret, []byte("***"))
	}

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
			kind := ErrConflict
			if strings.Contains(words, ".lock': File exists") { // as git says it
				kind = ErrLater
			}
			return &Error{Kind: kind, Words: strings.TrimSuffix(printable(s.Status)+": "+words, ": ")}
		}
	}

	return gitError(err)
}

// check returns an error if the branch is not one that may be pushed.
func (c Change) check() error {
	switch {
	case c.Prefix == "" || !strings.HasPrefix(c.Branch, c.Prefix) || c.Branch == c.Prefix:
		return &Error{Kind: ErrRefused, Words: fmt.Sprintf("the branch is not below %q", c.Prefix)}
	case plumbing.NewBranchReferenceName(c.Branch).Validate() != nil, strings.HasPrefix(c.Branch, "-"):
		return &Error{Kind: ErrRefused, Words: "the branch has no valid name"}
	}
	return nil
}

// open unpacks and checks the bundle.
func (c Change) open() (*bundle.Bundle, error) {
	b, err := bundle.Open(c.Bundle, c.Base)
	if refused := (*bundle.RefusedError)(nil); errors.As(err, &refused) {
		return nil, &Error{Kind: ErrRefused, Words: printable(refused.Reason)}
	}
	if err == nil && b.Head != c.Head {
		b.Close()
		err = &Error{Kind: ErrRefused, Words: "the bundle has another head"}
	}

	return b, err
}
