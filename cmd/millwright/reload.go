package main

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"millwright/runs/worker"
)

// hangUps returns the signals that ask for the settings to be read again.
func hangUps() (hup <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// reload returns what reads the settings anew, flags included, or nil when there is no settings file.
func (f *serveFlags) reload(cmd *cobra.Command) func() (settings, error) {
	if f.config == "" || f.dir != "" || f.git != "" {
		return nil
	}
	return func() (settings, error) {
		cfg, err := readSettings(f.config)
		if err != nil {
			return cfg, err
		}
		if len(cfg.Factories) == 0 {
			return cfg, usage("%s: factories is missing or empty, which would end every factory: name at least one", f.config)
		}
		return f.settings(cmd)
	}
}

// reload makes the new settings those in force, as far as they can change while the server runs, and says
// by name which wait for a restart. All that can fail is tried before anything changes.
func (srv *server) reload(ctx context.Context, next settings) error {
	live, waiting := srv.running.changed(next)
	update := live.harnessUpdate()
	if *srv.cfg.Workers > 0 {
		if err := update.Check(); err != nil {
			return err
		}
	}
	if err := srv.controllers.configure(ctx, next.Factories, next.SharedSecrets); err != nil {
		return err
	}
	srv.ingress.SetLimits(live.Limits.DeliveriesPerMinute, live.Limits.FailedAuthPerMinute, int64(live.Limits.InFlightBytes))
	srv.retention.Store(&live.Retention)
	if *srv.cfg.Workers > 0 && !reflect.DeepEqual(update, srv.running.harnessUpdate()) {
		latest(srv.updates, update)
	}
	srv.running = live
	if len(waiting) > 0 {
		srv.log.Warn("these settings changed and wait for a restart: "+strings.Join(waiting, ", "), "settings", waiting)
	}
	srv.log.Info("settings reloaded", "factories", len(next.Factories))
	return nil
}

// latest puts an update into a channel with room for one, in place of one that nobody took yet.
func latest(updates chan worker.Update, u worker.Update) {
	select {
	case <-updates:
	default:
	}
	updates <- u
}

// changed returns the settings that are in force when next is asked for, and the names of those in which
// the two differ. Factories, shared secrets, limits, retention and what harnesses of known names do can change at once.
func (cfg *settings) changed(next settings) (live settings, waiting []string) {
	live = *cfg
	live.Factories, live.SharedSecrets = next.Factories, next.SharedSecrets
	live.Limits, live.Retention = next.Limits, next.Retention
	live.Harnesses = maps.Clone(cfg.Harnesses)
	for _, name := range slices.Sorted(maps.Keys(cfg.Harnesses)) {
		if h, ok := next.Harnesses[name]; ok {
			live.Harnesses[name] = h
		} else {
			waiting = append(waiting, "harnesses."+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(next.Harnesses)) {
		if _, ok := cfg.Harnesses[name]; !ok {
			waiting = append(waiting, "harnesses."+name)
		}
	}
	if _, ok := live.Harnesses[next.Harness]; ok || next.Harness == "" || next.Harness == worker.Echo {
		live.Harness = next.Harness
	}
	was, is := reflect.ValueOf(live), reflect.ValueOf(next)
	for i := range was.NumField() {
		name := was.Type().Field(i).Tag.Get("json")
		if name != "harnesses" && !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
			waiting = append(waiting, name)
		}
	}
	slices.Sort(waiting)
	return live, waiting
}

// harnessUpdate is what the settings say of harnesses.
func (cfg *settings) harnessUpdate() worker.Update {
	u := worker.Update{Default: cfg.Harness, Harnesses: make(map[string]worker.Harness, len(cfg.Harnesses))}
	for name, h := range cfg.Harnesses {
		u.Harnesses[name] = worker.Harness{
			Command: h.Command, Adapter: h.Adapter, Env: h.Env, Timeout: h.Timeout.or(0), Path: h.Path,
			User: h.User, Users: h.Users, UIDRange: h.UIDRange, SameUser: h.SameUser, Container: h.Container,
		}
	}
	return u
}

// reloadHarnesses gives a worker on its own the harnesses of its settings file again and again, each time
// that it is asked to.
func reloadHarnesses(ctx context.Context, read func() (settings, error), updates chan worker.Update, log *slog.Logger) {
	hup, stop := hangUps()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
		}
		cfg, err := read()
		update := cfg.harnessUpdate()
		if err == nil {
			err = update.Check()
		}
		if err != nil {
			log.Error("the settings were not reloaded; the old ones stay", "error", err)
			continue
		}
		latest(updates, update)
		log.Info("settings reloaded", "harnesses", len(update.Harnesses))
	}
}
