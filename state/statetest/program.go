package statetest

import (
	"os"
	"os/exec"
	"testing"
)

// Program returns the path of a program that a test uses. Without it the test is skipped, or fails where
// CI=true.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	return path
}
