package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"

	"millwright/state/statetest"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestAcceptanceBrowser drives the dashboard of the real program in a real browser.
func TestAcceptanceBrowser(t *testing.T) {
	fromEnvironment(t, chromiumVariable)
	w := newBrowserWorld(t, "")
	b := newTab(t, w)
	b.screen(1280, 900, "light")
	for _, part := range []struct {
		name string
		run  func(*tab)
	}{
		{"the policy holds", (*tab).policyHolds},
		{"framing is refused", (*tab).framingRefused},
		{"sign in", (*tab).signIn},
		{"every page", (*tab).everyPage},
		{"story", (*tab).story},
		{"follow", (*tab).follow},
		{"follow a run in progress", (*tab).followLive},
		{"selected deliveries", (*tab).selected},
		{"search", (*tab).search},
		{"saved filters", (*tab).savedFilters},
		{"a change before the stream", (*tab).changeBeforeTheStream},
		{"hostile payload", (*tab).hostilePayload},
		{"sign out", (*tab).signOut},
	} {
		if !t.Run(part.name, func(t *testing.T) { b.within(t, func() { part.run(b) }) }) {
			return
		}
	}
}

// policyHolds shows that an inline script does not run, and that this test would notice.
func (b *tab) policyHolds() {
	b.open("/login")
	b.provoke("script-src", func() {
		eval[chromedp.Void](b, `document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = true' }))`)
	})
	b.wait(`!window.ran`)
}

// framingRefused shows that another site cannot put a page into one of its own.
func (b *tab) framingRefused() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<link rel="icon" href="data:,"><main>Click here.<iframe src=%q></iframe></main>`, b.w.url+"/login")
	}))
	defer site.Close()
	b.provoke("frame-ancestors", func() { b.leave(http.StatusOK, chromedp.Navigate(site.URL)) })
}

// hostilePayload shows that what a sender wrote is text, however it looks and however long it is.
func (b *tab) hostilePayload() {
	hook := b.w.hooks["alerts"]
	b.sends(http.StatusAccepted, b.w.url+"/webhooks/w/"+hook.UID, b.w.alerts,
		`{"<img src=x onerror=window.owned=1><script>window.owned=1</script>": "\u001b[31mred \u202eevil", "raw": "`+"\u202e\u2066"+`", "long": "`+strings.Repeat("x", 200_000)+`"}`)
	b.screen(390, 844, "light")
	b.open(b.w.factory(hook.FactoryUID, "/deliveries"))
	b.leave(http.StatusOK, chromedp.Click(chromedp.CSS(".deliveries tbody a")))
	b.says("<img src=x onerror=window.owned=1><script>window.owned=1</script>", `"raw": "\u202e\u2066"`, "did not trigger")
	b.wait(`!window.owned && !document.querySelector('main img, main script')`)
	if out := eval[string](b, sticksOut); out != "" {
		b.Errorf("sticks out: %s", out)
	}
}

// signIn signs in with the keyboard alone.
func (b *tab) signIn() {
	b.open("/runs?state=FAILED")
	b.wait(`document.activeElement.id === 'key'`)
	b.leave(http.StatusUnauthorized, chromedp.KeyEvent("mw_wrong"+kb.Enter))
	b.says("unknown, revoked or expired")
	b.scan("login-refused")
	b.wait(`document.activeElement.id === 'key'`)
	b.leave(http.StatusOK, chromedp.KeyEvent(browserKey+kb.Enter))
	b.wait(`location.pathname + location.search === '/runs?state=FAILED'`)
}

// story is what an owner does with a webhook from its creation to its end.
func (b *tab) story() {
	// A webhook: its URL and secret are shown once, and copied.
	b.open(b.w.factory(b.w.ops, "/webhooks"))
	b.leave(http.StatusOK, press("New webhook"))
	b.leave(http.StatusUnprocessableEntity, fill("#name", "Not A Name"), press("Create"))
	b.wait(`document.querySelector('#name').value === 'Not A Name' && document.querySelector('#name-error')`)
	b.scan("webhook-new-refused")
	b.do(fill("#name", "builds"))
	b.wait(`document.querySelector('#secret_name').value === 'BUILDS_SECRET'`)
	b.leave(http.StatusOK, press("Create"))
	b.says("builds is ready", "the only time the secret is shown")
	url, secret := b.copied("#url"), b.copied("#secret")
	b.scan("webhook-created")
	b.leave(http.StatusOK, press("To the webhook"))
	if page := b.text("body"); strings.Contains(page, secret) || !strings.Contains(page, "No delivery has come yet.") {
		b.Errorf("the page after the first time:\n%s", page)
	}

	// A delivery arrives while one looks.
	b.stays()
	b.sends(http.StatusAccepted, url, secret, `{"status": "failed", "build": 1}`)
	b.waitText(".deliveries tbody tr", "Accepted")
	b.waitText("#live-note", "1 new row")
	b.stayed()

	// An automation, and its filter tried with that delivery.
	b.open(b.w.factory(b.w.ops, "/automations/new"))
	b.leave(http.StatusOK, fill("#name", "triage"), tick("builds"), fill("#filter", `status: [failed]`), press("Test filter"))
	b.says("1 of the last 1", "would trigger")
	b.scan("automation-new-tested")
	b.leave(http.StatusOK, fill("#prompt", "A build failed. Find out why."), press("Create"))
	b.says("triage", "fires")
	b.leave(http.StatusOK, press("Test it"))
	b.do(press("Payload"))
	b.says(`"build": 1`)
	b.leave(http.StatusOK, chromedp.Click(chromedp.CSS(`input[name=delivery][value^=dlv]`)), press("Test"))
	b.says("Would trigger", "1 of the last 1")
	b.leave(http.StatusOK, fill("#filter", `{"status": ["passed"]}`), press("Test"))
	b.says("Would not trigger", "Payload check fails", "0 of the last 1")
	b.leave(http.StatusUnprocessableEntity, fill("#filter", `{"status": `), press("Test"))
	b.says("is not valid JSON at byte")
	b.scan("filter-refused")

	// A run starts and ends while one looks.
	b.open("/runs?factory=" + b.w.ops)
	b.stays()
	b.sends(http.StatusAccepted, url, secret, `{"status": "failed", "build": 2}`)
	b.waitText(".runs tbody tr", "SUCCEEDED")
	b.stayed()
	b.leave(http.StatusOK, press("triage from builds"))
	b.says("A build failed. Find out why.", "SUCCEEDED", "Timeline", "event-payload.json")

	// The old secret is refused from the rotation on.
	b.open(b.w.factory(b.w.ops, "/webhooks"))
	b.leave(http.StatusOK, press("builds"))
	b.do(press("Rotate secret…"))
	b.leave(http.StatusOK, press("Rotate secret"))
	b.says("The secret has been rotated")
	b.stays()
	fresh := b.copied(".once .copy")
	b.sends(http.StatusUnauthorized, url, secret, `{"status": "failed", "build": 3}`)
	b.waitText(".deliveries tbody tr", "Rejected (auth)")
	b.sends(http.StatusAccepted, url, fresh, `{"status": "passed", "build": 4}`)
	b.wait(`document.querySelectorAll('.deliveries tbody tr').length === 4`)
	b.stayed()
	b.says(fresh) // still there: the live parts change, and the rest stays

	// Disabled and enabled, then deleted for good.
	b.open(b.w.factory(b.w.ops, "/webhooks"))
	b.leave(http.StatusOK, press("builds"))
	b.do(press("Disable…"))
	b.leave(http.StatusOK, press("Disable builds"))
	b.says("Disabled. Senders get 404")
	b.sends(http.StatusNotFound, url, fresh, `{"build": 5}`)
	b.leave(http.StatusOK, press("Enable"))
	b.sends(http.StatusAccepted, url, fresh, `{"build": 6}`)
	b.wait(`document.querySelectorAll('.deliveries tbody tr').length === 5`) // nothing moves under a click
	b.do(press("Delete…"))
	b.leave(http.StatusUnprocessableEntity, fill("#delete-name", "build"), press("Delete builds"))
	b.wait(`document.querySelector('#delete-name-error')`)
	b.leave(http.StatusOK, fill("#delete-name", "builds"), press("Delete builds"))
	b.says("Deleted.", "2 deleted")
	b.sends(http.StatusNotFound, url, fresh, `{"build": 7}`)
	b.leave(http.StatusOK, chromedp.Navigate(b.w.url+b.w.factory(b.w.ops, "/automations/triage")))
	b.says("does not fire", "deleted")

	// An open part stays open when others are inserted before it.
	const row = `[...document.querySelectorAll('tbody tr')].find((r) => r.textContent.includes('%s'))`
	set := func(name string) {
		r := authorised(b.T, http.MethodPut, b.w.url+"/api/v1/secrets/"+name, browserKey, `{"value": "a value"}`)
		if resp, err := http.DefaultClient.Do(r); err != nil || resp.Body.Close() != nil || resp.StatusCode >= 300 {
			b.Fatal(resp, err)
		}
	}
	set("STORY_B")
	b.open("/secrets")
	eval[bool](b, fmt.Sprintf(row, "STORY_B")+`.querySelector('details').open = true`)
	set("STORY_A")
	b.wait(fmt.Sprintf(row, "STORY_A") + ` !== undefined`)
	if open := eval[string](b, `[...document.querySelectorAll('details[open] button')].map((d) => d.textContent).join()`); open != "Delete STORY_B" {
		b.Errorf("open: %q", open)
	}
}

// follow shows that a page of a run follows the end of the conversation for a reader who is there, and stays
// where it is for one who is not.
func (b *tab) follow() {
	const atEnd = `document.querySelector('#end').getBoundingClientRect().top < innerHeight`
	say := func(message string) {
		body := fmt.Sprintf(`{"message": %q}`, message+strings.Repeat("\n\nand so on", 60))
		r := authorised(b.T, http.MethodPost, b.w.url+"/api/v1/agent/runs/"+b.w.talked+"/followups", browserKey, body)
		if resp, err := http.DefaultClient.Do(r); err != nil || resp.Body.Close() != nil || resp.StatusCode >= 300 {
			b.Fatal(resp, err)
		}
		b.wait(fmt.Sprintf(`[...document.querySelectorAll('.message.assistant')].some((m) => m.textContent.includes(%q))`, message))
	}

	b.screen(1280, 500, "light")
	b.open("/runs/" + b.w.talked + "#end")
	b.stays()
	b.wait(atEnd)
	say("the first of many words")
	b.wait(atEnd)
	eval[chromedp.Void](b, `scrollTo(0, 0)`)
	say("the second of many words")
	b.wait(`scrollY === 0 && !(` + atEnd + `)`)
	b.stayed()
	b.screen(1280, 900, "light")
}

// startsTelling starts a run whose agent says what is written to the file, until "the end".
func (b *tab) startsTelling() (run string, tells *os.File) {
	body := `{"prompt": "Tell.", "config": {"harness": {"type": "tells"}}}`
	r := authorised(b.T, http.MethodPost, b.w.url+"/api/v1/agent/runs", browserKey, body)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()

	var made struct {
		ID string `json:"run_id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || made.ID == "" {
		b.Fatalf("status %d, %v", resp.StatusCode, err)
	}

	tells, err = os.OpenFile(b.w.pipe, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { tells.Close() })
	return made.ID, tells
}

// ended reports whether a run has ended well.
func (b *tab) ended(run string) bool {
	resp, err := http.DefaultClient.Do(authorised(b.T, http.MethodGet, b.w.url+"/api/v1/agent/runs/"+run, browserKey, ""))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()

	var got struct{ State string }
	return json.NewDecoder(resp.Body).Decode(&got) == nil && got.State == "SUCCEEDED"
}

// changeBeforeTheStream shows that a page tells of a change that came before its stream began.
func (b *tab) changeBeforeTheStream() {
	target, err := url.Parse(b.w.url)
	if err != nil {
		b.Fatal(err)
	}

	// The server behind a proxy that holds streams back.
	begin := make(chan struct{})
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of streams whose browser has gone
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/live" {
			select {
			case <-begin:
			case <-r.Context().Done():
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	defer slow.Close()
	defer slow.CloseClientConnections()

	run, tells := b.startsTelling()
	b.do(chromedp.Navigate(slow.URL + "/runs/" + run))
	if _, err := tells.WriteString("a word\nthe end\n"); err != nil {
		b.Fatal(err)
	}
	statetest.Until(b.T, "the end of the run", func() bool { return b.ended(run) })

	close(begin)
	b.wait(`[...document.querySelectorAll('.message.assistant')].some((m) => m.textContent.includes('a word'))`)
	b.open("/runs/" + run) // which leaves the proxy
}

// followLive shows that the page of a run in progress begins at the newest message, follows it, and stays
// where the reader scrolled to.
func (b *tab) followLive() {
	const atEnd = `document.querySelector('#end').getBoundingClientRect().top < innerHeight`
	run, tells := b.startsTelling()
	tell := func(text string) {
		if _, err := tells.WriteString(text + strings.Repeat("\nand so on", 60) + "\n"); err != nil {
			b.Fatal(err)
		}
		b.wait(fmt.Sprintf(`[...document.querySelectorAll('.message.assistant')].some((m) => m.textContent.includes(%q))`, text))
	}

	b.screen(1280, 500, "light")
	b.open("/runs/" + run)
	tell("the first of many words")
	b.wait(atEnd)
	b.open("/runs/" + run)
	b.wait(atEnd + ` && scrollY > 0`)
	b.stays()
	tell("the second of many words")
	b.wait(atEnd)
	eval[chromedp.Void](b, `scrollTo(0, 0)`)
	tell("the third of many words")
	b.wait(`scrollY === 0 && !(` + atEnd + `)`)
	b.stayed()
	b.screen(1280, 900, "light")
	if _, err := tells.WriteString("the end\n"); err != nil {
		b.Fatal(err)
	}
	b.waitText("h1", "SUCCEEDED")
}

// sends posts a delivery from outside of the browser.
func (b *tab) sends(status int, url, secret, body string) {
	b.Helper()
	if got := b.w.post(url, secret, body); got != status {
		b.Fatalf("%s: %d, want %d", body, got, status)
	}
}

// stays marks the page, and stayed fails when it has been loaded anew since.
func (b *tab) stays() { eval[bool](b, `window.stayed = true`) }

func (b *tab) stayed() {
	b.Helper()
	b.wait(`window.stayed`)
}

// signOut ends the session: nothing of it is left in the browser.
func (b *tab) signOut() {
	b.open("/")
	b.leave(http.StatusOK, chromedp.Click(chromedp.CSS(".who button")))
	b.leave(http.StatusOK, chromedp.NavigateBack())
	b.says("Sign in")
}
