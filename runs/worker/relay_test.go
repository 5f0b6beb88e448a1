package worker_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"

	"millwright/bounds"
	"millwright/forge"
	"millwright/forge/forgetest"
	"millwright/runs/dispatch"
	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/statetest"
)

// elsewhere is a bench whose worker is on another machine: it reads repositories through the server.
func elsewhere(t *testing.T, token string, s forge.Settings) (*bench, *wire.Client) {
	t.Helper()
	forges, err := forge.Open(forge.Config{
		Forges:  map[string]forge.Settings{"local": s},
		Allowed: map[string][]string{"f": nil},
		Secret:  func(context.Context, string) ([]byte, error) { return []byte(token), nil },
	})
	if err != nil {
		t.Fatal(err)
	}

	b := &bench{t: t, store: statetest.Open(t, statetest.SQLite(t)), dir: t.TempDir()}
	limits := bounds.New(bounds.Config{})
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.d.Relay(limits, func(*http.Request) string { return "worker" }).ServeHTTP(w, r)
	}))
	t.Cleanup(relay.Close)

	b.d, err = dispatch.Start(t.Context(), dispatch.Config{
		Store: b.store, Forges: forges, Listen: "127.0.0.1:0", PublicURL: relay.URL,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.d.Close(context.Background()) })

	key, secret, err := b.store.CreateKey(t.Context(), "remote", state.RoleWorker, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "worker.key")
	if err := os.WriteFile(file, []byte(key.UID+"\n"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := wire.Connect(t.Context(), "nats://"+b.d.Addr(), file, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return b, client
}

// TestRepositoriesThroughTheServer has a worker elsewhere check out a repository whose token it does not get.
// Its mirror has the address of the forge, and is used again.
func TestRepositoriesThroughTheServer(t *testing.T) {
	const token = "s3cret-token-of-the-forge"
	o := newOrigin(t)
	o.commit("acme/shop", map[string]string{"a": "the text"})
	server := serveGit(t, o.dir, token)
	b, client := elsewhere(t, token, forge.Settings{
		Kind: "git", URL: server.URL + "/{owner}/{name}.git", TokenSecret: "T",
	})
	b.workAs(client, configOf(sh(`cat a; git remote get-url origin; echo changed > a`)))
	factory := b.with(nil, "acme/shop")
	for range 2 {
		r := b.succeeded(b.in(factory))
		wantIn(t, b.said(r), "the text", server.URL+"/acme/shop.git")
		wantIn(t, b.left(r, "changes.patch"), "+changed")
	}
	if mirrors, err := filepath.Glob(filepath.Join(b.dir, "mirrors", "*", "HEAD")); err != nil || len(mirrors) != 1 {
		t.Errorf("mirrors %v %v", mirrors, err)
	}

	o.commit("acme/shop", map[string]string{"a": "another text"})
	wantIn(t, b.said(b.succeeded(b.in(factory))), "another text")
}

// TestAcceptanceRepositoriesOfGiteaThroughTheServer is the same with a private repository of a real Gitea,
// whose token is then revoked.
func TestAcceptanceRepositoriesOfGiteaThroughTheServer(t *testing.T) {
	server := forgetest.Start(t)
	server.Organization("acme")
	server.Repository("acme", "shop", map[string]string{"a": "the text"})
	private := true
	if _, _, err := server.API().EditRepo("acme", "shop", gitea.EditRepoOption{Private: &private}); err != nil {
		t.Fatal(err)
	}
	token := server.User("robot")
	if _, err := server.API().AddCollaborator("acme", "shop", "robot", gitea.AddCollaboratorOption{}); err != nil {
		t.Fatal(err)
	}

	b, client := elsewhere(t, token, server.Settings())
	b.workAs(client, configOf(sh(`cat a; git remote get-url origin; env; cat .git/config`)))
	factory := b.with(nil, "acme/shop")
	said := b.said(b.succeeded(b.in(factory)))
	wantIn(t, said, "the text", server.URL+"/acme/shop.git")
	if strings.Contains(said, token) {
		t.Error("the harness has the token")
	}

	server.Revoke("robot")
	r := b.end(b.in(factory))
	if r.State != state.RunError || !strings.Contains(r.StatusMessage, "the forge refuses the credential") {
		t.Errorf("run is %s: %s", r.State, r.StatusMessage)
	}
}
