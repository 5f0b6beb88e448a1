package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"millwright/schema/editortest"
	"millwright/state/statetest"
)

// scriptEditor is an editor for scripts: editor PATTERN METHOD FILE LINE CHARACTER [FLAG …]. It starts
// millwright lsp with the flags, opens the file, and repeats a request about the place until the answer has
// the pattern. The workspace and the client both name a server of their own, which nobody is to ask.
func scriptEditor(args []string, out, errw io.Writer) int {
	if len(args) < 5 {
		fmt.Fprintln(errw, "usage: editor PATTERN METHOD FILE LINE CHARACTER [FLAG …]")
		return 2
	}

	ctx, cancel := context.WithTimeout(context.Background(), statetest.Patience)
	defer cancel()

	answer, err := askEditor(ctx, args, errw)
	fmt.Fprintln(out, answer)
	if err != nil {
		fmt.Fprintln(errw, err)
		return 1
	}
	return 0
}

func askEditor(ctx context.Context, args []string, errw io.Writer) (answer string, err error) {
	file, err := filepath.Abs(args[2])
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	place := map[string]any{
		"textDocument": map[string]any{"uri": fileURI(file)},
		"position":     map[string]json.Number{"line": json.Number(args[3]), "character": json.Number(args[4])},
	}

	cmd := exec.CommandContext(ctx, "millwright", append([]string{"lsp"}, args[5:]...)...)
	cmd.Stderr = errw
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer cmd.Wait()

	c := editortest.NewClient(ctx, in, from)
	c.Options = map[string]any{"server": os.Getenv("OTHER_SERVER"), "key": "mwk_of_the_workspace"}
	defer c.Close()
	if err := c.Begin(ctx); err != nil {
		return "", err
	}
	if err := c.Open(ctx, fileURI(file), string(text), 1); err != nil {
		return "", err
	}

	pattern := regexp.MustCompile(args[0])
	for {
		var result json.RawMessage
		if err := c.Call(ctx, "textDocument/"+args[1], place, &result); err != nil {
			return answer, fmt.Errorf("the answer never had %s: %w", args[0], err)
		}
		if answer = string(result); pattern.MatchString(answer) {
			return answer, c.End(ctx)
		}
		select {
		case <-ctx.Done():
			return answer, fmt.Errorf("the answer never had %s", args[0])
		case <-time.After(20 * time.Millisecond):
		}
	}
}
