//go:build unix

package collect

import (
	"bufio"
	"io"
	"os"
	"strings"
)

// Bounds of the files that name the harness's commit, in bytes.
const (
	maxHead = 4 << 10
	maxRefs = 16 << 20
)

// headOf returns the commit that the HEAD of a hostile repository names. It follows no link out of the repository.
func headOf(dir string) (commit string, ok bool) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", false
	}
	defer root.Close()

	text, ok := readRef(root, "HEAD")
	if !ok {
		return "", false
	}
	if isCommit(text) {
		return text, true
	}

	name, symbolic := strings.CutPrefix(text, "ref: ")
	if !symbolic || !strings.HasPrefix(name, "refs/heads/") || strings.Contains(name, "..") {
		return "", false
	}
	if text, ok = readRef(root, name); ok {
		return text, isCommit(text)
	}
	return packedRef(root, name)
}

// readRef returns the first line of a small regular file.
func readRef(root *os.Root, name string) (string, bool) {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxHead {
		return "", false
	}

	body, err := root.ReadFile(name)
	if err != nil {
		return "", false
	}
	line, _, _ := strings.Cut(string(body), "\n")
	return line, true
}

// packedRef returns what packed-refs has for a ref.
func packedRef(root *os.Root, name string) (string, bool) {
	const file = "packed-refs"
	info, err := root.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	f, err := root.Open(file)
	if err != nil {
		return "", false
	}
	defer f.Close()

	for in := bufio.NewScanner(io.LimitReader(f, maxRefs)); in.Scan(); {
		commit, ref, _ := strings.Cut(in.Text(), " ")
		if ref == name {
			return commit, isCommit(commit)
		}
	}
	return "", false
}

func isCommit(name string) bool {
	return len(name) == 40 && strings.Trim(name, "0123456789abcdef") == ""
}
