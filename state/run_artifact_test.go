package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/statetest"
)

// names lists the visible artifacts of a run.
func names(t *testing.T, s *state.Store, id string) string {
	t.Helper()
	all, err := s.Artifacts(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, a := range all[id] {
		list = append(list, fmt.Sprint(a.Path, " ", a.Execution))
	}
	return strings.Join(list, ", ")
}

func finish(t *testing.T, s *state.Store, c state.Claim, as state.RunState) {
	t.Helper()
	if _, err := s.FinishRun(t.Context(), c, state.Result{State: as}); err != nil {
		t.Fatal(err)
	}
}

// TestArtifacts stores what executions leave, and shows it when they have ended.
func TestArtifacts(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		id := create(t, s, newRun("first")).ID
		c := start(t, s, id)
		content := bytes.Repeat([]byte("0123456789abcdef"), 70_000) // three parts

		sent := statetest.Leave(t, s, c, 0, state.Artifact{Kind: state.KindPatch, Repository: "acme/shop", Path: "changes.patch"}, content)
		statetest.Leave(t, s, c, 1, state.Artifact{Path: "notes/übersicht.md"}, []byte("one"))
		statetest.Leave(t, s, c, 2, state.Artifact{Path: "empty"}, nil)
		if got := names(t, s, id); got != "" {
			t.Errorf("visible before the end: %s", got)
		}
		if _, err := s.Artifact(ctx, sent.UID); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("visible before the end: %v", err)
		}

		if _, _, err := s.Followup(ctx, id, "go on", state.Idempotency{}); err != nil {
			t.Fatal(err)
		}
		finish(t, s, c, state.RunSucceeded)
		if got, want := names(t, s, id), "changes.patch 1, notes/übersicht.md 1, empty 1"; got != want {
			t.Errorf("artifacts %s, want %s", got, want)
		}

		a, err := s.Artifact(ctx, sent.UID)
		if err != nil || a.RunID != id || a.Repository != "acme/shop" || a.Kind != state.KindPatch || a.Size != int64(len(content)) {
			t.Fatalf("artifact %+v, %v", a, err)
		}
		if got, err := io.ReadAll(s.ArtifactContent(ctx, a)); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes, %v", len(got), err)
		}

		// The next execution leaves one of them anew, and another.
		for what, err := range map[string]error{
			"declare":  s.DeclareArtifact(ctx, c, 3, state.Artifact{Kind: state.KindFile, Path: "late"}),
			"part":     s.PutArtifactPart(ctx, c, 0, 0, content[:state.ArtifactPart]),
			"complete": s.CompleteArtifact(ctx, c, sent),
			"drop":     s.DropArtifact(ctx, c, 0),
		} {
			if !errors.Is(err, state.ErrLost) {
				t.Errorf("%s after the end: %v", what, err)
			}
		}
		c = start(t, s, id)
		statetest.Leave(t, s, c, 0, state.Artifact{Path: "notes/übersicht.md"}, []byte("two"))
		statetest.Leave(t, s, c, 1, state.Artifact{Kind: state.KindPatch, Repository: "acme/docs", Path: "changes.patch"}, []byte("three"))
		finish(t, s, c, state.RunFailed)
		if got, want := names(t, s, id), "changes.patch 1, empty 1, notes/übersicht.md 2, changes.patch 2"; got != want {
			t.Errorf("artifacts %s, want %s", got, want)
		}
		if _, err := s.Artifact(ctx, sent.UID); err != nil {
			t.Error(err)
		}

		// They go with their run.
		if n, err := s.ExpireRuns(ctx, time.Nanosecond); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if _, err := s.Artifact(ctx, sent.UID); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("artifact of an expired run: %v", err)
		}
		if _, err := io.ReadAll(s.ArtifactContent(ctx, a)); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("content of an expired run: %v", err)
		}
	})
}

// TestArtifactsOfLostWorkers kills workers between the parts of what they send.
func TestArtifactsOfLostWorkers(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		id := create(t, s, newRun("first")).ID
		c := start(t, s, id)
		whole := statetest.Leave(t, s, c, 0, state.Artifact{Path: "whole"}, []byte("one"))
		half := state.Artifact{Kind: state.KindFile, Path: "half", Size: state.ArtifactPart + 1}
		if err := s.DeclareArtifact(ctx, c, 1, half); err != nil {
			t.Fatal(err)
		}
		if err := s.PutArtifactPart(ctx, c, 1, 0, make([]byte, state.ArtifactPart)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SentArtifact(ctx, c, 1); !errors.Is(err, state.ErrConflict) {
			t.Errorf("a part is missing: %v", err)
		}

		if reaped, err := s.ReapRuns(ctx, past(), 10); err != nil || len(reaped) != 1 {
			t.Fatal(reaped, err)
		}
		if got := names(t, s, id); got != "" {
			t.Errorf("artifacts %s", got)
		}
		if _, err := io.ReadAll(s.ArtifactContent(ctx, whole)); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("what a lost worker sent is still there: %v", err)
		}

		c = start(t, s, id)
		statetest.Leave(t, s, c, 0, state.Artifact{Path: "whole"}, []byte("two"))
		if err := s.DeclareArtifact(ctx, c, 1, half); err != nil {
			t.Fatal(err)
		}
		finish(t, s, c, state.RunSucceeded)
		if got := names(t, s, id); got != "whole 1" {
			t.Errorf("artifacts %s: what is incomplete is not shown", got)
		}
	})
}

// TestArtifactsOfCancelledRuns cancels runs while a worker sends what they left: one ends with it, one is handed back.
func TestArtifactsOfCancelledRuns(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		for _, handedBack := range []bool{false, true} {
			id := create(t, s, newRun("first")).ID
			c := start(t, s, id)
			statetest.Leave(t, s, c, 0, state.Artifact{Path: "whole"}, []byte("one"))
			if err := s.DeclareArtifact(ctx, c, 1, state.Artifact{Kind: state.KindFile, Path: "begun", Size: 3}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.RequestCancel(ctx, id, "tester"); err != nil {
				t.Fatal(err)
			}

			want := "whole 1"
			if handedBack {
				want = ""
				if err := s.ReleaseRun(ctx, c); err != nil {
					t.Fatal(err)
				}
			} else {
				finish(t, s, c, state.RunCancelled)
			}
			if got := run(t, s, id).State; got != state.RunCancelled {
				t.Errorf("the run is %s", got)
			}
			if got := names(t, s, id); got != want {
				t.Errorf("handed back %t: artifacts %q, want %q", handedBack, got, want)
			}
		}
	})
}

// TestArtifactBounds refuses artifacts beyond the bounds, and takes the rest.
func TestArtifactBounds(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		c := start(t, s, create(t, s, newRun("first")).ID)
		declare := func(number int, kind string, size int64) error {
			return s.DeclareArtifact(ctx, c, number, state.Artifact{Kind: kind, Path: fmt.Sprint("f", number), Size: size})
		}
		for number, bad := range map[int]state.Artifact{
			-1:                 {Kind: state.KindFile},
			state.MaxArtifacts: {Kind: state.KindFile},
			0:                  {Kind: state.KindFile, Size: -1},
			1:                  {Kind: state.KindFile, Size: state.MaxFileBytes + 1},
			2:                  {Kind: state.KindBundle, Size: state.MaxChangeBytes + 1},
			3:                  {Kind: state.KindPatch, Size: state.MaxChangeBytes + 1},
		} {
			if err := declare(number, bad.Kind, bad.Size); !errors.Is(err, state.ErrConflict) {
				t.Errorf("number %d, %s of %d bytes: %v", number, bad.Kind, bad.Size, err)
			}
		}

		for i := range state.MaxArtifactFiles {
			for range 2 { // begun anew
				if err := declare(i, state.KindFile, state.MaxFileBytes/state.MaxArtifactFiles); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := declare(40, state.KindFile, 0); !errors.Is(err, state.ErrConflict) {
			t.Errorf("one file more: %v", err)
		}
		for i := 30; i < 33; i++ {
			if err := declare(i, state.KindBundle, state.MaxChangeBytes); err != nil {
				t.Fatal(err)
			}
		}
		if err := declare(33, state.KindBundle, state.MaxChangeBytes); !errors.Is(err, state.ErrConflict) {
			t.Errorf("more than an execution may leave: %v", err)
		}

		for part, size := range map[int]int{-1: 1, 0: state.ArtifactPart - 1, 1: 0, 1000: state.ArtifactPart} {
			if err := s.PutArtifactPart(ctx, c, 30, part, make([]byte, size)); !errors.Is(err, state.ErrConflict) {
				t.Errorf("part %d of %d bytes: %v", part, size, err)
			}
		}
		if err := s.PutArtifactPart(ctx, c, 50, 0, []byte("x")); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("a part of a file that was not declared: %v", err)
		}
	})
}

// TestExpireArtifacts deletes the oldest of a factory that has too many.
func TestExpireArtifacts(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		var runs []string
		for i := range 6 {
			n := newRun("x")
			n.FactoryUID = []string{"fac_a", "fac_b"}[i%2]
			id := create(t, s, n).ID
			c := start(t, s, id)
			statetest.Leave(t, s, c, 0, state.Artifact{Path: "f"}, make([]byte, 1<<20))
			finish(t, s, c, state.RunSucceeded)
			runs = append(runs, id)
		}

		if n, err := s.ExpireArtifacts(ctx, 3<<20); n != 0 || err != nil {
			t.Errorf("%d deleted, %v: no factory has too many", n, err)
		}
		if n, err := s.ExpireArtifacts(ctx, 2<<20); n != 2 || err != nil {
			t.Errorf("%d deleted, %v", n, err)
		}
		for i, id := range runs {
			if got, want := names(t, s, id), map[bool]string{true: "", false: "f 1"}[i < 2]; got != want {
				t.Errorf("run %d has %q, want %q", i, got, want)
			}
		}

		if n, err := s.ExpireArtifacts(ctx, 0); n != 4 || err != nil {
			t.Errorf("%d deleted, %v", n, err)
		}
	})
}

// TestLinks adds links to what a run left, each once, and follows their status.
func TestLinks(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		id := create(t, s, newRun("first")).ID
		pull := state.Artifact{Type: state.ArtifactPullRequest, Repository: "acme/shop", Path: "https://git.example/acme/shop/pulls/7"}
		for _, status := range []string{"open", "open", "merged"} {
			pull.Facts = state.ArtifactFacts{Branch: "agent/x", Status: status}
			if err := s.PutLink(ctx, id, pull); err != nil {
				t.Fatal(err)
			}
		}
		other := state.Artifact{Type: state.ArtifactReference, Path: "https://example.com/" + strings.Repeat("x", 5000), Facts: state.ArtifactFacts{Title: "a\x00b"}}
		for range 2 {
			if err := s.PutLink(ctx, id, other); err != nil {
				t.Fatal(err)
			}
		}

		all, err := s.Artifacts(ctx, id, id, id)
		if got := all[id]; err != nil || len(got) != 2 || got[0].Facts.Status != "merged" || got[0].Type != state.ArtifactPullRequest {
			t.Errorf("links %+v, %v", got, err)
		}
		if err := s.PutLink(ctx, state.NewRunID(), pull); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("a link of no run: %v", err)
		}
	})
}

// TestArtifactsDoNotGrow executes 200 runs that leave files: what is stored stays within the share of the factory,
// and what is deleted makes room for what follows.
func TestArtifactsDoNotGrow(t *testing.T) {
	if testing.Short() {
		t.Skip("200 runs")
	}

	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		const most, size = 1 << 20, 64 << 10
		s := statetest.Open(t, dsn)
		db := openDB(t, dsn)
		count := func(query string) (n int64) {
			t.Helper()
			if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}

		used := int64(0)
		for round := range 5 {
			var executing sync.WaitGroup
			for worker := range 4 {
				executing.Go(func() {
					for i := range 10 {
						c := start(t, s, create(t, s, newRun("x")).ID)
						content := bytes.Repeat([]byte{byte(round), byte(worker), byte(i)}, size/3)
						statetest.Leave(t, s, c, 0, state.Artifact{Path: "f"}, content)
						finish(t, s, c, state.RunSucceeded)
					}
				})
			}
			executing.Wait()
			if _, err := s.ExpireArtifacts(t.Context(), most); err != nil {
				t.Fatal(err)
			}

			if held := count(`SELECT sum(size) FROM run_artifacts`); held > most || held < most-2*size {
				t.Errorf("round %d: %d bytes are held of %d", round, held, most)
			}
			files, parts := count(`SELECT count(*) FROM run_artifacts`), count(`SELECT count(*) FROM run_artifact_parts`)
			if files != parts {
				t.Errorf("round %d: %d files have %d parts", round, files, parts)
			}
			if _, file := state.SQLitePath(dsn); !file {
				continue
			}

			// Five rounds are 12 MiB. Pages are used again: only the rows of runs grow.
			now := count(`SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`)
			if round == 1 {
				used = now
			}
			if round > 1 && now > used+4<<20 {
				t.Errorf("round %d: the state has %d bytes, and had %d", round, now, used)
			}
		}
	})
}
