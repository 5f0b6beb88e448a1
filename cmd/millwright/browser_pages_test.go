package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// axeVariable names the variable with the path of axe-core, which .ci/chromium sets.
const axeVariable = "MILLWRIGHT_TEST_AXE"

var (
	screenshots = flag.String("screenshots", "", "write the screenshots of the documents to this `directory`")
	only        = flag.String("pages", "", "look only at pages whose names match this `pattern`")
	look        = flag.String("look", "", "write a screenshot of every page, in every form, to this `directory`")
)

// pages are the addresses of all pages of a world, by the names of their screenshots.
func (w *browserWorld) pages() map[string]string {
	acme, ops, mobile := w.factory(w.acme), w.factory(w.ops), w.factory(w.mobile)
	ci := acme + "/webhooks/" + w.hooks["ci"].UID
	return map[string]string{
		"overview": "/", "factories": "/factories", "factory": acme, "factory-refused": mobile, "factory-held": ops, "plan": mobile + "/plan",
		"history": acme + "/history", "history-held": ops + "/history", "revision": ops + "/revisions/r4",
		"deliveries": acme + "/deliveries", "deliveries-all": "/deliveries", "overview-range": "/?since=2026-01-01T00:00&until=x", "deliveries-none": acme + "/deliveries?outcome=rejected_too_large&from=x",
		"delivery": ci + "/deliveries/" + w.delivery.UID, "delivery-refused": ci + "/deliveries/" + w.refused.UID,
		"webhooks": acme + "/webhooks", "webhooks-held": ops + "/webhooks", "webhook": ci, "webhook-held": ops + "/webhooks/" + w.hooks["alerts"].UID, "webhook-long": ops + "/webhooks/" + w.hooks[longName].UID,
		"webhook-pending": ops + "/webhooks/" + w.hooks["pages"].UID, "webhook-new": ops + "/webhooks/new", "webhook-new-elsewhere": acme + "/webhooks/new",
		"automations": acme + "/automations", "automation": acme + "/automations/triage-failed-build", "automation-deaf": mobile + "/automations/crash", "automation-new": ops + "/automations/new", "automation-long": ops + "/automations/" + longName,
		"compare": acme + "/compare?delivery=" + w.delivery.UID + "&delivery=" + w.other.UID, "compare-none": acme + "/compare",
		"search": "/search?q=branch%3Dmain", "search-none": "/search", "search-names": "/search?q=triage",
		"replay": acme + "/replay?delivery=" + w.delivery.UID + "&delivery=" + w.other.UID,
		"filter": acme + "/filter?automation=triage-failed-build&delivery=" + w.delivery.UID,
		"files":  ops + "/files", "file": ops + "/files/edit?path=automations%2Fpage%2Fautomation.md", "file-new": ops + "/files/edit",
		"runs": "/runs", "run-new": "/runs/new", "runs-filtered": "/runs?state=FAILED&source=API", "run": "/runs/" + w.run, "run-followed": "/runs/" + w.talked, "run-changed": "/runs/" + w.changed, "run-asks": "/runs/" + w.asks, "secrets": "/secrets", "keys": "/keys",
		"automation-edit": ops + "/automations/page/edit", "automation-edit-long": ops + "/automations/" + longName + "/edit",
		"notifications": acme + "/notifications", "notifications-none": ops + "/notifications", "event": acme + "/notifications/events/" + w.event,
		"rollback": ops + "/rollback?revision=r4", "audit": "/audit", "audit-none": "/audit?actor=nobody", "workers": "/workers",
		"not-found": "/no/such/page",
	}
}

// forms are the ways in which every page is looked at.
var forms = []struct {
	width, height int64
	scheme        string
}{{1280, 900, "light"}, {1280, 900, "dark"}, {390, 844, "light"}, {390, 844, "dark"}}

// everyPage looks at each page as axe-core does, and at what that does not see: nothing sticks out of a
// phone, and every page can be used by keyboard.
func (b *tab) everyPage() {
	fromEnvironment(b.T, axeVariable)
	defer b.hold()()
	wanted := regexp.MustCompile(*only)
	for name, path := range b.w.pages() {
		if !wanted.MatchString(name) {
			continue
		}
		status := http.StatusOK
		if name == "not-found" {
			status = http.StatusNotFound
		}
		b.screen(forms[0].width, forms[0].height, forms[0].scheme)
		b.leave(status, chromedp.Navigate(b.w.url+path))
		eval[chromedp.Void](b, `document.querySelectorAll('details').forEach((d) => { d.open = true; })`)
		if *look == "" { // a row is like the next
			eval[chromedp.Void](b, `document.querySelectorAll('tbody tr:nth-child(n+6)').forEach((row) => row.remove())`)
		}
		b.scan(name)
		if name == "overview" {
			b.axeSees()
		}
		b.keyboard(name)
	}
}

// hold gives the pages a stream that opens and then tells of no change: a live part that is taken over would
// replace what the test looks at. The function that it returns lets pages follow changes again.
func (b *tab) hold() (release func()) {
	b.Helper()
	script, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `window.EventSource = class {
			addEventListener(type, listener) { if (type === 'open') queueMicrotask(listener); }
			close() {}
		};`,
	})
	if err != nil {
		b.Fatal(err)
	}

	return func() {
		ask(b, page.RemoveScriptToEvaluateOnNewDocument, page.RemoveScriptToEvaluateOnNewDocumentParams(script))
	}
}

// axeSees shows that axe-core runs, and that this test would notice what it finds.
func (b *tab) axeSees() {
	b.Helper()
	found := eval[[]string](b, `(() => {
		const image = document.createElement('img');
		document.querySelector('main').append(image);
		return axe.run(document).then((r) => { image.remove(); return r.violations.map((v) => v.id); });
	})()`)
	if !slices.Contains(found, "image-alt") {
		b.Fatalf("axe-core finds %q in a page with an image without words", found)
	}
}

// scan runs axe-core in every form of the page, and leaves it in the first.
func (b *tab) scan(name string) {
	b.Helper()
	path := os.Getenv(axeVariable)
	if path == "" {
		return // which everyPage says
	}
	axe, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	eval[chromedp.Void](b, string(axe))
	defer b.screen(forms[0].width, forms[0].height, forms[0].scheme)
	for i, f := range forms {
		b.screen(f.width, f.height, f.scheme)
		rules := "{}"
		if i > 0 { // what the form of a page does not change has been looked at
			rules = `{runOnly: {type: 'rule', values: ['color-contrast', 'target-size', 'scrollable-region-focusable', 'link-in-text-block']}}`
		}
		found := eval[[]violation](b, `axe.run(document, Object.assign({resultTypes: ['violations']}, `+rules+`)).then((r) => r.violations.map((v) => ({
			rule: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map((n) => n.html.slice(0, 200) + ' ' + n.any.map((a) => a.message).join('; '))})))`)
		for _, v := range found {
			b.Errorf("%s, %dpx, %s: %s (%s): %s\n\t%s", name, f.width, f.scheme, v.Rule, v.Impact, v.Help, strings.Join(v.Nodes, "\n\t"))
		}
		if out := eval[string](b, sticksOut); out != "" {
			b.Errorf("%s, %dpx: sticks out: %s", name, f.width, out)
		}
		if *look != "" {
			b.photograph(filepath.Join(*look, fmt.Sprintf("%s-%d-%s.png", name, f.width, f.scheme)), true)
		}
	}
}

// violation is what axe-core finds wrong.
type violation struct {
	Rule, Impact, Help string
	Nodes              []string
}

// sticksOut names a table so wide that it has to be scrolled, or the first element that makes the page wider
// than its screen. The window is no measure of that: a browser on a phone makes it as wide as the page.
const sticksOut = `(() => {
	const width = document.documentElement.clientWidth;
	const table = [...document.querySelectorAll('.scroll')].find((e) => e.scrollWidth > e.clientWidth + 1);
	if (table) return table.outerHTML.slice(0, 200);
	if (document.documentElement.scrollWidth <= width) return '';
	const wide = [...document.querySelectorAll('main *:not(.tabs *)')].find((e) => e.getBoundingClientRect().right > width + 1);
	return (wide ?? document.body).outerHTML.slice(0, 200);
})()`

// keyboard goes through the page with the Tab key: everything that one can act on is reached, in the order
// of the page, and shows that it has the focus.
func (b *tab) keyboard(name string) {
	b.Helper()
	want := eval[int](b, `(() => {
		document.activeElement.blur(); scrollTo(0, 0); window.reached = [];
		window.mine = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')].filter((e) => e.checkVisibility() && !e.disabled && e.tabIndex >= 0 && e.type !== 'hidden');
		const radios = window.mine.filter((e) => e.type === 'radio');
		window.mine = window.mine.filter((e) => e.type !== 'radio' || e.checked);
		document.addEventListener('focusin', (e) => { window.reached.push(e.target); const s = getComputedStyle(e.target); if (s.outlineStyle === 'none' || parseFloat(s.outlineWidth) < 1) window.bare = e.target.outerHTML; });
		return window.mine.length + 7 * window.mine.filter((e) => e.type === 'datetime-local').length; // which has a stop for each part
	})()`)
	for range want {
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	if missed := eval[[]string](b, `window.mine.filter((e, i) => !window.reached.includes(e)).map((e) => e.outerHTML.slice(0, 120))`); len(missed) > 0 {
		b.Errorf("%s: the Tab key does not lead to %q", name, missed)
	}
	if bare := eval[string](b, `window.bare ?? ''`); bare != "" {
		b.Errorf("%s: does not show that it has the focus: %s", name, bare)
	}
}

// photograph writes what the window shows, or the whole page, to a file.
func (b *tab) photograph(file string, whole bool) {
	b.Helper()
	shot := chromedp.CaptureScreenshot()
	if whole {
		shot = chromedp.FullScreenshot(100)
	}
	image, err := chromedp.Run(b.limit(), shot)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err == nil {
		err = os.WriteFile(file, image, 0o644)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// TestScreenshots writes the screenshots of the README: make screenshots.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("-screenshots says where to")
	}
	w := newBrowserWorld(t, "8080")
	b := newTab(t, w)
	b.signIn()
	for name, shot := range map[string]struct{ page, scheme string }{
		"overview": {"overview", "light"}, "delivery": {"delivery", "light"}, "run": {"run-changed", "dark"},
	} {
		b.screen(1280, 860, shot.scheme)
		b.open(w.pages()[shot.page])
		b.photograph(filepath.Join(*screenshots, name+".png"), false)
	}
}
