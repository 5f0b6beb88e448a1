package worker_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"millwright/runs/dispatch"
	"millwright/runs/wire"
	"millwright/runs/worker"
	"millwright/state"
	"millwright/state/statetest"
)

func TestWorkerWithARevokedKeyEnds(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	d, err := dispatch.Start(t.Context(), dispatch.Config{Store: s, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(t.Context()) })
	key, secret, err := s.CreateKey(t.Context(), "w", state.RoleWorker, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key.UID+" "+secret), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := wire.Connect(t.Context(), "nats://"+d.Addr(), file, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	ended := make(chan error, 1)
	go func() {
		ended <- worker.Run(t.Context(), worker.Config{Client: client, Dir: t.TempDir(), Slots: 2, MaxRefused: time.Millisecond})
	}()
	b := &bench{t: t, store: s, d: d}
	b.end(b.create(nil))
	if err := s.RevokeKey(t.Context(), key.UID); err != nil {
		t.Fatal(err)
	}
	b.create(nil) // wakes the claims that wait
	select {
	case err := <-ended:
		if !errors.Is(err, worker.ErrKeyRefused) {
			t.Errorf("the worker ended with %v", err)
		}
	case <-time.After(statetest.Patience):
		t.Fatal("the worker goes on with a revoked key")
	}
}
