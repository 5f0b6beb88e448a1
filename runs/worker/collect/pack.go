//go:build unix

package collect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Branch is the branch in a bundle.
const Branch = "refs/heads/changes"

// emptyObject is the name of no object, as in the entry of a file that is gone.
const emptyObject = "0000000000000000000000000000000000000000"

// pack makes the bundle and the patch.
func (k *collector) pack(ctx context.Context, changes *Changes) error {
	objects, err := k.objects(ctx, changes.Commit)
	if err != nil {
		return err
	}
	if err := k.measure(ctx, objects); err != nil {
		return err
	}

	if changes.Bundle, err = k.bundle(ctx, changes.Commit, objects); err != nil {
		return err
	}

	changes.Patch, err = k.file(func(w io.Writer) error {
		return k.run(ctx, nil, bounded(w, MaxBundle), "diff", "--binary", "--full-index", "--no-color", "--no-ext-diff",
			"--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", k.Commit, changes.Commit, "--")
	})
	if large := (TooLargeError{}); errors.As(err, &large) {
		return nil // the bundle has the changes
	}
	return err
}

// objects lists what a bundle has: the new objects and, to show them beside what was before, the commit that the
// changes begin at with those of its files and directories that the changes touch.
func (k *collector) objects(ctx context.Context, commit string) (map[string]bool, error) {
	all := map[string]bool{k.Commit: true}
	add := func(name string) error {
		if all[name] = true; len(all) > maxObjects {
			return tooLarge("more than %d new objects", maxObjects)
		}
		return nil
	}

	err := k.run(ctx, nil, lines('\n', func(line string) error {
		name, _, _ := strings.Cut(line, " ")
		return add(name)
	}), "rev-list", "--objects", "--no-object-names", commit, "^"+k.Commit)
	if err != nil {
		return nil, err
	}

	root, err := k.ask(ctx, nil, "rev-parse", "--verify", "--end-of-options", k.Commit+"^{tree}")
	if err != nil {
		return nil, err
	}
	all[root] = true

	files := 0
	err = k.differences(ctx, k.Commit, commit, func(_ string, was, now Entry) {
		if !was.isDir() && !now.isDir() {
			files++
		}
		if was.Object != emptyObject && was.Mode != modeOfCommit {
			all[was.Object] = true
		}
	})
	if err == nil && files > MaxFiles {
		err = tooLarge("more than %d changed files", MaxFiles)
	}
	return all, err
}

// measure returns an error if objects have more bytes than changes may have.
func (k *collector) measure(ctx context.Context, objects map[string]bool) error {
	size := int64(0)
	return k.run(ctx, listed(objects), lines('\n', func(line string) error {
		n, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			return errors.New("objects of the changes are missing or damaged")
		}
		if size += n; size > MaxUnpacked {
			return tooLarge("more than %d bytes", MaxUnpacked)
		}
		return nil
	}), "cat-file", "--batch-check=%(objectsize)")
}

// bundle writes a bundle whose pack is not thin.
func (k *collector) bundle(ctx context.Context, commit string, objects map[string]bool) (*os.File, error) {
	file, err := k.file(func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, "# v2 git bundle\n-%s\n%s %s\n\n", k.Commit, commit, Branch); err != nil {
			return err
		}
		return k.run(ctx, listed(objects), bounded(w, MaxBundle), "pack-objects", "--stdout", "--quiet",
			"--delta-base-offset", "--threads=1")
	})
	if large := (TooLargeError{}); errors.As(err, &large) {
		err = tooLarge("a bundle of more than %d bytes", MaxBundle)
	}
	return file, err
}

// listed returns the names of objects, one a line.
func listed(objects map[string]bool) []byte {
	var out bytes.Buffer
	for name := range objects {
		out.WriteString(name + "\n")
	}
	return out.Bytes()
}

// file returns a file without a name that write wrote, at its start.
func (k *collector) file(write func(io.Writer) error) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(k.dir), "changes-")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name())

	out := bufio.NewWriter(f)
	err = errors.Join(write(out), out.Flush())
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
