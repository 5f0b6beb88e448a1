package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"millwright/cmd/settings"
	"millwright/forge"
	"millwright/runs/worker"
	"millwright/runs/worker/preset"
	"millwright/schema"
	"millwright/state"
	"millwright/state/seal"
)

const (
	checkFor    = 10 * time.Second // bounds a check that asks another program
	maxSkew     = 2 * time.Second  // between this machine's clock and another's
	littleSpace = 1 << 30          // bytes
	noSpace     = 64 << 20
)

// database checks the database and the master key, and opens the state if both are good.
func (d *doctor) database(ctx context.Context, cfg *settings.Settings) *state.Store {
	ctx, stop := context.WithTimeout(ctx, 2*checkFor)
	defer stop()

	found, err := state.Examine(ctx, cfg.State)
	path, sqlite := state.SQLitePath(cfg.State)
	where := "the database"
	if sqlite {
		where = path
	}

	switch {
	case sqlite && errors.Is(err, fs.ErrNotExist):
		d.warn("database", "the first start of serve makes it; if there was one, name it with --state",
			"%s does not exist", where)
		return nil
	case err != nil:
		d.bad("database", "check its address, its network and its password", "%s cannot be read: %s", where, err)
		return nil
	case found.Damage != "":
		d.bad("database", "stop the server and run millwright restore with the latest backup",
			"%s is damaged: %s", where, found.Damage)
		return nil
	case found.Version == 0:
		d.warn("database", "the first start of serve makes its tables", "%s has no tables yet", where)
		return nil
	case found.Partial:
		d.warn("database", "check a copy of it: millwright backup FILE",
			"%s is too large to be read wholly here", where)
	default:
		d.ok("database", "%s is readable (%s, schema version %d)", where, found.Engine, found.Version)
	}

	for _, setting := range found.Unsafe {
		d.bad("database", "change it in the configuration of the database server", "%s", setting)
	}
	if found.Skew.Abs() > maxSkew {
		d.bad("clock", "let NTP set both clocks", "this machine's clock is %s ahead of the database's",
			found.Skew.Round(time.Millisecond))
	}

	return d.masterKey(ctx, cfg)
}

// masterKey checks the master key. It makes none.
func (d *doctor) masterKey(ctx context.Context, cfg *settings.Settings) *state.Store {
	file := cfg.MasterKeyFile
	value := os.Getenv("MILLWRIGHT_MASTER_KEY")
	if path, sqlite := state.SQLitePath(cfg.State); sqlite && file == "" {
		file = seal.KeyFile(path)
	}

	key, err := seal.LoadKey(cfg.State, value, cfg.MasterKeyFile)
	if err != nil {
		d.bad("master key", "restore the key from where you keep it; without it the secrets cannot be read",
			"%s", err)
		return nil
	}

	store, err := state.OpenReading(ctx, state.Config{DSN: cfg.State, MasterKey: key})
	if err != nil {
		d.bad("master key",
			"give the key that this state was made with, by --master-key-file or MILLWRIGHT_MASTER_KEY", "%s", err)
		return nil
	}

	if value != "" {
		d.ok("master key", "MILLWRIGHT_MASTER_KEY opens the state")
		return store
	}
	if d.private("master key", file) {
		d.ok("master key", "%s opens the state: keep a copy of it apart from the backups", file)
	}
	return store
}

// private reports whether only its owner may read a file with a key. It notes it if others may.
func (d *doctor) private(check, file string) bool {
	info, err := os.Stat(file)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o007 == 0 {
		return true
	}

	d.bad(check, "run chmod 600 "+schema.ShellWord(file)+", and replace the key if others may have read it",
		"every user of this machine may read or write %s (mode %04o)", file, info.Mode().Perm())
	return false
}

// adminKey checks the key that commands on this machine use.
func (d *doctor) adminKey(ctx context.Context, store *state.Store, cfg *settings.Settings) {
	path, sqlite := state.SQLitePath(cfg.State)
	if !sqlite {
		return
	}

	file := settings.AdminKeyFile(path)
	secret, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return // removed on purpose, or the state has another first key
	case err != nil:
		d.bad("admin key", "run this as the user of the server", "%s", err)
		return
	}

	key, err := store.KeyBySecret(ctx, strings.TrimSpace(string(secret)))
	switch {
	case err != nil:
		d.bad("admin key", "stop the server and run millwright key create admin --role admin --local",
			"the key in %s is of another state, revoked or expired", file)
	case d.private("admin key", file):
		d.ok("admin key", "%s has a key of role %s", file, key.Role)
	}
}

// clock checks that something sets this machine's clock.
func (d *doctor) clock() {
	switch synchronised, known := clockSynchronised(); {
	case !known:
	case synchronised:
		d.ok("clock", "this machine's clock is synchronised")
	default:
		d.warn("clock", "run an NTP client, such as systemd-timesyncd or chrony",
			"nothing synchronises this machine's clock: signatures with a time fail if it is wrong by minutes")
	}
}

var gitVersion = regexp.MustCompile(`git version (\d+\.\d+)`)

// git checks the git program, which workers need for checkouts.
func (d *doctor) git(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, checkFor)
	defer stop()

	out, err := exec.CommandContext(ctx, "git", "version").Output()
	version := gitVersion.FindSubmatch(out)
	if err != nil || version == nil {
		d.warn("git", "install git where workers run: they need it for checkouts", "there is no git program on PATH")
		return
	}
	d.ok("git", "git %s", version[1])
}

// agents checks the programs of the harnesses, or names those that could be one.
func (d *doctor) agents(cfg *settings.Settings) {
	if len(cfg.Harnesses) == 0 {
		found := preset.OnPath(func(program string) bool {
			_, err := exec.LookPath(program)
			return err == nil
		})

		if len(found) == 0 {
			d.ok("harnesses", "the settings have no harness, and no coding agent is on PATH: "+
				"echo shows what one would receive")
			return
		}
		d.warn("harnesses", "run millwright init --agent "+found[0]+" DIR, which writes a settings file with it",
			"the settings have no harness: %s on PATH could execute runs", strings.Join(found, ", "))
		return
	}

	update := cfg.HarnessUpdate()
	for _, name := range slices.Sorted(maps.Keys(update.Harnesses)) {
		one := update
		one.Harnesses = map[string]worker.Harness{name: update.Harnesses[name]}
		one.Default = name
		if err := one.Check(); err != nil {
			d.bad("harnesses", "docs/operating/harnesses.md describes the settings of harnesses", "%s", err)
			continue
		}
		if err := findProgram(update.Harnesses[name]); err != nil {
			d.bad("harnesses", "install it where workers run, or correct path, program or command in the settings",
				"harness %q: %s", name, err)
			continue
		}
		d.ok("harnesses", "harness %s can start", name)
	}
}

// findProgram looks for the program of a harness that runs on this machine.
func findProgram(h worker.Harness) error {
	if h.Container != nil {
		return nil
	}

	program := h.Program
	if known, ok := preset.Find(h.Preset); program == "" && ok {
		program = known.Program
	}
	if len(h.Command) > 0 {
		program = h.Command[0]
	}

	found, err := lookUp(program, h.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	_, err = exec.LookPath(found)
	return err
}

// forges checks that the credential of each forge is one of an account there.
func (d *doctor) forges(ctx context.Context, store *state.Store, cfg *settings.Settings) {
	set, err := forge.Open(cfg.ForgeConfig(store.SecretValue))
	if err != nil {
		d.bad("forges", "correct forges in the settings", "%s", err)
		return
	}

	for _, name := range slices.Sorted(maps.Keys(cfg.Forges)) {
		one := cfg.Forges[name]
		if one.TokenSecret == "" && one.App == nil {
			d.warn("forges", "", "forge %s has no credential: only public repositories can be read", name)
			continue
		}

		host, err := set.Of(forge.Repository{Forge: name, Owner: "millwright", Name: "doctor"})
		if err != nil {
			d.bad("forges", "", "%s", err)
			continue
		}
		if host.Kind() == forge.Git {
			continue // has no accounts to ask for
		}

		login, err := func() (string, error) {
			ctx, stop := context.WithTimeout(ctx, checkFor)
			defer stop()
			return host.Login(ctx)
		}()
		if err != nil {
			todo := "store a valid token: millwright secret set " + schema.ShellWord(one.TokenSecret)
			if errors.Is(err, forge.ErrLater) || errors.Is(err, context.DeadlineExceeded) {
				todo = "check that this machine reaches the forge, also through its proxy"
			}
			d.bad("forges", todo, "forge %s: %s", name, err)
			continue
		}
		d.ok("forges", "forge %s knows the credential as %s", name, login)
	}
}

// disk checks the space where the state and the directories of runs are.
func (d *doctor) disk(cfg *settings.Settings) {
	places := []string{os.TempDir()}
	if path, sqlite := state.SQLitePath(cfg.State); sqlite {
		places = append([]string{filepath.Dir(path)}, places...)
	}

	for _, dir := range slices.Compact(places) {
		free, known := freeSpace(dir)
		switch {
		case !known:
		case free < noSpace:
			d.bad("disk", "free space there: without it deliveries are answered 503",
				"%s has %d MB left", dir, free>>20)
		case free < littleSpace:
			d.warn("disk", "free space there, or shorten retention in the settings",
				"%s has %d MB left", dir, free>>20)
		default:
			d.ok("disk", "%s has %d GB left", dir, free>>30)
		}
	}
}
