package admin_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"millwright/admin"
	"millwright/state"
)

func hmacHex(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

func TestPush(t *testing.T) {
	var woken []string
	schemes := map[string]string{}
	each(t, admin.Config{
		PushSecret: func(uid string) (string, string, bool) { return schemes[uid], "PUSH", schemes[uid] != "" },
		Notice:     func(uid string) { woken = append(woken, uid) },
	}, func(w *world) {
		clear(schemes)
		woken = nil
		w.secret("PUSH", "s3cret")
		hub := w.factory("hub", state.Source{Kind: "git", URL: "https://git.example.com/a.git"}, nil).UID
		lab := w.factory("lab", state.Source{Kind: "git", URL: "https://git.example.com/b.git"}, nil).UID
		tea := w.factory("tea", state.Source{Kind: "git", URL: "https://git.example.com/c.git"}, nil).UID
		none := w.factory("none", state.Source{Kind: "dir", Path: "/srv"}, nil).UID
		schemes[hub], schemes[lab], schemes[tea] = "github", "gitlab", "gitea"
		body := `{"ref": "refs/heads/main"}`
		push := func(uid, body string, header ...string) *reply {
			return w.call("", "POST", "/factory/"+uid+"/push", body, header...)
		}
		sign := hmacHex("s3cret", body)
		if r := push(hub, body, "X-Hub-Signature-256", "sha256="+sign).want(204); len(r.body) > 0 {
			t.Errorf("body %q", r.body)
		}
		push(lab, body, "X-Gitlab-Token", "s3cret").want(204)
		push(tea, body, "X-Gitea-Signature", sign).want(204)
		push(hub, "payload=%7B%7D", "X-Hub-Signature-256", "sha256="+hmacHex("s3cret", "payload=%7B%7D"), "Content-Type", "application/x-www-form-urlencoded").want(204)
		if !slices.Equal(woken, []string{hub, lab, tea, hub}) {
			t.Errorf("woken %v", woken)
		}

		for _, c := range []struct{ uid, header, value, body string }{
			{hub, "X-Hub-Signature-256", "sha256=" + hmacHex("wrong", body), body},
			{hub, "X-Hub-Signature-256", "sha256=" + sign, body + " "},
			{hub, "X-Hub-Signature", "sha1=" + sign, body},
			{hub, "X-Gitlab-Token", "s3cret", body},
			{hub, "X-Other", "", body},
			{lab, "X-Gitlab-Token", "s3cre", body},
			{none, "X-Hub-Signature-256", "sha256=" + sign, body},
			{"fac_00000000000000000000000000", "X-Hub-Signature-256", "sha256=" + sign, body},
			{"nonsense", "X-Hub-Signature-256", "sha256=" + sign, body},
		} {
			r := push(c.uid, c.body, c.header, c.value).problem(401, "authentication_required")
			if strings.Contains(string(r.body), "s3cret") {
				t.Errorf("answer %s", r.body)
			}
		}
		push(hub, "").problem(400, "invalid_request")
		if _, err := w.store.SetSecret(context.Background(), "PUSH", nil); err != nil {
			t.Fatal(err)
		}
		push(hub, body, "X-Hub-Signature-256", "sha256="+hmacHex("", body)).problem(401, "authentication_required")
		w.secret("PUSH", "s3cret")
		if len(woken) != 4 {
			t.Errorf("woken %v", woken)
		}
		limited := false
		for range 60 {
			if r := push(hub, body, "X-Hub-Signature-256", "sha256=00"); r.status == 429 {
				limited = true
				r.problem(429, "rate_limited")
				break
			}
		}
		if !limited {
			t.Error("wrong notices are not rationed")
		}
	})
	each(t, admin.Config{}, func(w *world) {
		f := w.factory("hub", state.Source{Kind: "git"}, nil)
		w.call("", "POST", "/factory/"+f.UID+"/push", "{}").problem(401, "authentication_required")
	})
}
