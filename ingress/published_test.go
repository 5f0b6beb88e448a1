package ingress_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millwright/ingress"
	"millwright/schema/provider"
)

// TestPublishedDeliveries holds that a signed delivery of each payload that GitHub and GitLab publish starts
// the automations of its event, and no other ones.
func TestPublishedDeliveries(t *testing.T) {
	each(t, ingress.Config{DeliveriesPerMinute: -1}, func(t *testing.T, w *world) {
		for _, scheme := range []string{"github", "gitlab"} {
			secret := "secret of " + scheme
			w.secret("S_"+strings.ToUpper(scheme), secret)
			w.hook(signed(scheme, scheme, "S_"+strings.ToUpper(scheme)))
			for _, event := range provider.Events(scheme) {
				filter := ""
				if event == "bot_mentioned" {
					filter = `{"mentioned":["world"]}` // else the forge is asked for the account
				}
				w.triggered(scheme+"-"+event, scheme+"/"+event, filter)
			}
		}

		for _, scheme := range []string{"github", "gitlab"} {
			text, err := os.ReadFile(filepath.Join("..", "schema", "provider", "testdata", "published", scheme+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var payloads map[string]json.RawMessage
			if err := json.Unmarshal(text, &payloads); err != nil {
				t.Fatal(err)
			}

			for _, name := range slices.Sorted(maps.Keys(payloads)) {
				header, _, _ := strings.Cut(name, " ")
				if scheme == "gitlab" {
					header, _, _ = strings.Cut(name, " on ")
				}

				var want []string
				for _, event := range provider.Read(scheme, header, payloads[name]).Events() {
					want = append(want, scheme+"-"+event+" from "+scheme)
				}
				slices.Sort(want)

				r := w.sendBody(scheme, scheme, "secret of "+scheme, header, string(payloads[name]))
				if got := w.started(r); got != strings.Join(want, ", ") {
					t.Errorf("%s started %q, want %q", name, got, want)
				}
			}
		}
	})
}
