package signature_test

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"millwright/ingress/signature"
)

// vector is one entry of testdata/vectors.
type vector struct {
	Scheme  string            `json:"scheme"`
	Source  string            `json:"source"`
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	URL     string            `json:"url"`
	Expect  string            `json:"expect"`
}

func readVectors(t testing.TB, name string) []vector {
	t.Helper()
	raw, err := os.ReadFile("../../testdata/vectors/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) == 0 {
		t.Fatalf("%s has no vectors", name)
	}
	return file.Vectors
}

func (v vector) message() signature.Message {
	h := http.Header{}
	for name, value := range v.Headers {
		h.Set(name, value)
	}
	return signature.Message{Method: "POST", URL: v.URL, Header: h, Body: []byte(v.Body)}
}

// clock is the time at which the vector was signed, or now.
func (v vector) clock(t testing.TB) time.Time {
	t.Helper()
	s := lookup(t, v.Scheme)
	for _, d := range s.Descriptors() {
		if d.Timestamp == nil {
			continue
		}
		text := v.message().Header[http.CanonicalHeaderKey(d.Timestamp.Header)]
		if strings.HasSuffix(d.Timestamp.Header, "=") {
			for _, e := range strings.FieldsFunc(v.message().Header[http.CanonicalHeaderKey(d.Header)][0], func(r rune) bool { return r == ',' || r == ';' || r == ' ' }) {
				if ts, ok := strings.CutPrefix(e, d.Timestamp.Header); ok {
					text = []string{ts}
				}
			}
		}
		if len(text) == 0 {
			continue
		}
		if n, err := strconv.ParseInt(text[0], 10, 64); err == nil {
			if d.Timestamp.Unit == signature.UnitMillis {
				return time.UnixMilli(n)
			}
			return time.Unix(n, 0)
		}
		for _, layout := range []string{time.RFC3339, http.TimeFormat} {
			if at, err := time.Parse(layout, text[0]); err == nil {
				return at
			}
		}
	}
	return time.Unix(1_700_000_000, 0)
}

func lookup(t testing.TB, name string) *signature.Scheme {
	t.Helper()
	s, ok := signature.Lookup(name)
	if !ok {
		t.Fatalf("there is no scheme %q", name)
	}
	return s
}

func newVerifier(t testing.TB, s *signature.Scheme, secret string) *signature.Verifier {
	t.Helper()
	v, err := s.Verifier([]byte(secret))
	if err != nil {
		t.Fatalf("%s: %v", s.Name(), err)
	}
	return v
}

func TestVectors(t *testing.T) {
	for _, file := range []string{"scheme-vectors.json"} {
		vectors := readVectors(t, file)
		for _, v := range slices.Clone(vectors) {
			renamed := v
			renamed.Headers = map[string]string{}
			switch v.Scheme { // published once for two schemes
			case "standard_webhooks":
				for name, value := range v.Headers {
					renamed.Headers[strings.Replace(name, "webhook-", "svix-", 1)] = value
				}
				vectors = append(vectors, renamed)
				renamed.Scheme = "svix"
			case "bitbucket":
				renamed.Headers, renamed.Scheme = v.Headers, "jira"
			default:
				continue
			}
			vectors = append(vectors, renamed)
		}
		for _, v := range vectors {
			t.Run(v.Scheme+"/"+v.Source, func(t *testing.T) {
				_, err := newVerifier(t, lookup(t, v.Scheme), v.Secret).Verify(v.message(), v.clock(t))
				if (err == nil) != (v.Expect == "accept") {
					t.Errorf("Verify: %v, want %s", err, v.Expect)
				}
			})
		}
	}
}
