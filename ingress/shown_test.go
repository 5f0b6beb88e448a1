package ingress_test

import (
	"maps"
	"strings"
	"testing"

	"millwright/ingress"
	"millwright/schema"
	"millwright/state"
)

// TestRowsShowHarmlessHeaders sends requests with credentials in places where senders put them, and others.
func TestRowsShowHarmlessHeaders(t *testing.T) {
	each(t, ingress.Config{}, func(t *testing.T, w *world) {
		ids := enabled("alerts")
		ids.DeliveryIDHeader = "X-Alert-Id"
		w.hook(ids)
		w.secret("S", "the-secret")
		w.hook(signed("hub", "github", "S"))
		w.automation("triage", "alerts", `{"n":[1]}`)
		for _, c := range []struct {
			hook    string
			body    string
			headers []string
			status  int
			idle    bool
			want    map[string]string
		}{
			{"alerts", `{"n":1}`, []string{
				"Authorization", "Bearer " + tokenSecret, "User-Agent", strings.Repeat("a", 300), "Content-Type", "a/b\t\xff",
				"X-Alert-Id", "one", "X-Other", "x", "Cookie", "c=1", "X-Github-Event", "push",
			}, 202, false, map[string]string{
				"User-Agent": strings.Repeat("a", 125) + "...", "Content-Type": `a/b\t\xff`, "X-Alert-Id": "one",
			}},
			{"alerts", `{"n":2}`, []string{
				"Authorization", "Bearer " + tokenSecret, "User-Agent", "curl", "X-Alert-Id", "t:" + tokenSecret,
			}, 202, true, map[string]string{"User-Agent": "curl"}},
			{"alerts", `{}`, []string{
				"Authorization", "Bearer wr%6fng-token", "User-Agent", "x wr%6fng-token", "X-Service-Delivery-Id", "7",
			}, 401, false, map[string]string{"X-Service-Delivery-Id": "7"}},
			{"alerts", `{`, []string{
				"Authorization", "Bearer " + tokenSecret, "User-Agent", "",
			}, 400, false, nil},
			{"hub", `{}`, []string{
				"X-Hub-Signature-256", "sha256=00", "X-GitHub-Event", "push", "X-GitHub-Delivery", "d-1", "User-Agent", "g",
			}, 401, false, map[string]string{
				"X-Github-Event": "push", "X-Github-Delivery": "d-1", "User-Agent": "g",
			}},
		} {
			want(t, w.post(w.url(c.hook), c.body, c.headers...), c.status)
			row := w.rows(c.hook)[0]
			got := map[string]string{}
			for name, values := range schema.StoredHeader(row.Headers) {
				got[name] = strings.Join(values, ", ")
			}
			if row.Status != c.status || row.Idle() != c.idle || !maps.Equal(got, c.want) {
				t.Errorf("%s %s: %d, idle %v, headers %q", c.hook, c.body, row.Status, row.Idle(), got)
			}
		}

		first := w.rows("alerts")[3]
		again, err := w.in.Replay(t.Context(), w.factory, w.uids["alerts"], first.UID)
		if err != nil {
			t.Fatal(err)
		}
		row := w.rows("alerts")[0]
		if row.UID != again.DeliveryUID || row.Status != 0 || row.Started != 1 || string(row.Headers) != string(first.Headers) {
			t.Errorf("the replay: %+v", row)
		}
		if first.Outcome != state.DeliveryAccepted || first.Started != 1 {
			t.Errorf("the first: %+v", first)
		}
	})
}
