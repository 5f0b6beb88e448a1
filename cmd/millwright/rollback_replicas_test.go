package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright/schema/agefile"
	"millwright/state/statetest"
)

// rolledBack is a factory of several servers on one PostgreSQL, with a sealed secret.
type rolledBack struct {
	*crashWorld
	bases   []string
	servers []*process
}

// factoryNow is what the test reads of a factory.
type factoryNow struct {
	Recipient string
	Suspended bool
	Sync      struct {
		Applied   string `json:"applied_revision"`
		Attempted string `json:"attempted_revision"`
	}
}

// get reads from the API of a server.
func (w *rolledBack) get(t *testing.T, server int, path string, out any) {
	t.Helper()
	resp, err := http.DefaultClient.Do(authorised(t, http.MethodGet, w.bases[server]+"/api/v1"+path, crashKey, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", path, resp.StatusCode, text, err)
	}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
}

// write changes a file of the definition; empty text removes it.
func (w *rolledBack) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(w.dir, "factory", name)
	if text == "" {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new~", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new~", path); err != nil {
		t.Fatal(err)
	}
}

// seal writes the sealed secret OWN with a value.
func (w *rolledBack) seal(t *testing.T, value string) {
	t.Helper()
	var now factoryNow
	w.get(t, 0, "/factory/"+w.factory, &now)
	file, err := agefile.Seal(now.Recipient, w.factory, "OWN", []byte(value))
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "secrets/OWN.age", string(file))
}

// answers waits until every living server answers a delivery to a webhook with a status.
func (w *rolledBack) answers(t *testing.T, webhook, token string, want int) {
	t.Helper()
	for i, base := range w.bases {
		if w.servers[i] == nil {
			continue
		}
		w.waitFor(t, w.servers[i], base+" answers as "+http.StatusText(want), func() bool {
			return statusOf(t, authorised(t, http.MethodPost, base+"/webhooks/w/"+webhook, token, "{}")) == want
		})
	}
}

// webhook waits for a webhook and returns its UID.
func (w *rolledBack) webhook(t *testing.T, name string) (uid string) {
	t.Helper()
	w.waitFor(t, w.servers[0], "the webhook "+name, func() bool {
		var list struct{ Webhooks []struct{ UID, Name string } }
		w.get(t, 0, "/factory/"+w.factory+"/webhooks", &list)
		for _, hook := range list.Webhooks {
			if hook.Name == name {
				uid = hook.UID
			}
		}
		return uid != ""
	})
	return uid
}

// attempted waits until the servers attempted another revision than before, and served none.
func (w *rolledBack) attempted(t *testing.T, server int, before factoryNow) factoryNow {
	t.Helper()
	var now factoryNow
	w.waitFor(t, w.servers[server], "another revision is attempted", func() bool {
		w.get(t, server, "/factory/"+w.factory, &now)
		return now.Sync.Attempted != before.Sync.Attempted
	})
	if !now.Suspended || now.Sync.Applied != before.Sync.Applied {
		t.Errorf("after another revision: %+v, before %+v", now, before)
	}
	return now
}

// TestAcceptanceRollbackReplicas rolls a factory with a sealed secret back on one of three servers of a PostgreSQL.
// All of them stay there, also after the one that reconciles is killed, until another one resumes.
func TestAcceptanceRollbackReplicas(t *testing.T) {
	t.Parallel()
	w := &rolledBack{crashWorld: newCrashWorld(t, startPostgres(t).dsn)}
	start := func(port string) *process {
		p := w.start(t, "--listen", "127.0.0.1:"+port)
		w.waitFor(t, p, "server "+port+" is ready", func() bool {
			return statusOf(t, authorised(t, http.MethodGet, "http://127.0.0.1:"+port+"/readyz", "", "")) == http.StatusOK
		})
		return p
	}
	ports := []string{w.port, mustPort(t), mustPort(t)}
	for _, port := range ports {
		w.bases = append(w.bases, "http://127.0.0.1:"+port)
		w.servers = append(w.servers, start(port))
	}

	w.seal(t, "first-value")
	w.write(t, "webhooks/own.yaml", "secretName: OWN\n")
	own := w.webhook(t, "own")
	w.answers(t, own, "first-value", http.StatusAccepted)
	var first factoryNow
	w.get(t, 1, "/factory/"+w.factory, &first)
	w.seal(t, "second-value")
	w.answers(t, own, "second-value", http.StatusAccepted)
	w.write(t, "webhooks/more.yaml", "secretName: T\n")
	more := w.webhook(t, "more")
	w.answers(t, more, crashToken, http.StatusAccepted)

	path := "/api/v1/factory/" + w.factory
	back := authorised(t, http.MethodPost, w.bases[2]+path+"/rollback", crashKey, `{"revision": "`+first.Sync.Applied+`"}`)
	if got := statusOf(t, back); got != http.StatusOK {
		t.Fatalf("rollback: %d", got)
	}
	w.answers(t, more, crashToken, http.StatusNotFound)
	w.answers(t, own, "second-value", http.StatusAccepted)
	w.answers(t, own, "first-value", http.StatusUnauthorized)
	var now factoryNow
	w.get(t, 0, "/factory/"+w.factory, &now)
	if !now.Suspended || now.Sync.Applied != first.Sync.Applied {
		t.Errorf("after the rollback: %+v", now)
	}

	// The first server reconciles: it began first. It is killed, and another one goes on.
	w.write(t, "webhooks/third.yaml", "secretName: T\n")
	now = w.attempted(t, 0, now)
	w.servers[0].Process.Kill()
	w.servers[0].Wait()
	w.servers[0] = nil
	w.write(t, "webhooks/third.yaml", "")
	w.write(t, "webhooks/fourth.yaml", "secretName: T\n")
	now = w.attempted(t, 1, now)
	w.answers(t, more, crashToken, http.StatusNotFound)
	if status, text, err := visit(http.DefaultClient, w.bases[1]+"/readyz", nil); err != nil || status != 200 {
		t.Errorf("a suspended server is not ready: %d %s %v", status, text, err)
	}
	suspended := false
	for _, base := range w.bases[1:] {
		suspended = suspended || strings.Contains(w.figures(t, base), `millwright_factory_suspended{factory="crash"} 1`)
	}
	if !suspended {
		t.Error("no server's metrics say that the factory is suspended")
	}

	w.servers[0] = start(ports[0])
	w.answers(t, more, crashToken, http.StatusNotFound)
	w.answers(t, own, "second-value", http.StatusAccepted)
	if got := statusOf(t, authorised(t, http.MethodPost, w.bases[1]+path+"/resume", crashKey, "")); got != http.StatusOK {
		t.Fatalf("resume: %d", got)
	}
	w.answers(t, more, crashToken, http.StatusAccepted)
	w.answers(t, w.webhook(t, "fourth"), crashToken, http.StatusAccepted)
	statetest.Until(t, "no server's metrics say that the factory is suspended", func() bool {
		for _, base := range w.bases {
			if strings.Contains(w.figures(t, base), `millwright_factory_suspended{factory="crash"} 1`) {
				return false
			}
		}
		return true
	})
}

// figures returns the metrics of a server.
func (w *rolledBack) figures(t *testing.T, base string) string {
	t.Helper()
	resp, err := http.DefaultClient.Do(authorised(t, http.MethodGet, base+"/metrics", crashKey, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
