package dispatch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"millwright/forge/bundle"
	"millwright/runs/wire"
	"millwright/state"
)

// onArtifact takes the announcement of a file that a worker sends, a part of it or, after the last one, checks the
// whole.
func (d *Dispatcher) onArtifact(ctx context.Context, worker string, r wire.Request) wire.Answer {
	var err error
	switch c := claimOf(worker, r); {
	case r.Artifact != nil:
		err = d.declare(ctx, c, r.Number, *r.Artifact)
	case len(r.Data) > 0:
		err = d.cfg.Store.PutArtifactPart(ctx, c, r.Number, r.Part, r.Data)
	default:
		err = d.complete(ctx, c, r.Number)
	}
	if err != nil {
		return failure(err)
	}
	return wire.Answer{}
}

// declare announces a file.
func (d *Dispatcher) declare(ctx context.Context, c state.Claim, number int, a wire.Artifact) error {
	switch {
	case !slices.Contains([]string{wire.ArtifactFile, wire.ArtifactPatch, wire.ArtifactBundle}, a.Kind):
		return fmt.Errorf("artifact of kind %q: %w", clean(a.Kind, 20), wire.ErrRefused)
	case !validPath(a.Path):
		return fmt.Errorf("artifact: its path is not one of a file: %w", wire.ErrRefused)
	case len(a.Digest) != hex.EncodedLen(sha256.Size):
		return fmt.Errorf("artifact: want its SHA-256: %w", wire.ErrRefused)
	}

	return d.cfg.Store.DeclareArtifact(ctx, c, number, state.Artifact{
		Kind:       a.Kind,
		Repository: clean(a.Repository, 500),
		Path:       a.Path,
		MimeType:   clean(a.MimeType, 200),
		Digest:     a.Digest,
		Size:       a.Size,
		Facts:      state.ArtifactFacts{Base: clean(a.Base, 64)},
	})
}

// maxPath is how long the path of an artifact may be, in bytes.
const maxPath = 500

// validPath reports whether the path names a file below a directory, in text that people can read.
func validPath(p string) bool {
	return p != "" && len(p) <= maxPath && utf8.ValidString(p) && path.Clean("/"+p) == "/"+p &&
		!strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
}

// complete checks a file whose parts are all there. What fails the check is deleted.
func (d *Dispatcher) complete(ctx context.Context, c state.Claim, number int) error {
	a, err := d.cfg.Store.SentArtifact(ctx, c, number)
	if err != nil {
		return err
	}

	err = d.examine(ctx, &a)
	if err == nil && a.Kind != state.KindFile {
		err = d.compareChanges(ctx, c, &a)
	}
	if errors.Is(err, wire.ErrRefused) {
		if drop := d.cfg.Store.DropArtifact(ctx, c, number); drop != nil {
			return drop
		}
	}
	if err != nil {
		return err
	}

	return d.cfg.Store.CompleteArtifact(ctx, c, a)
}

// screenshots are the media types of images that browsers show.
var screenshots = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// examine reads a whole file, and finds out what it is.
func (d *Dispatcher) examine(ctx context.Context, a *state.Artifact) error {
	sum := sha256.New()
	var start bytes.Buffer
	content := io.TeeReader(d.cfg.Store.ArtifactContent(ctx, *a), sum)
	if _, err := io.CopyN(&start, content, 512); err != nil && err != io.EOF {
		return err
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != a.Digest {
		return fmt.Errorf("%s was not sent as it is: %w", a.Path, wire.ErrRefused)
	}

	if found := http.DetectContentType(start.Bytes()); a.Kind == wire.ArtifactFile &&
		slices.Contains(screenshots, found) {
		a.Type, a.MimeType = state.ArtifactScreenshot, found
	} else {
		a.MimeType = mediaType(*a, found)
	}
	return nil
}

// mediaType returns the media type of a file that is no image: that of its name or, without one, of its content.
func mediaType(a state.Artifact, found string) string {
	switch {
	case a.Kind == wire.ArtifactPatch:
		return "text/x-diff; charset=utf-8"
	case a.Kind == wire.ArtifactBundle:
		return "application/x-git-bundle"
	case strings.HasPrefix(found, "text/"):
		return "text/plain; charset=utf-8"
	}
	return found
}

// compareChanges checks a bundle, and that the patch of the same repository shows what the bundle changes: once both
// are there. Only a bundle that was checked has a head.
func (d *Dispatcher) compareChanges(ctx context.Context, c state.Claim, a *state.Artifact) error {
	complete, err := d.cfg.Store.CompleteArtifacts(ctx, c)
	if err != nil {
		return err
	}

	changes := map[string]*state.Artifact{}
	for i, other := range complete {
		if other.Repository == a.Repository {
			changes[other.Kind] = &complete[i]
		}
	}
	changes[a.Kind] = a
	packed, patch := changes[state.KindBundle], changes[state.KindPatch]
	if packed == nil {
		return nil
	}

	if err := d.checkBase(ctx, packed); err != nil {
		return err
	}
	if err := d.checkBundle(ctx, packed, patch); err != nil {
		var refused *bundle.RefusedError
		if errors.As(err, &refused) {
			return fmt.Errorf("%s: %w", refused.Reason, wire.ErrRefused)
		}
		return err
	}

	if packed == a {
		return nil
	}
	return d.cfg.Store.CompleteArtifact(ctx, c, *packed)
}

// checkBase refuses changes that do not begin at the commit that the run began with.
func (d *Dispatcher) checkBase(ctx context.Context, packed *state.Artifact) error {
	all, err := d.cfg.Store.Repositories(ctx, packed.RunID)
	if err != nil {
		return err
	}

	for _, r := range all {
		if r.FullName() == packed.Repository && r.BaseCommit != "" && r.BaseCommit == packed.Facts.Base {
			return nil
		}
	}
	return fmt.Errorf("the changes do not begin at the commit that the run began with: %w", wire.ErrRefused)
}

// checkBundle finds out the head of a bundle, and whether a patch shows its changes; nil: there is none.
func (d *Dispatcher) checkBundle(ctx context.Context, packed, patch *state.Artifact) error {
	select {
	case d.checks <- struct{}{}:
		defer func() { <-d.checks }()
	case <-ctx.Done():
		return ctx.Err()
	}

	b, err := bundle.Open(d.cfg.Store.ArtifactContent(ctx, *packed), packed.Facts.Base)
	if err != nil {
		return err
	}
	defer b.Close()

	packed.Facts.Head, packed.Facts.Shown = b.Head, false
	if patch == nil {
		return nil
	}

	err = b.ShownBy(d.cfg.Store.ArtifactContent(ctx, *patch))
	if errors.Is(err, bundle.ErrLargePatch) {
		return nil
	}
	packed.Facts.Shown = err == nil
	return err
}
