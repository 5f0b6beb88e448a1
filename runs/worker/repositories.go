//go:build unix

package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"millwright/runs/wire"
	"millwright/runs/worker/checkout"
	"millwright/runs/worker/collect"
)

// The directories of a run with a checkout, beside those of confine.
const (
	basesDir    = "bases"    // objects that the checkouts began with
	leftDir     = "left"     // the changes that an execution leaves for the next one
	restoredDir = "restored" // those of the execution before
)

// own returns the place of one of our own files.
func (t Task) own(name string) string { return filepath.Join(t.Dir, t.ownDir, name) }

// checkOut checks the order's repositories out, and tells the server which commits they have.
func (j *job) checkOut(ctx context.Context, t *Task) error {
	order := j.order.Checkout
	if order == nil {
		return nil
	}
	if len(order.Repositories) > wire.MaxRepositories {
		return fmt.Errorf("%d repositories: at most %d", len(order.Repositories), wire.MaxRepositories)
	}

	var bases []wire.Base
	for i, r := range order.Repositories {
		one := repository{Repository: r, dir: t.Dir, base: filepath.Join(t.Root, basesDir, strconv.Itoa(i))}
		if r.Directory != "" {
			if !filepath.IsLocal(r.Directory) || strings.ContainsAny(r.Directory, `/\`) ||
				r.Directory == wire.OwnDirectory {
				return fmt.Errorf("repository %s: %q is no name of a directory", r.FullName(), r.Directory)
			}
			one.dir = filepath.Join(t.Dir, r.Directory)
		}

		source := checkout.Source{
			URL:        r.URL,
			Via:        r.Via,
			Credential: checkout.Credential{User: r.User, Password: r.Password},
			Ref:        r.Ref,
			Commit:     r.Commit,
			Proven:     r.Proven,
			Base:       r.Base,
			Author:     order.Author,
		}

		var err error
		if one.made, err = j.worker.mirrors.Checkout(ctx, source, one.dir, one.base); err != nil {
			return fmt.Errorf("repository %s: %w", r.FullName(), err)
		}

		one.tip = one.made.Commit
		t.repositories = append(t.repositories, one)
		bases = append(bases, wire.Base{
			Position: r.Position, Commit: one.made.Commit, Branch: one.made.Branch, Untrusted: one.made.Untrusted,
		})
	}

	t.ownDir = wire.OwnDirectory
	if err := j.makeOwn(*t); err != nil {
		return err
	}
	return j.worker.cfg.Client.CheckedOut(ctx, j.order, bases)
}

// makeOwn makes the directory of our own files in the working directory. Nobody else writes there yet.
func (j *job) makeOwn(t Task) error {
	err := os.Mkdir(filepath.Join(t.Dir, wire.OwnDirectory), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the repository has a file or directory %s, which is where the files of runs go",
			wire.OwnDirectory)
	}
	if err != nil {
		return underlying(err)
	}

	for _, r := range t.repositories {
		if r.dir == t.Dir {
			err = exclude(r.dir, j.ownNames())
		}
	}
	return err
}

// ownNames returns the names of the files that lie beside those of a repository.
func (j *job) ownNames() []string {
	names := []string{wire.OwnDirectory}
	for _, f := range j.order.Files {
		if f.Attachment {
			names = append(names, f.Name)
		}
	}
	return names
}

// exclude has git ignore names at the top of a checkout.
func exclude(dir string, names []string) error {
	info := filepath.Join(dir, ".git", "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return underlying(err)
	}

	var text strings.Builder
	for _, name := range names {
		text.WriteString("/" + collect.Pattern(name) + "\n")
	}
	return os.WriteFile(filepath.Join(info, "exclude"), []byte(text.String()), 0o600)
}

// put writes a file of the order into the working directory. In a checkout, a file of the repository keeps its
// place: ours goes to the directory of our own files, and put reports that.
func (t Task) put(f wire.File, body []byte) (moved bool, err error) {
	place := filepath.Join(t.Dir, f.Name)
	if t.ownDir == "" {
		return false, os.WriteFile(place, body, 0o600)
	}

	if f.Attachment {
		err := writeNew(place, body)
		if !errors.Is(err, fs.ErrExist) {
			return false, err
		}
		moved = true
	}
	return moved, writeNew(t.own(f.Name), body)
}

// writeNew writes a file that does not exist, neither as a link.
func writeNew(place string, body []byte) error {
	f, err := os.OpenFile(place, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	return errors.Join(err, f.Close())
}

// tellMoved adds to the prompt where attachments lie that have the name of a file of the repository.
func (t Task) tellMoved(names []string) error {
	if len(names) == 0 {
		return nil
	}

	f, err := os.OpenFile(t.own(wire.PromptFile), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}

	text := "\n\nThe repository has files of the same names, so these attachments are in " + wire.OwnDirectory + ": " +
		strings.Join(names, ", ") + ".\n"
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// hidden is where files of a working directory are put that the agent's program is not to believe.
const hidden = "hidden"

// unhide puts back what was hidden from the agent's program, unless the agent wrote a file of that name. Nothing of
// the run may live.
func (t Task) unhide() error {
	from := filepath.Join(t.Root, hidden)
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	for _, e := range entries {
		to := filepath.Join(t.Dir, e.Name())
		if _, missing := os.Lstat(to); errors.Is(missing, fs.ErrNotExist) {
			err = errors.Join(err, os.Rename(filepath.Join(from, e.Name()), to))
		}
	}
	return err
}

// attached returns the place of an attachment.
func (t Task) attached(name string) string {
	if slices.Contains(t.moved, name) {
		return t.own(name)
	}
	return filepath.Join(t.Dir, name)
}

// prepare makes the directories of a task ready for its harness, and runs the set-up commands.
func (j *job) prepare(ctx context.Context, t *Task, h configured) error {
	if err := t.tellMoved(t.moved); err != nil {
		return underlying(err)
	}

	c, ok := h.Executor.(caller)
	if !ok {
		return nil
	}
	if err := c.ready(*t); err != nil {
		return fmt.Errorf("working directory: %v", underlying(err))
	}

	own, ok := c.(*command)
	if !ok {
		return nil
	}
	if err := own.setUp(ctx, *t); err != nil || len(t.setUpCommands()) == 0 {
		return err
	}
	return j.noteSetUp(ctx, t, own)
}

// noteSetUp records what the set-up commands changed in the checkouts, which is no change of the harness.
func (j *job) noteSetUp(ctx context.Context, t *Task, c caller) error {
	git, err := newRunGit(*t, c)
	if err != nil || t.repositories == nil {
		return err
	}

	for i := range t.repositories {
		r := &t.repositories[i]
		began := j.checkoutOf(*t, *r)
		began.Commit = r.tip
		r.setUp, err = collect.SetUp(ctx, began, git, filepath.Join(t.Root, "set-up-"+strconv.Itoa(i)))
		if err != nil {
			return fmt.Errorf("repository %s: what the set-up commands changed: %w", r.FullName(), underlying(err))
		}
	}
	return nil
}

// checkoutOf describes a checkout to those who collect its changes.
func (j *job) checkoutOf(t Task, r repository) collect.Checkout {
	c := collect.Checkout{
		Work:   r.dir,
		Base:   r.base,
		Commit: r.made.Commit,
		Author: j.order.Checkout.Author,
		Title:  j.order.Checkout.Title,
		SetUp:  r.setUp,
	}
	if r.dir == t.Dir {
		c.Own = j.ownNames()
		c.Own = slices.DeleteFunc(c.Own, func(name string) bool { return slices.Contains(t.moved, name) })
	}
	return c
}

// expireMirrors removes mirrors that are not used any more.
func (w *worker) expireMirrors() {
	if err := w.mirrors.Expire(); err != nil {
		w.cfg.Log.Warn("worker: remove unused mirrors", "error", err)
	}
}
