//go:build unix

package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxFiles is how many files a checkout has at most.
const maxFiles = 500_000

// extent is how much a commit has.
type extent struct {
	files int
	bytes int64
}

// tooLarge returns an error if a checkout may not have as much.
func (e extent) tooLarge(max int64) error {
	switch {
	case e.files > maxFiles:
		return fmt.Errorf("the commit has more than %d files", maxFiles)
	case e.bytes > max:
		return fmt.Errorf("the files of the commit have more than %d bytes", max)
	}
	return nil
}

// measure returns an error if a commit has more files than a checkout may have, or more bytes. The mirror
// remembers the commits that were measured last.
func (m *mirror) measure(ctx context.Context, commit string) error {
	known := m.measured()
	if e, ok := known.find(commit); ok {
		return e.tooLarge(m.max)
	}

	var e extent
	_, err := m.run(ctx, command{
		dir:  m.path,
		args: []string{"ls-tree", "-r", "-z", "--long", "--end-of-options", commit},
		out: lines(0, func(line string) error {
			e.files++
			if fields := strings.Fields(line); len(fields) > 3 {
				n, _ := strconv.ParseInt(fields[3], 10, 64) // a submodule has none
				e.bytes += n
			}
			return e.tooLarge(m.max)
		}),
	})
	if err != nil {
		return err
	}

	return m.remember(append(known, measurement{commit, e}))
}

// maxMeasured is how many commits a mirror remembers.
const maxMeasured = 100

// measurement is a measured commit.
type measurement struct {
	commit string
	extent
}

type measurements []measurement

func (all measurements) find(commit string) (extent, bool) {
	for _, one := range all {
		if one.commit == commit {
			return one.extent, true
		}
	}
	return extent{}, false
}

// measuredFile is the file of a mirror that has its measured commits.
const measuredFile = "measured"

// measured returns the commits that the mirror remembers; none if their file cannot be read.
func (m *mirror) measured() (all measurements) {
	body, err := os.ReadFile(filepath.Join(m.path, measuredFile))
	if err != nil {
		return nil
	}

	for line := range strings.Lines(string(body)) {
		var one measurement
		if _, err := fmt.Sscanf(line, "%s %d %d\n", &one.commit, &one.files, &one.bytes); err != nil {
			return nil
		}
		all = append(all, one)
	}
	return all
}

// remember stores the last of these commits. Others may store theirs at the same time: the last one counts.
func (m *mirror) remember(all measurements) error {
	var text bytes.Buffer
	for _, one := range all[max(0, len(all)-maxMeasured):] {
		fmt.Fprintf(&text, "%s %d %d\n", one.commit, one.files, one.bytes)
	}

	f, err := os.CreateTemp(m.path, "tmp_measured_")
	if err != nil {
		return err
	}

	_, err = f.Write(text.Bytes())
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(m.path, measuredFile))
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
