package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"millwright/runs/worker"
	"millwright/runs/worker/preset"
)

// model answers each request of Claude Code with a short text, and tells when the first came.
type model struct{ first chan time.Time }

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	if _, err := io.Copy(io.Discard, r.Body); err != nil || !strings.HasSuffix(r.URL.Path, "/messages") {
		http.NotFound(w, r)
		return
	}
	select {
	case m.first <- at:
	default:
	}

	type object = map[string]any
	usage := object{"input_tokens": 10, "output_tokens": 5}
	message := object{
		"id":      "msg_1",
		"type":    "message",
		"role":    "assistant",
		"model":   "m",
		"content": []any{},
		"usage":   usage,
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range []object{
		{"type": "message_start", "message": message},
		{"type": "content_block_start", "index": 0, "content_block": object{"type": "text", "text": ""}},
		{"type": "content_block_delta", "index": 0, "delta": object{"type": "text_delta", "text": "The work is done."}},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": object{"stop_reason": "end_turn"}, "usage": usage},
		{"type": "message_stop"},
	} {
		text, err := json.Marshal(event)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], text)
	}
}

// start measures the time from the claim of a run until its agent's first request to the model, beside the
// time from the start of the same program by hand, in turns.
func start(ctx context.Context, o options) error {
	if o.program == "" {
		return errors.New("start needs -program: .ci/agents installs one")
	}

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	m := &model{first: make(chan time.Time, 1)}
	srv := &http.Server{Handler: m}
	go srv.Serve(ln)
	defer srv.Close()

	env := map[string]string{
		"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": "http://" + ln.Addr().String(),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
	}
	h := worker.Harness{Preset: "claude", Program: o.program, SameUser: true}
	for name, value := range env {
		h.Env = append(h.Env, name)
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}

	s, err := o.serve(ctx)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	stop, err := s.work(ctx, o, h)
	if err != nil {
		return err
	}
	defer stop()

	var worked, hand []time.Duration
	for range o.rounds {
		run, err := s.create(ctx)
		if err != nil {
			return err
		}
		first := <-m.first
		if run, err = s.end(ctx, run.ID, 1); err != nil {
			return err
		}
		claimed, err := s.claimed(ctx, run)
		if err != nil {
			return err
		}
		worked = append(worked, first.Sub(claimed))

		taken, err := byHand(ctx, o, m, env)
		if err != nil {
			return err
		}
		hand = append(hand, taken)
	}

	pairs("from the claim to the first request:", "by hand:", worked, hand)
	return nil
}

// byHand starts the program as the preset does, without a worker.
func byHand(ctx context.Context, o options, m *model, env map[string]string) (time.Duration, error) {
	dir, err := os.MkdirTemp(o.dir, "hand-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)

	t := preset.Task{
		Home:       filepath.Join(dir, "home"),
		Dir:        filepath.Join(dir, "work"),
		BasePrompt: preset.Leaves,
		NewID:      uuid.NewString(),
	}
	p, _ := preset.Find("claude")
	l := p.Launch(t)
	l.Files["../work/.keep"] = nil
	for name, body := range l.Files {
		file := filepath.Join(t.Home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return 0, err
		}
		if err := os.WriteFile(file, body, 0o600); err != nil {
			return 0, err
		}
	}

	cmd := exec.CommandContext(ctx, o.program, l.Args...)
	cmd.Dir, cmd.Stdin = t.Dir, strings.NewReader("Say that the work is done.")
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	for _, variables := range []map[string]string{env, l.Env} {
		for name, value := range variables {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}

	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %.500s", err, out)
	}
	return (<-m.first).Sub(began), nil
}
