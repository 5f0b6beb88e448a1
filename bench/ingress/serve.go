package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"millwright/bounds"
	"millwright/ingress"
	"millwright/schema"
	"millwright/state"
)

// serve serves one kind on a free port, prints its address, and ends with standard input.
func serve(ctx context.Context, kind string, o options) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	dir, err := os.MkdirTemp(".", "bench-") // on the disk of the checkout, not in memory
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	path := "/bench"
	var srv *http.Server
	switch kind {
	case "bare":
		srv = &http.Server{Handler: verifying(func([]byte) error { return nil })}
	case "append":
		f, err := newAppender(filepath.Join(dir, "log"))
		if err != nil {
			return err
		}

		srv = &http.Server{Handler: verifying(f.append)}

	case "sqlite", "postgres", kindReplicas:
		dsn := filepath.Join(dir, "state.db")
		switch kind {
		case kindReplicas:
			dsn = o.postgres
		case "postgres":
			var drop func()
			if dsn, drop, err = schemaOf(o.postgres); err != nil {
				return err
			}
			defer drop()
		}

		var end func()
		debug.SetGCPercent(200) // as millwright serve does
		if srv, path, end, err = millwright(ctx, dsn, o); err != nil {
			return err
		}
		defer end()

	default:
		return fmt.Errorf("unknown kind %q", kind)
	}

	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	fmt.Println(ln.Addr(), path, dir)
	go func() {
		<-ctx.Done()
		_ = srv.Close()
	}()
	limits := ingress.ServerConfig{Bounds: bounds.New(bounds.Config{SenderConnections: -1})}
	if err := srv.Serve(ingress.Limit(ln, limits)); err != http.ErrServerClosed {
		return err
	}

	return nil
}

// verifying is the bare handler: it reads the body, verifies the signature as the senders make it, and
// hands the body on.
func verifying(then func([]byte) error) http.Handler {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, ingress.MaxBody))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}

		mac := hmac.New(sha256.New, key)
		io.WriteString(mac, r.Header.Get("webhook-id")+"."+r.Header.Get("webhook-timestamp")+".")
		mac.Write(body)
		want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		if subtle.ConstantTimeCompare([]byte(want), []byte(r.Header.Get("webhook-signature"))) != 1 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if then(body) != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}

		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, `{"delivery_id":"dlv_00000000000000000000000000"}`+"\n")
	})
}

// appender appends bodies to one file: what waits is written together, synced once, and answered.
type appender struct {
	f    *os.File
	jobs chan appendJob
}

type appendJob struct {
	body []byte
	done chan error
}

func newAppender(path string) (*appender, error) {
	f, err := os.Create(path)
	a := &appender{f: f, jobs: make(chan appendJob, 1024)}
	go a.run()
	return a, err
}

func (a *appender) append(body []byte) error {
	done := make(chan error, 1)
	a.jobs <- appendJob{body, done}
	return <-done
}

func (a *appender) run() {
	var buf []byte
	var batch []appendJob
	for j := range a.jobs {
		buf, batch = append(buf[:0], j.body...), append(batch[:0], j)
	more:
		for len(batch) < 256 {
			select {
			case j = <-a.jobs:
				buf, batch = append(buf, j.body...), append(batch, j)
			default:
				break more
			}
		}

		_, err := a.f.Write(buf)
		if err == nil {
			err = a.f.Sync()
		}

		for _, j := range batch {
			j.done <- err
		}
	}
}

// millwright serves the ingress with one signature webhook on a new state.
func millwright(
	ctx context.Context,
	dsn string,
	o options,
) (srv *http.Server, path string, end func(), err error) {
	s, err := state.Open(ctx, state.Config{DSN: dsn, MasterKey: make([]byte, 32)})
	if err != nil {
		return nil, "", nil, err
	}

	path = o.join
	if path == "" {
		uid := state.NewID(state.PrefixWebhook)
		path = "/webhooks/w/" + uid
		if err := define(ctx, s, uid, o); err != nil {
			return nil, "", nil, err
		}
	}

	in, err := ingress.New(ctx, ingress.Config{Store: s, DeliveriesPerMinute: -1})
	if err != nil {
		return nil, "", nil, err
	}

	var tasks sync.WaitGroup
	if o.soak > 0 {
		tasks.Go(func() { retain(ctx, s) })
		for range 4 {
			tasks.Go(func() { finish(ctx, s) })
		}
	}

	return ingress.NewServer(ingress.ServerConfig{Ingress: in}), path, sync.OnceFunc(func() {
		tasks.Wait()
		_ = in.Close(context.WithoutCancel(ctx))
		_ = s.Close()
	}), nil
}

func define(ctx context.Context, s *state.Store, uid string, o options) error {
	if _, err := s.SetSecret(ctx, "KEY", []byte(secret)); err != nil {
		return err
	}

	f, err := s.EnsureFactory(ctx, "bench", state.Source{Kind: "managed"}, false)
	if err != nil {
		return err
	}

	current, err := s.Current(ctx, f.UID)
	if err != nil {
		return err
	}

	a := state.ChangeSet{
		FactoryUID:   f.UID,
		Base:         current.Factory.Generation,
		BaseRevision: current.Factory.Applied.ID,
		Started:      time.Now(),
		Revision:     state.Revision{ID: "bench"},
	}

	a.Webhooks = []state.WebhookChange{{UID: uid, SecretVersion: current.Secrets["KEY"].Version, Spec: schema.Webhook{
		Name: "bench", Path: "webhooks/bench.yaml", AuthMode: schema.AuthSignature,
		SignatureScheme: "standard_webhooks", SecretName: "KEY", Enabled: true,
	}}}
	if o.github {
		a.Webhooks[0].Spec.SignatureScheme = "github"
	}

	for i := range max(o.automations, o.events) {
		name := fmt.Sprintf("a%d", i)

		a.Resources = append(
			a.Resources,
			state.ResourceChange{Kind: "automation", Name: name, Spec: schema.Automation{
				Name: name, Path: "automations/" + name + "/automation.md", Enabled: true,
				Prompt:   "Look into the event and report what it means.",
				Triggers: []schema.Trigger{triggerOf(i, uid, o)},
			}},
		)
	}

	return s.Apply(ctx, a)
}

// triggerOf returns the trigger of an automation. That of the first one matches.
func triggerOf(i int, uid string, o options) schema.Trigger {
	if o.events > 0 {
		filter := `{"repos":["acme/shop"],"base_branches":["main"]}`
		if i > 0 {
			filter = fmt.Sprintf(`{"repos":["acme/other"],"labels":["other%d"]}`, i)
		}
		return schema.Trigger{Provider: "github", Event: "pull_request_opened", Filter: json.RawMessage(filter)}
	}

	filter := `{"action":["benchmark"]}`
	switch {
	case o.github && i == 0:
		filter = `{"action":["opened"],"repository":{"full_name":["acme/shop"]},` +
			`"pull_request":{"base":{"ref":["main"]}}}`
	case i > 0:
		filter = `{"event":["other"],"text":{"exists":true}}`
	}

	return schema.Trigger{
		Provider: "webhook", Event: "received", WebhookIDs: []string{uid}, Payload: json.RawMessage(filter),
	}
}
