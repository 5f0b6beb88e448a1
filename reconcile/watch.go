package reconcile

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// quiet is how long a directory must be still before it is read again,
	quiet = 30 * time.Millisecond
	// unrest bounds that wait while events keep coming,
	unrest = 100 * time.Millisecond
	// easing bounds the share of time spent on reading a directory that never rests: one scan in so many of
	// its durations.
	easing = 4
)

// Watch cues on any event in the directories of the definition, and where the path to its root could be
// swapped. The kind of event does not matter, since a scan compares contents.
func (d *dirSource) Watch(ctx context.Context, cue func()) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		d.log.Warn(
			"no notice of file changes from the system; the directory is read at intervals",
			"dir",
			d.dir,
			"error",
			err,
		)
		return
	}
	defer w.Close()

	watched := map[string]string{} // directory to the one name of interest in it, "" for all
	d.follow(w, watched)
	timer := time.NewTimer(0) // something may have changed before the watch began
	defer timer.Stop()

	var first time.Time // of the events that wait for the timer
	expect := func() {
		now := time.Now()
		if first.IsZero() {
			first = now
		}

		timer.Reset(max(0, min(quiet, first.Add(unrest).Sub(now))))
	}

	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-w.Events:
			if !ok {
				return
			}
			if name, known := watched[filepath.Dir(event.Name)]; !known || name == "" ||
				name == filepath.Base(event.Name) ||
				event.Name == d.dir {
				expect()
			}

		case err, ok := <-w.Errors: // an overflow, most likely: events were lost
			if !ok {
				return
			}

			d.log.Debug("watching for file changes", "dir", d.dir, "error", err)
			expect()

		case <-d.scanned:
			if d.follow(w, watched) {
				expect() // something may have changed before its directory was watched
			}
		case <-timer.C:
			first = time.Time{}
			cue()
			d.rest(ctx)
		}
	}
}

// rest waits so that scanning a directory that never rests takes a bounded share of the time.
func (d *dirSource) rest(ctx context.Context) {
	d.mu.Lock()
	pause := easing * d.took
	d.mu.Unlock()
	if pause < quiet {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// follow updates the watched directories to the current ones. It reports whether a directory is new.
func (d *dirSource) follow(w *fsnotify.Watcher, watched map[string]string) bool {
	want := d.watchable()
	for dir := range watched {
		if _, still := want[dir]; !still {
			_ = w.Remove(dir) // it is gone already, more often than not
			delete(watched, dir)
		}
	}

	present := w.WatchList()
	slices.Sort(present)
	added := false
	for dir, name := range want {
		if _, found := slices.BinarySearch(present, dir); !found {
			if err := w.Add(dir); err != nil {
				d.log.Debug("cannot watch a directory; it is read at intervals", "dir", dir, "error", err)
				delete(watched, dir)
				continue
			}

			added = true
		}

		watched[dir] = name
	}

	return added
}

// watchable returns the directories whose events matter, with the name that matters in each ("": all).
func (d *dirSource) watchable() map[string]string {
	want := map[string]string{}
	swapPoints(want, d.dir)
	swapPoints(want, filepath.Join(d.dir, kubernetesData))
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.last != nil {
		for _, name := range d.last.dirs() {
			want[filepath.Join(d.root, filepath.FromSlash(name))] = ""
		}
	}

	return want
}

// swapPoints adds the directories in which a change of one name could change the target of path: those with
// a symbolic link on the way, the parent of its end, and, if the path does not exist, its last existing
// directory. If two names of a directory matter, all do.
func swapPoints(points map[string]string, path string) {
	note := func(dir, name string) {
		if had, found := points[dir]; found && had != name {
			name = ""
		}
		points[dir] = name
	}

	sep := string(filepath.Separator)
	at := filepath.VolumeName(path) + sep
	rest := strings.Split(strings.Trim(path[len(at)-1:], sep), sep)
	for links := 0; len(rest) > 0 && links < 40; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}

		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			note(at, name)
			return
		}

		if info.Mode()&os.ModeSymlink == 0 {
			if len(rest) == 0 {
				note(at, name)
			}

			at = next
			continue
		}

		note(at, name)
		links++
		target, err := os.Readlink(next)
		if err != nil {
			return
		}
		if filepath.IsAbs(target) {
			at = filepath.VolumeName(target) + sep
			target = target[len(at)-1:]
		}

		rest = append(strings.Split(target, sep), rest...)
	}
}
