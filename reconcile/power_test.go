package reconcile_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"millwright/reconcile"
	"millwright/state"
	"millwright/state/statetest"
	"millwright/state/statetest/powerfs"
)

// These variables make the test binary a process that applies the commit of a repository.
const (
	powerDSN   = "MILLWRIGHT_TEST_POWER_DSN"
	powerURL   = "MILLWRIGHT_TEST_POWER_URL"
	powerClone = "MILLWRIGHT_TEST_POWER_CLONE"
)

// applyCommit applies the present commit, and prints what happened.
func applyCommit(dsn string) error {
	ctx := context.Background()
	s, err := state.Open(ctx, state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
	if err != nil {
		return err
	}
	defer s.Close()
	source, err := reconcile.Git(reconcile.GitConfig{URL: os.Getenv(powerURL), CloneDir: os.Getenv(powerClone)})
	if err != nil {
		return err
	}
	defer source.Close()
	f, err := s.EnsureFactory(ctx, "default", source.Describe(), false)
	if err != nil {
		return err
	}

	loop := reconcile.New(reconcile.Config{Store: s, Factory: f, Source: source})
	for attempt := 1; ; attempt++ { // as Run does after a failure, without its wait
		r := loop.Once(ctx, reconcile.Request{})
		switch {
		case r.Outcome == state.OutcomeApplied || r.Outcome == state.OutcomeUnchanged:
			return nil
		case attempt == 3:
			return fmt.Errorf("%s: %s", r.Outcome, r.Message)
		}
		fmt.Println(r.Outcome, r.Message)
	}
}

// powered is a repository, and a state with a clone of it on a disk whose power fails.
type powered struct {
	*repository
	dsn, url string
	commits  int
}

// push commits a change of each file, and returns the commit.
func (p *powered) push() string {
	p.commits++
	t := tree{}
	for i := range 12 {
		t[fmt.Sprintf("webhooks/w%d.yaml", i)] = hook("A", fmt.Sprintf("deliveryIdHeader: X-Commit-%d", p.commits))
	}
	if p.commits%3 == 0 { // a commit of which most is in the clone
		t["webhooks/w0.yaml"] = hook("A", fmt.Sprintf("deliveryIdHeader: X-Commit-%d", p.commits)) +
			"# " + strings.Repeat(fmt.Sprint(p.commits), 2000) + "\n"
	}
	return p.repository.push(t, fmt.Sprint("commit ", p.commits))
}

// apply runs a process that applies the commit with the clone on a disk, until it ends or the power fails.
func (p *powered) apply(disk *powerfs.Disk) (string, error) {
	dir, unmount := disk.Mount(p)
	defer unmount()
	self, err := os.Executable()
	must(p, err)

	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), powerDSN+"="+p.dsn, powerURL+"="+p.url,
		powerClone+"="+filepath.Join(dir, "clones", "default"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(p, cmd.Start())

	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-disk.Failed():
			_ = cmd.Process.Kill()
		case <-ended:
		}
	}()

	err = cmd.Wait()
	return out.String(), err
}

// serves checks that the state serves a commit as a whole.
func (p *powered) serves(commit string) error {
	ctx := context.Background()
	s, err := state.Open(ctx, state.Config{DSN: p.dsn, MasterKey: statetest.MasterKey()})
	must(p, err)
	defer s.Close()
	all, err := s.Factories(ctx)
	must(p, err)
	cur, err := s.Current(ctx, all[0].UID)
	must(p, err)

	if cur.Factory.Applied.ID != commit {
		return fmt.Errorf("the state serves %s, not %s", cur.Factory.Applied.ID, commit)
	}
	if len(cur.Webhooks) != 12 {
		return fmt.Errorf("the state serves %d webhooks, not 12", len(cur.Webhooks))
	}
	for _, w := range cur.Webhooks {
		if want := fmt.Sprint("X-Commit-", p.commits); w.Spec.DeliveryIDHeader != want {
			return fmt.Errorf("%s has the header %s, not %s", w.Spec.Name, w.Spec.DeliveryIDHeader, want)
		}
	}
	return nil
}

// TestPowerFailureOfClones lets the power fail while a git source fetches into its clone. The next start applies the
// present commit, with what is left of the clone or with a new one.
func TestPowerFailureOfClones(t *testing.T) {
	r := newRepository(t)
	p := &powered{repository: r, dsn: statetest.SQLite(t), url: r.serve("").url()}
	s := statetest.Open(t, p.dsn)
	secret(t, s, "A", "value-of-A")
	must(t, s.Close())

	random := rand.New(rand.NewPCG(1, 0))
	disk := powerfs.NewDisk()
	failed, repaired := 0, 0
	for round := range powerfs.Failures(t, 20) {
		if round%7 == 6 {
			disk = powerfs.NewDisk()
		}
		commit := p.push()
		disk.FailAfter(1 + random.IntN([]int{5, 20, 60}[random.IntN(3)]))
		_, _ = p.apply(disk)
		select {
		case <-disk.Failed():
			failed++
		default:
			disk.Fail() // behind what it did
		}

		disk = disk.AfterFailure(random)
		said, err := p.apply(disk)
		if err == nil {
			err = p.serves(commit)
		}
		if err != nil {
			t.Fatalf("failure %d: the next start does not serve: %v\n%s", 1+round, err, said)
		}
		if said != "" {
			repaired++
		}
		disk = disk.AfterFailure(random)
	}
	if failed == 0 {
		t.Error("the power never failed during a fetch")
	}
	t.Logf("the power failed %d times during a fetch; %d starts needed a second attempt", failed, repaired)
}
