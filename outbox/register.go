package outbox

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"millwright/forge"
	"millwright/state"
	"millwright/state/notice"
	"millwright/state/registrations"
)

const (
	checkEvery  = 10 * time.Minute // of a webhook that the forge has
	checkFailed = time.Hour        // of one that the forge or the settings do not allow
	// registrars is how many registrations are carried out at once, so that a slow forge delays no other.
	registrars = 4
	// catchUpWindow is how long forges can send a delivery again.
	catchUpWindow = 3 * 24 * time.Hour
	// inFlight is how long a forge may take for a delivery before its log has the result.
	inFlight = time.Minute
)

// register makes, checks and removes webhooks at forges until ctx ends. Each row has a lease, so every server may.
func (o *Outbox) register(ctx context.Context) {
	notices, end := o.cfg.Store.Subscribe(1, notice.Sync)
	defer end()

	for ctx.Err() == nil {
		o.registerDue(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(looks):
		case <-notices:
			pause(ctx, noticeGap)
		}
	}
}

// registerDue carries out what is due.
func (o *Outbox) registerDue(ctx context.Context) {
	table := o.cfg.Store.Registrations()
	for ctx.Err() == nil {
		due, err := table.Due(ctx)
		if err != nil || !due {
			return
		}

		row, ok, err := table.Take(ctx, rowLease)
		if err != nil || !ok {
			return
		}

		o.registration(ctx, row)
	}
}

// registration carries out one row, and records the result. An end of the server does not interrupt it.
func (o *Outbox) registration(ctx context.Context, row registrations.Registration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTime)
	defer cancel()

	table := o.cfg.Store.Registrations()
	was := row.State
	next, gone, err := o.registered(ctx, row)
	record, end := context.WithTimeout(context.WithoutCancel(ctx), rowLease-attemptTime)
	defer end()

	if gone {
		err = table.Removed(record, row)
	} else {
		next = o.later(next, err)
		err = table.Report(record, next)
	}
	if err != nil { // the row's lease ends, and the next attempt looks for the webhook
		o.cfg.Log.Warn("outbox: record a webhook of a forge", "webhook", row.WebhookUID, "error", err)
		return
	}

	if gone || next.State != was || next.Reason != row.Reason {
		o.cfg.Log.Info("webhook of a forge", "webhook", row.WebhookUID, "repository", row.Repository,
			"state", next.State, "removed", gone, "reason", next.Reason)
		o.cfg.Store.Notify(notice.Sync, row.FactoryUID)
	}
}

// registered is atForge, whose panic on what a forge answers fails the attempt.
func (o *Outbox) registered(ctx context.Context, row registrations.Registration) (
	next registrations.Registration, gone bool, err error,
) {
	defer func() {
		if v := recover(); v != nil {
			o.cfg.Log.Error("outbox: panic", "webhook", row.WebhookUID, "panic", v, "stack", string(debug.Stack()))
			next, gone, err = row, false, errors.New("an error of the server, which its log has")
		}
	}()

	return o.atForge(ctx, row)
}

// later returns a row with the error of its attempt, and the time of the next one.
func (o *Outbox) later(row registrations.Registration, err error) registrations.Registration {
	var shut closedDoor
	switch {
	case errors.As(err, &shut):
		row.NextAt = shut.until
	case err == nil:
		row.NextAt = time.Now().Add(o.cfg.CheckEvery)
	case passes(err) || errors.Is(err, forge.ErrConflict):
		row.Reason = err.Error()
		row.NextAt = time.Now().Add(wait(row.Attempts, err))
	default:
		row.Reason = err.Error()
		row.NextAt = time.Now().Add(checkFailed)
		if row.State != registrations.Removing {
			row.State = registrations.Failed
		}
	}
	return row
}

// atForge makes the webhook at the forge as its row states, or reports how it differs. gone means that the forge
// does not have it and is not to have it.
func (o *Outbox) atForge(ctx context.Context, row registrations.Registration) (
	next registrations.Registration, gone bool, err error,
) {
	next = row
	hooks, repo, address, err := o.open(ctx, row)
	if err != nil {
		return next, false, err
	}

	if until := o.hosts.door(repo.Forge); time.Now().Before(until) {
		return next, false, closedDoor{until}
	}
	defer func() { o.hosts.answered(repo.Forge, err) }()

	all, err := hooks.Hooks(ctx, repo)
	if err != nil {
		return next, row.State == registrations.Removing && errors.Is(err, forge.ErrNotFound), err
	}

	ours := own(all, row, address)
	moved := slices.ContainsFunc(ours, func(h forge.Hook) bool { return h.URL != address })
	known := row.State == registrations.Registered || row.State == registrations.Drifted

	switch {
	case row.State == registrations.Removing:
		for _, h := range ours {
			if err := hooks.DeleteHook(ctx, repo, h.ID); err != nil {
				return next, false, err
			}
		}
		return next, true, nil

	case known && !moved:
		if next.Reason = drift(hooks.HookEvents(row.Events), ours); next.Reason != "" {
			next.State = registrations.Drifted
			return next, false, nil
		}
		next.HookID = ours[0].ID

	default:
		if next.HookID, err = o.make(ctx, hooks, repo, row, ours, address); err != nil {
			return next, false, err
		}
	}

	next.State, next.Reason = registrations.Registered, ""
	next.CaughtUp, err = o.catchUp(ctx, hooks, repo, next)
	if err != nil {
		o.cfg.Log.Warn("outbox: ask for failed deliveries again", "webhook", row.WebhookUID, "error", err)
	}
	return next, false, nil
}

// own returns the webhooks that post to the address of a row, and the one that the server made for it while its
// publicUrl was another.
func own(all []forge.Hook, row registrations.Registration, address string) []forge.Hook {
	return slices.DeleteFunc(slices.Clone(all), func(h forge.Hook) bool {
		made := row.HookID != 0 && h.ID == row.HookID && strings.HasSuffix(h.URL, pathOf(row))
		return h.URL != address && !made
	})
}

// pathOf returns the end of the address that the forge is to post to.
func pathOf(row registrations.Registration) string { return "/webhooks/w/" + row.WebhookUID }

// open returns the webhooks of the forge of a row, if the settings allow the factory its repository, and the address
// that the forge is to post to.
func (o *Outbox) open(ctx context.Context, row registrations.Registration) (
	forge.Hooks, forge.Repository, string, error,
) {
	repo, err := forge.ParseRepository(row.Repository)
	if err != nil {
		return nil, repo, "", err
	}

	factory, err := o.cfg.Store.Factory(ctx, row.FactoryUID)
	if err != nil {
		return nil, repo, "", err
	}

	if repo.Forge, err = o.cfg.Forges.OfKind(row.Forge); err != nil {
		return nil, repo, "", err
	}
	if !o.cfg.Forges.Allowed(factory.Name, repo) && row.State != registrations.Removing {
		return nil, repo, "", fmt.Errorf(
			"the server's settings do not allow the factory %q to use the repository %s: add it to its repositories",
			factory.Name, row.Repository)
	}

	f, err := o.cfg.Forges.Of(repo)
	if err != nil {
		return nil, repo, "", err
	}

	hooks, ok := f.(forge.Hooks)
	if !ok {
		return nil, repo, "", fmt.Errorf("forges of kind %s have no webhooks", f.Kind())
	}

	address := strings.TrimSuffix(o.cfg.PublicURL, "/") + pathOf(row)
	page, err := f.CloneURL(repo)
	if err == nil && row.State != registrations.Removing && onlyHere(o.cfg.PublicURL) && !onlyHere(page) {
		err = fmt.Errorf("the forge cannot reach %s: set publicUrl in the server's settings", o.cfg.PublicURL)
	}
	return hooks, repo, address, err
}

// onlyHere reports whether an address is of this machine.
func onlyHere(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (forge.IsLoopback(u.Hostname()) || u.Hostname() == "0.0.0.0" || u.Hostname() == "::")
}

// make creates the webhook, or updates the one that is there: a former attempt may have made it.
func (o *Outbox) make(
	ctx context.Context,
	hooks forge.Hooks,
	repo forge.Repository,
	row registrations.Registration,
	ours []forge.Hook,
	address string,
) (int64, error) {
	secret, err := o.cfg.Store.WebhookSecret(ctx, row.WebhookUID)
	if errors.Is(err, state.ErrNotFound) {
		return 0, fmt.Errorf("the secret of the webhook has no value")
	}
	if err != nil {
		return 0, err
	}

	want := forge.NewHook{URL: address, Secret: string(secret), Events: row.Events}
	if len(ours) == 0 {
		made, err := hooks.CreateHook(ctx, repo, want)
		return made.ID, err
	}

	for _, extra := range ours[1:] {
		if err := hooks.DeleteHook(ctx, repo, extra.ID); err != nil {
			return 0, err
		}
	}

	return ours[0].ID, hooks.UpdateHook(ctx, repo, ours[0].ID, want)
}

// drift returns how the webhooks of our address differ from one with these events; "" if they do not.
func drift(events []string, ours []forge.Hook) string {
	if len(ours) == 0 {
		return "someone removed the webhook there"
	}

	var changes []string
	have := ours[0]
	if len(ours) > 1 {
		changes = append(changes, "added a second webhook with its URL")
	}
	if !have.Active {
		changes = append(changes, "disabled it")
	}
	if missing := without(events, have.Events); len(missing) > 0 {
		changes = append(changes, "removed "+strings.Join(missing, ", "))
	}
	if extra := without(have.Events, events); len(extra) > 0 {
		changes = append(changes, "added "+strings.Join(extra, ", "))
	}
	if len(changes) == 0 {
		return ""
	}

	return "someone " + strings.Join(changes, " and ") + " there"
}

// without returns the entries of a that b lacks.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(v string) bool { return slices.Contains(b, v) })
}

// catchUp has the forge send again what it could not deliver, and returns the time from which it has to look next.
func (o *Outbox) catchUp(
	ctx context.Context,
	hooks forge.Hooks,
	repo forge.Repository,
	row registrations.Registration,
) (time.Time, error) {
	asks, ok := hooks.(forge.Redeliveries)
	if !ok {
		return row.CaughtUp, nil
	}

	now := time.Now()
	if row.CaughtUp.IsZero() {
		return now, nil // the webhook is new
	}

	since := row.CaughtUp
	if oldest := now.Add(-catchUpWindow); since.Before(oldest) {
		since = oldest
	}

	failed, err := asks.FailedDeliveries(ctx, repo, row.HookID, since)
	if err != nil {
		return row.CaughtUp, err
	}

	for _, d := range failed {
		ask, err := o.cfg.Store.Registrations().Ask(ctx, row, d.GUID)
		if err != nil {
			return row.CaughtUp, err
		}
		if !ask {
			continue // it failed again: once is enough
		}

		err = asks.Redeliver(ctx, repo, row.HookID, d.ID)
		if err != nil && (passes(err) || errors.Is(err, forge.ErrDenied)) {
			return row.CaughtUp, err
		}

		log := o.cfg.Log.With("webhook", row.WebhookUID, "delivery", d.GUID)
		if err != nil { // the deliveries behind it are asked for all the same
			log.Warn("the forge does not send a delivery again", "error", err)
		} else {
			log.Info("asked the forge for a delivery again")
		}
		if err := o.cfg.Store.Registrations().Answered(ctx, row, d.GUID); err != nil {
			return row.CaughtUp, err
		}
	}

	if len(failed) == forge.MaxRedeliveries {
		return failed[len(failed)-1].At, nil
	}
	return now.Add(-inFlight), nil
}
