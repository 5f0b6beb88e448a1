package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"millwright/cmd/cli"
	"millwright/schema/editortest"
	"millwright/schema/language"
)

// editor starts the program's language server and begins a session with it.
func editor(t *testing.T, args ...string) *editortest.Client {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"lsp"}, args...)...) // it ends when the session does
	cmd.Env = append(os.Environ(), runMain+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	c := editortest.NewClient(context.Background(), in, out)
	t.Cleanup(func() {
		if err := c.End(context.Background()); err != nil {
			t.Errorf("ending the session: %v", err)
		}
		if err := cmd.Wait(); err != nil || said.Len() > 0 {
			t.Errorf("the server ended with %v and said %q", err, said.String())
		}
	})
	if err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}

	return c
}

func fileURI(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// problem is a problem as validate and the language server both show it.
type problem struct {
	Path, Code, Severity, Message string
	Line                          int // from 1
}

// validated returns the problems that validate finds in a directory.
func validated(t *testing.T, dir string) (all []problem) {
	t.Helper()
	t.Setenv("CI", "")
	var out bytes.Buffer
	cli.Run(t.Context(), []string{"validate", "--format", "json", dir}, cli.Streams{Out: &out, Err: io.Discard})
	var report struct {
		Problems []struct {
			Path, Code, Severity, Message, Hint string
			Line                                int
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}

	for _, p := range report.Problems {
		abs, err := filepath.Abs(filepath.FromSlash(p.Path))
		if err != nil {
			t.Fatal(err)
		}
		if p.Hint != "" {
			p.Message += "\n" + p.Hint
		}
		rel, _ := filepath.Rel(dir, abs)
		all = append(all, problem{filepath.ToSlash(rel), p.Code, p.Severity, p.Message, p.Line})
	}

	return sorted(all)
}

func sorted(all []problem) []problem {
	slices.SortFunc(all, func(a, b problem) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all
}

// shown returns the problems that the language server shows below a directory.
func shown(dir string, published map[string]editortest.Published) (all []problem) {
	severities := map[int]string{1: "error", 2: "warning", 3: "info"}
	for _, p := range published {
		u, err := url.Parse(p.URI)
		if err != nil {
			continue
		}
		rel, err := filepath.Rel(dir, u.Path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		for _, d := range p.Diagnostics {
			all = append(all, problem{
				filepath.ToSlash(rel), d.Code, severities[d.Severity], d.Message, int(d.Range.Start.Line) + 1,
			})
		}
	}
	return sorted(all)
}

// editedTree is a tree of testdata twice: as it is, and with every file that a client can send emptied, so
// that only open documents have its text.
type editedTree struct {
	name, whole, bare string
	texts             map[string]string // by path
}

func editedTrees(t *testing.T) (all []editedTree) {
	t.Helper()
	for _, kind := range []string{"err", "ok"} {
		root := filepath.Join("..", "..", "testdata", "factories", kind)
		entries, err := os.ReadDir(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			at := filepath.Join(root, e.Name())
			tree := editedTree{name: kind + "/" + e.Name(), texts: map[string]string{}}
			tree.whole, tree.bare = filepath.Join(t.TempDir(), "tree"), filepath.Join(t.TempDir(), "tree")
			if archive, err := os.ReadFile(filepath.Join(at, "tree.txtar")); err == nil {
				for _, f := range txtar.Parse(archive).Files {
					tree.put(t, f.Name, f.Data)
				}
			} else if err := tree.copy(t, at); err != nil {
				t.Fatal(err)
			}
			if len(tree.texts) > 0 {
				all = append(all, tree)
			}
		}
	}

	return all
}

func (e *editedTree) copy(t *testing.T, from string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(name)
			for _, dir := range []string{e.whole, e.bare} {
				to := filepath.Join(dir, rel)
				err = errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.Symlink(target, to))
			}
			return err
		}
		text, err := os.ReadFile(name)
		e.put(t, filepath.ToSlash(rel), text)
		return err
	})
}

func (e *editedTree) put(t *testing.T, path string, text []byte) {
	t.Helper()
	for _, dir := range []string{e.whole, e.bare} {
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		content := text
		sendable := len(text) > 0 && !bytes.ContainsRune(text, '\ufeff') && bytes.Equal(bytes.ToValidUTF8(text, nil), text)
		if dir == e.bare && sendable {
			content, e.texts[path] = nil, string(text)
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAcceptanceLanguageServer opens every tree of testdata in a session with the real program. The problems
// of unsaved texts are those that validate finds, each repair ends its problem, and all repairs together give
// the text that validate --fix writes.
func TestAcceptanceLanguageServer(t *testing.T) {
	c := editor(t)
	repairs := 0
	for _, tree := range editedTrees(t) {
		t.Run(tree.name, func(t *testing.T) {
			want := validated(t, tree.whole)
			if tree.name == "err/unsupported-path-directory" || len(want) == 1 && want[0].Path == "." {
				t.Skip("an editor's folder without any definition in its place is no factory")
			}
			docs := openAll(t, c, tree, want)
			for path := range docs {
				repairs += docs[path].repairEach(t, c)
			}
			repairAll(t, c, tree, docs)
			closeAll(t, c, tree, docs)
		})
	}
	if !t.Failed() && repairs < 15 {
		t.Errorf("only %d repairs were offered", repairs)
	}
}

// openAll opens every document of a tree and waits for the problems.
func openAll(t *testing.T, c *editortest.Client, tree editedTree, want []problem) map[string]*edited {
	t.Helper()
	docs := map[string]*edited{}
	folder(t, c, "added", tree.bare)
	for path, text := range tree.texts {
		docs[path] = &edited{uri: fileURI(filepath.Join(tree.bare, filepath.FromSlash(path))), text: text, version: 1}
		if err := c.Open(t.Context(), docs[path].uri, text, 1); err != nil {
			t.Fatal(err)
		}
	}

	var got []problem
	if err := c.Await(t.Context(), func(all map[string]editortest.Published) (bool, string) {
		got = shown(tree.bare, all)
		return slices.Equal(got, want), "other problems than validate has"
	}); err != nil {
		t.Fatalf("%v\n%s", err, cmp.Diff(want, got))
	}

	return docs
}

// closeAll closes the documents and the folder of a tree, and waits until it has no problems.
func closeAll(t *testing.T, c *editortest.Client, tree editedTree, docs map[string]*edited) {
	t.Helper()
	for _, d := range docs {
		if err := c.Notify(t.Context(), "textDocument/didClose", d.named()); err != nil {
			t.Fatal(err)
		}
	}
	folder(t, c, "removed", tree.bare)
	if err := c.Await(t.Context(), func(all map[string]editortest.Published) (bool, string) {
		left := shown(tree.bare, all)
		return len(left) == 0, fmt.Sprintf("problems stay after the tree was closed: %v", left)
	}); err != nil {
		t.Error(err)
	}
}

// folder tells the server that a folder of the editor was added or removed.
func folder(t *testing.T, c *editortest.Client, what, dir string) {
	t.Helper()
	event := map[string]any{"added": []any{}, "removed": []any{}}
	event[what] = []any{map[string]string{"uri": fileURI(dir), "name": "folder"}}
	if err := c.Notify(t.Context(), "workspace/didChangeWorkspaceFolders", map[string]any{"event": event}); err != nil {
		t.Fatal(err)
	}
}

// edited is a document of an editor.
type edited struct {
	uri, text string
	version   int32
}

func (d *edited) named() map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": d.uri}}
}

// change gives the document another text, and returns its problems then.
func (d *edited) change(t *testing.T, c *editortest.Client, text string) []language.Diagnostic {
	t.Helper()
	d.text = text
	d.version++
	if err := c.Change(t.Context(), d.uri, text, d.version); err != nil {
		t.Fatal(err)
	}
	found, err := c.AwaitVersion(t.Context(), d.uri, d.version)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

type offered struct {
	Title, Kind string
	Diagnostics []language.Diagnostic
	Edit        struct{ DocumentChanges []language.TextDocumentEdit }
}

// actions returns the code actions of a kind in a range, and tells the server of no diagnostics.
func (d *edited) actions(t *testing.T, c *editortest.Client, in language.Range, kind string) (all []offered) {
	t.Helper()
	params := d.named()
	params["range"] = in
	params["context"] = map[string]any{"diagnostics": []any{}, "only": []string{kind}}
	if err := c.Call(t.Context(), "textDocument/codeAction", params, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// with returns the text after an action.
func (d *edited) with(t *testing.T, a offered) string {
	t.Helper()
	if len(a.Edit.DocumentChanges) != 1 || a.Edit.DocumentChanges[0].TextDocument.URI != d.uri {
		t.Fatalf("%s edits %+v", a.Title, a.Edit)
	}
	change := a.Edit.DocumentChanges[0]
	if v := change.TextDocument.Version; v == nil || *v != d.version {
		t.Errorf("%s is an edit of version %v, not %d", a.Title, v, d.version)
	}
	return edit(d.text, change.Edits)
}

// edit makes edits as an editor does, on UTF-16 code units.
func edit(text string, edits []language.TextEdit) string {
	units := utf16.Encode([]rune(text))
	lines := []int{0}
	for i, u := range units {
		if u == '\n' || u == '\r' && (i+1 == len(units) || units[i+1] != '\n') {
			lines = append(lines, i+1)
		}
	}
	at := func(p language.Position) int { return lines[p.Line] + int(p.Character) }
	slices.SortFunc(edits, func(a, b language.TextEdit) int { return at(b.Range.Start) - at(a.Range.Start) })
	for _, e := range edits {
		units = slices.Concat(units[:at(e.Range.Start)], utf16.Encode([]rune(e.NewText)), units[at(e.Range.End):])
	}
	return string(utf16.Decode(units))
}

// repairEach makes each repair of the document alone, sees its problem gone, and takes it back.
func (d *edited) repairEach(t *testing.T, c *editortest.Client) (n int) {
	t.Helper()
	text := d.text
	before := d.change(t, c, text)
	for _, bad := range before {
		for _, a := range d.actions(t, c, bad.Range, "quickfix") {
			if !slices.Contains(a.Diagnostics, bad) {
				continue // of another problem in the same range
			}

			n++
			after := d.change(t, c, d.with(t, a))
			if like(after, bad) >= like(before, bad) {
				t.Errorf("%s: after %q the problem is still there: %+v", d.uri, a.Title, bad)
			}
			d.change(t, c, text)
		}
	}
	return n
}

// like counts the problems with the code and the message of one.
func like(all []language.Diagnostic, one language.Diagnostic) (n int) {
	for _, d := range all {
		if d.Code == one.Code && d.Message == one.Message {
			n++
		}
	}
	return n
}

// repairAll makes all repairs as often as validate --fix does, and compares the files.
func repairAll(t *testing.T, c *editortest.Client, tree editedTree, docs map[string]*edited) {
	t.Helper()
	cli.Run(t.Context(), []string{"validate", "--fix", tree.whole}, cli.Streams{Out: io.Discard, Err: io.Discard})
	for range 5 {
		for _, d := range docs {
			whole := language.Range{End: language.Position{Line: 1 << 20}}
			for _, a := range d.actions(t, c, whole, "source.fixAll") {
				d.change(t, c, d.with(t, a))
			}
		}
	}
	for path, d := range docs {
		want, err := os.ReadFile(filepath.Join(tree.whole, filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), d.text); diff != "" {
			t.Errorf("%s: validate --fix gives another text:\n%s", path, diff)
		}
	}
}
