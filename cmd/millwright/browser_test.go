package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"millwright/state/statetest"
)

// chromiumVariable names the variable with the path of the browser, which .ci/chromium sets.
const chromiumVariable = "MILLWRIGHT_TEST_CHROMIUM"

// tab is a page of a real browser. What a page must never do is collected: violations of the content
// security policy, uncaught errors, and whatever scripts or the browser complain of on the console.
type tab struct {
	*testing.T
	w   *browserWorld
	ctx context.Context

	mu         sync.Mutex
	complaints []string
	expected   string // the status of a page that is meant to be one of an error, such as "422"
	provoked   string // what the browser is meant to complain of
	heard      bool   // it did
}

// fromEnvironment returns what a tool of .ci put into a variable. Without it the test is skipped, or fails
// where CI=true.
func fromEnvironment(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not set", name)
		}
		t.Skipf("%s is not set: see .ci/chromium, which make acceptance uses", name)
	}
	return value
}

// newTab starts a browser.
func newTab(t *testing.T, w *browserWorld) *tab {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{
		chromedp.Headless, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.DisableGPU,
		chromedp.ExecPath(fromEnvironment(t, chromiumVariable)), chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-dev-shm-usage", true),
	}
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses to have one as root
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		defer stop()
		limited, cancel := context.WithTimeout(ctx, statetest.Patience)
		defer cancel()
		if err := chromedp.Cancel(limited); err != nil {
			t.Errorf("the browser ended with %v", err)
		}
	})
	b := &tab{T: t, w: w, ctx: ctx}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	ask(b, cdplog.Enable, cdp.Empty{})
	ask(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		if _, err := chromedp.CallBrowser(ctx, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted,
		}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// ask runs a command of the browser's protocol.
func ask[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.Fatal(err)
	}
}

// listen collects complaints.
func (b *tab) listen(event any) {
	complaint := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		complaint = fmt.Sprintf("uncaught: %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			complaint = fmt.Sprintf("console: %s", e.Args[0].Value)
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Level == cdplog.EntryLevelWarning {
			complaint = fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case complaint == "" || b.expected != "" && strings.Contains(complaint, "status of "+b.expected):
	case b.provoked != "" && strings.Contains(complaint, b.provoked):
		b.heard = true
	default:
		b.complaints = append(b.complaints, complaint)
	}
}

// clean fails the test when something was complained of since the last time.
func (b *tab) clean() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		b.Errorf("the browser complains: %s", c)
	}
	b.complaints = nil
}

// provoke does something that the browser must complain of.
func (b *tab) provoke(complaint string, do func()) {
	b.Helper()
	b.mu.Lock()
	b.provoked, b.heard = complaint, false
	b.mu.Unlock()
	do()
	statetest.Until(b.w.t, "the browser complains of "+complaint, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.heard
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.provoked = ""
}

// within makes the tab report to a subtest.
func (b *tab) within(t *testing.T, f func()) {
	outer, world := b.T, b.w.t
	b.T, b.w.t = t, t
	defer func() { b.clean(); b.T, b.w.t = outer, world }()
	f()
}

// act is what one does in a browser.
type act = chromedp.Action[chromedp.Void]

func (b *tab) do(steps ...act) {
	b.Helper()
	if err := chromedp.Do(b.limit(), steps...); err != nil {
		b.Fatalf("%v\n%s", err, b.text("main"))
	}
}

// limit returns a context for one step, which must not take forever.
func (b *tab) limit() context.Context {
	ctx, stop := context.WithTimeout(b.ctx, statetest.Patience)
	b.Cleanup(stop)
	return ctx
}

// open goes to a page and waits until its scripts have run, and listen if it is live.
func (b *tab) open(path string) {
	b.Helper()
	b.leave(http.StatusOK, chromedp.Navigate(b.w.url+path))
}

// leave does something that leads to another page, which may be one of an error of this status.
func (b *tab) leave(status int, steps ...act) {
	b.Helper()
	b.mu.Lock()
	b.expected = ""
	if status >= 400 {
		b.expected = fmt.Sprint(status)
	}
	b.mu.Unlock()
	resp, err := chromedp.RunResponse(b.limit(), steps...)
	if err != nil {
		b.Fatalf("%v\n%s", err, b.text("main"))
	}
	if resp.Status != int64(status) {
		b.Fatalf("%s: status %d, want %d\n%s", resp.URL, resp.Status, status, b.text("main"))
	}
	b.wait(`document.readyState === 'complete' && (!document.body.dataset.live || document.body.dataset.watching === 'yes')`)
}

// press clicks on the button, link or summary of this text.
func press(text string) act {
	return chromedp.Click(fmt.Sprintf(`//main//*[self::button or self::a or self::summary][normalize-space()=%q]`, text), chromedp.NodeVisible)
}

// tick clicks on the box or button beside this text.
func tick(text string) act {
	return chromedp.Click(fmt.Sprintf(`//label[normalize-space()=%q]/input`, text), chromedp.NodeVisible)
}

// fill replaces the content of a field.
func fill(selector chromedp.CSS, text string) act {
	return chromedp.Steps(chromedp.Focus(selector), chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)), chromedp.KeyEvent(kb.Delete), chromedp.SendKeys(selector, text))
}

// wait waits until an expression of the page is true.
func (b *tab) wait(expression string) {
	b.Helper()
	if _, err := chromedp.Run(b.limit(), chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(20*time.Millisecond))); err != nil {
		b.Fatalf("%s: %v\n%s", expression, err, b.text("main"))
	}
}

// waitText waits until an element says something, without being asked.
func (b *tab) waitText(selector, text string) {
	b.Helper()
	b.wait(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.innerText.includes(%q))`, selector, text))
}

func (b *tab) text(selector chromedp.CSS) string {
	b.Helper()
	text, err := chromedp.Run(b.limit(), chromedp.Text(selector))
	if err != nil {
		b.Fatal(err)
	}
	return text
}

func (b *tab) says(texts ...string) {
	b.Helper()
	page := b.text("main")
	for _, text := range texts {
		if !strings.Contains(page, text) {
			b.Errorf("the page does not say %q:\n%s", text, page)
		}
	}
}

// eval evaluates an expression of the page, and waits for it if it is a promise.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	value, err := chromedp.Run(b.limit(), chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatal(err)
	}
	return value
}

// copied presses the Copy button behind an element and returns the clipboard.
func (b *tab) copied(selector chromedp.CSS) string {
	b.Helper()
	b.do(chromedp.Click(selector + " + .copier"))
	b.wait(fmt.Sprintf(`document.querySelector(%q).nextElementSibling.textContent === 'Copied'`, selector))
	return eval[string](b, `navigator.clipboard.readText()`)
}

// screen sets the size of the window and the colours that its reader prefers.
func (b *tab) screen(width, height int64, scheme string) {
	b.Helper()
	ask(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
	ask(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}
