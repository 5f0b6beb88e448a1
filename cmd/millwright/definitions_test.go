package main

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"millwright/cmd/cli"
	"millwright/testdata/definitions"
)

// TestDefinitionsDecided shows each document of testdata/definitions to the program and to the server, which
// find the same problems and decide alike.
func TestDefinitionsDecided(t *testing.T) {
	s := newJudgeServer(t)
	archives, err := definitions.Archives()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CI", "") // there a directory without a definition is an error
	collectAsUsual(t)
	for name, archive := range archives {
		cases, err := definitions.Cases(archive)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			valid := true
			for _, text := range c.Files {
				valid = valid && utf8.ValidString(text)
			}
			if !valid {
				continue // JSON cannot carry it
			}
			found, status := checked(t, files(t, c.Files))
			remote, good := overHTTP(t, s, c.Files)
			for i := range found {
				found[i].Excerpt = "" // the server shows none
			}
			if diff := cmp.Diff(ordered(found), ordered(remote)); diff != "" {
				t.Errorf("%s, %s: the program and the server differ:\n%s", name, c.Name, diff)
			}
			if good != (status == cli.ExitGood) {
				t.Errorf("%s, %s: the program ends with %d, the server says %v", name, c.Name, status, good)
			}
		}
	}
}
