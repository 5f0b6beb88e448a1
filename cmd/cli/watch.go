package cli

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is how long files must be still before they are checked again.
	settle = 15 * time.Millisecond
	// lookAnyway is how often the files are read although no change was noticed: some file systems notice
	// none.
	lookAnyway = 2 * time.Second
)

// mark is a hash of all that the last check looked at.
func (v *validation) mark() [sha256.Size]byte {
	h := sha256.New()
	for i, at := range v.result {
		sum := v.reading[i].mark(at.Result)
		h.Write(sum[:])
	}

	if v.known != nil {
		names := make([]string, 0, len(v.known.Secrets))
		for name := range v.known.Secrets {
			names = append(names, name)
		}

		slices.Sort(names)
		for _, name := range names {
			fact := v.known.Secrets[name]
			known := fact.URLSafe != nil
			fmt.Fprintf(h, "%s %t %t\n", name, known, known && *fact.URLSafe)
		}
	}

	return [sha256.Size]byte(h.Sum(nil))
}

// follow watches the directories that the last check looked at, and nothing else. It reports whether one
// is new.
func (v *validation) follow(w *fsnotify.Watcher) bool {
	want := map[string]bool{}
	for i, at := range v.result {
		want[filepath.Dir(at.dir)] = true // the root itself may come and go
		for _, dir := range v.reading[i].dirs() {
			want[filepath.Join(at.dir, filepath.FromSlash(dir))] = true
		}
	}

	if v.secrets != "" {
		want[filepath.Dir(v.secrets)] = true
	}

	for _, dir := range w.WatchList() {
		if !want[dir] {
			_ = w.Remove(dir) // it is gone already, more often than not
		}
		delete(want, dir)
	}

	added := false
	for dir := range want {
		added = w.Add(dir) == nil || added // what cannot be watched is looked at anyway
	}

	return added
}

// changed waits for a change, and for the files to be still after it. It is false when ctx ends first.
func (v *validation) changed(ctx context.Context, w *fsnotify.Watcher) bool {
	timer := time.NewTimer(lookAnyway)
	defer timer.Stop()

	var first time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case event := <-w.Events:
			if event.Op == fsnotify.Chmod {
				continue
			}
		case <-w.Errors: // an overflow, most likely: events were lost
		case <-timer.C:
			return true
		}

		now := time.Now()
		if first.IsZero() {
			first = now
		}

		timer.Reset(max(0, min(settle, first.Add(3*settle).Sub(now))))
	}
}
