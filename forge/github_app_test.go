package forge_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/forge"
)

// appHost is GitHub as an app sees it.
type appHost struct {
	*testing.T
	mu       sync.Mutex
	key      *rsa.PublicKey
	lifetime time.Duration
	made     []string        // what each token is for
	revoked  map[string]bool // tokens
	absent   bool            // the app is not installed
	checked  []string        // bodies of check runs
	refuse   int             // status for a check run; 0: it is made
}

func (h *appHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()

	answer := func(status int, text string, args ...any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, text, args...)
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch path := strings.TrimPrefix(r.URL.Path, "/api/v3"); {
	case path == "/app" || path == "/repos/acme/tool/installation" || strings.HasPrefix(path, "/app/"):
		if !h.signed(token) {
			answer(401, `{"message": "A JSON web token could not be decoded"}`)
		} else if path == "/app" {
			answer(200, `{"id": 12345, "slug": "factory"}`)
		} else if h.absent {
			answer(404, `{"message": "Not Found"}`)
		} else if strings.HasSuffix(path, "/installation") {
			answer(200, `{"id": 7, "app_id": 12345}`)
		} else {
			var asked struct {
				Repositories []string
				Permissions  map[string]string
			}
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				h.Error(err)
			}
			h.made = append(h.made, fmt.Sprint(asked.Repositories, asked.Permissions))
			answer(201, `{"token": "ghs_%d", "expires_at": %q}`, len(h.made), time.Now().Add(h.lifetime).Format(time.RFC3339))
		}
	case !strings.HasPrefix(token, "ghs_") || h.revoked[token]:
		answer(401, `{"message": "Bad credentials"}`)
	case path == "/repos/acme/tool/check-runs" && h.refuse != 0:
		answer(h.refuse, `{"message": "Resource not accessible by integration"}`)
	case path == "/repos/acme/tool/check-runs":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			h.Error(err)
		}
		h.checked = append(h.checked, string(body))
		answer(201, `{"id": 4}`)
	default:
		answer(200, `{"name": "main", "commit": {"sha": %q}}`, mainCommit)
	}
}

// signed reports whether the app signed a JSON web token.
func (h *appHost) signed(token string) bool {
	part := strings.Split(token, ".")
	if len(part) != 3 {
		return false
	}

	signature, err := base64.RawURLEncoding.DecodeString(part[2])
	claims, err2 := base64.RawURLEncoding.DecodeString(part[1])
	sum := sha256.Sum256([]byte(part[0] + "." + part[1]))
	return err == nil && err2 == nil && strings.Contains(string(claims), `"iss":"12345"`) &&
		rsa.VerifyPKCS1v15(h.key, crypto.SHA256, sum[:], signature) == nil
}

func (h *appHost) tokens() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.made...)
}

func newKey(t *testing.T) (*rsa.PublicKey, []byte) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return &key.PublicKey, pem.EncodeToMemory(block)
}

// TestGitHubApp asks for tokens that are good for one repository, and for new ones when they end.
func TestGitHubApp(t *testing.T) {
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
	ctx := t.Context()

	login, err := f.Login(ctx)
	must(t, err)
	equal(t, "login", login, "factory[bot]")

	c, err := f.Credential(ctx, tool)
	must(t, err)
	if c.User != "x-access-token" || c.Password != "ghs_1" || !c.Short || time.Until(c.Expires) < 50*time.Minute {
		t.Errorf("credential %+v", c)
	}
	equal(t, "what it is good for", host.tokens(), []string{"[tool] map[contents:read]"})

	var together sync.WaitGroup
	for range 20 {
		together.Go(func() {
			_, err := f.Branch(ctx, tool, "main")
			if err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	known := len(host.tokens())
	_, err = f.Branch(ctx, tool, "main")
	must(t, err)
	equal(t, "tokens", len(host.tokens()), known)

	host.mu.Lock()
	for i := range known {
		host.revoked[fmt.Sprintf("ghs_%d", i+1)] = true
	}
	host.mu.Unlock()
	_, err = f.Branch(ctx, tool, "main")
	is(t, err, forge.ErrDenied)
	_, err = f.Branch(ctx, tool, "main") // with a new one
	must(t, err)

	public, secret = newKey(t)
	_, err = f.Branch(ctx, tool, "main")
	is(t, err, forge.ErrDenied)
	host.mu.Lock()
	host.key, host.lifetime = public, 30*time.Second
	host.mu.Unlock()
	for range 3 { // each token is about to end
		before := len(host.tokens())
		_, err = f.Branch(ctx, tool, "main")
		must(t, err)
		equal(t, "new tokens", len(host.tokens())-before, 1)
	}

	host.mu.Lock()
	host.absent = true
	host.mu.Unlock()
	_, err = f.Credential(ctx, forge.Repository{Owner: "acme", Name: "tool"})
	is(t, err, forge.ErrNotFound)

	secret = []byte("no key " + testToken)
	_, err = f.Branch(ctx, tool, "main")
	is(t, err, forge.ErrDenied)
	if want := "the private key of the app cannot be read"; !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}
