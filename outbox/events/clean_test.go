package events

import (
	"net/url"
	"strings"
	"testing"
)

// TestClean keeps no answer that repeats a URL that is a credential, in any spelling.
func TestClean(t *testing.T) {
	const address = "https://hooks.example.com/services/T0AB12/B9/x7Gq%2Fpl3Kd9?key=zz81TOKEN"
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}

	for _, answer := range []string{
		address, strings.ToUpper(address), u.RequestURI(), "no route for " + u.Path, "x7Gq/pl3Kd9", "key = zz81token",
		`{"path":"\/services\/T0AB12\/B9\/x7Gq"}`, "T0AB12", "%78%37%47%71%2f%70%6c", "x 7 G q p l 3", "x7gq&#x2F;\npl3kd9",
	} {
		if got := (destination{url: u, hidden: true}).clean([]byte(answer)); got != repeated {
			t.Errorf("of %q it keeps %q", answer, got)
		}
		if got := (destination{url: u}).clean([]byte(answer)); got != answer {
			t.Errorf("of a URL that is no secret it keeps %q", got)
		}
	}

	for _, answer := range []string{"", "ok", "invalid_payload", "no_team \xff", "<html><title>502 Bad Gateway</title>"} {
		want := strings.ToValidUTF8(answer, "\uFFFD")
		if got := (destination{url: u, hidden: true}).clean([]byte(answer)); got != want {
			t.Errorf("of %q it keeps %q", answer, got)
		}
	}
}
