package reconcile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
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
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if thin {
		return g.unpack(file)
	}

	return index(file, dir)
}

// unpack puts each object of a pack into the clone on its own.
func (g *gitSource) unpack(file *os.File) error {
	// Without its other methods the storage closes each object's file before the next.
	plain := struct{ storer.EncodedObjectStorer }{g.storage()}
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(file), plain)
	if err != nil {
		return err
	}
	if _, err := parser.Parse(); err != nil {
		return fmt.Errorf("%w: %w", errDamagedPack, err)
	}
	return nil
}

var errDamagedPack = errors.New("damaged pack")

// inspect refuses a pack that would unpack to more than the limits, before it unpacks much of it.
func (g *gitSource) inspect(file io.ReadSeeker) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}

	scanner := packfile.NewScanner(file)
	_, count, err := scanner.Header()
	if err != nil {
		return fmt.Errorf("%w: %w", errDamagedPack, err)
	}
	if int64(count) > g.cfg.MaxObjects {
		return tooLarge("the commit has %d new objects: more than %d", count, g.cfg.MaxObjects)
	}

	var total int64
	add := func(size int64) error {
		if size < 0 || size > g.cfg.MaxObjectBytes {
			return tooLarge("the commit has an object of %d bytes: more than %d MiB", size, g.cfg.MaxObjectBytes>>20)
		}
		if total += size; total > g.cfg.MaxUnpackedBytes {
			return tooLarge("the commit has more than %d MiB of new objects", g.cfg.MaxUnpackedBytes>>20)
		}

		return nil
	}

	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return fmt.Errorf("%w: %w", errDamagedPack, err)
		}
		if err := add(header.Length); err != nil {
			return err
		}

		head := &prefix{max: 2 * binary.MaxVarintLen64}
		if n, _, err := scanner.NextObject(head); err != nil || n != header.Length {
			return fmt.Errorf("%w: %w", errDamagedPack, cmp.Or(err, io.ErrUnexpectedEOF))
		}

		if header.Type.IsDelta() {
			size, err := deltaTarget(head.data)
			if err != nil {
				return err
			}
			if err := add(size); err != nil {
				return err
			}
		}
	}

	return nil
}

// limitError reports a commit over a limit. Retries do not help.
type limitError struct{ text string }

func (e limitError) Error() string { return e.text }

func tooLarge(format string, args ...any) error { return limitError{fmt.Sprintf(format, args...)} }

// prefix keeps the first bytes of what is written to it.
type prefix struct {
	data []byte
	max  int
}

func (p *prefix) Write(b []byte) (int, error) {
	p.data = append(p.data, b[:min(len(b), p.max-len(p.data))]...)
	return len(b), nil
}

// deltaTarget returns the size of a delta's result. A delta begins with two variable-length integers, the
// sizes of its base and of its result (gitformat-pack).
func deltaTarget(delta []byte) (int64, error) {
	r := bytes.NewReader(delta)
	if _, err := binary.ReadUvarint(r); err != nil {
		return 0, fmt.Errorf("%w: %w", errDamagedPack, err)
	}
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errDamagedPack, err)
	}
	return int64(size), nil
}

// index writes the index of a pack and gives both their names.
func index(file *os.File, dir string) error {
	entries := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(file), entries)
	if err != nil {
		return err
	}

	sum, err := parser.Parse()
	if err != nil {
		return fmt.Errorf("%w: %w", errDamagedPack, err)
	}

	list, err := entries.Index()
	if err != nil {
		return err
	}

	var idx bytes.Buffer
	if _, err := idxfile.NewEncoder(&idx).Encode(list); err != nil {
		return err
	}

	base := filepath.Join(dir, "pack-"+sum.String())
	if err := os.WriteFile(base+".idx", idx.Bytes(), 0o600); err != nil {
		return err
	}

	return os.Rename(file.Name(), base+".pack")
}
