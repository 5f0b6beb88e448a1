package reconcile_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"millwright/reconcile"
	"millwright/state"
	"millwright/state/statetest"
)

func TestNoticesAreCoalesced(t *testing.T) {
	r := newRepository(t)
	r.push(two, "one")
	s := r.serve("")
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)), gitSource(t, reconcile.GitConfig{URL: s.url()}), nil)
	b.run()
	statetest.Until(t, "applied", func() bool { return b.now().SyncState == state.SyncApplied })
	asked := s.requests.Load()
	last := ""
	for n := range 5 {
		last = r.push(tree{"webhooks/a.yaml": hook("A"), "webhooks/b.yaml": hook("B"), "n": strings.Repeat("x", n)}, "change")
		for range 20 {
			b.Notice()
		}
	}
	statetest.Until(t, "the last push applied", func() bool { return b.now().Applied.ID == last })
	if n := s.requests.Load() - asked; n > 20 {
		t.Errorf("%d requests for 100 notices of 5 pushes", n)
	}
}

func TestMetrics(t *testing.T) {
	root := t.TempDir()
	reg := prometheus.NewRegistry()
	m, err := reconcile.NewMetrics(reg)
	must(t, err)
	if _, err := reconcile.NewMetrics(reg); err == nil {
		t.Error("registered twice without an error")
	}
	s := statetest.Open(t, statetest.SQLite(t))
	b := newBench(t, s, dir(t, root), func(c *reconcile.Config) { c.Metrics = m })
	two.write(t, root)
	b.once(state.OutcomeApplied, true)
	secret(t, s, "A", "newer")
	b.once(state.OutcomeUnchanged, false)
	tree{"webhooks/a.yaml": hook("A"), "webhooks/b.yaml": hook("NONE")}.write(t, root)
	b.once(state.OutcomeRefused, true)
	b.once(state.OutcomeRefused, false)
	tree{}.write(t, root)
	b.once(state.OutcomeRefused, true)
	b.once(state.OutcomeRefused, false)
	want := `
# HELP millwright_reconcile_problems Problems of the revision that was attempted last, by rule.
# TYPE millwright_reconcile_problems gauge
millwright_reconcile_problems{factory="default",rule="prune-guard",severity="error"} 1
# HELP millwright_reconcile_prune_refusals_total Revisions refused because they would delete too many webhooks.
# TYPE millwright_reconcile_prune_refusals_total counter
millwright_reconcile_prune_refusals_total{factory="default"} 1
# HELP millwright_webhooks_secret_stale Webhooks whose secret has a newer value that waits for the next apply.
# TYPE millwright_webhooks_secret_stale gauge
millwright_webhooks_secret_stale{factory="default"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "millwright_reconcile_problems", "millwright_reconcile_prune_refusals_total", "millwright_webhooks_secret_stale"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(reg, "millwright_reconcile_duration_seconds"); err != nil || n != 3 {
		t.Errorf("%d results are counted, want applied, unchanged and refused (%v)", n, err)
	}
	m.Forget("default")
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 0 {
		t.Errorf("%d figures of a factory that was forgotten (%v)", n, err)
	}
}

// replicas opens a shared state twice, as two processes do.
func replicas(t *testing.T) (*state.Store, *state.Store) {
	t.Helper()
	dsn := statetest.Postgres(t)
	return statetest.Open(t, dsn), statetest.Open(t, dsn)
}

func TestOneReplicaReconcilesAtATime(t *testing.T) {
	s1, s2 := replicas(t)
	root := t.TempDir()
	two.write(t, root)
	b1, b2 := newBench(t, s1, dir(t, root), nil), newBench(t, s2, dir(t, root), nil)
	ctx, kill := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b1.Run(ctx)
	}()
	statetest.Until(t, "applied by the first", func() bool { return b1.now().SyncState == state.SyncApplied })
	b2.run()
	enabled := []string{"enabled: false", "enabled: true", "enabled: false"}
	for _, e := range enabled {
		put(t, filepath.Join(root, "webhooks/b.yaml"), hook("B", e))
		before := b1.now().Applied.ID
		statetest.Until(t, "applied by the one that leads", func() bool { return b1.now().Applied.ID != before })
	}
	kill()
	<-done
	put(t, filepath.Join(root, "webhooks/c.yaml"), hook("C"))
	statetest.Until(t, "applied by the other", func() bool { return len(b2.webhooks()) == 3 })
	if got, want := b2.outcomes(), "applied applied applied applied applied"; got != want {
		t.Errorf("history %q, want %q", got, want)
	}
}

// TestTakeover has a replica hold the lease that never comes back.
func TestTakeover(t *testing.T) {
	s1, s2 := replicas(t)
	root := t.TempDir()
	two.write(t, root)
	b := newBench(t, s2, dir(t, root), nil)
	held, err := s1.Lease(t.Context(), "reconcile/"+b.factory.UID, "dead", 1500*time.Millisecond)
	if err != nil || !held {
		t.Fatalf("lease: %v %v", held, err)
	}
	b.run()
	statetest.Until(t, "taken over", func() bool { return b.now().SyncState == state.SyncApplied })
	if held, err := s1.Lease(t.Context(), "reconcile/"+b.factory.UID, "dead", time.Second); held || err != nil {
		t.Errorf("the dead replica got the lease back: %v %v", held, err)
	}
}

// TestMetricsOfAnotherReplica holds that only the replica that holds the lease says what a factory's state is.
func TestMetricsOfAnotherReplica(t *testing.T) {
	dsn := statetest.Postgres(t)
	root := t.TempDir()
	two.write(t, root)
	reg := prometheus.NewRegistry()
	m, err := reconcile.NewMetrics(reg)
	must(t, err)
	b := newBench(t, statetest.Open(t, dsn), dir(t, root), func(c *reconcile.Config) { c.Metrics = m })
	described := func() int {
		n, err := testutil.GatherAndCount(
			reg,
			"millwright_factory_suspended",
			"millwright_reconcile_problems",
			"millwright_webhooks_secret_stale",
		)
		must(t, err)
		return n
	}

	b.once(state.OutcomeApplied, true) // asked for by a client, without the lease
	if n := described(); n != 0 {
		t.Errorf("%d figures of a replica without the lease", n)
	}

	b.run()
	statetest.Until(t, "the replica with the lease describes the factory", func() bool { return described() > 0 })
	admin, err := sql.Open("pgx", dsn)
	must(t, err)
	defer admin.Close()
	_, err = admin.ExecContext(t.Context(), `UPDATE locks SET holder = 'other', lease_until = $1 WHERE name = $2`,
		time.Now().Add(time.Hour).UnixMicro(), "reconcile/"+b.factory.UID)
	must(t, err)
	statetest.Until(t, "the replica that lost the lease describes nothing", func() bool { return described() == 0 })
}

// TestTakeoverFromAKilledProcess kills the process that reconciles a factory: another one takes it over,
// and the lease is why it did not before.
func TestTakeoverFromAKilledProcess(t *testing.T) {
	t.Parallel()
	dsn := statetest.Postgres(t)
	root := t.TempDir()
	two.write(t, root)
	b := newBench(t, statetest.Open(t, dsn), dir(t, root), nil)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDSN+"="+dsn, crashDir+"="+root, crashRun+"=1")
	must(t, cmd.Start())
	killed := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(killed)
	statetest.Until(t, "applied by the other process", func() bool { return b.now().SyncState == state.SyncApplied })
	b.run()
	killed()
	since := time.Now()
	if held, err := b.store.Lease(t.Context(), "reconcile/"+b.factory.UID, "a third", time.Millisecond); held || err != nil {
		t.Errorf("the lease of a process that has just died: %v %v", held, err)
	}
	tree{"webhooks/a.yaml": hook("C"), "webhooks/b.yaml": hook("B")}.write(t, root)
	statetest.Until(t, "taken over", func() bool {
		all, err := b.store.Webhooks(t.Context(), b.factory.UID, false)
		must(t, err)
		return all[0].Spec.SecretName == "C"
	})
	t.Logf("taken over %v after the kill", time.Since(since).Round(100*time.Millisecond))
}

func TestANoticeReachesTheReplicaThatReconciles(t *testing.T) {
	s1, s2 := replicas(t)
	r := newRepository(t)
	r.push(two, "one")
	leader := newBench(t, s1, gitSource(t, reconcile.GitConfig{URL: r.fileURL()}), nil)
	leader.run()
	statetest.Until(t, "applied", func() bool { return leader.now().SyncState == state.SyncApplied })
	other := newBench(t, s2, gitSource(t, reconcile.GitConfig{URL: r.fileURL()}), nil)
	other.run()
	r.push(tree{"webhooks/a.yaml": hook("A")}, "two")
	statetest.Until(t, "applied after a notice to the other", func() bool {
		other.Notice()
		return strings.Join(leader.webhooks(), " ") == "a"
	})
	head := r.push(tree{"webhooks/a.yaml": hook("B")}, "three")
	result, err := other.Sync(t.Context(), reconcile.SyncOptions{})
	if err != nil || result.Revision.ID != head || leader.now().Applied.ID != head {
		t.Errorf("a sync on the replica that does not lead: %+v %v", result, err)
	}
}

// TestNewSecretWakesFailedSource gives a source its token after it has failed many times: the next try is
// minutes away.
func TestNewSecretWakesFailedSource(t *testing.T) {
	r := newRepository(t)
	head := r.push(two, "one")
	server := r.serve("right")
	s := statetest.Open(t, statetest.SQLite(t))
	secret(t, s, "GIT_TOKEN", "wrong")
	source := gitSource(t, reconcile.GitConfig{URL: server.url(), Token: func(ctx context.Context) ([]byte, error) {
		return s.SecretValue(ctx, "GIT_TOKEN")
	}})
	b := newBench(t, s, source, func(c *reconcile.Config) { c.MaxBackoff = time.Hour })
	b.run()
	for range 9 {
		asked := server.requests.Load()
		b.Notice()
		statetest.Until(t, "another request", func() bool { return server.requests.Load() > asked })
	}

	secret(t, s, "GIT_TOKEN", "right")
	statetest.Until(t, "applied", func() bool { return b.now().Applied.ID == head })
}
