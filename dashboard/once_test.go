package dashboard_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/statetest"
)

// TestSignInLink opens a link that works once: ahead of time, with a wrong token, and again.
func TestSignInLink(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		b := w.browser()
		if a := b.get("/login?once=anything"); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("without a link: %d", a.StatusCode)
		}

		link := w.links.New(w.uids[state.RoleAdmin], time.Minute)
		ahead := b.request(http.MethodGet, link, nil)
		ahead.Header.Set("Sec-Purpose", "prefetch")
		if a := b.do(ahead); a.StatusCode != http.StatusOK {
			t.Errorf("a prefetch: %d", a.StatusCode)
		}
		b.do(b.request(http.MethodHead, link, nil))
		if a := b.get(link + "x"); a.StatusCode != http.StatusUnauthorized || !strings.Contains(a.Text, "has been used, or is too old") {
			t.Errorf("another token: %d", a.StatusCode)
		}

		if a := b.get(link); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/" {
			t.Fatalf("the link: %d to %q", a.StatusCode, a.Header.Get("Location"))
		}
		says(t, b.page("/keys"), "the admin")
		if a := w.browser().get(link); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("a second time: %d", a.StatusCode)
		}
		if _, token, _ := strings.Cut(link, "="); strings.Contains(w.log.String(), token) {
			t.Errorf("the token is in the log:\n%s", w.log)
		}
	})
}

func TestSignInLinkThatEnded(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	old := w.links.New(w.uids[state.RoleAdmin], time.Minute)
	for name, link := range map[string]string{
		"too old":         w.links.New(w.uids[state.RoleAdmin], -time.Second),
		"of no key":       w.links.New("key_01h455vb4pex5vsknk084sn02q", time.Minute),
		"replaced by one": old,
	} {
		if a := w.browser().get(link); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
	}

	link := w.links.New(w.uids[state.RoleViewer], time.Minute)
	if err := w.store.RevokeKey(t.Context(), w.uids[state.RoleViewer]); err != nil {
		t.Fatal(err)
	}
	b := w.browser()
	b.get(link)
	if a := b.get("/"); a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/login") {
		t.Errorf("with a revoked key: %d to %q", a.StatusCode, a.Header.Get("Location"))
	}
}
