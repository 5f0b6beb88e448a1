package ingress_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millwright/ingress"
	"millwright/schema"
	"millwright/state"
	"millwright/state/registrations"
)

// inBubble gives f an ingress whose clock is the bubble's. Requests come by hand, from any address.
func inBubble(t *testing.T, cfg ingress.Config, f func(w *world)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := state.Open(t.Context(), state.Config{DSN: dir + "/state.db", MasterKey: []byte("0123456789abcdef0123456789abcdef")})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		w := makeWorld(t, s, cfg)
		defer w.in.Close(t.Context())
		f(w)
	})
}

// from hands the ingress a request of a peer and returns its answer.
func (w *world) from(peer, name, token, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/webhooks/w/"+w.uids[name], strings.NewReader(body))
	r.RemoteAddr = peer + ":1234"
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.in.ServeHTTP(rec, r)
	return rec
}

func retryAfter(t testing.TB, rec *httptest.ResponseRecorder) time.Duration {
	t.Helper()
	n, err := strconv.Atoi(rec.Header().Get("Retry-After"))
	if rec.Code != http.StatusTooManyRequests || err != nil || n < 1 || n > 60 {
		t.Fatalf("%d, Retry-After %q", rec.Code, rec.Header().Get("Retry-After"))
	}
	return time.Duration(n) * time.Second
}

func TestBudgetIsARollingMinute(t *testing.T) {
	inBubble(t, ingress.Config{}, func(w *world) {
		w.hook(enabled("live"))
		n := 0
		send := func() *httptest.ResponseRecorder {
			n++
			return w.from("192.0.2.1", "live", tokenSecret, strconv.Itoa(n))
		}
		for i := range 60 { // one each half second: the first is 30 seconds old at the end
			if rec := send(); rec.Code != 202 {
				w.t.Fatalf("%d: %d", i, rec.Code)
			}
			time.Sleep(500 * time.Millisecond)
		}
		wait := retryAfter(w.t, send())
		if wait != 30*time.Second {
			w.t.Errorf("Retry-After %s, want 30s", wait)
		}
		time.Sleep(wait - time.Millisecond)
		retryAfter(w.t, send()) // too early, and charges nothing
		time.Sleep(time.Millisecond)
		if rec := send(); rec.Code != 202 {
			w.t.Errorf("after Retry-After: %d", rec.Code)
		}
		if wait := retryAfter(w.t, send()); wait != time.Second { // the second of the minute goes half a second later
			w.t.Errorf("Retry-After %s, want 1s", wait)
		}
		// In any window of a minute there are at most 60.
		time.Sleep(10 * time.Minute)
		accepted := []time.Time{}
		for range 1000 {
			if send().Code == 202 {
				accepted = append(accepted, time.Now())
			}
			time.Sleep(313 * time.Millisecond)
		}
		for i := 60; i < len(accepted); i++ {
			if d := accepted[i].Sub(accepted[i-60]); d < time.Minute {
				w.t.Fatalf("61 deliveries in %s", d)
			}
		}
		if len(accepted) < 300 {
			w.t.Errorf("only %d accepted in 5 minutes", len(accepted))
		}
	})
}

func TestFailuresOfOneSenderLeaveOthersAlone(t *testing.T) {
	inBubble(t, ingress.Config{}, func(w *world) {
		w.hook(enabled("live"))
		for range 20 {
			if rec := w.from("192.0.2.1", "live", "wrong", `1`); rec.Code != 401 {
				w.t.Fatal(rec.Code)
			}
		}
		wait := retryAfter(w.t, w.from("192.0.2.1", "live", "wrong", `1`))
		retryAfter(w.t, w.from("192.0.2.1", "live", tokenSecret, `1`))
		if rec := w.from("192.0.2.2", "live", tokenSecret, `1`); rec.Code != 202 {
			w.t.Errorf("another address: %d", rec.Code)
		}
		time.Sleep(wait)
		if rec := w.from("192.0.2.1", "live", tokenSecret, `2`); rec.Code != 202 {
			w.t.Errorf("after Retry-After: %d", rec.Code)
		}
		// IPv6 addresses of one network are one sender.
		for i := range 20 {
			if rec := w.from("[2001:db8::"+strconv.FormatInt(int64(i+1), 16)+"]", "live", "wrong", `1`); rec.Code != 401 {
				w.t.Fatal(rec.Code)
			}
		}
		retryAfter(w.t, w.from("[2001:db8::ffff]", "live", tokenSecret, `3`))
		if rec := w.from("[2001:db8:0:1::1]", "live", tokenSecret, `3`); rec.Code != 202 {
			w.t.Errorf("another network: %d", rec.Code)
		}
	})
}

func TestAFloodOfSendersFreesNoSpentBudget(t *testing.T) {
	inBubble(t, ingress.Config{FailedAuthPerMinute: 3}, func(w *world) {
		w.hook(enabled("live"))
		for range 3 {
			w.from("192.0.2.1", "live", "wrong", `1`)
		}
		retryAfter(w.t, w.from("192.0.2.1", "live", tokenSecret, `1`))
		// More addresses than there is room for, each with one failure, given as counts of another replica.
		var counts []ingress.Counts
		for i := range 100_000 {
			counts = append(counts, ingress.Counts{Failed: true, Webhook: w.uids["live"], Sender: "10." + strconv.Itoa(i>>16) + "." + strconv.Itoa(i>>8&255) + "." + strconv.Itoa(i&255), N: 1})
		}
		w.in.AddCounts(counts)
		retryAfter(w.t, w.from("192.0.2.1", "live", tokenSecret, `1`))
	})
}

func TestReplicasShareCounts(t *testing.T) {
	inBubble(t, ingress.Config{}, func(w *world) {
		w.hook(enabled("live"))
		other, err := ingress.New(w.t.Context(), ingress.Config{Store: w.store})
		if err != nil {
			w.t.Fatal(err)
		}
		defer other.Close(w.t.Context())
		w.in.TakeCounts() // begins the counting
		other.TakeCounts()
		for i := range 60 {
			w.from("192.0.2.1", "live", tokenSecret, strconv.Itoa(i))
		}
		w.from("192.0.2.1", "live", "wrong", `1`)
		counts := w.in.TakeCounts()
		if len(counts) != 2 || counts[0].N != 60 || counts[0].Failed || counts[1].N != 1 || !counts[1].Failed {
			w.t.Errorf("%+v", counts)
		}
		other.AddCounts(counts)
		if again := append(w.in.TakeCounts(), other.TakeCounts()...); len(again) != 0 {
			w.t.Errorf("taken twice, or echoed: %+v", again)
		}
		there := *w
		there.in = other
		wait := retryAfter(w.t, there.from("192.0.2.1", "live", tokenSecret, `"new"`))
		time.Sleep(wait)
		if rec := there.from("192.0.2.1", "live", tokenSecret, `"new"`); rec.Code != 202 {
			w.t.Errorf("after Retry-After: %d", rec.Code)
		}
	})
}

// TestAskedDeliveriesAreNotCharged receives deliveries that the server asked GitHub for beyond the budget.
func TestAskedDeliveriesAreNotCharged(t *testing.T) {
	inBubble(t, ingress.Config{DeliveriesPerMinute: 1, FailedAuthPerMinute: -1}, func(w *world) {
		w.secret("GH", "gh")
		spec := signed("gh", "github", "GH")
		spec.Register = &schema.Register{Forge: "github", Repository: "acme/shop", Events: []string{"push"}}
		uid := w.hook(spec)
		row := registrations.Registration{WebhookUID: uid, FactoryUID: w.factory}
		for _, guid := range []string{"asked-1", "asked-2"} {
			if ask, err := w.store.Registrations().Ask(t.Context(), row, guid); err != nil || !ask {
				t.Fatal(ask, err)
			}
		}

		for i, test := range []struct {
			guid, key string
			want      int
		}{
			{"asked-1", "gh", 202},
			{"first", "gh", 202},
			{"second", "gh", 429},
			{"asked-2", "gh", 202},
			{"asked-2", "wrong", 401},
			{"third", "gh", 429},
		} {
			body := strconv.Itoa(i)
			rec := w.from("192.0.2.1", "gh", "", body, "X-GitHub-Delivery", test.guid, "X-Hub-Signature-256", "sha256="+hmacHex(test.key, body))
			if rec.Code != test.want {
				t.Errorf("delivery %s: %d, want %d", test.guid, rec.Code, test.want)
			}
		}
	})
}
