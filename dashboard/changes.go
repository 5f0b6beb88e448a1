package dashboard

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"millwright/api"
	"millwright/state"
)

// Bounds of the changes on a page.
const (
	maxPatch      = 512 << 10 // bytes of a patch that are read
	maxDiffs      = 200       // files of a patch
	maxDiffLines  = 1500      // of all files
	maxOpenLines  = 200       // of a file that is not folded
	maxChangeSets = 20        // repositories
)

// changeSet is what a run changed in a repository.
type changeSet struct {
	Repository     string
	Patch          *state.Artifact // nil: there is none, or it was deleted
	Bundle         *state.Artifact
	Files          []fileDiff
	More           bool // the patch has more files than are shown
	Added, Removed int64
}

// fileDiff is the change of a file.
type fileDiff struct {
	Name, Was      string // Was is empty unless the file was renamed or copied
	Action         string
	Note           string // why there are no lines; empty when there are
	Folded         bool
	Added, Removed int64
	Hunks          []hunk
}

// hunk is a part of a file with changes.
type hunk struct {
	Place  string
	Blocks []block
}

// block is lines that stayed, or lines beside those that replace them.
type block struct {
	Same     bool
	Old, New []diffText
}

// diffText is a line of a file.
type diffText struct {
	Number int64
	Text   string
}

// read fills in the files of the beginning of a patch. left is how many lines the page may still show.
func (c *changeSet) read(text []byte, left *int) {
	files, _, err := gitdiff.Parse(bytes.NewReader(text)) // with an error, those before it
	c.More = err != nil || int64(len(text)) < c.Patch.Size
	if c.More && err == nil && len(files) > 0 {
		files = files[:len(files)-1] // it may be cut
	}

	for _, f := range files {
		if len(c.Files) == maxDiffs {
			c.More = true
			break
		}

		d := diffOf(f, left)
		c.Added += d.Added
		c.Removed += d.Removed
		c.Files = append(c.Files, d)
	}
}

// diffOf returns what a page shows of a file's change.
func diffOf(f *gitdiff.File, left *int) fileDiff {
	d := fileDiff{Name: cmp.Or(f.NewName, f.OldName), Action: "changed"}
	switch {
	case f.IsNew:
		d.Action = "added"
	case f.IsDelete:
		d.Action = "deleted"
	case f.IsRename:
		d.Action, d.Was = "renamed", f.OldName
	case f.IsCopy:
		d.Action, d.Was = "copied", f.OldName
	}

	lines := 0
	for _, fragment := range f.TextFragments {
		d.Added += fragment.LinesAdded
		d.Removed += fragment.LinesDeleted
		lines += len(fragment.Lines)
	}

	switch {
	case f.IsBinary:
		d.Note = "A binary file"
	case lines == 0 && f.NewMode != 0 && f.OldMode != 0 && f.NewMode != f.OldMode:
		d.Note = "Its mode changed from " + octal(f.OldMode) + " to " + octal(f.NewMode)
	case lines == 0:
		d.Note = "No lines changed"
	case lines > *left:
		d.Note = "Too large to show here"
	}
	if d.Note != "" {
		return d
	}

	*left -= lines
	d.Folded = lines > maxOpenLines
	for _, fragment := range f.TextFragments {
		d.Hunks = append(d.Hunks, hunkOf(fragment))
	}
	return d
}

func octal[T ~uint32](mode T) string { return strconv.FormatUint(uint64(mode), 8) }

// hunkOf pairs lines with those that replace them.
func hunkOf(f *gitdiff.TextFragment) hunk {
	h := hunk{Place: "line " + strconv.FormatInt(max(f.NewPosition, 1), 10)}
	if f.Comment != "" {
		h.Place += " " + f.Comment
	}

	was, now := f.OldPosition, f.NewPosition
	for _, l := range f.Lines {
		same := l.Op == gitdiff.OpContext
		last := len(h.Blocks) - 1
		if last < 0 || h.Blocks[last].Same != same || l.Op == gitdiff.OpDelete && len(h.Blocks[last].New) > 0 {
			h.Blocks = append(h.Blocks, block{Same: same})
			last++
		}

		b, text := &h.Blocks[last], diffLineText(l.Line)
		if l.Op != gitdiff.OpAdd {
			b.Old = append(b.Old, diffText{was, text})
			was++
		}
		if l.Op != gitdiff.OpDelete {
			b.New = append(b.New, diffText{now, text})
			now++
		}
	}
	return h
}

// maxDiffLine is how much of a line is shown, in bytes.
const maxDiffLine = 2000

// diffLineText returns a line as a page shows it, and notes a missing line end.
func diffLineText(line string) string {
	text, ends := strings.CutSuffix(line, "\n")
	if !ends {
		text += " [no line end]"
	}
	return clip(maxDiffLine, text)
}

// artifact sends a file that the run left.
func (q *request) artifact() error {
	a, err := q.Store.Artifact(q.Context(), q.param("artifact"))
	if err != nil {
		return err
	}
	if a.RunID != strings.ToLower(q.param("run")) || a.Kind == state.KindLink {
		return api.Problem("resource_not_found", "the run left no such file")
	}

	q.attach(path.Base(a.Path), a.Size)
	if q.Method == http.MethodHead {
		return nil
	}
	if _, err := io.Copy(q.w, q.Store.ArtifactContent(q.Context(), a)); err != nil {
		q.Log.Warn("download of an artifact", "artifact_uid", a.UID, "error", err) // the browser misses bytes
	}
	return nil
}
