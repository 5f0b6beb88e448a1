// Command peers runs the conformance kit against this server and against another receiver of webhooks, adnanh/webhook,
// with the settings that come closest to the contract. Run it with: go run ./bench/peers
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"millwright/ingress/conformance"
	kit "millwright/testdata/conformance"
)

func main() {
	webhook := flag.String("webhook", "webhook", "the `program` adnanh/webhook (Debian: webhook)")
	program := flag.String("millwright", "", "the `program` millwright (default: built from this module)")
	failures := flag.Bool("failures", false, "print why each case failed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *program, *webhook, *failures); err != nil {
		fmt.Fprintln(os.Stderr, "bench/peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program, webhook string, failures bool) error {
	dir, err := os.MkdirTemp("", "bench-peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the receivers

	own, err := startMillwright(ctx, dir, program)
	if err != nil {
		return fmt.Errorf("millwright: %w", err)
	}
	peer, err := startWebhook(ctx, dir, webhook)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}

	cases, err := conformance.Load(kit.Files)
	if err != nil {
		return err
	}
	both := []receiver{own, peer}
	var scores []map[string]score
	for _, r := range both {
		s, err := r.check(ctx, cases, failures)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		scores = append(scores, s)
	}

	printTable(both, scores)
	return nil
}

// score is how many cases of an area passed, of those for whose webhooks the receiver has a setting.
type score struct{ passed, run, all int }

// check runs the kit.
func (r receiver) check(ctx context.Context, cases []conformance.Case, failures bool) (map[string]score, error) {
	scores := map[string]score{}
	each := func(result conformance.Result) {
		area := strings.TrimSuffix(result.Case.File, ".jsonl")
		s := scores[area]
		s.add(result)
		scores[area] = s

		if failures && result.Err != nil {
			fmt.Printf("%s: %s: %.200q (%s)\n", r.name, result.Case.ID, result.Err, result.Case.Why)
		}
	}

	_, err := conformance.Run(ctx, conformance.Config{
		Cases: cases, Targets: r.targets, Senders: true, Timeout: 5 * time.Second, Each: each,
	})
	return scores, err
}

func (s *score) add(r conformance.Result) {
	s.all++
	if r.Skipped == "" {
		s.run++
	}
	if r.Skipped == "" && r.Err == nil {
		s.passed++
	}
}

func printTable(all []receiver, scores []map[string]score) {
	fmt.Print("| area | cases |")
	for _, r := range all {
		fmt.Printf(" %s |", strings.TrimSpace(r.name+" "+r.version))
	}
	fmt.Print("\n| --- | --- |", strings.Repeat(" --- |", len(all)), "\n")

	var areas []string
	for area := range scores[0] {
		areas = append(areas, area)
	}
	slices.Sort(areas)
	for _, area := range areas {
		fmt.Printf("| %s | %d |", area, scores[0][area].all)
		for i := range all {
			fmt.Printf(" %d of %d |", scores[i][area].passed, scores[i][area].run)
		}
		fmt.Println()
	}
}

// startWebhook starts adnanh/webhook with a hook for each webhook of the kit that it can express. A command makes
// the answer that the kit expects.
func startWebhook(ctx context.Context, dir, program string) (receiver, error) {
	out, err := exec.CommandContext(ctx, program, "-version").Output()
	if err != nil {
		return receiver{}, err
	}
	version := strings.TrimSpace(strings.TrimPrefix(string(out), "webhook version "))

	answer := filepath.Join(dir, "answer")
	script := "#!/bin/sh\nprintf '{\"delivery_id\":\"%s\"}' \"$(cat /proc/sys/kernel/random/uuid)\"\n"
	if err := os.WriteFile(answer, []byte(script), 0o700); err != nil {
		return receiver{}, err
	}

	token := secrets()["CONFORMANCE_TOKEN"]
	bearer := map[string]any{
		"type": "value", "value": "Bearer " + token,
		"parameter": map[string]string{"source": "header", "name": "Authorization"},
	}
	signed := map[string]any{
		"type": "payload-hmac-sha256", "secret": token,
		"parameter": map[string]string{"source": "header", "name": "X-Hub-Signature-256"},
	}

	var hooks []map[string]any
	for id, rule := range map[string]map[string]any{
		"token": bearer, "header": bearer, "budget": bearer, "github": signed, "url_token/" + token: nil,
	} {
		hooks = append(hooks, hook(id, answer, rule))
	}

	text, err := json.Marshal(hooks)
	if err != nil {
		return receiver{}, err
	}
	file := filepath.Join(dir, "hooks.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return receiver{}, err
	}

	port, err := freePort()
	if err != nil {
		return receiver{}, err
	}
	if err := exec.CommandContext(ctx, program, "-hooks", file, "-ip", "127.0.0.1", "-port", port).Start(); err != nil {
		return receiver{}, err
	}
	base := "http://127.0.0.1:" + port + "/hooks/"
	if err := answers(ctx, base); err != nil {
		return receiver{}, err
	}

	targets := map[string]conformance.Target{
		"url_token": {Mode: "url_token", URL: base + "url_token", Secret: token},
		"github":    {Mode: "signature", Scheme: "github", URL: base + "github", Secret: token},
	}
	for _, name := range []string{"token", "header", "budget"} {
		targets[name] = conformance.Target{Mode: "token", URL: base + name, Secret: token}
	}
	return receiver{"adnanh/webhook", version, targets}, nil
}

// hook is a hook of adnanh/webhook that accepts what a rule matches, or everything without one.
func hook(id, command string, rule map[string]any) map[string]any {
	contentType := map[string]string{"name": "Content-Type", "value": "application/json"}
	h := map[string]any{
		"id":                                 id,
		"execute-command":                    command,
		"http-methods":                       []string{http.MethodPost},
		"include-command-output-in-response": true,
		"incoming-payload-content-type":      "application/json",
		"response-headers":                   []any{contentType},
		"success-http-response-code":         http.StatusAccepted,

		"trigger-rule-mismatch-http-response-code": http.StatusUnauthorized,
	}
	if rule != nil {
		h["trigger-rule"] = map[string]any{"match": rule}
	}
	return h
}
