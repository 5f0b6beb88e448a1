package conformance_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"millwright/ingress/conformance"
)

// A receiver that takes everything fails where it should, and passes where taking it is right.
func TestRunFindsWhatIsWrong(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/webhooks/w/x", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"delivery_id":"dlv_1"}`)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	all, err := conformance.Load(os.DirFS("../../testdata/conformance"))
	if err != nil {
		t.Fatal(err)
	}
	fails := map[string]string{
		"bearer-wrong":            "status 202, want 401",
		"same-id":                 "duplicate",
		"path-inner-double-slash": "",
		"over-the-limit-unsent":   "no answer",
		"method-GET":              "status 202, want 405",
		"invalid-bom":             "status 202, want 400",
	}
	passes := map[string]bool{"accept": true, "bearer-lower": true, "other-id": true}
	var cases []conformance.Case
	for _, c := range all {
		if _, ok := fails[c.ID]; ok || passes[c.ID] || c.ID == "github-right" {
			cases = append(cases, c)
		}
	}
	report, err := conformance.Run(t.Context(), conformance.Config{
		Cases:   cases,
		Targets: map[string]conformance.Target{"token": {URL: srv.URL + "/webhooks/w/x", Mode: "token", Secret: "s3cret"}},
		Timeout: time.Second,
		Each: func(r conformance.Result) {
			want, wrong := fails[r.Case.ID]
			switch {
			case r.Case.ID == "github-right":
				if r.Skipped == "" {
					t.Error("a case without its target was run")
				}
			case wrong != (r.Err != nil):
				t.Errorf("%s: %v", r.Case.ID, r.Err)
			case wrong && !strings.Contains(r.Err.Error(), want):
				t.Errorf("%s: %v, want %q", r.Case.ID, r.Err, want)
			}
		},
	})
	if err != nil || report.Failed != len(fails) || report.Passed != len(passes) || report.Skipped != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestRunFindsALeakedSecretAndARedirect(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("leak") {
			_, _ = io.WriteString(w, r.Header.Get("Authorization"))
			return
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	cases, err := conformance.Load(fstest.MapFS{"a.jsonl": {Data: []byte(`{"id":"leak","why":"w","webhook":"token","steps":[{"target":"/?leak","expect":{"status":[200]}}]}
{"id":"redirect","why":"w","webhook":"token","steps":[{"expect":{"status":[307]}}]}
`)}})
	if err != nil {
		t.Fatal(err)
	}
	report, err := conformance.Run(t.Context(), conformance.Config{Cases: cases, Targets: map[string]conformance.Target{"token": {URL: srv.URL, Mode: "token", Secret: "s3cret"}}})
	if err != nil || report.Failed != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":"a","why":"w","webhook":"t","steps":[]}`:                                                                                                              "needs id, why and steps",
		`{"id":"a","why":"w","webhook":"t","steps":[{"expect":{"status":[]}}]}`:                                                                                      "expects no status",
		`{"id":"a","why":"w","steps":[{"expect":{"status":[202]}}]}`:                                                                                                 "has no webhook",
		`{"id":"a","why":"w","webhook":"t","steps":[{"framing":"x","expect":{"status":[202]}}]}`:                                                                     "unknown framing",
		`{"id":"a","why":"w","webhook":"t","steps":[{"colour":"red","expect":{"status":[202]}}]}`:                                                                    "unknown field",
		`{"id":"a","why":"w","webhook":"t","steps":[{"base64":"!","expect":{"status":[202]}}]}`:                                                                      "illegal base64",
		`{"id":"a","why":"w","webhook":"t","steps":[{"expect":{"status":[1]}}]}` + "\n\n" + `{"id":"a","why":"w","webhook":"t","steps":[{"expect":{"status":[1]}}]}`: "there twice",
	} {
		if _, err := conformance.Load(fstest.MapFS{"x.jsonl": {Data: []byte(text)}}); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "x.jsonl:") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
