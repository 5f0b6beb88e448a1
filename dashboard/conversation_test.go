package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/statetest"
)

// inOrder fails the test unless a page says all of the texts, each after the one before.
func inOrder(t *testing.T, page string, texts ...string) {
	t.Helper()
	rest := plain(page)
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			t.Fatalf("the page does not say %q in its place, of %q:\n%s", text, texts, plain(page))
		}
		rest = after
	}
}

// claimed begins an execution of a run as a worker does.
func (w *world) claimed(id string) state.Claim {
	w.t.Helper()
	c, _, err := w.store.ClaimRun(w.t.Context(), id, "w1", "mill-1", time.Minute)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.store.StartRun(w.t.Context(), c, time.Minute); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// TestFollowupsInPlace: the page of a run shows the first prompt first, and each follow-up as the user's turn
// before what the agent answered.
func TestFollowupsInPlace(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		b := w.signedIn(state.RoleRunner)
		r := w.run("Count the files.")
		path := "/runs/" + r.ID
		w.finish(r.ID, state.RunSucceeded, said(state.Text("There are seven.")))
		b.page(path)
		b.follow(path+"/followups", "message", "Now count the <lines>.")
		inOrder(t, b.page(path), "What the agent was given", "Count the files.", "There are seven.", "User", "Now count the <lines>.")

		// One that comes while the agent works waits, and begins the execution after.
		c := w.claimed(r.ID)
		b.follow(path+"/followups", "message", "And the words.")
		inOrder(t, b.page(path), "Count the files.", "Now count the <lines>.", "User", "waits for the next execution", "And the words.")
		if _, err := w.store.FinishRun(t.Context(), c, state.Result{State: state.RunSucceeded, Messages: []state.Message{said(state.Text("Ninety lines."))}}); err != nil {
			t.Fatal(err)
		}
		w.finish(r.ID, state.RunSucceeded, said(state.Text("A thousand words.")))
		page := b.page(path)
		inOrder(t, page, "What the agent was given", "Count the files.", "There are seven.", "Now count the <lines>.", "execution 2",
			"Ninety lines.", "And the words.", "execution 3", "A thousand words.")
		saysNot(t, page, "waits for the next execution")
		for _, once := range []string{"Count the files.", "Now count the", "And the words."} {
			if n := strings.Count(plain(page), once); n != 1 {
				t.Errorf("%q is there %d times:\n%s", once, n, plain(page))
			}
		}

		a := b.get(path + "/log")
		if a.StatusCode != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") {
			t.Fatalf("the log: %d %v", a.StatusCode, a.Header)
		}
		inOrder(t, a.Text, "Count the files.", "There are seven.", "Now count the", "Ninety lines.", "And the words.", "A thousand words.")
	})
}

// TestHarnessLines: lines that a harness puts out are one block, and what it does is named in its row.
func TestHarnessLines(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	b := w.signedIn(state.RoleViewer)
	r := w.run("go")
	var all []state.Message
	for i := range 20 {
		all = append(all, said(state.Text(fmt.Sprintf("compiling <part> %d", i))))
	}
	all = append(all,
		said(state.Block{Type: "action", ID: "1", Category: "shell", Name: "Bash", Input: []byte(`{"command":"make <all>","description":"build"}`)}),
		said(state.Block{Type: "action_result", ActionID: "1", Name: "Bash", State: "failed", Output: []byte(`"exit 2"`)}),
		said(state.Text("## Result\n\n- it **fails**\n- <script>alert(1)</script> ![logo](https://tracker.example/x.png) [log in](javascript:alert(1)) [docs](https://docs.example/a?b=1&c=2)")))
	w.finish(r.ID, state.RunFailed, all...)
	page := b.page("/runs/" + r.ID)
	if turns, logs := strings.Count(page, `class="message assistant"`), strings.Count(page, `<pre class="log">`); turns != 1 || logs != 1 {
		t.Errorf("%d turns, %d blocks of lines:\n%s", turns, logs, page)
	}
	says(t, page, "compiling &lt;part&gt; 0\ncompiling &lt;part&gt; 1\n", "<code>make &lt;all&gt;</code>", "exit 2",
		`<p class="heading">Result</p>`, "<strong>fails</strong>", "&lt;script&gt;alert(1)",
		`<a rel="noreferrer nofollow" href="https://docs.example/a?b=1&amp;c=2">docs</a> <span class="quiet">(docs.example)</span>`,
		`href="https://tracker.example/x.png">logo</a>`)
	saysNot(t, page, "<img", `href="javascript`)
	if n := strings.Count(page, `<details class="act`); n != 1 {
		t.Errorf("the action and its result are %d rows", n)
	}
}

// TestLongConversation: a long conversation is shown from its end, and leads back to its beginning.
func TestLongConversation(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	b := w.signedIn(state.RoleViewer)
	r := w.run("the first prompt")
	var all []state.Message
	for i := range 700 {
		all = append(all, said(state.Text(fmt.Sprintf("line %d.", i)), state.Block{Type: "event", Name: fmt.Sprintf("event %d.", i)}))
	}
	w.finish(r.ID, state.RunSucceeded, all...)

	end := b.page("/runs/" + r.ID)
	says(t, end, "line 699.", "event 699.", "Earlier")
	saysNot(t, end, "line 0.", "the first prompt</pre>", "Later")

	seen := map[string]int{}
	pages := 0
	says(t, b.page("/runs/"+r.ID+"?after=0"), "What the agent was given")
	for path := "/runs/" + r.ID + "?after=0"; path != ""; pages++ {
		page := b.page(path)
		for _, m := range regexp.MustCompile(`event \d+\.`).FindAllString(page, -1) {
			seen[m]++
		}

		path = ""
		if m := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(page); m != nil {
			path = html.UnescapeString(m[1])
		}
	}
	if len(seen) != 700 || pages != 3 {
		t.Errorf("%d events on %d pages", len(seen), pages)
	}
	for m, n := range seen {
		if n != 1 {
			t.Errorf("%s is there %d times", m, n)
		}
	}
}
