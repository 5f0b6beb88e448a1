package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"millwright/forge/bundle"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// download fetches one commit, without its history. have is a commit whose files are already here, or zero:
// the host omits the common files.
func (g *gitSource) download(
	ctx context.Context,
	session transport.UploadPackSession,
	adv *packp.AdvRefs,
	want, have plumbing.Hash,
) error {
	req := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	req.Wants = []plumbing.Hash{want}
	if adv.Capabilities.Supports(capability.Shallow) {
		req.Depth = packp.DepthCommits(1)
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return err
		}

		if !have.IsZero() {
			req.Haves, req.Shallows = []plumbing.Hash{have}, []plumbing.Hash{have}

			// Of commits without a history, git leaves out what they have in common only from a thin pack,
			// one whose deltas may build on objects that are not in it.
			if err := req.Capabilities.Set(capability.ThinPack); err != nil {
				return err
			}
		}
	}

	if adv.Capabilities.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return err
		}
	}

	res, err := session.UploadPack(ctx, req)
	if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
		return nil // the host assumes that everything is here
	}
	if err != nil {
		return err
	}

	end := sync.OnceFunc(func() { _ = res.Close() })
	defer end()

	stop := context.AfterFunc(ctx, end)
	defer stop()

	var pack io.Reader = res
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		pack = sideband.NewDemuxer(sideband.Sideband64k, res)
	case req.Capabilities.Supports(capability.Sideband):
		pack = sideband.NewDemuxer(sideband.Sideband, res)
	}

	return g.store(pack, !have.IsZero())
}

// store adds the objects of a pack to the clone, after checking the limits.
func (g *gitSource) store(pack io.Reader, thin bool) error {
	dir := filepath.Join(g.clone, "objects", "pack")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}

	file, err := os.CreateTemp(dir, "tmp_pack_")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()

	n, err := io.Copy(file, io.LimitReader(pack, g.cfg.MaxFetchBytes+1))
	if g.remote.endpoint.Protocol == "ssh" || g.remote.endpoint.Protocol == "file" {
		g.remote.received.Add(n)
	}
	if err != nil {
		return err
	}
	if n > g.cfg.MaxFetchBytes {
		return tooLarge("the commit takes more than %d MiB to fetch", g.cfg.MaxFetchBytes>>20)
	}
	if n == 0 {
		return nil
	}
	if g.cfg.Turns != nil {
		g.cfg.Turns <- struct{}{}
		defer func() { <-g.cfg.Turns }()
	}
	if err := g.inspect(file); err != nil {
		return err
	}
	if thin {
		return g.unpack(file)
	}

	return bundle.Index(file, dir)
}

// unpack puts each object of a pack into the clone on its own.
func (g *gitSource) unpack(file *os.File) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}

	// Without its other methods the storage closes each object's file before the next.
	plain := struct{ storer.EncodedObjectStorer }{g.storage()}
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(file), plain)
	if err != nil {
		return err
	}
	if _, err := parser.Parse(); err != nil {
		return fmt.Errorf("%w: %w", bundle.ErrDamaged, err)
	}
	return nil
}

// inspect refuses a pack that would unpack to more than the limits, before it unpacks much of it.
func (g *gitSource) inspect(file io.ReadSeeker) error {
	err := bundle.Inspect(file, bundle.PackLimits{
		Objects:       g.cfg.MaxObjects,
		ObjectBytes:   g.cfg.MaxObjectBytes,
		UnpackedBytes: g.cfg.MaxUnpackedBytes,
	})
	if large, ok := errors.AsType[bundle.LimitError](err); ok {
		return tooLarge("the commit has %s", large.Excess)
	}
	return err
}

// limitError reports a commit over a limit. Retries do not help.
type limitError struct{ text string }

func (e limitError) Error() string { return e.text }

func tooLarge(format string, args ...any) error { return limitError{fmt.Sprintf(format, args...)} }
