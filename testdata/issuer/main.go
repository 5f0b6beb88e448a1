// Command issuer serves the example of a certified OpenID Connect provider on 127.0.0.1, for TestAcceptanceIssuer. It
// has the clients web and api with the secret "secret", the users test-user@localhost and test-user2 with the password
// "verysecure", and a new key at each start.
package main

import (
	"log"
	"log/slog"
	"net/http"
	"os"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: issuer PORT REDIRECT-URI...")
	}

	port, redirects := os.Args[1], os.Args[2:]
	issuer := "http://localhost:" + port
	storage.RegisterClients(
		storage.WebClient("web", "secret", redirects...),
		storage.WebClient("api", "secret", redirects...),
	)

	users := storage.NewStorage(storage.NewUserStore(issuer))
	provider := exampleop.SetupServer(issuer, users, slog.New(slog.DiscardHandler), false)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, provider))
}
