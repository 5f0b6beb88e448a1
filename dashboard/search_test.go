package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/search"
)

// older is the address where a search goes on.
var older = regexp.MustCompile(`href="(/search[^"]*before=[^"]*)"`)

func searched(text string) string { return "/search?" + url.Values{"q": {text}}.Encode() }

// TestSearch finds everything by name and ID, and deliveries by a field of their payload.
func TestSearch(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleViewer)
		r := w.run("Look at the flaky test")
		d := w.ciDelivery(`{"status":"failed","issue":{"key":"SHOP-12","labels":[{"name":"bug"},{"name":"<b>"}]},"n":[1,12],"ok":true,"t":"It\u0027s LATE","a.b":1}`)
		w.deliver(w.webhook(w.repo, "ci").UID, `{"status":"failed"}`, "Authorization", "Bearer nope")
		refused := w.deliveries(w.webhook(w.repo, "ci"))[0]

		w.deliver(w.webhook(w.repo, "ping").UID+"/ping-token", `{"deep":`+strings.Repeat("[", 5000)+"1"+strings.Repeat("]", 5000)+"}")

		for _, c := range []struct{ text, want string }{
			{"TRI", "Automations triage repo"},
			{"hub", "Webhooks hub repo"},
			{w.webhook(w.repo, "ping").UID, "Webhooks ping repo"},
			{"rep", "Factories repo"},
			{w.held, "Factories held"},
			{"flaky", "Runs a run QUEUED"},
			{r.ID, "Runs a run QUEUED"},
			{d.UID, "Deliveries " + d.UID},
			{refused.UID, "Rejected (auth) ci of repo"},
			{"issue.key=SHOP-12", "Deliveries " + d.UID + " SHOP-12 Accepted"},
			{"issue.key:shop", "SHOP-12"},
			{"issue.labels.name=bug", " bug Accepted"},
			{"issue.labels.1.name:B", " <b> Accepted"},
			{"n=12", " 12 Accepted"},
			{"n.0=1", " 1 Accepted"},
			{"ok=true", " true Accepted"},
			{"t:it's late", " It's LATE Accepted"},
			{"issue.key=shop-12", "Nothing matches. All stored payloads were searched: 2."},
			{"issue=SHOP-12", "Nothing matches"},
			{"issue.key.x=1", "Nothing matches"},
			{"n=1.0", "Nothing matches"},
			{"#.key=1", "Nothing matches"},
			{"@this=1", "Nothing matches"},
			{"@reverse.0=1", "Nothing matches"},
			{"*=1", "Nothing matches"},
			{"status=", "Nothing matches"},
			{"deep=1", "Nothing matches"},
			{"nosuchthing", "Nothing matches"},
			{"dlv_01h455vb4pex5vsknk084sn02q", "Nothing matches"},
			{"%", "Nothing matches"},
			{"\x00\xff", "What you can search for"},
			{"a=\x00", "Nothing matches"},
			{strings.Repeat("a.", 90) + "b=1", "Nothing matches"},
			{"", "What you can search for"},
		} {
			says(t, b.page(searched(c.text)), c.want)
		}
		if a := b.get(searched("a=1") + "&before=x"); a.StatusCode != http.StatusUnprocessableEntity && a.StatusCode != http.StatusBadRequest {
			t.Errorf("a place that is none: %d", a.StatusCode)
		}
		b.page("/runs?q=%00%FF&name=%00")
		if a := w.browser().get(searched("repo")); a.StatusCode != http.StatusSeeOther {
			t.Errorf("without signing in: %d", a.StatusCode)
		}

		_, secret, err := w.store.CreateLimitedKey(t.Context(), "limited", state.RoleViewer, nil, []string{w.held})
		if err != nil {
			t.Fatal(err)
		}
		w.keys["limited"] = secret
		limited := w.signedIn("limited")
		for _, text := range []string{"triage", "hub", "flaky", r.ID, d.UID, refused.UID, "issue.key=SHOP-12", w.repo} {
			says(t, limited.page(searched(text)), "Nothing matches")
		}
		says(t, limited.page(searched("hel")), "Factories held")
	})
}

// TestSearchIsBounded searches more payloads than one search reads.
func TestSearchIsBounded(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleViewer)
		f, err := w.store.Factory(t.Context(), w.repo)
		if err != nil {
			t.Fatal(err)
		}

		ci := w.webhook(w.repo, "ci")
		first := w.ciDelivery(`{"n":"the first"}`)
		var wg sync.WaitGroup
		for i := range search.MaxPayloads {
			wg.Go(func() {
				_, err := w.store.Accept(t.Context(), state.Acceptance{
					UID: state.NewID(state.PrefixDelivery), FactoryUID: f.UID, Generation: f.Generation, WebhookID: ci.ID,
					WebhookUID: ci.UID, Sender: "192.0.2.7", Body: fmt.Appendf(nil, `{"n":"no. %d"}`, i), Received: time.Now(),
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()

		page := b.page(searched("n=the first"))
		says(t, page, "No match so far", fmt.Sprintf("Searched %d payloads", search.MaxPayloads))
		page = b.page(find(t, older, page))
		says(t, page, first.UID, "All stored payloads were searched: 1.")
		page = b.page(searched("n:no."))
		if n := strings.Count(page, `<code class="id">dlv_`); n != 10 {
			t.Errorf("%d deliveries on a page", n)
		}
		says(t, page, "Searched 10 payloads", "Search older deliveries")
	})
}
