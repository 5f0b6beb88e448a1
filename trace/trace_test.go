package trace_test

import (
	"log/slog"
	"strings"
	"testing"

	"millwright/trace"
)

// TestWrongVariables logs that a variable is wrong, and not what it says.
func TestWrongVariables(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization: Bearer canary,x=%zzcanary")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://user:canary@127.0.0.1:bad")
	var log strings.Builder
	tracer, err := trace.New(t.Context(), trace.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer tracer.Close(t.Context())
	if said := log.String(); strings.Contains(said, "canary") || !strings.Contains(said, "parse headers") || !strings.Contains(said, "parse url") {
		t.Errorf("log: %s", said)
	}
}
