package signature_test

import (
	"strings"
	"testing"

	"millwright/signature"
)

func TestProvider(t *testing.T) {
	seen := map[string]string{}
	for _, name := range signature.Names() {
		shown := signature.Provider(name)
		if shown == "" || strings.Contains(shown, "_") || shown == name && name != "incident_io" {
			t.Errorf("%s is shown as %q", name, shown)
		}
		if other := seen[shown]; other != "" {
			t.Errorf("%s and %s are both shown as %q", name, other, shown)
		}
		seen[shown] = name
	}
	for name, want := range map[string]string{"github": "GitHub", "slack": "Slack", "modern_treasury": "Modern Treasury", "": ""} {
		if got := signature.Provider(name); got != want {
			t.Errorf("%s is shown as %q, want %q", name, got, want)
		}
	}
}
