package admin

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/api"
	"millwright/schema"
)

// FuzzReadTar reads any bytes: accepted files are within bounds and survive a round trip; refusals
// name the sender's mistake.
func FuzzReadTar(f *testing.F) {
	for _, files := range [][]schema.File{
		nil,
		{{Path: "webhooks/a.yaml", Content: "secretName: A\n"}},
		{{Path: "a", Content: ""}, {Path: strings.Repeat("b/", 20) + strings.Repeat("é", 90), Content: "\x00"}},
	} {
		seed, err := writeTar(files, time.Unix(1, 0))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
		f.Add(seed[:len(seed)/2])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		files, err := readTar(bytes.NewReader(body))
		var problem *api.Error
		if err != nil {
			if !errors.As(err, &problem) || problem.Status != 400 {
				t.Fatalf("error %v", err)
			}
			return
		}
		total := 0
		list := make([]schema.File, len(files))
		for i, file := range files {
			if !validPath(file.Path) {
				t.Fatalf("path %q", file.Path)
			}
			list[i] = schema.File(file)
			total += len(file.Content)
		}
		if total > maxManagedBytes || len(files) > maxManagedFiles {
			t.Fatalf("%d files of %d bytes", len(files), total)
		}
		packed, err := writeTar(list, time.Unix(1, 0))
		if err != nil {
			return // a name that a tar cannot have, such as one with a zero byte
		}
		again, err := readTar(bytes.NewReader(packed))
		if err != nil || !slices.Equal(again, files) {
			t.Fatalf("%v: %q became %q", err, files, again)
		}
	})
}
