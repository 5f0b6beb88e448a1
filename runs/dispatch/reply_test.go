package dispatch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"millwright/runs/dispatch"
	"millwright/state"
	"millwright/state/statetest"
)

// TestAnswersGoToTheSenderAlone has a worker name reply subjects that it may not publish to, on a NATS where
// somebody listens to everything.
func TestAnswersGoToTheSenderAlone(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	key, secret, _ := workerKey(t, s, state.RoleWorker)
	victim, victimSecret, _ := workerKey(t, s, state.RoleWorker)
	const name, password = "server", "of-the-test"
	external, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		Users: []*server.User{
			{Username: name, Password: password},
			{Username: key.UID, Password: secret, Permissions: dispatch.Permissions(key.UID)},
			{Username: victim.UID, Password: victimSecret, Permissions: dispatch.Permissions(victim.UID)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	external.Start()
	defer external.Shutdown()
	if !external.ReadyForConnections(10 * time.Second) {
		t.Fatal("the external NATS does not come up")
	}

	credentials := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(credentials, []byte(name+" "+password), 0o600); err != nil {
		t.Fatal(err)
	}
	startDispatch(t, dispatch.Config{Store: s, URL: external.ClientURL(), Credentials: credentials})

	hostile := []string{
		"$JS.API.STREAM.DELETE.RUNS", "$JS.API.STREAM.PURGE.RUNS", "$SYS.REQ.SERVER.PING", "runs.queued.x", "_INBOX.x",
		"worker." + victim.UID + ".cancel", "worker." + victim.UID + ".finish", "worker." + key.UID + ".cancel",
		"_INBOX_" + victim.UID + ".x", "_INBOX_" + key.UID, "_INBOX_" + key.UID + "x.y", "",
	}
	heard := make(chan *nats.Msg, 1000)
	observer, err := nats.Connect(external.ClientURL(), nats.UserInfo(name, password))
	if err != nil {
		t.Fatal(err)
	}
	defer observer.Close()
	for _, subject := range hostile {
		if subject == "" {
			continue
		}
		if _, err := observer.ChanSubscribe(subject, heard); err != nil {
			t.Fatal(err)
		}
	}
	if err := observer.Flush(); err != nil {
		t.Fatal(err)
	}

	nc, err := nats.Connect(external.ClientURL(), nats.UserInfo(key.UID, secret), nats.CustomInboxPrefix("_INBOX_"+key.UID))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	r := create(t, s, nil)
	for _, verb := range []string{"start", "heartbeat", "append", "finish", "release", "file", "claim"} {
		subject := "worker." + key.UID + "." + verb
		for _, reply := range hostile {
			body := fmt.Appendf(nil, `{"run":%q,"token":"x","instance":"hostile","wait":50000000}`, r.ID)
			if err := nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: body}); err != nil {
				t.Fatal(err)
			}
		}

		// Requests of a verb are looked at in turn: once this one is answered, so are those before it.
		m, err := nc.Request(subject, []byte(`{"run":7}`), 10*time.Second)
		if err != nil || !strings.Contains(string(m.Data), "error") {
			t.Errorf("%s with a reply of its own: %v %v", verb, m, err)
		}
	}
	if err := observer.Flush(); err != nil {
		t.Fatal(err)
	}
	for len(heard) > 0 {
		m := <-heard
		t.Errorf("the server sent %s to %s", m.Data, m.Subject)
	}
	if got := run(t, s, r.ID); got.State != state.RunQueued {
		t.Errorf("a claim without a reply made the run %s", got.State)
	}

	m, err := nc.Request("worker."+key.UID+".claim", fmt.Appendf(nil, `{"instance":%q}`, strings.Repeat("i", 65)), 10*time.Second)
	if err != nil || !strings.Contains(string(m.Data), "at most 64") {
		t.Errorf("an instance that is too long: %v %v", m, err)
	}
}
