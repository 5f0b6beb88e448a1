package server

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"

	"millwright/cmd/settings"
	"millwright/runs/worker"
)

// hangUps returns the signals that reload the settings.
func hangUps() (hup <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// reload applies the new settings as far as they can change while the server runs, and names those that
// wait for a restart. It tries everything that can fail before it changes anything.
func (srv *server) reload(ctx context.Context, next settings.Settings) error {
	live, waiting := srv.running.Load().Changed(next)
	update := live.HarnessUpdate()
	if *srv.cfg.Workers > 0 {
		if err := update.Check(); err != nil {
			return err
		}
	}

	login, err := srv.newLogin(&live)
	if err != nil {
		return err
	}

	if err := srv.controllers.configure(ctx, next); err != nil {
		return err
	}
	if err := srv.forges.Reload(next.ForgeConfig(srv.forgeSecret)); err != nil {
		return err
	}

	if err := srv.store.SetBudget(ctx, serverBudget(live.Limits.Budget)); err != nil {
		return err
	}

	srv.ingress.SetLimits(
		int(live.Limits.DeliveriesPerMinute),
		int(live.Limits.FailedAuthPerMinute),
		int64(live.Limits.InFlightBytes),
	)
	srv.ingress.SetMaxDeliveries(int(live.Limits.MaxDeliveries))
	srv.dispatch.SetBounds(live.Limits.RunsPerFactory, live.Limits.RunsPerAutomation)
	srv.dispatch.SetPrices(prices(live.Prices))
	srv.retention.Store(&live.Retention)
	srv.tokens.Configure(live.TokenRules())
	srv.login.Store(login)
	if !reflect.DeepEqual(live.Auth.Login, srv.running.Load().Auth.Login) {
		if err := srv.store.EndPersonSessions(ctx); err != nil {
			return err
		}
	}
	if *srv.cfg.Workers > 0 && !reflect.DeepEqual(update, srv.running.Load().HarnessUpdate()) {
		latest(srv.updates, update)
	}

	srv.running.Store(&live)
	if len(waiting) > 0 {
		srv.log.Warn(
			"these settings changed and wait for a restart: "+strings.Join(waiting, ", "),
			"settings",
			waiting,
		)
	}

	srv.log.Info("settings reloaded", "factories", len(next.Factories))
	return nil
}

// latest sends an update to a channel of capacity one, replacing an unread one.
func latest(updates chan worker.Update, u worker.Update) {
	select {
	case <-updates:
	default:
	}
	updates <- u
}

// reloadHarnesses reloads the harnesses of a worker process from its settings file at each signal.
func reloadHarnesses(
	ctx context.Context,
	read func() (settings.Settings, error),
	updates chan worker.Update,
	log *slog.Logger,
) {
	hup, stop := hangUps()
	defer stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
		}

		cfg, err := read()
		update := cfg.HarnessUpdate()
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
