package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"millwright/cmd/cli"
	"millwright/schema/agefile"
	"millwright/signature"
	"millwright/state"
	"millwright/state/statetest"
)

// canary is in every secret of TestSecrecy, so that all are found by the same few patterns.
const canary = "canaryMARKzq7"

// canaryForms are the canary as it is, in base64 at each alignment, and in hexadecimal. URL encoding leaves
// it as it is.
func canaryForms() [][]byte {
	forms := [][]byte{[]byte(canary), []byte(hex.EncodeToString([]byte(canary))), []byte(strings.ToUpper(hex.EncodeToString([]byte(canary))))}
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte("xxx"[:before] + canary + "xxx"))
		forms = append(forms, []byte(text[(before*8+5)/6:(before+len(canary))*8/6]))
	}
	return forms
}

// told returns the canaries in a text, with the text around the first.
func told(text []byte) string {
	for _, form := range canaryForms() {
		if i := bytes.Index(text, form); i >= 0 {
			return fmt.Sprintf("%q", text[max(0, i-80):min(len(text), i+len(form)+40)])
		}
	}
	return ""
}

// secretWorld is the real program with its output.
type secretWorld struct {
	t             *testing.T
	dir, dsn, url string
	key           string
	http          *http.Client
	said          map[string][]byte // by where
	hooks         []secretHook
}

type secretHook struct {
	factory, name, mode, secret string // mode: token, url_token, or a scheme
	uid, url                    string // {token} in place of a URL token
}

// TestSecrecy takes secrets through every way of authentication, right and wrong, and looks for them in
// everything that comes out: logs, metrics, traces, answers of the API and of the ingress, pages, output of
// commands, and the database.
func TestSecrecy(t *testing.T) {
	for name, leak := range map[string]string{
		"plain": "x" + canary, "hex": hex.EncodeToString([]byte("x" + canary)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(canary))),
		"base64 0": base64.StdEncoding.EncodeToString([]byte(canary + "yy")), "base64 1": base64.URLEncoding.EncodeToString([]byte("x" + canary + "y")), "base64 2": base64.StdEncoding.EncodeToString([]byte("xx" + canary)),
		"url": url.QueryEscape("a=" + canary + "&"),
	} {
		if told([]byte("before "+leak+" after")) == "" {
			t.Fatalf("%s: a leak would not be seen", name)
		}
	}
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		w := newSecretWorld(t, dsn)
		server, log := w.start()
		w.define()
		w.deliver()
		w.ask()
		w.look()
		w.command()
		if path, ok := state.SQLitePath(dsn); ok {
			w.files(filepath.Dir(path), "while it runs")
		}
		if err := server.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := server.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		w.said["log"] = log.Bytes()
		if path, ok := state.SQLitePath(dsn); ok {
			w.files(filepath.Dir(path), "after it")
		} else {
			w.dump()
		}
		total := 0
		for where, text := range w.said {
			total += len(text)
			if leak := told(text); leak != "" {
				t.Errorf("%s tells a secret: %s", where, leak)
			}
		}
		if text := string(w.said["log"]); !strings.Contains(text, `"outcome":"applied"`) {
			t.Errorf("the log is not that of a server that says all:\n%s", text)
		}
		t.Logf("%d webhooks, %d places, %d bytes", len(w.hooks), len(w.said), total)
	})
}

const (
	secretKey     = "mw_admin-" + canary + "-of-enough-characters"
	hooksOfOne    = 20 // a factory has no more
	secretPayload = `{"action":"opened","a":["b"]}`
)

// newSecretWorld writes a webhook of every scheme and mode, as many factories as that takes.
func newSecretWorld(t *testing.T, dsn string) *secretWorld {
	t.Helper()
	port, err := statetest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &secretWorld{t: t, dir: t.TempDir(), dsn: dsn, url: "http://127.0.0.1:" + port, key: secretKey, http: &http.Client{Jar: jar, Timeout: time.Minute}, said: map[string][]byte{}}
	modes := []string{"token", "url_token", signature.CustomName}
	for _, s := range signature.Schemes() {
		modes = append(modes, s.Name())
	}
	receiver := newReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-receiver-key=secret")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	t.Cleanup(func() {
		receiver.mu.Lock()
		defer receiver.mu.Unlock()
		if leak := told(receiver.raw.Bytes()); leak != "" || receiver.raw.Len() == 0 {
			t.Errorf("%d bytes of traces tell a secret: %s", receiver.raw.Len(), leak)
		}
	})
	settings := "listen: 127.0.0.1:" + port + "\nworkers: 4\nlimits: {deliveriesPerMinute: -1}\notlpEndpoint: " + receiver.URL +
		"\nharnesses:\n  env: {command: [sh, -c, 'env; cat; echo error: $TOKEN $OWN >&2; test $OWN'], sameUser: true}\nfactories:\n"
	for i, mode := range modes {
		factory, name := fmt.Sprintf("f%d", i/hooksOfOne), strings.ReplaceAll(mode, "_", "-")
		if i%hooksOfOne == 0 {
			settings += "  - name: " + factory + "\n    source: {dir: " + factory + "}\n"
		}
		h := secretHook{factory: factory, name: name, mode: mode, secret: secretFor(t, mode)}
		text := "secretName: " + h.secretName() + "\n"
		switch mode {
		case "token", "url_token":
			text = "secretName: " + h.secretName() + "\nauthMode: " + mode + "\n"
		case signature.CustomName:
			text += "authMode: signature\nsignatureScheme: custom\ncustomScheme: {alg: hmac-sha256, header: X-Acme, encoding: hex, template: '{body}'}\n"
		default:
			text += "authMode: signature\nsignatureScheme: " + mode + "\n"
		}
		if err := cli.WriteNew(filepath.Join(w.dir, factory, "webhooks", name+".yaml"), []byte(text)); err != nil {
			t.Fatal(err)
		}
		w.hooks = append(w.hooks, h)
	}
	if err := cli.WriteNew(filepath.Join(w.dir, "millwright.yaml"), []byte(settings)); err != nil {
		t.Fatal(err)
	}
	return w
}

func (h secretHook) secretName() string {
	if h.mode == "token" {
		return "TOKEN" // which a harness is given, too
	}
	return "S_" + strings.ToUpper(h.mode)
}

// secretFor is a secret with the canary in the form that the mode takes.
func secretFor(t *testing.T, mode string) string {
	t.Helper()
	raw := []byte(canary + "~" + mode + strings.Repeat("~", 32))[:32]
	plain := "s-" + mode + "-" + canary
	s, ok := signature.Lookup(mode)
	if !ok {
		return plain
	}
	for _, secret := range []string{plain, hex.EncodeToString(raw), base64.StdEncoding.EncodeToString(raw), "whsec_" + base64.StdEncoding.EncodeToString(raw)} {
		v, err := s.Verifier([]byte(secret))
		if err != nil {
			continue
		}
		m := signature.Message{Method: "POST", URL: "https://example.com/", Body: []byte(secretPayload), Header: http.Header{}}
		headers, err := s.Sign([]byte(secret), m, "id-1", time.Now())
		if err != nil {
			continue
		}
		for name, value := range headers {
			http.Header(m.Header).Set(name, value)
		}
		if _, err := v.Verify(m, time.Now()); err == nil {
			return secret
		}
	}
	return plain // a public key is none; every request to the webhook is refused
}

// start starts the program and waits until it answers.
func (w *secretWorld) start() (*exec.Cmd, *lockedLog) {
	w.t.Helper()
	master := base64.StdEncoding.EncodeToString([]byte("0" + canary + "0123456789abcdefghij")[:32])
	p := exec.Command(os.Args[0], "serve", "--config", filepath.Join(w.dir, "millwright.yaml"), "--state", w.dsn, "--log-level", "debug", "--log-format", "json")
	p.Env = append(os.Environ(), runMain+"=1", "MILLWRIGHT_MASTER_KEY="+master, "MILLWRIGHT_BOOTSTRAP_KEY="+w.key, "TMPDIR="+w.dir, "MILLWRIGHT_TEST_CANARY="+canary)
	p.Dir = w.dir
	log := &lockedLog{}
	p.Stdout, p.Stderr = log, log
	if err := p.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		p.Process.Kill()
		p.Wait()
		if w.t.Failed() {
			w.t.Logf("the server said:\n%.4000s", log.Bytes())
		}
	})
	statetest.Until(w.t, "the server answers", func() bool {
		resp, err := w.http.Get(w.url + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return p, log
}

// lockedLog is what a process said.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// Bytes are what was said up to now.
func (l *lockedLog) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}

// send sends a request and keeps the answer, headers and all.
func (w *secretWorld) send(where, method, address, body string, header ...string) (status int, answer []byte) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), time.Minute)
	if strings.HasSuffix(address, "/events") {
		ctx, stop = context.WithTimeout(w.t.Context(), time.Second/2)
	}
	defer stop()
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := w.http.Do(req)
	if err != nil {
		if ctx.Err() == nil {
			w.t.Errorf("%s: %v", where, err)
		}
		return 0, nil
	}
	defer resp.Body.Close()
	answer, _ = io.ReadAll(resp.Body) // a stream ends with its time
	var head bytes.Buffer
	resp.Header.Del("Set-Cookie") // a session, which is the browser's own
	_ = resp.Header.Write(&head)
	w.said[where] = slices.Concat(w.said[where], head.Bytes(), answer)
	return resp.StatusCode, answer
}

// api calls the API as the administrator.
func (w *secretWorld) api(want int, method, path, body string, out any) {
	w.t.Helper()
	status, answer := w.send("API "+method+" "+path, method, w.url+"/api/v1"+path, body, "Authorization", "Bearer "+w.key, "Content-Type", "application/json")
	if status != want {
		w.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			w.t.Fatal(err)
		}
	}
}

// define gives every secret its value and applies the definitions; before that, mistakes that name secrets.
func (w *secretWorld) define() {
	w.api(400, "PUT", "/secrets/no%20name", `{"value": "`+canary+`"}`, nil)
	w.api(400, "PUT", "/secrets/S_WRONG", `{"value": ["`+canary+`"]}`, nil)
	w.api(400, "PUT", "/secrets/S_WRONG", `{"value": "`+canary, nil)
	w.api(200, "PUT", "/secrets/S_URL_TOKEN", `{"value": "not/safe?`+canary+`"}`, nil) // its webhook is refused
	var list struct {
		Factories []struct{ UID, Name, Recipient string } `json:"factories"`
	}
	statetest.Until(w.t, "the server knows its factories", func() bool {
		w.api(200, "GET", "/factory", "", &list)
		return len(list.Factories) == (len(w.hooks)+hooksOfOne-1)/hooksOfOne
	})
	w.sync(list.Factories[0].UID)
	for i, h := range w.hooks {
		body, err := json.Marshal(map[string]string{"value": h.secret})
		if err != nil {
			w.t.Fatal(err)
		}
		w.api(200, "PUT", "/secrets/"+w.hooks[i].secretName(), string(body), nil)
	}
	for _, f := range list.Factories {
		want := 0
		for _, h := range w.hooks {
			if h.factory == f.Name {
				want++
			}
		}
		var hooks struct {
			Webhooks []struct {
				UID, Name  string
				IngressURL string `json:"ingress_url"`
			}
		}
		statetest.Until(w.t, f.Name+" is applied", func() bool {
			w.sync(f.UID)
			w.api(200, "GET", "/factory/"+f.UID+"/webhooks?limit=500", "", &hooks)
			return len(hooks.Webhooks) == want
		})
		for _, got := range hooks.Webhooks {
			for i, h := range w.hooks {
				if h.factory == f.Name && h.name == got.Name {
					w.hooks[i].uid, w.hooks[i].url, w.hooks[i].factory = got.UID, got.IngressURL, f.UID
				}
			}
		}
	}
	// An automation whose harness has secrets of the team and of the definition among its variables, and prints all
	// of them.
	first := list.Factories[slices.IndexFunc(list.Factories, func(f struct{ UID, Name, Recipient string }) bool {
		return f.UID == w.hooks[0].factory
	})]
	sealed, err := agefile.Seal(first.Recipient, first.UID, "OWN", []byte("own-"+canary))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cli.WriteNew(filepath.Join(w.dir, "f0", "secrets", "OWN.age"), sealed); err != nil {
		w.t.Fatal(err)
	}
	err = cli.WriteNew(filepath.Join(w.dir, "f0", "automations", "leaky", "automation.md"), []byte("---\nharness: {type: env}\nsecrets: [TOKEN, OWN]\ntriggers:\n  - provider: webhook\n    event: received\n    filter: {webhook_ids: ["+
		w.hooks[0].uid+"]}\n---\nPrint all.\n"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.sync(w.hooks[0].factory)
}

func (w *secretWorld) sync(factory string) {
	w.t.Helper()
	w.send("API sync", "POST", w.url+"/api/v1/factory/"+factory+"/sync", `{}`, "Authorization", "Bearer "+w.key, "Content-Type", "application/json")
}

// deliver sends to every webhook what is right, and what is wrong in several ways, each with credentials of
// other kinds that a sender may have put there by mistake.
func (w *secretWorld) deliver() {
	accepted := 0
	for _, h := range w.hooks {
		if h.uid == "" {
			w.t.Fatalf("webhook %s was not applied", h.name)
		}
		address := strings.Replace(h.url, "{token}", h.secret, 1)
		right := []string{"Content-Type", "application/json", "Cookie", "session=" + canary, "X-Api-Key", canary}
		switch s, known := signature.Lookup(h.mode); {
		case h.mode == "token":
			right = append(right, "Authorization", "Bearer "+h.secret)
		case h.mode == signature.CustomName:
			s, err := signature.Custom(signature.Descriptor{Alg: signature.AlgHMACSHA256, Header: "X-Acme", Encoding: signature.EncodingHex, Template: "{body}"})
			if err != nil {
				w.t.Fatal(err)
			}
			right = append(right, w.signed(s, h, address)...)
		case known:
			right = append(right, w.signed(s, h, address)...)
		}
		if status, _ := w.send("ingress "+h.name, "POST", address, secretPayload, right...); status == http.StatusAccepted || status == http.StatusOK {
			accepted++
		}
		wrong := append(slices.Clone(right), "Authorization", "Bearer wrong-"+canary, "X-Service-Delivery-Id", "1")
		switch h.mode {
		case "token", "url_token":
		default:
			for i := 0; i+1 < len(right); i += 2 {
				name := strings.ToLower(right[i])
				if strings.Contains(name, "sign") && !strings.Contains(name, "time") || strings.Contains(name, "token") { // a time that is none is shown to the owner
					wrong = append(wrong, right[i], "wrong-"+canary)
				}
			}
			wrong = wrong[len(right):]
		}
		for _, to := range []string{strings.Replace(h.url, "{token}", "wrong-"+canary, 1), address + "/" + canary, address + "?key=" + canary} {
			status, _ := w.send("ingress "+h.name, "POST", to, secretPayload, wrong...)
			if status == http.StatusAccepted && !(h.mode == "url_token" && strings.Contains(to, "?")) {
				w.t.Errorf("%s: a wrong credential was accepted", h.name)
			}
		}
		w.send("ingress "+h.name, "POST", address, "{"+canary, right...)
		w.send("ingress "+h.name, "GET", address, "")
	}
	if accepted < 60 {
		w.t.Errorf("only %d webhooks accepted what was right", accepted)
	}
	// Errors of the HTTP server itself.
	for _, text := range []string{
		"POST /webhooks/w/" + w.hooks[1].uid + "/" + canary + " HTTP/1.1\r\nBad Header: " + canary + "\r\n\r\n",
		"POST /webhooks/w/" + w.hooks[1].uid + "/" + canary + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + canary + "\r\nContent-Length: x" + canary + "\r\n\r\n",
		"POST /webhooks/w/" + w.hooks[0].uid + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.hooks[0].secret + "\r\nContent-Length: 10\r\n\r\n{", // broken off
		canary + "\r\n\r\n",
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			w.t.Fatal(err)
		}
		_, _ = io.WriteString(c, text)
		_ = c.(*net.TCPConn).CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(statetest.Patience))
		answer, _ := io.ReadAll(c)
		c.Close()
		w.said["ingress, raw"] = append(w.said["ingress, raw"], answer...)
	}
	statetest.Drain(w.t, "every run has ended", func() int {
		var list struct{ Runs []struct{ State string } }
		w.api(200, "GET", "/agent/runs?limit=500&state=QUEUED&state=CLAIMED&state=INPROGRESS", "", &list)
		return len(list.Runs)
	})
}

// signed are the headers that the provider would send. A scheme whose key is public signs nothing here.
func (w *secretWorld) signed(s *signature.Scheme, h secretHook, address string) (headers []string) {
	all, err := s.Sign([]byte(h.secret), signature.Message{Method: "POST", URL: address, Body: []byte(secretPayload), Header: http.Header{"Content-Type": {"application/json"}}}, "id-1", time.Now())
	if err != nil {
		return []string{"X-Signature", canary}
	}
	for name, value := range all {
		headers = append(headers, name, value)
	}
	return headers
}

// ask reads every resource of the API, with and without a key that is right.
func (w *secretWorld) ask() {
	doc, err := openapi3.NewLoader().LoadFromFile(filepath.FromSlash(documentFile))
	if err != nil {
		w.t.Fatal(err)
	}
	w.send("API, wrong key", "GET", w.url+"/api/v1/factory", "", "Authorization", "Bearer mw_wrong-"+canary)
	var runs struct {
		Runs []struct {
			ID           string `json:"run_id"`
			Conversation string `json:"conversation_id"`
			State        string
		}
	}
	w.api(200, "GET", "/agent/runs?limit=500", "", &runs)
	for _, r := range runs.Runs {
		if r.State != "SUCCEEDED" { // such as that of leaky without its secrets
			w.t.Errorf("run %s is %s", r.ID, r.State)
		}
	}
	if len(runs.Runs) == 0 {
		w.t.Fatal("no run")
	}
	for _, h := range w.hooks {
		var list struct {
			Deliveries []struct {
				ID string `json:"delivery_id"`
			}
		}
		base := "/factory/" + h.factory + "/webhooks/" + h.uid
		w.api(200, "GET", base+"/deliveries?limit=500", "", &list)
		if len(list.Deliveries) == 0 {
			w.t.Errorf("%s: an empty log", h.name)
			continue
		}
		values := map[string]string{
			"uid": h.factory, "webhook_uid": h.uid, "delivery_id": list.Deliveries[len(list.Deliveries)-1].ID, "runId": runs.Runs[0].ID,
			"id": runs.Runs[0].Conversation, "fileName": "event-payload.json", "path": "webhooks/" + h.name + ".yaml",
		}
		for path, item := range doc.Paths.Map() {
			if item.Get == nil || h.name != "token" && (!strings.Contains(path, "{webhook_uid}") || strings.HasSuffix(path, "/events")) {
				continue
			}
			for name, value := range values {
				path = strings.ReplaceAll(path, "{"+name+"}", value)
			}
			w.send("API "+path, "GET", w.url+path, "", "Authorization", "Bearer "+w.key)
		}
	}
	w.send("API plan", "POST", w.url+"/api/v1/factory/"+w.hooks[0].factory+"/plan", "", "Authorization", "Bearer "+w.key)
	if status, metrics := w.send("metrics", "GET", w.url+"/metrics", "", "Authorization", "Bearer "+w.key); status != http.StatusOK || !bytes.Contains(metrics, []byte("millwright_")) {
		w.t.Errorf("metrics: %d", status)
	}
}

var (
	csrfOfPage  = regexp.MustCompile(`name="csrf" value="([0-9a-f]+)"`)
	linkOfPage  = regexp.MustCompile(`href="(/[^"]*)"`)
	linksToSkip = regexp.MustCompile(`^/(assets|logout|api/)|\.zip$`)
)

// look signs in to the dashboard, first with a wrong key, and follows its links.
func (w *secretWorld) look() {
	_, page := w.send("page /login", "GET", w.url+"/login", "")
	for _, key := range []string{"mw_wrong-" + canary, w.key} {
		m := csrfOfPage.FindSubmatch(page)
		if m == nil {
			w.t.Fatalf("no page to sign in: %s", page)
		}
		form := url.Values{"csrf": {string(m[1])}, "key": {key}}
		_, page = w.send("page /login", "POST", w.url+"/login", form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Origin", w.url)
	}
	seen, todo := map[string]bool{"/": true}, []string{"/"}
	for len(todo) > 0 && len(seen) < 150 {
		path := todo[0]
		todo = todo[1:]
		_, page := w.send("page "+path, "GET", w.url+path, "")
		for _, m := range linkOfPage.FindAllSubmatch(page, -1) {
			next := strings.ReplaceAll(string(m[1]), "&amp;", "&")
			if !seen[next] && !linksToSkip.MatchString(next) {
				seen[next], todo = true, append(todo, next)
			}
		}
	}
	if len(seen) < 40 {
		w.t.Errorf("only %d pages", len(seen))
	}
}

// command runs the commands that show what the server has.
func (w *secretWorld) command() {
	for _, args := range [][]string{
		{"webhook", "list"},
		{"webhook", "show", "url-token", "-o", "json"},
		{"webhook", "deliveries", "token", "-o", "yaml"},
		{"secret", "list"},
		{"run", "list", "-o", "json"},
		{"key", "list"},
		{"status", "-o", "json"},
		{"webhook", "show", "no-such-hook"},
	} {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), runMain+"=1", "MILLWRIGHT_SERVER="+w.url, "MILLWRIGHT_API_KEY="+w.key)
		out, _ := cmd.CombinedOutput()
		w.said["millwright "+strings.Join(args, " ")] = out
	}
	wrong := exec.Command(os.Args[0], "status")
	wrong.Env = append(os.Environ(), runMain+"=1", "MILLWRIGHT_SERVER="+w.url, "MILLWRIGHT_API_KEY=mw_wrong-"+canary)
	out, _ := wrong.CombinedOutput()
	w.said["millwright status, wrong key"] = out
}

// files reads every file in the directory of a SQLite state.
func (w *secretWorld) files(dir, when string) {
	w.t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		w.said[filepath.Base(path)+" "+when] = text
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// dump reads every table of a PostgreSQL state as text, in which bytes are hexadecimal.
func (w *secretWorld) dump() {
	w.t.Helper()
	db, err := sql.Open("pgx", w.dsn)
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	texts := func(query string) (all []string) {
		rows, err := db.Query(query)
		if err != nil {
			w.t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				w.t.Fatal(err)
			}
			all = append(all, text)
		}
		return all
	}
	tables := texts(`SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`)
	for _, table := range tables {
		w.said["table "+table] = []byte(strings.Join(texts(`SELECT t::text FROM "`+table+`" AS t`), "\n"))
	}
	if len(tables) < 10 || !strings.Contains(string(w.said["table secrets"]), "TOKEN") {
		w.t.Errorf("%d tables", len(tables))
	}
}
