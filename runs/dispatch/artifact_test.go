package dispatch_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
		c, id, o := started(t, s)

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

// changedRepository returns the patch and the bundle of a change, as a worker makes them, and its commits.
func changedRepository(t *testing.T) (patch, packed []byte, base, head string) {
	t.Helper()
	dir := t.TempDir()
	git := func(in string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(in)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.c", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.c")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	commit := func(text string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		git("", "add", "-A")
		git("", "commit", "-q", "-m", "x")
		return strings.TrimSpace(git("", "rev-parse", "HEAD"))
	}

	git("", "init", "-q")
	base = commit("one\n")
	head = commit("two\n")
	patch = []byte(git("", "diff", "--full-index", "--binary", base, head))
	objects := git("", "rev-list", "--objects", "--no-object-names", head)
	packed = []byte("# v2 git bundle\n-" + base + "\n" + head + " refs/heads/changes\n\n" + git(objects, "pack-objects", "--stdout", "-q"))
	return patch, packed, base, head
}

// TestChanges sends the changes of repositories: in both orders, without a patch, and with one that lies.
func TestChanges(t *testing.T) {
	patch, packed, base, head := changedRepository(t)
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		c, id, o := started(t, s)

		claim := state.Claim{RunID: o.RunID, Worker: c.UID(), Token: o.Token}
		var began []state.RunRepository
		for i, name := range []string{"one", "two", "three", "four", "five", "six", "seven", "eight"} {
			began = append(began, state.RunRepository{Position: i, Forge: "f", Owner: "acme", Name: name, BaseCommit: base})
		}
		began[6].BaseCommit, began[7].BaseCommit = head, ""
		if err := errors.Join(s.SetRepositories(ctx, claim, began), s.SetBases(ctx, claim, began)); err != nil {
			t.Fatal(err)
		}

		number := 0
		send := func(repository, kind string, content []byte) error {
			f := file("changes."+kind, content)
			f.Kind, f.Repository, f.Base = kind, repository, base
			number++
			return c.PutArtifact(ctx, o, number, f, bytes.NewReader(content))
		}
		lie := bytes.Replace(patch, []byte("+two"), []byte("+three"), 1)
		for i, step := range []struct {
			repository, kind string
			content          []byte
			reason           string
		}{
			{"acme/one", wire.ArtifactPatch, patch, ""},
			{"acme/one", wire.ArtifactBundle, packed, ""},
			{"acme/two", wire.ArtifactBundle, packed, ""},
			{"acme/two", wire.ArtifactPatch, patch, ""},
			{"acme/three", wire.ArtifactBundle, packed, ""},
			{"acme/four", wire.ArtifactPatch, lie, ""},
			{"acme/four", wire.ArtifactBundle, packed, "does not show"},
			{"acme/five", wire.ArtifactBundle, packed, ""},
			{"acme/five", wire.ArtifactPatch, lie, "does not show"},
			{"acme/six", wire.ArtifactBundle, []byte("garbage"), "not a git bundle"},
			{"acme/seven", wire.ArtifactBundle, packed, "the commit that the run began with"},
			{"acme/eight", wire.ArtifactBundle, packed, "the commit that the run began with"},
			{"other/one", wire.ArtifactBundle, packed, "the commit that the run began with"},
		} {
			err := send(step.repository, step.kind, step.content)
			if step.reason == "" && err != nil || step.reason != "" && (!errors.Is(err, wire.ErrRefused) || !strings.Contains(err.Error(), step.reason)) {
				t.Errorf("step %d: %v, want %q", i, err, step.reason)
			}
		}
		if _, err := c.Finish(ctx, o, wire.Result{State: wire.Succeeded}); err != nil {
			t.Fatal(err)
		}

		all, err := s.Artifacts(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, a := range all[id] {
			got[a.Repository] += fmt.Sprintf("%s %t %t,", a.Kind, a.Facts.Head == head, a.Facts.Shown)
		}
		for repository, want := range map[string]string{
			"acme/one":   "patch false false,bundle true true,",
			"acme/two":   "bundle true true,patch false false,",
			"acme/three": "bundle true false,",
			"acme/four":  "patch false false,",
			"acme/five":  "bundle true false,",
			"acme/six":   "",
		} {
			if got[repository] != want {
				t.Errorf("%s: %s, want %s", repository, got[repository], want)
			}
		}
	})
}

// TestBadArtifacts sends what no server takes. The run ends with what was good.
func TestBadArtifacts(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		c, id, o := started(t, s)

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
