package dispatch_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"millwright/runs/dispatch"
	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/statetest"
)

// file describes content as a worker does.
func file(path string, content []byte) wire.Artifact {
	sum := sha256.Sum256(content)
	return wire.Artifact{
		Kind: wire.ArtifactFile, Path: path, Size: int64(len(content)), Digest: hex.EncodeToString(sum[:]),
	}
}

// TestArtifacts sends files of all kinds, and reads them when the execution has ended.
func TestArtifacts(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		c := localClient(t, startDispatch(t, dispatch.Config{Store: s}))
		id := create(t, s, nil).ID
		o := order(t, c)
		if _, err := c.Start(ctx, o); err != nil {
			t.Fatal(err)
		}

		png := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte{7}, 3*wire.Chunk)...)
		contents := [][]byte{png, []byte("<script>alert(1)</script>"), nil, []byte("\x00\x01\x02"), []byte("diff --git a/x b/x\n")}
		files := []wire.Artifact{
			file("shot.html", png), file("page/index.png", contents[1]), file("empty", nil), file("core", contents[3]),
			file("changes.patch", contents[4]),
		}
		files[4].Kind, files[4].Repository = wire.ArtifactPatch, "acme/shop"
		for i, f := range files {
			if err := c.PutArtifact(ctx, o, i, f, bytes.NewReader(contents[i])); err != nil {
				t.Fatalf("%s: %v", f.Path, err)
			}
		}
		if all, err := s.Artifacts(ctx, id); err != nil || len(all[id]) != 0 {
			t.Errorf("before the end: %v, %v", all, err)
		}
		if _, err := c.Finish(ctx, o, wire.Result{State: wire.Failed}); err != nil {
			t.Fatal(err)
		}

		all, err := s.Artifacts(ctx, id)
		if err != nil || len(all[id]) != len(files) {
			t.Fatalf("%+v, %v", all, err)
		}
		want := []string{
			"SCREENSHOT image/png", "FILE text/plain; charset=utf-8", "FILE text/plain; charset=utf-8",
			"FILE application/octet-stream", "FILE text/x-diff; charset=utf-8",
		}
		for i, a := range all[id] {
			if got := string(a.Type) + " " + a.MimeType; got != want[i] || a.Path != files[i].Path {
				t.Errorf("%s: %s, want %s", a.Path, got, want[i])
			}
			if got, err := io.ReadAll(s.ArtifactContent(ctx, a)); err != nil || !bytes.Equal(got, contents[i]) {
				t.Errorf("%s: %d bytes, %v", a.Path, len(got), err)
			}
		}
		if err := c.PutArtifact(ctx, o, 5, file("late", nil), nil); !errors.Is(err, wire.ErrLost) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestBadArtifacts sends what no server takes. The run ends with what was good.
func TestBadArtifacts(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		c := localClient(t, startDispatch(t, dispatch.Config{Store: s}))
		id := create(t, s, nil).ID
		o := order(t, c)
		if _, err := c.Start(ctx, o); err != nil {
			t.Fatal(err)
		}

		bad := map[string]wire.Artifact{"digest": file("a", []byte("other"))}
		for _, path := range []string{
			"", ".", "..", "/a", "../a", "a/../b", "a//b", "a/", "a\x00", "a\nb", `a\b`, strings.Repeat("x", 501),
		} {
			bad["path "+path] = file(path, []byte("right"))
		}
		for what, f := range bad {
			if err := c.PutArtifact(ctx, o, 0, f, strings.NewReader("right")); !errors.Is(err, wire.ErrRefused) {
				t.Errorf("%q: %v", what, err)
			}
		}

		kind, short, large := file("a", []byte("right")), file("a", []byte("right")), file("a", []byte("right"))
		kind.Kind, short.Digest, large.Size = "directory", "12", 1<<40
		for _, f := range []wire.Artifact{kind, short, large} {
			if err := c.PutArtifact(ctx, o, 1, f, strings.NewReader("right")); !errors.Is(err, wire.ErrRefused) {
				t.Errorf("%+v: %v", f, err)
			}
		}
		if err := c.PutArtifact(ctx, o, 2, file("a", []byte("right")), strings.NewReader("rig")); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a file that became shorter: %v", err)
		}

		if err := c.PutArtifact(ctx, o, 3, file("good", []byte("right")), strings.NewReader("right")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Finish(ctx, o, wire.Result{State: wire.Succeeded}); err != nil {
			t.Fatal(err)
		}
		if all, err := s.Artifacts(ctx, id); err != nil || len(all[id]) != 1 || all[id][0].Path != "good" {
			t.Errorf("%+v, %v", all, err)
		}
	})
}
