package forge_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"millwright/forge"
)

// TestAnnotate makes check runs as a GitHub App. A token cannot, and an app without the permission is denied.
func TestAnnotate(t *testing.T) {
	public, secret := newKey(t)
	host := &appHost{T: t, key: public, lifetime: time.Hour, revoked: map[string]bool{}}
	server := httptest.NewServer(host)
	defer server.Close()

	set, err := forge.Open(forge.Config{
		Forges: map[string]forge.Settings{
			"github": {URL: server.URL, App: &forge.App{ID: 12345, PrivateKeySecret: "GH_APP_KEY"}},
		},
		Secret: func(context.Context, string) ([]byte, error) { return secret, nil },
	})
	must(t, err)
	f, err := set.Of(tool)
	must(t, err)
	app := f.(forge.Annotates)

	found := forge.Annotations{
		Name: "millwright/mill problems", Failed: true, Title: "Problems", Summary: "See the comment.",
	}
	for i := range forge.MaxAnnotations + 10 {
		found.All = append(found.All, forge.Annotation{
			Path: "def/webhooks/a.yaml", Line: i + 1, Level: forge.AnnotationFailure,
			Title: "unknown-key", Message: "unknown key",
		})
	}
	must(t, app.Annotate(t.Context(), tool, mainCommit, found))
	must(t, app.Annotate(t.Context(), tool, mainCommit, forge.Annotations{Name: found.Name}))
	is(t, app.Annotate(t.Context(), tool, "main", found), forge.ErrRefused)

	type check struct {
		Name, Status, Conclusion string
		Head                     string `json:"head_sha"`
		Output                   struct {
			Annotations []struct {
				Path, Message string
				Level         string `json:"annotation_level"`
				Start         int    `json:"start_line"`
				End           int    `json:"end_line"`
			}
		}
	}
	var made [2]check
	for i, body := range host.checked {
		must(t, json.NewDecoder(strings.NewReader(body)).Decode(&made[i]))
		if c := made[i]; c.Name != found.Name || c.Status != "completed" || c.Head != mainCommit {
			t.Errorf("check run %s", body)
		}
	}
	equal(t, "conclusions", made[0].Conclusion+" "+made[1].Conclusion, "failure success")
	equal(t, "annotations", len(made[0].Output.Annotations), forge.MaxAnnotations)
	last := made[0].Output.Annotations[forge.MaxAnnotations-1]
	if last.Path != "def/webhooks/a.yaml" || last.Start != 50 || last.End != 50 || last.Level != "failure" {
		t.Errorf("the last annotation %+v", last)
	}

	host.refuse = 403
	is(t, app.Annotate(t.Context(), tool, mainCommit, found), forge.ErrDenied)

	plain, err := one(t, forge.Settings{Kind: forge.GitHub, URL: server.URL, TokenSecret: "TOKEN"}).Of(tool)
	must(t, err)
	is(t, plain.(forge.Annotates).Annotate(t.Context(), tool, mainCommit, found), forge.ErrUnsupported)
}
