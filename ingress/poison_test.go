package ingress_test

import (
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"millwright/ingress"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// TestUnreadableWebhooks serves deliveries while rows of one factory cannot be read as they are stored: its
// senders are told to try again later, and those of another are served.
func TestUnreadableWebhooks(t *testing.T) {
	for name, poison := range map[string]string{
		"a webhook":     `UPDATE webhooks SET spec = '{' WHERE factory_uid = $1`,
		"a secret":      `UPDATE secret_versions SET sealed = CAST('not sealed by any key, and long' AS %s) WHERE name = 'KEY' AND $1 <> ''`,
		"an automation": `UPDATE resources SET spec = '[]' WHERE factory_uid = $1`,
		"its file":      `UPDATE factories SET spec = 'x' WHERE uid = $1`,
	} {
		t.Run(name, func(t *testing.T) {
			statetest.EachDSN(t, func(t *testing.T, dsn string) {
				s := statetest.Open(t, dsn)
				bad := makeWorld(t, s, ingress.Config{})
				bad.hook(enabled("alerts"))
				bad.automation("look", "alerts", "")
				good := *bad
				f, err := s.EnsureFactory(t.Context(), "other", state.Source{Kind: "managed"}, false)
				if err != nil {
					t.Fatal(err)
				}
				good.factory, good.uids = f.UID, map[string]string{}
				good.secret("OTHER", tokenSecret)
				good.hook(schema.Webhook{Name: "alerts", Enabled: true, SecretName: "OTHER"})
				good.automation("look", "alerts", "")
				if err := bad.in.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
				execRaw(t, dsn, poison, bad.factory)

				s.Close()
				s = statetest.Open(t, dsn)
				in, err := ingress.New(context.Background(), ingress.Config{Store: s, PublicURL: "https://hooks.example.com", Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { in.Close(context.Background()) })
				bad.in, bad.store, good.in, good.store = in, s, in, s
				bad.serve(in)
				good.addr = bad.addr
				for range 3 {
					r := bad.deliver("alerts", `{"n":1}`)
					want(t, r, http.StatusServiceUnavailable)
					if r.Header.Get("Retry-After") == "" {
						t.Error("no Retry-After")
					}
					r = good.deliver("alerts", `{"n":1}`)
					want(t, r, http.StatusAccepted)
				}
				good.secret("NEW", "x") // and a change of a definition is still served
				good.hook(enabled("second"))
				want(t, good.deliver("second", `{}`), map[bool]int{false: http.StatusAccepted, true: http.StatusServiceUnavailable}[name == "a secret"])
			})
		})
	}
}

func execRaw(t *testing.T, dsn, query string, args ...any) {
	t.Helper()
	driver, blob := "pgx", "BYTEA"
	if _, lite := state.SQLitePath(dsn); lite {
		driver, blob = "sqlite", "BLOB"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(strings.ReplaceAll(query, "%s", blob), args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
