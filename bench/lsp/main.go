// Command lsp measures millwright lsp: how soon after a change of an open file its problems are shown, and
// how long requests about it take, in a tree of many files. Run it with: go run ./bench/lsp
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"millwright/schema/editortest"
	"millwright/schema/language"
)

func main() {
	files := flag.Int("files", 500, "files of the tree")
	rounds := flag.Int("rounds", 200, "changes and requests that are measured")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	if err := run(ctx, *files, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench/lsp:", err)
		os.Exit(1)
	}
}

// goal is the time within which problems are to be shown in a tree of 500 files.
const goal = 50 * time.Millisecond

func run(ctx context.Context, files, rounds int) error {
	dir, err := os.MkdirTemp("", "bench-lsp")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	program, tree := filepath.Join(dir, "millwright"), filepath.Join(dir, "tree")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/millwright")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the program (run this from the module's root): %w\n%s", err, out)
	}
	if err := write(tree, files); err != nil {
		return err
	}

	const title = "%s, %d processors, a tree of %d files, %d rounds\n\n"
	fmt.Printf(title, runtime.Version(), runtime.NumCPU(), files, rounds)

	cmd := exec.CommandContext(ctx, program, "lsp")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}

	c := editortest.NewClient(ctx, in, out)
	err = measure(ctx, c, tree, rounds)
	return errors.Join(err, c.End(ctx), cmd.Wait())
}

// automation is a file with a problem, in a version of its own.
func automation(version int) string {
	return fmt.Sprintf("---\nenabeld: true\ntriggers:\n  - provider: schedule\n    event: cron_fired\n"+
		"    schedule: {cron: \"%d * * * *\"}\n---\nVersion %d.\n", version%60, version)
}

func write(tree string, files int) error {
	texts := map[string]string{
		"factory.yaml":         "name: Bench\n",
		"agents/lead/agent.md": "---\nagentType: FOREMAN\n---\nLead.\n",
	}
	for i := range files - len(texts) {
		text := strings.ReplaceAll(automation(i), "enabeld", "enabled") + strings.Repeat("Do this with care.\n", 40)
		texts[fmt.Sprintf("automations/a%d/automation.md", i)] = text
	}

	for name, text := range texts {
		to := filepath.Join(tree, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func measure(ctx context.Context, c *editortest.Client, tree string, rounds int) error {
	if err := c.Begin(ctx, "file://"+tree); err != nil {
		return err
	}

	uri := "file://" + tree + "/automations/a7/automation.md"
	if err := c.Open(ctx, uri, automation(0), 1); err != nil {
		return err
	}
	if _, err := c.AwaitVersion(ctx, uri, 1); err != nil {
		return err
	}

	var shown []time.Duration
	for i := 2; i < rounds+2; i++ {
		began := time.Now()
		if err := c.Change(ctx, uri, automation(i), int32(i)); err != nil {
			return err
		}
		found, err := c.AwaitVersion(ctx, uri, int32(i))
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return errors.New("the problem of the file is not shown")
		}
		shown = append(shown, time.Since(began))
	}

	report("problems after a change", shown)
	if p := shown[len(shown)*99/100]; p > goal {
		fmt.Printf("the goal of %s is not met\n", goal)
	}

	at := language.Position{Line: 1}
	params := map[string]any{
		"textDocument": map[string]any{"uri": uri}, "position": at,
		"range": language.Range{End: language.Position{Line: 9}}, "context": map[string]any{},
	}
	for _, method := range []string{"completion", "hover", "codeAction", "references", "documentSymbol"} {
		var took []time.Duration
		for range rounds {
			began := time.Now()
			if err := c.Call(ctx, "textDocument/"+method, params, nil); err != nil {
				return err
			}
			took = append(took, time.Since(began))
		}
		report(method, took)
	}

	return nil
}

// report prints the quantiles of what was measured, and sorts it.
func report(what string, took []time.Duration) {
	slices.Sort(took)
	at := func(percent int) time.Duration {
		return took[min(len(took)-1, len(took)*percent/100)].Round(10 * time.Microsecond)
	}
	fmt.Printf("%-24s p50 %8s   p99 %8s   greatest %8s\n", what, at(50), at(99), at(100))
}
