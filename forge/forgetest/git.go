package forgetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"millwright/state/statetest"
)

// Git runs git in a directory, as a fixed author and without the settings of the user. It returns the output.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return gitWith(t, dir, "", args...)
}

func gitWith(t testing.TB, dir, input string, args ...string) string {
	t.Helper()
	cmd := exec.Command(statetest.Program(t, "git"), args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@example.com",
		"GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@example.com",
		"GIT_AUTHOR_DATE=2024-05-01T10:00:00Z", "GIT_COMMITTER_DATE=2024-05-01T10:00:00Z")

	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("git %s: %v\n%s%s", strings.Join(args, " "), err, &out, &said)
	}

	return strings.TrimSuffix(out.String(), "\n")
}

// Bundle packs the changes between two commits of a repository, as a worker does.
func Bundle(t testing.TB, dir, base, head string) []byte {
	t.Helper()
	names := strings.Fields(base + " " + Git(t, dir, "rev-parse", base+"^{tree}") + "\n" +
		Git(t, dir, "rev-list", "--objects", "--no-object-names", head, "^"+base))
	changes := Git(t, dir, "diff-tree", "-r", "-t", "--raw", "--no-abbrev", "--no-renames", base, head)
	for line := range strings.Lines(changes) {
		if was := strings.Fields(line)[2]; strings.Trim(was, "0") != "" {
			names = append(names, was)
		}
	}

	slices.Sort(names)
	list := strings.Join(slices.Compact(names), "\n") + "\n"
	pack := gitWith(t, dir, list, "pack-objects", "--stdout", "--quiet")
	return fmt.Appendf(nil, "# v2 git bundle\n-%s base\n%s refs/heads/changes\n\n%s\n", base, head, pack)
}
