package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"millwright/admin"
	"millwright/state"
	"millwright/state/statetest"
)

// follow opens a stream of deliveries and returns what reads its next event: its name, its ID, and the
// delivery that it tells of.
func (w *world) follow(role state.Role, path, after string) (next func() (name, id, delivery string), stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), statetest.Patience)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.keys[role])
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		w.t.Fatalf("status %d, %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(resp.Body)
	return func() (name, id, delivery string) {
		w.t.Helper()
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "id":
				id = value
			case "event":
				name = value
			case "data":
				var d struct {
					ID string `json:"delivery_id"`
				}
				if err := json.Unmarshal([]byte(value), &d); err != nil {
					w.t.Fatal(err)
				}
				return name, id, d.ID
			}
		}
		w.t.Fatalf("the stream ended: %v", lines.Err())
		return "", "", ""
	}, func() { cancel(); resp.Body.Close() }
}

func TestFollowDeliveries(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f, byName := w.withHooks("payments")
		hook := byName["bearer"]
		path := "/factory/" + f.UID + "/webhooks/" + hook.UID + "/deliveries/events"
		w.accept(f, hook, "before", `{}`)
		if w.store.Followed(hook.UID) {
			t.Error("listened to before anybody does")
		}
		next, stop := w.follow(state.RoleRunner, path, "")
		if name, id, _ := next(); name != "listening" || !state.ValidID(state.PrefixDelivery, id) {
			t.Fatalf("first %s %q", name, id)
		}
		if !w.store.Followed(hook.UID) || w.store.Followed(byName["signed"].UID) {
			t.Error("the headers of the wrong deliveries are kept")
		}
		first := w.accept(f, hook, "1", `{}`).DeliveryUID
		if name, id, uid := next(); name != "delivery" || id != first || uid != first {
			t.Errorf("%s %s %s, want %s", name, id, uid, first)
		}
		w.accept(f, hook, "1", `{}`) // a duplicate
		w.reject(f, hook, state.DeliveryRejectedAuth, "wrong token")
		w.accept(f, byName["signed"], "1", `{}`)
		second := w.accept(f, hook, "2", `{}`).DeliveryUID
		if _, id, _ := next(); id != second {
			t.Errorf("%s, want %s", id, second)
		}
		stop()

		// No delivery that was accepted meanwhile is missed; repeated ones keep their ID.
		third := w.accept(f, hook, "3", `{}`).DeliveryUID
		next, stop = w.follow(state.RoleRunner, path, second)
		defer stop()
		if name, id, _ := next(); name != "listening" || id != "" {
			t.Errorf("resumed with %s %q, which would move the place", name, id)
		}
		for seen := ""; seen != third; {
			if _, seen, _ = next(); seen == second {
				t.Error("the delivery that was received last comes again")
			}
		}

		for _, wrong := range []string{"nonsense", hook.UID, "dlv_8zzzzzzzzzzzzzzzzzzzzzzzzz"} {
			w.call(state.RoleViewer, "GET", path, "", "Last-Event-ID", wrong).problem(400, "invalid_request")
		}
		w.call("", "GET", path, "").problem(401, "authentication_required")
		w.call(state.RoleWorker, "GET", path, "").problem(403, "not_authorized")
		one := strings.TrimSuffix(path, "events") + first + "/request"
		w.call("", "GET", one, "").problem(401, "authentication_required")
		w.call(state.RoleWorker, "GET", one, "").problem(403, "not_authorized")
		w.call(state.RoleViewer, "GET", one, "").problem(403, "not_authorized")
		w.call(state.RoleRunner, "GET", one, "").want(200)
		w.call(state.RoleAdmin, "GET", one, "").want(200)
		w.apply(f.UID, map[string]string{})
		w.call(state.RoleViewer, "GET", path, "").problem(404, "resource_not_found")
	})
}

// TestViewerKeepsNoHeaders follows with a key that may see deliveries and not send them again.
func TestViewerKeepsNoHeaders(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f, byName := w.withHooks("payments")
		hook := byName["signed"]
		next, stop := w.follow(state.RoleViewer, "/factory/"+f.UID+"/webhooks/"+hook.UID+"/deliveries/events", "")
		defer stop()
		if name, _, _ := next(); name != "listening" {
			t.Fatalf("first %s", name)
		}
		if w.store.Followed(hook.UID) {
			t.Error("headers are kept for a viewer")
		}
		uid := w.accept(f, hook, "1", `{}`).DeliveryUID
		if name, _, got := next(); name != "delivery" || got != uid {
			t.Errorf("%s %s, want %s", name, got, uid)
		}
	})
}

// TestStreamEndsWithItsKey follows with a key that is revoked meanwhile.
func TestStreamEndsWithItsKey(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f, byName := w.withHooks("payments")
		key, secret, err := w.store.CreateKey(t.Context(), "visitor", state.RoleViewer, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), statetest.Patience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/factory/"+f.UID+"/webhooks/"+byName["bearer"].UID+"/deliveries/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := w.store.RevokeKey(t.Context(), key.UID); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), "event: listening") {
			t.Errorf("%v after %q", err, text)
		}
	})
}
