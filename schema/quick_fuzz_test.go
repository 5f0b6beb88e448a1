package schema

import (
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// FuzzQuick holds that a text which is read without the parser has the nodes and places that the parser gives it.
func FuzzQuick(f *testing.F) {
	err := fs.WalkDir(os.DirFS("../testdata/factories"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}

		text, err := os.ReadFile("../testdata/factories/" + path)
		if err == nil && len(text) < 4096 {
			head, _, _ := strings.Cut(strings.TrimPrefix(string(text), "---\n"), "\n---\n")
			f.Add(head)
		}
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("a: yes\nb: [1, 007, null, True]\nc:\n- d: {e: 'f', g: \"h\"}\n  i: x:y\n- j\n")

	f.Fuzz(func(t *testing.T, text string) {
		root, ok := quickDecode([]byte(text))
		if !ok {
			return
		}

		parsed, second, err := decode([]byte(text))
		if err != nil || second != nil {
			t.Fatalf("%q: the parser finds a second document %v, error %v", text, second, err)
		}
		want := parsed.Content[0]
		uncomment(want)
		if !reflect.DeepEqual(want, root) {
			t.Errorf("%q: the parser reads it otherwise", text)
		}
	})
}

// uncomment removes the comments of a node.
func uncomment(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for _, c := range n.Content {
		uncomment(c)
	}
}
