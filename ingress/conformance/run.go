package conformance

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config configures a run of the kit. Cases and Targets are required.
type Config struct {
	Cases []Case
	// Targets are the receiver's webhooks by the names that the cases use. Cases whose targets are not all
	// there are skipped.
	Targets map[string]Target
	// Senders gives every case a sender of its own by X-Forwarded-For, for receivers that trust whoever
	// runs this as a proxy. Without it, spent budgets are waited for, which takes minutes.
	Senders bool
	// Timeout is how long an answer may take; 0 means 10 seconds.
	Timeout time.Duration
	// InsecureTLS accepts any certificate.
	InsecureTLS bool
	// Each is called after every case, if set.
	Each func(Result)
}

// Result is how a case went.
type Result struct {
	Case    Case
	Skipped string // why, if it was
	Err     error  // what was wrong, nil if nothing was
	Took    time.Duration
}

// Report is how a run went.
type Report struct {
	Passed, Failed, Skipped int
	Requests                int
}

// Run runs the cases one after the other. The error is ctx's, or names the target that cannot be
// reached; then nothing was sent. The results have the mistakes of a receiver.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}

	for _, name := range slices.Sorted(maps.Keys(cfg.Targets)) {
		conn, err := (&runner{cfg: cfg}).dial(ctx, cfg.Targets[name])
		if err != nil {
			return Report{}, fmt.Errorf("webhook %s cannot be reached: %w", name, err)
		}

		_ = conn.Close()
	}

	var report Report
	run := rand.Text()[:8]
	for i, c := range cfg.Cases {
		if ctx.Err() != nil {
			return report, ctx.Err()
		}

		r := &runner{cfg: cfg, unique: fmt.Sprintf("%s-%d", run, i), labels: map[string]answer{}}
		if cfg.Senders {
			r.sender = fmt.Sprintf("198.18.%d.%d", i>>8&255, i&255)
		}

		result := Result{Case: c}
		start := time.Now()
		if missing := r.missing(c); missing != "" {
			result.Skipped = "no target " + missing
			report.Skipped++
		} else if result.Err = r.run(ctx, c); result.Err != nil {
			report.Failed++
		} else {
			report.Passed++
		}

		result.Took = time.Since(start)
		report.Requests += r.sent
		if cfg.Each != nil {
			cfg.Each(result)
		}
	}

	return report, nil
}

type runner struct {
	cfg            Config
	unique, sender string
	labels         map[string]answer
	sent           int
}

// answer is a received answer.
type answer struct {
	status int
	header http.Header
	body   string
}

func (r *runner) missing(c Case) string {
	for _, s := range c.Steps {
		name := orElse(s.Webhook, c.Webhook)
		if _, ok := r.cfg.Targets[name]; !ok {
			return name
		}
	}
	return ""
}

func (r *runner) run(ctx context.Context, c Case) error {
	for i, s := range c.Steps {
		for n := range max(s.Times, 1) {
			if err := r.step(ctx, s, r.cfg.Targets[orElse(s.Webhook, c.Webhook)], n); err != nil {
				return fmt.Errorf("step %d: %w", i+1, err)
			}
		}
	}
	return nil
}

// maxWaits is how often a spent budget is waited for before a request counts as answered 429.
const maxWaits = 3

func (r *runner) step(ctx context.Context, s Step, t Target, n int) error {
	for waits := 0; ; waits++ {
		unique := r.unique
		if s.Times > 1 {
			unique += "-" + strconv.Itoa(n)
		}

		req, err := s.build(t, unique, r.sender, time.Now())
		if err != nil {
			return err
		}

		got, open, err := r.exchange(ctx, s, t, req)
		if err != nil {
			return err
		}

		r.sent++
		last := got[len(got)-1]
		if last.status == http.StatusTooManyRequests &&
			!slices.Contains(s.Expect.Status, http.StatusTooManyRequests) &&
			waits < maxWaits {
			seconds, _ := strconv.Atoi(last.header.Get("Retry-After"))
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(max(seconds, 1)) * time.Second):
			}

			continue
		}

		for _, a := range got {
			if err := r.judge(s, t, a); err != nil {
				return err
			}
		}

		if open != nil {
			return open
		}
		if s.Label != "" {
			r.labels[s.Label] = last
		}

		return nil
	}
}

// exchange sends one request and reads its answers; more than one where the request is several in a row.
// open says that the connection should have ended after them, and did not.
func (r *runner) exchange(ctx context.Context, s Step, t Target, req request) (all []answer, open, err error) {
	conn, err := r.dial(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()

	_ = conn.SetDeadline(time.Now().Add(r.cfg.Timeout))
	send := req.head
	if !s.Hold {
		send = slices.Concat(
			req.head,
			req.body,
		) // in one piece: what arrives at a closed connection can cost the answer
	}

	go func() { // a receiver may answer, and stop reading, before all is sent
		_, _ = conn.Write(send)
		if half, ok := conn.(interface{ CloseWrite() error }); ok && s.Half {
			_ = half.CloseWrite()
		}
	}()

	in := bufio.NewReader(conn)
	for len(all) < max(s.Expect.Answers, 1) {
		a, continued, err := readAnswer(in, s.Method)
		if err != nil {
			return nil, nil, fmt.Errorf("no answer: %w", err)
		}

		if continued {
			if !s.Expect.Continue {
				return nil, nil, errors.New("100 Continue came, and the body was not to be asked for")
			}
			if _, err := conn.Write(req.body); err != nil {
				return nil, nil, err
			}

			continue
		}

		all = append(all, a)
	}

	if s.Expect.Closes {
		var timeout net.Error
		if b, err := in.ReadByte(); err == nil {
			open = fmt.Errorf("the connection goes on with %q", b)
		} else if errors.As(err, &timeout) && timeout.Timeout() {
			open = errors.New("the connection stays open")
		}
	}

	return all, open, nil
}

func (r *runner) dial(ctx context.Context, t Target) (net.Conn, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, err
	}

	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}

	dialer := &net.Dialer{Timeout: r.cfg.Timeout}
	if u.Scheme == "https" {
		return (&tls.Dialer{NetDialer: dialer, Config: &tls.Config{
			NextProtos: []string{"http/1.1"}, InsecureSkipVerify: r.cfg.InsecureTLS, //nolint:gosec // asked for
		}}).DialContext(ctx, "tcp", host)
	}

	return dialer.DialContext(ctx, "tcp", host)
}

// maxAnswer bounds what is read of an answer's body.
const maxAnswer = 64 << 10

func readAnswer(in *bufio.Reader, method string) (a answer, continued bool, err error) {
	resp, err := http.ReadResponse(in, &http.Request{Method: orElse(method, http.MethodPost)})
	if err != nil {
		return answer{}, false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusContinue {
		return answer{}, true, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return answer{resp.StatusCode, resp.Header, string(body)}, false, err
}

// judge compares an answer with what is expected of it, and with what is expected of every answer.
func (r *runner) judge(s Step, t Target, a answer) error {
	if !slices.Contains(s.Expect.Status, a.status) {
		return fmt.Errorf("status %d, want %s", a.status, strings.Trim(fmt.Sprint(s.Expect.Status), "[]"))
	}
	if location := a.header.Get("Location"); location != "" {
		return errors.New("the answer redirects, and senders would repeat their credentials elsewhere")
	}
	if a.header.Get("Access-Control-Allow-Origin") != "" {
		return errors.New("the answer invites scripts of other origins")
	}
	if t.Secret != "" && strings.Contains(a.body+fmt.Sprint(a.header), t.Secret) {
		return errors.New("the answer contains the secret")
	}

	for name, want := range s.Expect.Headers {
		got := a.header.Get(name)
		n, err := strconv.Atoi(got)
		if ok := got == want || want == "*" && got != "" || want == "integer" && err == nil && n >= 1; !ok {
			return fmt.Errorf("header %s is %q, want %q", name, got, want)
		}
	}

	if same, ok := r.labels[s.Expect.Same]; ok {
		if err := equal(a, same); err != nil {
			return fmt.Errorf("differs from the answer of %q: %w", s.Expect.Same, err)
		}
	}

	if a.status == http.StatusAccepted {
		return r.judgeDelivery(s, a)
	}

	return nil
}

func (r *runner) judgeDelivery(s Step, a answer) error {
	got, err := deliveryOf(a)
	if err != nil {
		return err
	}

	switch s.Expect.Delivery {
	case "new":
		if got.Duplicate {
			return errors.New("counts as a duplicate")
		}
	case "duplicate":
		first, err := deliveryOf(r.labels[s.Expect.Of])
		if err != nil {
			return err
		}

		if !got.Duplicate || got.ID != first.ID {
			return fmt.Errorf(
				"answers delivery %q, duplicate %t; want a duplicate of %q",
				got.ID,
				got.Duplicate,
				first.ID,
			)
		}
	}

	return nil
}

type delivery struct {
	ID        string `json:"delivery_id"`
	Duplicate bool   `json:"duplicate"`
}

func deliveryOf(a answer) (d delivery, err error) {
	if err := json.Unmarshal([]byte(a.body), &d); err != nil || d.ID == "" {
		return d, fmt.Errorf("the body %.100q has no delivery_id", a.body)
	}
	return d, nil
}

func equal(a, b answer) error {
	ha, hb := a.header.Clone(), b.header.Clone()
	for _, h := range []http.Header{ha, hb} {
		h.Del("Date")
		h.Del("X-Request-Id")
	}

	switch {
	case a.status != b.status:
		return fmt.Errorf("status %d and %d", a.status, b.status)
	case a.body != b.body:
		return errors.New("the bodies")
	case fmt.Sprint(ha) != fmt.Sprint(hb):
		return errors.New("the headers")
	}

	return nil
}
