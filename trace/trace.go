// Package trace records a delivery and its runs as an OpenTelemetry trace: received, accepted, dispatched,
// executed, finished. It is the only package that imports OpenTelemetry.
//
// A trace crosses processes and restarts through the run's row and its work order, which store the position
// (W3C Trace Context). Spans never contain text of senders or agents: only our own identifiers, numbers and
// words from a fixed list, see [Key].
package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// Key names an attribute of a span. The list is closed, so that no payload is added by accident.
type Key string

// The attributes of spans.
const (
	Factory   Key = "millwright.factory.uid"
	Webhook   Key = "millwright.webhook.uid"
	Delivery  Key = "millwright.delivery.uid"
	Run       Key = "millwright.run.id"
	Execution Key = "millwright.run.execution"
	Attempt   Key = "millwright.run.attempt"
	State     Key = "millwright.run.state"
	Worker    Key = "millwright.worker.uid"
	Harness   Key = "millwright.harness"
	Result    Key = "millwright.result" // of a request, as the metrics count it
	Runs      Key = "millwright.runs"   // how many were started
	Status    Key = "http.response.status_code"
)

// Config configures the export of traces.
type Config struct {
	// Endpoint is the base address of an OTLP receiver over HTTP; /v1/traces is appended. When it is empty,
	// OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_TRACES_ENDPOINT apply.
	Endpoint string
	// Version is the program's.
	Version string
	// Log receives errors of the export; nil discards them.
	Log *slog.Logger
}

// Tracer makes spans. The nil Tracer makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   oteltrace.Tracer
}

// New returns a tracer, or nil if no endpoint is configured or OTEL_SDK_DISABLED is true. It does not
// connect. Spans wait in a bounded queue and are sent in batches; spans beyond the queue are dropped. It
// supports the standard variables OTEL_EXPORTER_OTLP_*, OTEL_BSP_*, OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME
// and OTEL_RESOURCE_ATTRIBUTES.
func New(ctx context.Context, cfg Config) (*Tracer, error) {
	if cfg.Endpoint == "" && os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" &&
		os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" ||
		strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}

	otel.SetLogger(logr.FromSlogHandler(words{cfg.Log}))
	otel.SetErrorHandler(&complaints{log: cfg.Log})
	var opts []otlptracehttp.Option
	if cfg.Endpoint != "" {
		u, err := CheckEndpoint(cfg.Endpoint)
		if err != nil {
			return nil, err
		}

		opts = append(opts, otlptracehttp.WithEndpointURL(u.JoinPath("v1/traces").String()))
	}

	exporter, err := otlptracehttp.New(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}

	about, err := resource.New(
		ctx,
		resource.WithAttributes(
			attribute.String("service.name", "millwright"),
			attribute.String("service.version", cfg.Version),
		),
		resource.WithFromEnv(),
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("traces: %w", err)
	}

	p := sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithBatcher(exporter))
	return &Tracer{provider: p, tracer: p.Tracer("millwright")}, nil
}

// CheckEndpoint parses an endpoint: the origin of a receiver, with a path where it needs one, and without
// credentials, which belong into OTEL_EXPORTER_OTLP_HEADERS.
func CheckEndpoint(endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, errors.New(
			"want the address of an OTLP receiver over HTTP, like http://127.0.0.1:4318, without " +
				"credentials (OTEL_EXPORTER_OTLP_HEADERS takes them)",
		)
	}
	return u, nil
}

// Close sends the queued spans, until ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Span is a part of a trace. The nil Span is none.
type Span struct{ span oteltrace.Span }

// Start starts a span at the given time, or now if that is zero. Its parent is the span in ctx. The
// returned context contains the new span.
func (t *Tracer) Start(ctx context.Context, name string, at time.Time) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	var opts []oteltrace.SpanStartOption
	if !at.IsZero() {
		opts = append(opts, oteltrace.WithTimestamp(at))
	}
	ctx, span := t.tracer.Start(ctx, name, opts...)
	return ctx, &Span{span}
}

// Set gives the span an attribute: an identifier of ours, or a word from a fixed list.
func (s *Span) Set(key Key, value string) *Span {
	if s != nil && value != "" {
		s.span.SetAttributes(attribute.String(string(key), value))
	}
	return s
}

// Count gives the span an attribute that is a number.
func (s *Span) Count(key Key, n int) *Span {
	if s != nil {
		s.span.SetAttributes(attribute.Int(string(key), n))
	}
	return s
}

// Fail marks the span as failed, with a code from a fixed list; no message, which may quote anything.
func (s *Span) Fail(code string) *Span {
	if s != nil {
		s.span.SetStatus(codes.Error, code)
	}
	return s
}

// End ends the span.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}

// Position returns the position of ctx in its trace, for a run's row; empty without a trace.
func Position(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// Continue continues a trace at a position. Invalid text starts a new trace.
func Continue(ctx context.Context, position string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": position})
}

// words logs OpenTelemetry's errors about its variables without their values, which may be credentials.
type words struct{ log *slog.Logger }

func (w words) Enabled(_ context.Context, level slog.Level) bool {
	return w.log != nil && level >= slog.LevelError
}

func (w words) Handle(_ context.Context, r slog.Record) error {
	w.log.Warn("traces: OpenTelemetry refuses a setting: check the OTEL_* variables", "at", r.Message)
	return nil
}

func (w words) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w words) WithGroup(string) slog.Handler      { return w }

// maxComplaint bounds the logged text of an error, in bytes: it may quote the receiver.
const maxComplaint = 500

// complaints logs export errors, at most once a minute.
type complaints struct {
	log  *slog.Logger
	mu   sync.Mutex
	last time.Time
}

// Handle takes an error of the exporter.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if now := time.Now(); c.log != nil && now.Sub(c.last) >= time.Minute {
		c.last = now
		text := err.Error()
		c.log.Warn(
			"traces are not delivered; spans beyond the queue are dropped",
			"error",
			text[:min(len(text), maxComplaint)],
		)
	}
}
