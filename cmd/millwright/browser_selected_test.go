package main

import (
	"fmt"
	"net/http"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// selected selects deliveries while others arrive, compares two, and replays them one by one.
func (b *tab) selected() {
	hook := b.w.hooks["alerts"]
	list := b.w.factory(hook.FactoryUID, "/deliveries?webhook="+hook.UID)
	send := func(n int) {
		body := fmt.Sprintf(`{"selected": %d, "status": "firing"}`, n)
		b.sends(http.StatusAccepted, b.w.url+"/webhooks/w/"+hook.UID, b.w.alerts, body)
	}
	for n := range 2 {
		send(n)
	}

	b.screen(390, 844, "light")
	b.open(list)
	pick := func(n int) act { return chromedp.Click(chromedp.CSS(fmt.Sprintf("tbody tr:nth-child(%d) .pick", n))) }
	before := eval[int](b, `document.querySelectorAll('tbody tr').length`)
	b.do(pick(1), pick(2))
	send(2)
	b.wait(fmt.Sprintf(`document.querySelectorAll('tbody tr').length === %d`, before+1))
	if ticked := eval[string](b, `[...document.querySelectorAll('.pick')].slice(0, 3).map((p) => p.checked).join()`); ticked != "false,true,true" {
		b.Errorf("ticked after another delivery: %s", ticked)
	}

	b.leave(http.StatusOK, press("Compare two"))
	b.says("Fields that differ", "selected", "Side by side")
	b.open(list)
	b.do(pick(1), pick(2), pick(3))
	b.leave(http.StatusOK, press("Replay…"))
	b.stays()
	b.do(press("Replay 3 deliveries"))
	b.waitText("#replayed", "Replayed 3 of 3.")
	b.stayed()
	b.scan("replayed")
	if made := eval[int](b, `document.querySelectorAll('tr[data-made]').length`); made != 3 {
		b.Errorf("%d rows have a new delivery", made)
	}
	b.screen(forms[0].width, forms[0].height, forms[0].scheme)
}

// search finds an automation by the keyboard alone.
func (b *tab) search() {
	at := func(place string) { b.wait(`document.activeElement.matches(` + fmt.Sprintf("%q", place) + `)`) }
	slash := func() { // a KeyEvent would type it, although the page takes it
		eval[chromedp.Void](b, `document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true }))`)
		at("#find")
	}
	b.open("/runs")
	slash()
	b.do(chromedp.KeyEvent("x" + kb.Escape))
	at("body")
	b.wait(`document.querySelector('#find').value === ''`)

	slash()
	b.leave(http.StatusOK, chromedp.KeyEvent("triage"+kb.Enter))
	at("body")
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	at(".results li:first-child a")
	b.do(chromedp.KeyEvent(kb.ArrowUp))
	at("#find")
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Escape))
	at("#find")
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	first := eval[string](b, `document.activeElement.pathname`)
	b.leave(http.StatusOK, chromedp.KeyEvent(kb.Enter))
	b.wait(fmt.Sprintf(`location.pathname === %q`, first))
}

// savedFilters names the filter of a list, and finds it again on the same page only.
func (b *tab) savedFilters() {
	const saved = `[...document.querySelectorAll('.saved a')].map((a) => a.textContent + ' ' + a.search).join()`
	b.screen(390, 844, "light")
	b.open("/runs?state=FAILED&cursor=")
	b.do(fill(".saved input", "<b>red</b>"), press("Save filter"))
	b.wait(`document.querySelectorAll('.saved a').length === 1 && !document.querySelector('.saved form')`)
	b.scan("runs-saved")
	b.open("/runs")
	if got := eval[string](b, saved); got != "<b>red</b> ?state=FAILED" {
		b.Errorf("saved: %q", got)
	}
	b.leave(http.StatusOK, press("<b>red</b>"))
	b.wait(`location.search === '?state=FAILED' && document.querySelector('.saved a[aria-current]')`)
	b.open(b.w.factory(b.w.ops, "/deliveries"))
	if got := eval[string](b, saved); got != "" {
		b.Errorf("saved of another page: %q", got)
	}

	b.open("/runs")
	b.do(chromedp.Click(chromedp.CSS(".saved li button")))
	b.wait(`!document.querySelector('.saved a')`)

	// What cannot be read is no filter, and harms nothing.
	for _, broken := range []string{"{", "null", "[]", `{"/runs": [null, 1, {"name": 2, "query": "x"}, {"name": "x"}]}`} {
		eval[chromedp.Void](b, fmt.Sprintf(`localStorage.setItem('millwright.filters', %q)`, broken))
		b.open("/runs?state=FAILED")
		b.wait(`document.querySelector('.saved form') && !document.querySelector('.saved a')`)
	}
	eval[chromedp.Void](b, `localStorage.removeItem('millwright.filters')`)
}
