package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"

	"millwright/schema"
	"millwright/state"
	"millwright/state/backup"
	"millwright/state/db"
	"millwright/state/seal"
	"millwright/state/statetest/powerfs"
)

var powerSeed = flag.Uint64("power-seed", 1, "seed of the failures of TestPowerFailure")

// The program that uses the file system is not the one that serves it: it is this binary, started with what it does
// in powerVariable, and with the directory.
const (
	powerVariable    = "POWER_FAILURE_TEST_DOES"
	powerDirVariable = "POWER_FAILURE_TEST_DIR"
)

// TestMain lets this binary stand in for a server whose power fails.
func TestMain(m *testing.M) {
	dir := os.Getenv(powerDirVariable)
	switch does := os.Getenv(powerVariable); does {
	case "":
		os.Exit(m.Run())
	case "check":
		var p promises
		err := json.NewDecoder(os.Stdin).Decode(&p)
		if err == nil {
			err = p.check(dir)
		}
		if err != nil {
			fmt.Println(err)
		}
		_ = json.NewEncoder(os.NewFile(3, "promises")).Encode(p)
	case "normal":
		sqlite.RegisterConnectionHook(func(c sqlite.ExecQuerierContext, _ string) error {
			_, err := c.ExecContext(context.Background(), `PRAGMA synchronous = NORMAL`, nil)
			return err
		})
		fallthrough
	default:
		w := server{dir: dir, notes: json.NewEncoder(os.NewFile(3, "notes"))}
		w.work(does)
	}
}

// promises are what calls on a state returned, and what was asked for and may have happened.
type promises struct {
	Accepted map[string]bool            // deliveries, by UID
	Secrets  map[string]string          // names and values
	Asked    map[string]string          // values that may have been stored instead
	Webhooks map[string]bool            // the common part of the two names of each apply
	Backups  map[string]map[string]bool // files, and the deliveries that were accepted before
	Restored string                     // the backup that the copy was made from
	Trying   string                     // the backup that it may have been made from instead
}

func newPromises() promises {
	return promises{
		Accepted: map[string]bool{},
		Secrets:  map[string]string{},
		Asked:    map[string]string{},
		Webhooks: map[string]bool{},
		Backups:  map[string]map[string]bool{},
	}
}

// note is one promise.
type note struct{ Kind, Name, Value string }

// keep adds a promise. begun has the deliveries that were accepted before each backup began.
func (p *promises) keep(n note, begun map[string]map[string]bool) {
	switch n.Kind {
	case "accepted":
		p.Accepted[n.Name] = true
	case "asked":
		p.Asked[n.Name] = n.Value
	case "stored":
		p.Secrets[n.Name] = n.Value
	case "applied":
		p.Webhooks[n.Name] = true
	case "copying":
		begun[n.Name] = maps.Clone(p.Accepted)
	case "copied":
		p.Backups[n.Name], p.Trying = begun[n.Name], n.Name
	case "restored":
		p.Restored = n.Name
	}
}

// TestPowerFailure lets the power fail, again and again, while a SQLite state accepts deliveries, applies definitions,
// stores secrets, rotates its master key, and is copied and restored. Whatever was promised is there afterwards,
// and nothing is half done.
func TestPowerFailure(t *testing.T) {
	p, lost := failPower(t, powerfs.Failures(t, 20), "")
	if lost != nil {
		t.Fatal(lost)
	}
	if len(p.Accepted) == 0 || len(p.Webhooks) == 0 || len(p.Secrets) == 0 {
		t.Error("nothing was promised")
	}
	t.Logf("kept: %d deliveries, %d applies, %d secrets, %d backups",
		len(p.Accepted), len(p.Webhooks), len(p.Secrets), len(p.Backups))
}

// TestPowerFailureIsFound holds that TestPowerFailure finds, within 20 failures, a disk that does not sync files or
// directories, and commits that SQLite does not sync.
func TestPowerFailureIsFound(t *testing.T) {
	for name, does := range map[string]string{
		"a disk that does not sync files":       "files",
		"a disk that does not sync directories": "directories",
		"synchronous=NORMAL":                    "normal",
	} {
		t.Run(name, func(t *testing.T) {
			_, lost := failPower(t, 20, does)
			if lost == nil {
				t.Error("nothing was lost")
			}
			t.Log(lost)
		})
	}
}

// TestPowerFailureOfFirstStart lets the power fail at each of the first changes of a new state, in which directories
// and keys are made, and at some of the later ones.
func TestPowerFailureOfFirstStart(t *testing.T) {
	const early, late = 12, 10
	random := rand.New(rand.NewPCG(*powerSeed, 1))
	for round := range early + late {
		after, times := 1+round, 5
		if round >= early {
			after, times = early+random.IntN(600), 1
		}

		disk := powerfs.NewDisk()
		disk.FailAfter(after)
		dir, unmount := disk.Mount(t)
		promised := newPromises()
		promised.until(t, disk, dir, "serve")
		unmount()

		for range times {
			p := promised
			dir, unmount := disk.AfterFailure(random).Mount(t)
			lost := p.checked(t, dir)
			unmount()
			if lost != nil {
				t.Fatalf("the power failed at change %d of a new state (-power-seed %d): %v", after, *powerSeed, lost)
			}
		}
	}
}

// failPower runs a state while the power fails. It returns what was promised, and what was lost of it. does is what
// the state does, or empty for everything; files and directories are everything on a disk that does not sync those.
func failPower(t *testing.T, times int, does string) (*promises, error) {
	t.Helper()
	random := rand.New(rand.NewPCG(*powerSeed, 0))
	p := new(newPromises())
	disk := powerfs.NewDisk()
	disk.IgnoreFileSync, disk.IgnoreNameSync = does == "files", does == "directories"
	for round := range times + 1 {
		if round%100 == 50 { // what is checked each time grows
			disk = powerfs.NewDisk()
			*p = newPromises()
		}
		dir, unmount := disk.Mount(t)
		lost := p.checked(t, dir)
		if lost == nil && round < times {
			one := []string{"serve", "serve", "serve", "copy", "rotate"}[random.IntN(5)]
			if does == "normal" {
				one = does
			}
			disk.FailAfter(1 + random.IntN([]int{5, 50, 500, 3000}[random.IntN(4)]))
			p.until(t, disk, dir, one)
		}
		unmount()

		if lost != nil {
			return p, fmt.Errorf("after %d failures (-power-seed %d): %w", round, *powerSeed, lost)
		}
		disk = disk.AfterFailure(random)
	}

	return p, nil
}

// program returns this binary, as one that does something with a directory, and what it writes.
func program(t *testing.T, does, dir string) (*exec.Cmd, io.ReadCloser) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), powerVariable+"="+does, powerDirVariable+"="+dir)
	cmd.ExtraFiles = []*os.File{w}
	cmd.Stderr = os.Stderr
	return cmd, r
}

// until has a program work until the power fails, and keeps what it promises.
func (p *promises) until(t *testing.T, disk *powerfs.Disk, dir, does string) {
	t.Helper()
	cmd, notes := program(t, does, dir)
	defer notes.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles[0].Close()

	go func() {
		<-disk.Failed()
		_ = cmd.Process.Kill()
	}()

	begun := map[string]map[string]bool{}
	for all := json.NewDecoder(notes); ; {
		var n note
		if all.Decode(&n) != nil {
			break
		}
		p.keep(n, begun)
	}

	_ = cmd.Wait()
	disk.Fail()
}

// checked has a program check what a failure left.
func (p *promises) checked(t *testing.T, dir string) error {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}

	cmd, answer := program(t, "check", dir)
	defer answer.Close()
	var said strings.Builder
	cmd.Stdin, cmd.Stdout = strings.NewReader(string(text)), &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles[0].Close()

	var now promises
	err = json.NewDecoder(answer).Decode(&now)
	if e := cmd.Wait(); e != nil || err != nil {
		t.Fatalf("the check ended: %v, %v, %s", e, err, said.String())
	}
	*p = now
	if said.Len() > 0 {
		return errors.New(strings.TrimSpace(said.String()))
	}
	return nil
}

// statePath is in directories that the first start makes.
func statePath(dir string) string { return filepath.Join(dir, "var", "lib", "state.db") }

// openPowered opens the state in a directory.
func openPowered(dir string) (*state.Store, error) {
	dsn := statePath(dir)
	key, err := seal.LoadKey(dsn, "", "")
	if err != nil {
		return nil, err
	}
	return state.Open(context.Background(), state.Config{DSN: dsn, MasterKey: key})
}

// server is a server whose power fails.
type server struct {
	dir   string
	mu    sync.Mutex
	notes *json.Encoder
	hooks hooks
}

func (w *server) note(kind, name, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.notes.Encode(note{kind, name, value})
}

// work works until a call fails.
func (w *server) work(does string) {
	if does == "rotate" {
		for w.rotate() == nil {
		}
		return
	}

	s, err := openPowered(w.dir)
	if err != nil {
		return
	}
	f, err := s.EnsureFactory(context.Background(), "acme", state.Source{Kind: "managed"}, false)
	if err != nil {
		return
	}
	w.hooks = hooks{s: s, factory: f.UID}

	tasks := []func() error{w.accept, w.accept, w.accept, w.secret, w.apply}
	if does == "copy" {
		tasks = append(tasks, w.copy)
	}

	var doing sync.WaitGroup
	for _, task := range tasks {
		doing.Go(func() {
			for {
				if err := task(); err != nil && !errors.Is(err, state.ErrMoved) {
					return
				}
			}
		})
	}
	doing.Wait()
}

// accept accepts a delivery to each webhook.
func (w *server) accept() error {
	r, err := w.hooks.s.Routing(context.Background())
	if err != nil {
		return err
	}

	for _, f := range r.Factories {
		for _, hook := range f.Webhooks {
			a := w.hooks.acceptanceAt(f, hook, state.NewID("event"), 1)
			if _, err := w.hooks.s.Accept(context.Background(), a); err != nil {
				return err
			}
			w.note("accepted", a.UID, "")
		}
	}
	return nil
}

// secret stores a secret.
func (w *server) secret() error {
	value := state.NewID("value")
	name := "SECRET_" + strings.ToUpper(value[len(value)-1:])
	w.note("asked", name, value)
	if _, err := w.hooks.s.SetSecret(context.Background(), name, []byte(value)); err != nil {
		return err
	}
	w.note("stored", name, value)
	return nil
}

// apply adds two webhooks at once, until there are enough.
func (w *server) apply() error {
	ctx := context.Background()
	cur, err := w.hooks.s.Current(ctx, w.hooks.factory)
	if err != nil {
		return err
	}
	key, err := w.hooks.s.SetSecret(ctx, "KEY", []byte("k3y"))
	if err != nil {
		return err
	}
	if len(cur.Webhooks) >= 20 {
		return errors.New("enough")
	}

	name := state.NewID("w")
	change := func(name string) state.WebhookChange {
		return state.WebhookChange{
			UID: state.NewID(state.PrefixWebhook), SecretVersion: key.Version,
			Spec: schema.Webhook{
				Name: name, Path: "webhooks/" + name + ".yaml", AuthMode: schema.AuthToken, SecretName: "KEY",
				Enabled: true,
			},
		}
	}
	err = w.hooks.s.Apply(ctx, state.ChangeSet{
		FactoryUID: w.hooks.factory, Base: cur.Factory.Generation, BaseRevision: cur.Factory.Applied.ID,
		Revision: state.Revision{ID: state.NewID("rev")}, Started: time.Now(),
		Webhooks: []state.WebhookChange{change(name + "-a"), change(name + "-b")},
	})
	if err == nil {
		w.note("applied", name, "")
	}
	return err
}

// copy makes a backup, and restores it beside the state.
func (w *server) copy() error {
	ctx := context.Background()
	name := state.NewID("backup")
	to := filepath.Join(w.dir, name)
	w.note("copying", name, "")
	if _, err := backup.Make(ctx, statePath(w.dir), to); err != nil {
		return err
	}
	w.note("copied", name, "")

	if _, err := backup.Restore(ctx, to, filepath.Join(w.dir, "copy", "state.db"), true); err != nil {
		return err
	}
	w.note("restored", name, "")
	return nil
}

// rotate replaces the master key.
func (w *server) rotate() error {
	dsn := statePath(w.dir)
	key, err := seal.LoadKey(dsn, "", "")
	if err != nil {
		return err
	}
	_, err = seal.Rotate(context.Background(), dsn, key, seal.KeyFile(dsn), "")
	return err
}

// check opens what a failure left, and returns what was promised and is not there.
func (p *promises) check(dir string) error {
	s, err := openPowered(dir)
	if err != nil {
		return err
	}
	defer s.Close()

	if err := sound(statePath(dir)); err != nil {
		return err
	}
	if err := p.checkDeliveries(s, p.Accepted); err != nil {
		return err
	}
	if err := p.checkSecrets(s); err != nil {
		return err
	}
	if err := p.checkWebhooks(s); err != nil {
		return err
	}
	return p.checkBackups(dir)
}

// sound checks a SQLite file by SQLite itself.
func sound(path string) error {
	d, err := db.OpenFile(path, "")
	if err != nil {
		return err
	}
	defer d.Close()

	var says string
	if err := d.QueryRow(`PRAGMA integrity_check`).Scan(&says); err != nil || says != "ok" {
		return fmt.Errorf("%s: integrity check: %s %v", filepath.Base(path), says, err)
	}
	return nil
}

func (p *promises) checkDeliveries(s *state.Store, accepted map[string]bool) error {
	for uid := range accepted {
		runs, err := s.RunsOfDeliveries(context.Background(), uid)
		if err != nil {
			return err
		}
		if len(runs[uid]) != 1 {
			return fmt.Errorf("the delivery %s was accepted and has %d runs, want 1", uid, len(runs[uid]))
		}
	}
	return nil
}

// checkSecrets holds that a secret has the value that was stored last, or one that was being stored.
func (p *promises) checkSecrets(s *state.Store) error {
	for name, value := range p.Secrets {
		is, err := s.SecretValue(context.Background(), name)
		if err != nil {
			return fmt.Errorf("the secret %s: %w", name, err)
		}
		if string(is) != value && string(is) != p.Asked[name] {
			return fmt.Errorf("the secret %s has another value than was stored last", name)
		}
		p.Secrets[name] = string(is)
	}
	return nil
}

// checkWebhooks holds that each apply is there as a whole or not at all.
func (p *promises) checkWebhooks(s *state.Store) error {
	r, err := s.Routing(context.Background())
	if err != nil {
		return err
	}

	names := map[string]int{}
	for _, f := range r.Factories {
		for _, w := range f.Webhooks {
			names[w.Spec.Name[:len(w.Spec.Name)-len("-a")]]++
		}
	}
	for name, n := range names {
		if n != 2 {
			return fmt.Errorf("%d of 2 webhooks of the apply %s are there", n, name)
		}
	}
	for name := range p.Webhooks {
		if names[name] == 0 {
			return fmt.Errorf("the apply %s is not there", name)
		}
	}
	return nil
}

// checkBackups holds that the backups are whole, and that the copy is one of the last two.
func (p *promises) checkBackups(dir string) error {
	ctx := context.Background()
	for file := range p.Backups {
		if _, err := backup.Check(ctx, filepath.Join(dir, file)); err != nil {
			return fmt.Errorf("the backup %s: %w", file, err)
		}
	}
	if p.Restored == "" {
		return nil
	}

	path := filepath.Join(dir, "copy", "state.db")
	if err := sound(path); err != nil {
		return fmt.Errorf("the restored copy: %w", err)
	}
	d, err := db.OpenFile(path, "mode=ro")
	if err != nil {
		return err
	}
	defer d.Close()

	missing := func(file string) (n int, err error) {
		for uid := range p.Backups[file] {
			var found int
			if err := d.QueryRow(`SELECT count(*) FROM deliveries WHERE uid = $1`, uid).Scan(&found); err != nil {
				return 0, err
			}
			n += 1 - found
		}
		return n, nil
	}
	n, err := missing(p.Restored)
	if err == nil && n > 0 {
		n, err = missing(p.Trying)
	}
	if err == nil && n > 0 {
		err = fmt.Errorf("the restored copy lacks %d deliveries", n)
	}
	return err
}
