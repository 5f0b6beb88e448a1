//go:build unix

package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"millwright/runs/wire"
	"millwright/runs/worker/collect"
	"millwright/runs/worker/preset"
)

// collectTime is how long it may take to collect what a harness left.
const collectTime = 2 * time.Minute

// keep collects what the harness of a run left, for people and for the next execution, before its directories go.
// Nothing of the run lives.
func (j *job) keep(ctx context.Context, t Task, h configured, o *outcome) {
	if cause := context.Cause(ctx); errors.Is(cause, errLost) || errors.Is(cause, errHandBack) && !o.ended {
		return
	}

	if _, keeps := h.Executor.(keeper); !keeps {
		return
	}
	if o.kept != nil {
		j.log.Warn("worker: bring back the directory of a run", "error", o.kept)
		t.out.Add(notCollected("", underlying(o.kept).Error()))
		return
	}

	files := j.collect(ctx, t, h)
	found, outputs, lines := j.gather(t)
	files, o.outputs, o.outputLines = append(files, found...), outputs, lines
	j.upload(context.WithoutCancel(ctx), t.out, files)
	for _, f := range files {
		f.content.Close()
	}
	j.leave(ctx, t, h, *o)
}

// notCollected is the event of changes that are not collected.
func notCollected(repository, reason string) wire.Block {
	return preset.Event("changes_not_collected", map[string]string{"repository": repository, "reason": reason})
}

// collect packs the changes of the checkouts. Those that cannot be packed become an event.
func (j *job) collect(ctx context.Context, t Task, h configured) (files []leftFile) {
	if t.repositories == nil {
		return nil
	}

	ctx, cancel := outliving(ctx)
	defer cancel()

	git, err := newRunGit(t, h.Executor.(caller))
	err = errors.Join(err, t.unhide(), os.MkdirAll(filepath.Join(t.Root, leftDir), 0o700))
	for i, r := range t.repositories {
		var changes *collect.Changes
		if err == nil {
			changes, err = collect.Collect(ctx, j.checkoutOf(t, r), git,
				filepath.Join(t.Root, "collect-"+strconv.Itoa(i)))
		}
		if err != nil {
			j.log.Warn("worker: collect the changes of a run", "repository", r.FullName(), "error", err)
			t.out.Add(notCollected(r.FullName(), underlying(err).Error()))
			err = nil
			continue
		}
		if changes == nil {
			continue
		}

		j.tell(t, r, changes)
		if err := t.leaveFor(i, changes); err != nil {
			t.out.Add(preset.Event("snapshot_failed", map[string]string{"reason": underlying(err).Error()}))
		}
		if changes.Commit == r.tip { // the execution before stored it
			changes.Close()
			continue
		}
		files = append(files, r.files(changes)...)
	}

	return files
}

// outliving returns a context in which to collect what a harness did until its run was stopped, also if that
// happens only now. It ends when the run is no longer this worker's.
func outliving(run context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithTimeoutCause(context.WithoutCancel(run), collectTime,
		fmt.Errorf("it took longer than %s", collectTime))
	ctx, lose := context.WithCancelCause(ctx)
	stop := context.AfterFunc(run, func() {
		if cause := context.Cause(run); errors.Is(cause, errLost) {
			lose(cause)
		}
	})
	return ctx, func() { stop(); lose(nil); end() }
}

// tell adds events about what is different in the collected changes.
func (j *job) tell(t Task, r repository, changes *collect.Changes) {
	if changes.Squashed != "" {
		t.out.Add(preset.Event("changes_squashed", map[string]string{
			"repository": r.FullName(), "reason": changes.Squashed,
		}))
	}
	if changes.Nested > 0 {
		t.out.Add(preset.Event("changes_left_out", map[string]any{
			"repository": r.FullName(), "nested_repositories": changes.Nested,
		}))
	}
}

// files returns the artifacts of changes.
func (r repository) files(changes *collect.Changes) (files []leftFile) {
	if changes.Patch != nil {
		files = append(files, leftFile{
			Artifact: wire.Artifact{
				Path: path.Join(r.Directory, "changes.patch"), Kind: wire.ArtifactPatch, Repository: r.FullName(),
			},
			content: changes.Patch,
		})
	}

	return append(files, leftFile{
		Artifact: wire.Artifact{
			Path:       path.Join(r.Directory, "changes.bundle"),
			Kind:       wire.ArtifactBundle,
			Repository: r.FullName(),
			Base:       r.made.Commit,
		},
		content: changes.Bundle,
	})
}

// bundleName returns the name of a repository's bundle among what is left for the next execution.
func bundleName(i int) string { return strconv.Itoa(i) + ".bundle" }

// leaveFor keeps the bundle of a repository for the next execution.
func (t Task) leaveFor(i int, changes *collect.Changes) error {
	const anew = os.O_RDWR | os.O_CREATE | os.O_EXCL
	file, err := os.OpenFile(filepath.Join(t.Root, leftDir, bundleName(i)), anew, 0o600)
	if err != nil {
		return err
	}

	_, err = io.Copy(file, changes.Bundle)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	_, err = changes.Bundle.Seek(0, io.SeekStart)
	return err
}

// continueFrom puts the changes of the execution before into the checkouts. What cannot be put there becomes an
// event, and the checkout stays as it was made.
func (j *job) continueFrom(ctx context.Context, t *Task) error {
	for i := range t.repositories {
		r := &t.repositories[i]
		bundle := filepath.Join(t.restored(), bundleName(i))
		if _, err := os.Lstat(bundle); errors.Is(err, fs.ErrNotExist) {
			continue
		}

		tip, err := j.worker.mirrors.Continue(ctx, r.dir, bundle, r.made)
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			t.out.Add(preset.Event("snapshot_not_restored", map[string]string{"reason": err.Error()}))
			continue
		}
		r.tip = tip
	}
	return nil
}

// Bounds of the search for files that a harness left.
const (
	maxSearched = 10_000   // files and directories
	maxRequests = 16 << 20 // bytes of the file with the agent's requests
)

// gather opens the files that a harness left for people, and reads the agent's requests. What exceeds a bound becomes
// an event.
func (j *job) gather(t Task) (files []leftFile, outputs []json.RawMessage, lines []int) {
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return nil, nil, nil
	}
	defer root.Close()

	own, err := root.OpenRoot(wire.OwnDirectory)
	if err != nil {
		return nil, nil, nil
	}
	defer own.Close()

	files, left := artifacts(own)
	for _, name := range left[:min(len(left), 20)] {
		t.out.Add(preset.Event("artifact_refused", map[string]string{
			"path": strings.ToValidUTF8(name, "?"),
			"reason": fmt.Sprintf("at most %d files of %d bytes together are stored, no links, each with one name",
				wire.MaxArtifactFiles, wire.MaxFileBytes),
		}))
	}

	outputs, lines, refused := requests(own)
	if len(refused) > 0 {
		t.out.Add(preset.Event("output_refused", map[string]any{"lines": refused}))
	}
	return files, outputs, lines
}

// artifacts opens the files below the directory of artifacts, and returns the names of those that it leaves out.
func artifacts(own *os.Root) (files []leftFile, left []string) {
	dir, err := own.OpenRoot(wire.ArtifactsDirectory)
	if err != nil {
		return nil, nil
	}
	defer dir.Close()

	searched, size := 0, int64(0)
	err = fs.WalkDir(dir.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if searched++; searched > maxSearched {
			left = append(left, name)
			return fs.SkipAll
		}
		if err != nil {
			left = append(left, name)
			return nil
		}
		if e.IsDir() {
			return nil
		}

		f, bytes, ok := openPlain(dir, name)
		if !ok || len(files) >= wire.MaxArtifactFiles || size+bytes > wire.MaxFileBytes {
			left = append(left, name)
			if ok {
				f.Close()
			}
			return nil
		}

		size += bytes
		files = append(files, leftFile{Artifact: wire.Artifact{Path: name, Kind: wire.ArtifactFile}, content: f})
		return nil
	})
	if err != nil {
		left = append(left, ".")
	}
	return files, left
}

// requests reads the agent's requests, JSON objects, one a line, and their lines. refused has the reasons of
// the first lines that it leaves out.
func requests(own *os.Root) (outputs []json.RawMessage, lines []int, refused []string) {
	f, _, ok := openPlain(own, wire.OutputsFile)
	if !ok {
		return nil, nil, nil
	}
	defer f.Close()

	in := bufio.NewScanner(io.LimitReader(f, maxRequests))
	in.Buffer(nil, maxRequests)
	total, more := 0, 0
	for number := 1; in.Scan(); number++ {
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}

		var object map[string]json.RawMessage
		reason := ""
		switch {
		case len(line) > wire.MaxOutput:
			reason = fmt.Sprintf("more than %d bytes", wire.MaxOutput)
		case json.Unmarshal(line, &object) != nil || wire.Deep(line):
			reason = "not a JSON object"
		case len(outputs) >= wire.MaxOutputs:
			reason = fmt.Sprintf("more than %d requests", wire.MaxOutputs)
		case total+len(line) > wire.MaxOutputBytes:
			reason = fmt.Sprintf("more than %d bytes together", wire.MaxOutputBytes)
		}

		if reason != "" {
			if len(refused) < 20 {
				refused = append(refused, fmt.Sprintf("line %d: %s", number, reason))
			} else {
				more++
			}
			continue
		}

		total += len(line)
		outputs, lines = append(outputs, slices.Clone(json.RawMessage(line))), append(lines, number)
	}

	if more > 0 {
		refused = append(refused, fmt.Sprintf("and %d more", more))
	}
	return outputs, lines, refused
}
