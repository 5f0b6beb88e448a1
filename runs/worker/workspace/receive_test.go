//go:build unix

package workspace_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright/runs/worker/workspace"
)

// TestReceive takes archives of strangers. Nothing is written outside of the directory.
func TestReceive(t *testing.T) {
	file := func(name, body string) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Linkname: body, Size: int64(len(body))}
	}
	link := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
	}
	for name, test := range map[string]struct {
		entries []tar.Header
		want    string // file that is there afterwards
		refused string
	}{
		"file":             {[]tar.Header{file("./a/b", "text")}, "a/b", ""},
		"link out":         {[]tar.Header{link("out", "/etc"), file("a", "text")}, "a", ""},
		"below a link out": {[]tar.Header{link("out", "../.."), file("out/a", "text")}, "", "out"},
		"over a link":      {[]tar.Header{link("a", "/tmp/x"), file("a", "text")}, "", "exists"},
		"parent":           {[]tar.Header{file("../a", "text")}, "", "the archive has a file"},
		"absolute":         {[]tar.Header{file("/tmp/a", "text")}, "", "the archive has a file"},
		"twice":            {[]tar.Header{file("a", "text"), file("a", "text")}, "", "exists"},
		"hard link":        {[]tar.Header{file("a", "text"), {Typeflag: tar.TypeLink, Name: "b", Linkname: "./a"}}, "b", ""},
		"hard link out":    {[]tar.Header{{Typeflag: tar.TypeLink, Name: "b", Linkname: "/etc/passwd"}}, "", "b"},
		"pipe":             {[]tar.Header{{Typeflag: tar.TypeFifo, Name: "p"}, file("a", "text")}, "a", ""},
		"device":           {[]tar.Header{{Typeflag: tar.TypeChar, Name: "p"}, file("a", "text")}, "a", ""},
		"too large":        {[]tar.Header{file("a", strings.Repeat("x", 20_000))}, "", "more than 16384 bytes"},
		"too many":         {[]tar.Header{file("a", ""), file("b", ""), file("c", ""), file("d", ""), file("e", "")}, "", "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			var archive bytes.Buffer
			w := tar.NewWriter(&archive)
			for _, h := range test.entries {
				body := h.Linkname
				if h.Typeflag == tar.TypeReg {
					h.Linkname = ""
				}
				if err := w.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
				if h.Typeflag == tar.TypeReg {
					w.Write([]byte(body))
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}

			parent := t.TempDir()
			dir := filepath.Join(parent, "x", "y")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			err := workspace.Receive(&archive, dir, 16<<10)
			var refused workspace.RefusedError
			if errors.As(err, &refused) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Fatalf("error %v, want %q", err, test.refused)
			}
			if body, err := os.ReadFile(filepath.Join(dir, test.want)); test.want != "" && string(body) != "text" {
				t.Errorf("%s is %q %v", test.want, body, err)
			}
			if outside, _ := os.ReadDir(parent); len(outside) != 1 {
				t.Errorf("outside there are %v", outside)
			}
		})
	}

	if err := workspace.Receive(strings.NewReader("garbage"), t.TempDir(), 1<<20); err == nil {
		t.Error("garbage is taken")
	}
}
