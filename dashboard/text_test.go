package dashboard_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"millwright/dashboard"
	"millwright/schema"
	"millwright/signature"
	"millwright/state"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain <b>\n\ttext": "plain <b>\n\ttext", "": "", "naïve 日本 🙂": "naïve 日本 🙂",
		"a\x00b": `a\x00b`, "\x1b[1m": `\x1b[1m`, "a\rb": `a\rb`, "\x7f": `\x7f`, "\u0085": `\u0085`, "\u202e": `\u202e`, "\u2066x\u2069": `\u2066x\u2069`,
		"\ufeff": `\ufeff`, "\u200b": `\u200b`, "\u00ad": `\u00ad`, "\u2028": `\u2028`, "\xff\xc0": `\xff\xc0`, "\xe2\x80": `\xe2\x80`, "👩\u200d🚀": "👩\u200d🚀", "می\u200cخواهم": "می\u200cخواهم", "\U000e0041": `\U000e0041`,
	} {
		if got := string(dashboard.Visible([]byte(in))); got != want {
			t.Errorf("visible(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\u202eb\x1b\xff</textarea><script>")
	f.Fuzz(func(t *testing.T, in string) {
		out := string(dashboard.Visible([]byte(in)))
		if !utf8.ValidString(out) || string(dashboard.Visible([]byte(out))) != out {
			t.Errorf("visible(%q) = %q", in, out)
		}
		if strings.Count(out, "<") != strings.Count(in, "<") {
			t.Errorf("visible(%q) = %q makes markup", in, out)
		}
		// A textarea gives back exactly what was typed.
		field := string(dashboard.Editable(in))
		if strings.ContainsAny(field, "<>\"") {
			t.Errorf("editable(%q) = %q", in, field)
		}
		if got := string(dashboard.Visible([]byte(field))); got != field {
			t.Errorf("editable(%q) is changed: %q", in, got)
		}
		if utf8.ValidString(in) && !strings.ContainsRune(in, 0) && !strings.ContainsFunc(in, c1) {
			if got := html.UnescapeString(strings.TrimPrefix(field, "\n")); got != in {
				t.Errorf("editable(%q) is read as %q", in, got)
			}
		}
	})
}

// c1 says whether HTML reads a reference to a character as another one.
func c1(r rune) bool { return r >= 0x80 && r < 0xa0 || r == '\r' }

func TestPretty(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":[1,{"b":"[{"}],"c":1e400}`: "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"[{\"\n    }\n  ],\n  \"c\": 1e400\n}",
		`"a \" [ b"`:                     `"a \" [ b"`,
		`12345678901234567890.50`:        `12345678901234567890.50`,
	} {
		if got := dashboard.Pretty([]byte(in)); got != want {
			t.Errorf("pretty(%s) = %s", in, got)
		}
	}
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	if got := dashboard.Pretty([]byte(deep)); got != deep {
		t.Errorf("a deep payload grew from %d to %d bytes", len(deep), len(got))
	}
	wide := "[" + strings.Repeat(strings.Repeat("[", 30)+strings.Repeat("]", 30)+",", 4000) + "1]"
	if got := dashboard.Pretty([]byte(wide)); len(got) > 600<<10 {
		t.Errorf("a payload of %d bytes is shown in %d", len(wide), len(got))
	}

	low := strings.Repeat("[", 32) + strings.Repeat("0,", 130_000) + "0" + strings.Repeat("]", 32)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	dashboard.Pretty([]byte(low))
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(4*len(low)) {
		t.Errorf("a payload of %d bytes takes %d", len(low), took)
	}
}

func TestClip(t *testing.T) {
	if got := dashboard.Clip(5, "häßlich 🙂"); got != "häß… (14 B in all)" {
		t.Errorf("clip = %q", got)
	}
	if got := dashboard.Line("a\r\nb\nc" + strings.Repeat("x", 1000)); strings.ContainsAny(got, "\r\n") || len(got) > 400 {
		t.Errorf("line = %q", got)
	}
}

func TestSince(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		3 * time.Second: "just now", -3 * time.Second: "just now", 42 * time.Second: "42 s ago", 90 * time.Second: "1 min ago", 5 * time.Hour: "5 h ago", 49 * time.Hour: "2 d ago", -49 * time.Hour: "in 2 d", 400 * 24 * time.Hour: "2 Jan 2026",
	} {
		if got := dashboard.Since(d, at); got != want {
			t.Errorf("since(%s) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]int64{0: 2, 1: 2, 3: 4, 4: 4, 5: 10, 11: 20, 99: 100, 101: 200, 100_000: 100_000} {
		if got := dashboard.Nice(n); got != want {
			t.Errorf("nice(%d) = %d, want %d", n, got, want)
		}
	}
}

// TestResend has a shell run the commands with programs that show their arguments and input.
func TestResend(t *testing.T) {
	dir := t.TempDir()
	for program, show := range map[string]string{
		"curl":       "#!/bin/sh\nprintf '%s\\n' \"$@\"\n",
		"millwright": "#!/bin/sh\nprintf '%s\\n' \"$@\"\ncat\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, program), []byte(show), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(line string) string {
		t.Helper()
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "KEY=s3cret", "SIGNATURE=sig", "DELIVERY_ID=1234567890123456789", "TIMESTAMP=7"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
		return string(out)
	}
	const body = `{"a":"it's $(touch own) ` + "`touch own`" + ` \\ !!"}`
	const address = "https://x.example/webhooks/w/wh_1"
	known := map[string]string{"X-Github-Event": "push'$(touch own)", "X-Gitlab-Event": "a\\x00", "Content-Type": "text/json; charset=utf-8", "User-Agent": "x"}
	const sentAs = "--content-type\ntext/json; charset=utf-8"
	const kind = "-H\nContent-Type: text/json; charset=utf-8\n"

	for _, c := range []struct {
		spec       schema.Webhook
		variables  string
		curl, send string // with {id} for the header of the delivery's ID; send without the body
	}{
		{schema.Webhook{AuthMode: schema.AuthToken}, "[KEY]", "-i\n" + address + "\n-H\nAuthorization: Bearer s3cret\n" + kind + "-H\n{id}", "token\n--id-header\n{name}\n" + sentAs},
		{schema.Webhook{AuthMode: schema.AuthURLToken}, "[KEY]", "-i\n" + address + "/s3cret\n" + kind + "-H\n{id}", "url_token\n--id-header\n{name}\n" + sentAs},
		{
			schema.Webhook{AuthMode: schema.AuthSignature, SignatureScheme: "github"},
			"[SIGNATURE DELIVERY_ID]",
			"-i\n" + address + "\n-H\nX-Hub-Signature-256: sig\n" + kind + "-H\nX-Github-Event: push'$(touch own)\n-H\n{id}",
			"github\n{given}" + sentAs + "\n--header\nX-Github-Event: push'$(touch own)",
		},
		{
			schema.Webhook{AuthMode: schema.AuthSignature, SignatureScheme: "gitlab"},
			"[KEY]",
			"-i\n" + address + "\n-H\nX-Gitlab-Token: s3cret\n" + kind + "-H\n{id}", "",
		},
		{
			schema.Webhook{AuthMode: schema.AuthSignature, SignatureScheme: "custom", CustomScheme: &signature.Descriptor{Header: "X-Sig", Timestamp: &signature.Timestamp{Header: "X-At"}}},
			"[SIGNATURE TIMESTAMP DELIVERY_ID]", "-i\n" + address + "\n-H\nX-Sig: sig\n-H\nX-At: 7\n" + kind + "-H\n{id}", "",
		},
	} {
		c.spec.SecretName = "KEY"
		for _, header := range []string{"", "X-Event", "X-`touch${IFS}own`", "X-$(touch own)", "X-'own'", `X-"own"`} {
			c.spec.DeliveryIDHeader = header
			hook := state.Webhook{UID: "wh_1", Spec: c.spec}
			got := dashboard.ResendOf("https://x.example", hook, known, []byte(body))
			name := cmp.Or(header, map[string]string{"github": "X-GitHub-Delivery", "gitlab": "webhook-id"}[c.spec.SignatureScheme], "X-Service-Delivery-Id")
			want := regexp.QuoteMeta(strings.ReplaceAll(c.curl, "{id}", name+": ID")+"\n--data-binary\n"+body+"\n") + "$"
			want = strings.Replace(want, ": ID", ": [0-9]{19}", 1)
			if out := run(got.Curl); !regexp.MustCompile("^"+want).MatchString(out) || fmt.Sprint(got.Variables) != c.variables {
				t.Errorf("%+v: %s\nreads %s, and runs with %s", c.spec, got.Curl, got.Variables, out)
			}
			if c.send != "" {
				given := ""
				if header != "" {
					given = "--id-header\n" + header + "\n"
				}
				want := "webhook\nsend\n--scheme\n" + strings.NewReplacer("{name}", name, "{given}", given).Replace(c.send) + "\n"
				scheme, _, _ := strings.Cut(c.send, "\n")
				want = strings.Replace(want, scheme+"\n", scheme+"\n--secret-file\nSECRET\n", 1)
				if out := run(got.Send); !strings.HasPrefix(out, want) || !strings.HasSuffix(out, body) {
					t.Errorf("%+v: %s\nruns with %s, want %s", c.spec, got.Send, out, want)
				}
			}
			if strings.Contains(got.Curl+got.Send, "s3cret") {
				t.Errorf("%+v: a secret in %+v", c.spec, got)
			}
		}
		for _, unfit := range []string{strings.Repeat(" ", 20_000), "\"\xff\"", "\"\u202e\"", "{}\r\n"} {
			got := dashboard.ResendOf("https://x.example", state.Webhook{UID: "wh_1", Spec: c.spec}, nil, []byte(unfit))
			if !got.File || !strings.Contains(got.Curl, "event-payload.json") || len(got.Curl+got.Send) > 2000 || c.send != "" && !strings.Contains(got.Send, "event-payload.json") {
				t.Errorf("a payload that does not fit into a line: %+v", got)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "own")); err == nil {
		t.Error("a command of the sender's was run")
	}
}

// TestIDHeaders names the headers of each scheme that the ingress takes an ID from, in its order, and each once.
func TestIDHeaders(t *testing.T) {
	for _, s := range signature.Schemes() {
		w := schema.Webhook{AuthMode: schema.AuthSignature, SignatureScheme: s.Name()}
		want := append(s.DeliveryHeaders(), "X-Service-Delivery-Id")
		if got := dashboard.IDHeaders(w); !slices.EqualFunc(got, want, strings.EqualFold) {
			t.Errorf("%s: %v, want %v", s.Name(), got, want)
		}

		w.DeliveryIDHeader = strings.ToLower(want[0])
		if got := dashboard.IDHeaders(w); !slices.EqualFunc(got, want, strings.EqualFold) {
			t.Errorf("%s, with the first named in the file: %v, want %v", s.Name(), got, want)
		}
	}

	w := schema.Webhook{AuthMode: schema.AuthToken, DeliveryIDHeader: "X-Event"}
	if got := dashboard.IDHeaders(w); !slices.Equal(got, []string{"X-Event", "X-Service-Delivery-Id"}) {
		t.Errorf("a token: %v", got)
	}
}

func TestCommitPage(t *testing.T) {
	const id = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	for address, want := range map[string]string{
		"https://github.com/acme/factory.git":              "https://github.com/acme/factory/commit/" + id,
		"https://user:hunter2@gitlab.com/a/group/factory/": "https://gitlab.com/a/group/factory/-/commit/" + id,
		"git@github.com:acme/factory.git":                  "https://github.com/acme/factory/commit/" + id,
		"ssh://git@codeberg.org:22/acme/factory":           "https://codeberg.org/acme/factory/commit/" + id,
		"https://bitbucket.org/acme/f%20x.git":             "https://bitbucket.org/acme/f%20x/commits/" + id,
		"https://git.example.com/acme/factory.git":         "", "file:///srv/factory": "", "javascript://github.com/%0aalert(1)": "", "": "",
	} {
		if got := dashboard.CommitPage(state.Source{Kind: "git", URL: address}, id); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	if got := dashboard.CommitPage(state.Source{Kind: "dir", Path: "github.com"}, id); got != "" {
		t.Errorf("a directory: %q", got)
	}
}

func TestFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f dashboard.Figures
		calls, cost := 0, time.Millisecond
		var fails error
		ask := func() *int {
			v, _ := dashboard.Counted(&f, time.Now(), func(error) {}, "x", func(context.Context) (int, error) {
				time.Sleep(cost)
				calls++
				return calls, fails
			})
			return v
		}
		// Cheap counts are made each time.
		for want := 1; want <= 3; want++ {
			if v := ask(); v == nil || *v != want {
				t.Fatalf("asked %d times: %v", want, v)
			}
		}
		// Expensive counts are made behind the page, which shows the last ones.
		cost = time.Second
		began := time.Now()
		if v := ask(); v == nil || *v != 3 || time.Since(began) > 100*time.Millisecond {
			t.Errorf("while it is counted: %v after %s", v, time.Since(began))
		}
		time.Sleep(2 * time.Second)
		if v := ask(); *v != 4 {
			t.Errorf("afterwards: %d", *v)
		}
		for range 10 {
			ask()
		}
		time.Sleep(5 * time.Second)
		if ask(); calls != 4 {
			t.Errorf("counted %d times, although it is dear", calls)
		}
		time.Sleep(30 * time.Second)
		ask()
		time.Sleep(2 * time.Second)
		if v := ask(); *v != 5 {
			t.Errorf("much later: %d", *v)
		}
		// A failure keeps what there was.
		fails, cost = errors.New("gone"), 0
		time.Sleep(time.Minute)
		if v := ask(); v == nil || *v != 5 {
			t.Errorf("after a failure: %v", v)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var f dashboard.Figures
		v, _ := dashboard.Counted(&f, time.Now(), func(error) {}, "x", func(context.Context) (int, error) {
			time.Sleep(time.Second)
			return 1, nil
		})
		if v != nil {
			t.Errorf("before the first count: %d", *v)
		}
		time.Sleep(2 * time.Second) // until it has ended
	})
}
