//go:build unix

package collect

import "os"

// Changed has files by their paths.
type Changed map[string]Entry

// Entry is the mode and object of a file; those of one that is gone are zeros.
type Entry struct{ Mode, Object string }

func (e Entry) isDir() bool { return e.Mode == "040000" }

// Changes are the changes of a checkout.
type Changes struct {
	Commit   string // with all changes
	Squashed string // reason why the harness's own commits are one here; empty: they are not
	Nested   int    // repositories inside of the checkout, which are left out
	Bundle   *os.File
	Patch    *os.File // nil: it would be too large
}

// Close closes the files of the bundle and the patch.
func (c *Changes) Close() {
	for _, f := range []*os.File{c.Bundle, c.Patch} {
		if f != nil {
			f.Close()
		}
	}
}
