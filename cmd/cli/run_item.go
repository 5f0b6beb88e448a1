package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// runItem is what the program shows of a RunItem.
type runItem struct {
	RunID       string `json:"run_id"`
	Title       string
	State       string
	WaitsFor    string   `json:"waits_for"`
	StartsAt    string   `json:"starts_at"`
	DeliveryIDs []string `json:"delivery_ids"`
	Source      string
	Prompt      string
	CreatedAt   string  `json:"created_at"`
	UpdatedAt   string  `json:"updated_at"`
	StartedAt   *string `json:"started_at"`
	FinishedAt  *string `json:"finished_at"`
	SessionLink string  `json:"session_link"`
	TriggerURL  string  `json:"trigger_url"`
	Status      *struct {
		Message   string
		ErrorCode string `json:"error_code"`
	} `json:"status_message"`
	Executor *struct {
		DisplayName string `json:"display_name"`
	}
	Metadata    map[string]string
	Attachments []struct {
		FileName  string `json:"file_name"`
		SizeBytes int64  `json:"size_bytes"`
	}
	Artifacts []artifactItem
	Usage     *struct {
		InputTokens  int64    `json:"input_tokens"`
		CachedTokens int64    `json:"cached_input_tokens"`
		OutputTokens int64    `json:"output_tokens"`
		CostUSD      *float64 `json:"inference_cost_usd"`
	} `json:"request_usage"`
}

// state is the run's state and, of a queued run that no worker may take yet, what it waits for.
func (r runItem) state() string {
	if r.WaitsFor == "" {
		return r.State
	}
	return r.State + " (" + r.WaitsFor + ")"
}

func (r runItem) ended() bool {
	switch r.State {
	case "SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED":
		return true
	}
	return false
}

// outcome is the error of a run that has not succeeded.
func (r runItem) outcome() error {
	if r.State == "SUCCEEDED" {
		return nil
	}
	message := ""
	if r.Status != nil {
		message = ": " + clean(r.Status.Message)
	}
	return fmt.Errorf("run %s is %s%s", r.RunID, r.State, message)
}

func (r runItem) print(w io.Writer) error {
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-12s %s\n", key, clean(value))
		}
	}
	line("run", r.RunID)
	line("title", r.Title)
	line("state", r.state())
	line("starts", r.StartsAt)
	if r.Status != nil {
		line("message", strings.TrimSpace(r.Status.ErrorCode+" "+r.Status.Message))
	}

	line("source", r.Source)
	if r.Executor != nil {
		line("worker", r.Executor.DisplayName)
	}

	line("created", r.CreatedAt)
	if r.StartedAt != nil {
		line("started", *r.StartedAt)
	}
	if r.FinishedAt != nil {
		line("finished", *r.FinishedAt)
	}

	if u := r.Usage; u != nil {
		text := fmt.Sprintf("%d tokens in (%d cached), %d out", u.InputTokens, u.CachedTokens, u.OutputTokens)
		if u.CostUSD != nil {
			text += fmt.Sprintf(", $%.4f", *u.CostUSD)
		}
		line("usage", text)
	}

	line("page", r.SessionLink)
	for _, key := range []string{"delivery_id", "webhook_id", "automation_id"} {
		line(strings.TrimSuffix(key, "_id"), r.Metadata[key])
	}

	if len(r.DeliveryIDs) > 1 {
		line("deliveries", strings.Join(r.DeliveryIDs, " "))
	}

	for _, a := range r.Attachments {
		line("attachment", fmt.Sprintf("%s (%d bytes)", a.FileName, a.SizeBytes))
	}

	for _, a := range r.Artifacts {
		text := a.name()
		if a.file() {
			text += fmt.Sprintf(" (%d bytes)", a.Data.SizeBytes)
		}
		line("artifact", strings.TrimSpace(text+" "+a.Data.Status))
	}

	_, err := fmt.Fprintf(w, "\n%s\n", cleanText(r.Prompt))
	return err
}

func shorten(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

func printMessage(w io.Writer, role string, content []json.RawMessage) {
	fmt.Fprintf(w, "── %s\n", clean(role))
	for _, raw := range content {
		var b struct {
			Type, Text, Name, State string
			Input, Output, Data     json.RawMessage
		}
		if json.Unmarshal(raw, &b) != nil {
			continue
		}

		switch b.Type {
		case "text":
			fmt.Fprintln(w, cleanText(b.Text))
		case "action":
			fmt.Fprintf(w, "→ %s %s\n", clean(b.Name), clean(string(b.Input)))
		case "action_result":
			fmt.Fprintf(w, "← %s %s %s\n", clean(b.Name), clean(b.State), clean(string(b.Output)))
		default:
			fmt.Fprintf(w, "· %s %s\n", clean(b.Name), clean(string(b.Data)))
		}
	}
}
