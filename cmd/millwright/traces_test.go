package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"millwright/cmd/cli"
	"millwright/cmd/settings"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"millwright/state/statetest"
)

// receiver is an OTLP receiver over HTTP.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	raw   bytes.Buffer
	spans map[string][]*tracepb.Span // by name
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{spans: map[string][]*tracepb.Span{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var in collector.ExportTraceServiceRequest
		if err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("X-Receiver-Key") != "secret" || proto.Unmarshal(body, &in) != nil {
			t.Errorf("not an export of traces: %s %s", req.Method, req.URL.Path)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.raw.WriteString(in.String())
		for _, resource := range in.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					r.spans[s.Name] = append(r.spans[s.Name], s)
				}
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) named(name string) []*tracepb.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spans[name]
}

// tracedWorld is a server with its settings changed to these.
func tracedWorld(t *testing.T, settings string) *crashWorld {
	t.Helper()
	w := newCrashWorld(t, statetest.SQLite(t))
	text := "listen: 127.0.0.1:" + w.port + "\nlimits: {deliveriesPerMinute: -1}\nfactories:\n  - name: crash\n    source: {dir: factory}\n" + settings
	if err := os.WriteFile(filepath.Join(w.dir, "millwright.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestTraces follows a delivery through a server and a worker in another process to the end of its runs.
func TestTraces(t *testing.T) {
	r := newReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-receiver-key=secret")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	nats, err := statetest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	w := tracedWorld(t, "workers: 0\nnats: {listen: 127.0.0.1:"+nats+"}\notlpEndpoint: "+r.URL+"\n")
	server := w.start(t)
	post := func(token string) int {
		req, err := http.NewRequest(http.MethodPost, w.urls[0], strings.NewReader(`{"parity": "odd", "secret": "canary-payload"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("X-Service-Delivery-Id", "canary-id")
		req.Header.Set("traceparent", "00-11111111111111111111111111111111-2222222222222222-01") // a stranger's
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	w.waitFor(t, server, "a delivery is accepted", func() bool { return post(crashToken) == http.StatusAccepted })
	if got := post("canary-token"); got != http.StatusUnauthorized {
		t.Fatalf("a wrong token: %d", got)
	}
	req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:"+w.port+"/api/v1/keys", strings.NewReader(`{"name": "w", "role": "worker"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+crashKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var key struct{ UID, Secret string }
	if body, err := io.ReadAll(resp.Body); err != nil || (&cli.Client{}).Decode(body, &key) != nil {
		t.Fatalf("%s, %v", body, err)
	}
	creds := filepath.Join(w.dir, "worker.key")
	if err := os.WriteFile(creds, []byte(key.UID+" "+key.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	p := exec.Command(os.Args[0], "worker", "--nats", "nats://127.0.0.1:"+nats, "--credentials", creds)
	p.Env = append(os.Environ(), runMain+"=1", "OTEL_EXPORTER_OTLP_ENDPOINT="+r.URL)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill(); p.Wait() })
	w.waitFor(t, server, "all spans have come", func() bool {
		return len(r.named("finish")) > 0 && len(r.named("harness")) > 0 && len(r.named("dispatch")) > 0 && len(r.named("receive")) > 1
	})

	var receive *tracepb.Span
	for _, s := range r.named("receive") {
		if attributes(s)["millwright.result"] == "accepted" {
			receive = s
		}
	}
	if receive == nil || len(receive.ParentSpanId) != 0 || attributes(receive)["http.response.status_code"] != "202" || !strings.HasPrefix(attributes(receive)["millwright.webhook.uid"], "wh_") {
		t.Fatalf("receive: %v", receive)
	}
	parents := map[string]*tracepb.Span{"accept": receive}
	for _, step := range [][2]string{{"accept", "receive"}, {"dispatch", "accept"}, {"harness", "dispatch"}, {"finish", "accept"}} {
		s := r.named(step[0])[0]
		if hex.EncodeToString(s.TraceId) != hex.EncodeToString(receive.TraceId) {
			t.Errorf("%s is of another trace", step[0])
		}
		parent := parents[step[1]]
		if step[1] == "receive" {
			parent = receive
		}
		if !bytes.Equal(s.ParentSpanId, parent.SpanId) {
			t.Errorf("%s does not follow %s", step[0], step[1])
		}
		parents[step[0]] = s
	}
	finish, harness := attributes(parents["finish"]), attributes(parents["harness"])
	if finish["millwright.run.state"] != "SUCCEEDED" || finish["millwright.run.id"] == "" || finish["millwright.run.id"] != harness["millwright.run.id"] ||
		finish["millwright.delivery.uid"] != attributes(receive)["millwright.delivery.uid"] || harness["millwright.harness"] != "echo" || harness["millwright.worker.uid"] != key.UID {
		t.Errorf("finish %v, harness %v", finish, harness)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, secret := range []string{"canary", crashToken, key.Secret, "Go.", "11111111"} {
		if strings.Contains(r.raw.String(), secret) {
			t.Errorf("the traces tell %q", secret)
		}
	}
}

func attributes(s *tracepb.Span) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		if all[a.Key] = a.Value.GetStringValue(); all[a.Key] == "" {
			all[a.Key] = fmt.Sprint(a.Value.GetIntValue())
		}
	}
	return all
}

// TestTracesWithoutReceiver takes more deliveries than spans may wait, while the receiver holds its first
// request for ever.
func TestTracesWithoutReceiver(t *testing.T) {
	held, over := make(chan struct{}, 1), make(chan struct{})
	r := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		select {
		case held <- struct{}{}:
		default:
		}
		select {
		case <-over:
		case <-req.Context().Done():
		}
	}))
	defer r.Close()
	defer close(over)
	for name, value := range map[string]string{"OTEL_BSP_SCHEDULE_DELAY": "1", "OTEL_BSP_MAX_QUEUE_SIZE": "16", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "8"} {
		t.Setenv(name, value)
	}
	w := tracedWorld(t, "workers: 2\notlpEndpoint: "+r.URL+"\n")
	server := w.start(t)
	n := 0
	w.waitFor(t, server, "the receiver hangs", func() bool {
		n++
		return w.post(t.Context(), http.DefaultClient, fmt.Sprintf("first-%d", n), n) && len(held) > 0
	})
	for i := range 200 {
		if !w.post(t.Context(), http.DefaultClient, fmt.Sprintf("more-%d", i), i) {
			t.Fatalf("delivery %d was not accepted", i)
		}
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// TestTracesEndpoint refuses addresses of no receiver without repeating them: they may hold a secret.
func TestTracesEndpoint(t *testing.T) {
	for _, endpoint := range []string{"127.0.0.1:4318", "ftp://x", "http://user:canary-pw@x", "http://x?key=canary-pw", "http://"} {
		file := filepath.Join(t.TempDir(), "millwright.yaml")
		if err := os.WriteFile(file, []byte("otlpEndpoint: "+endpoint+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := settings.Read(file); err == nil || !strings.Contains(err.Error(), "otlpEndpoint: want") || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}
