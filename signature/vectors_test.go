package signature_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"millwright/signature"
)

// vector is one signed request of testdata/vectors.
type vector struct {
	Scheme   string            `json:"scheme"`
	Source   string            `json:"source"`
	Secret   string            `json:"secret"`
	Headers  map[string]string `json:"headers"`
	Body     string            `json:"body"`
	URL      string            `json:"url"`
	Expect   string            `json:"expect"`
	At       int64             `json:"at"`
	Delivery *string           `json:"delivery"`
}

// vectors are the published and the generated ones, and those that a provider
// published for two schemes at once.
func vectors(t testing.TB) (all []vector) {
	t.Helper()
	for _, name := range []string{"scheme-vectors.json", "generated-vectors.json"} {
		raw, err := os.ReadFile("../testdata/vectors/" + name)
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
		for _, v := range file.Vectors {
			all = append(all, v)
			twin := v
			switch {
			case v.Scheme == "standard_webhooks":
				twin.Scheme = "svix"
				twin.Headers = map[string]string{}
				for name, value := range v.Headers {
					twin.Headers[strings.Replace(name, "webhook-", "svix-", 1)] = value
				}
				fallback := twin // the same headers on a standard_webhooks webhook
				fallback.Scheme = v.Scheme
				all = append(all, twin, fallback)
			case v.Scheme == "bitbucket" && v.At == 0:
				twin.Scheme = "jira"
				all = append(all, twin)
			}
		}
	}
	return all
}

// accepted are the vectors that must verify.
func accepted(t testing.TB) (all []vector) {
	for _, v := range vectors(t) {
		if v.Expect == "accept" {
			all = append(all, v)
		}
	}
	return all
}

func (v vector) message() signature.Message {
	h := http.Header{}
	for name, value := range v.Headers {
		h.Set(name, value)
	}
	return signature.Message{Method: "POST", URL: v.URL, Header: h, Body: []byte(v.Body)}
}

func (v vector) String() string { return v.Scheme + "/" + v.Source }

// clock is when the vector was signed.
func (v vector) clock() time.Time {
	if v.At != 0 {
		return time.Unix(v.At, 0)
	}
	for name, value := range v.Headers {
		if at, err := time.Parse(time.RFC3339, value); err == nil {
			return at
		}
		if strings.HasSuffix(strings.ToLower(name), "-timestamp") {
			return unix(value)
		}
		for _, element := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ';' }) {
			if key, ts, ok := strings.Cut(element, "="); ok && (key == "t" || key == "ts") {
				return unix(ts)
			}
		}
	}
	return time.Unix(1_600_000_000, 0)
}

func unix(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return time.Time{}
	case n > 1e11:
		return time.UnixMilli(n)
	}
	return time.Unix(n, 0)
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
	covered := map[string]bool{}
	for i, v := range vectors(t) {
		s := lookup(t, v.Scheme)
		if v.Expect == "accept" {
			covered[s.Name()] = true
		}
		t.Run(fmt.Sprintf("%d/%s", i, v), func(t *testing.T) {
			proof, err := newVerifier(t, s, v.Secret).Verify(v.message(), v.clock())
			if (err == nil) != (v.Expect == "accept") {
				t.Fatalf("Verify: %v, want %s", err, v.Expect)
			}
			if v.Delivery != nil && proof.DeliveryID != *v.Delivery {
				t.Errorf("delivery ID %q, want %q", proof.DeliveryID, *v.Delivery)
			}
			if age := proof.SignedAt.Sub(v.clock()).Abs(); !proof.SignedAt.IsZero() && age >= time.Second {
				t.Errorf("signed at %v, want %v", proof.SignedAt, v.clock())
			}
		})
	}
	for _, s := range signature.Schemes() {
		if !covered[s.Name()] {
			t.Errorf("scheme %s has no vector that verifies", s.Name())
		}
	}
}

// Sign makes, for every scheme, what the provider made.
func TestSignMakesTheVectors(t *testing.T) {
	made := map[string]bool{
		"sendgrid": true, // the private key of its vector was never published, and no two ECDSA signatures are alike
		"discord":  true, // its vectors have the public key; TestBar signs with a private one
	}
	for _, v := range accepted(t) {
		s, m := lookup(t, v.Scheme), v.message()
		id := ""
		if v.Delivery != nil {
			id = *v.Delivery
		} else if names := s.DeliveryHeaders(); len(names) > 0 {
			id = http.Header(m.Header).Get(names[0])
		}
		at := v.clock()
		for name, value := range v.Headers { // to the millisecond, where the scheme signs those
			if n := unix(value); strings.HasSuffix(strings.ToLower(name), "timestamp") && !n.IsZero() {
				at = n
			} else if _, ts, ok := strings.Cut(value, "t="); ok && len(ts) > 13 && ts[13] == ',' {
				at = unix(ts[:13])
			}
		}
		headers, err := s.Sign([]byte(v.Secret), m, id, at)
		if err != nil {
			continue
		}
		same := true
		for name, value := range headers {
			same = same && http.Header(m.Header).Get(name) == value
		}
		made[s.Name()] = made[s.Name()] || same
	}
	for _, s := range signature.Schemes() {
		if !made[s.Name()] {
			t.Errorf("Sign of scheme %s made none of its vectors", s.Name())
		}
	}
}
