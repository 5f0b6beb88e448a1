package events

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"millwright/state"
	"millwright/state/events"
	"millwright/state/notice"
)

// attempt sends an event once and records the outcome. It reports whether the receiver took it, and soon.
func (s *Sender) attempt(ctx context.Context, e events.Event) (fine bool) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout+recordTime)
	defer cancel()

	r, ok, err := s.cfg.Store.Events().Receiver(ctx, e)
	if err != nil {
		s.cfg.Log.Warn("events: read the notification of an event", "event_uid", e.UID, "error", err)
		return false
	}
	if !ok || r.Gone != "" {
		return true // the next round drops it
	}

	a := events.Attempt{At: time.Now()}
	got, err := s.send(ctx, e, r)
	a.Took, a.Status, a.Answer = time.Since(a.At), got.status, got.text

	outcome, next := events.Sent, time.Now()
	if err != nil {
		a.Error = err.Error()
		outcome, next = after(e, got, time.Now())
	}

	s.record(ctx, e, a, outcome, next)
	return err == nil && a.Took < slow
}

// send sends an event once. The error says why the receiver did not take it, without a secret or an address.
func (s *Sender) send(ctx context.Context, e events.Event, r events.Receiver) (answer, error) {
	to, err := s.destination(ctx, r)
	if err != nil {
		return answer{}, err
	}
	body, err := s.render(e, r.Spec)
	if err != nil {
		return answer{}, err
	}

	got, err := s.post(ctx, to, e.UID, body, time.Now())
	switch {
	case err != nil:
		return got, err
	case got.status >= 200 && got.status < 300:
		return got, nil
	case got.status == http.StatusGone:
		return got, errors.New("it answered 410: it wants no more events")
	case got.status >= 300 && got.status < 400:
		return got, fmt.Errorf("it answered %d: redirects are not followed", got.status)
	}
	return got, fmt.Errorf("it answered %d", got.status)
}

// after returns what becomes of an event whose attempt failed, and when it is due again.
func after(e events.Event, got answer, now time.Time) (events.State, time.Time) {
	if got.status == http.StatusGone {
		return events.Dead, now
	}

	next := now.Add(max(backoff(e.Tries), got.pause))
	if next.After(e.GiveUpAt) {
		return events.Dead, now
	}
	return events.Pending, next
}

// backoff returns how long to wait after some tries that failed before and one now: twice as long each time,
// spread by a fifth either way.
func backoff(tries int) time.Duration {
	d := min(firstBackoff<<min(max(tries, 0), 20), maxBackoff)
	return d + rand.N(2*d/5+1) - d/5
}

// record records an attempt. While the database is away it tries again: what is never recorded is sent again.
func (s *Sender) record(ctx context.Context, e events.Event, a events.Attempt, outcome events.State, next time.Time) {
	err := s.cfg.Store.Events().Attempted(ctx, e, a, outcome, next)
	for errors.Is(err, state.ErrUnavailable) && ctx.Err() == nil {
		pause(ctx, recordAgain)
		err = s.cfg.Store.Events().Attempted(ctx, e, a, outcome, next)
	}
	if err != nil {
		s.cfg.Log.Warn("events: record an attempt", "event_uid", e.UID, "error", err)
		return
	}

	log := s.cfg.Log.With("event_uid", e.UID, "type", e.Type, "notification", e.Notification,
		"factory_uid", e.FactoryUID, "status", a.Status, "took", a.Took.Round(time.Millisecond).String())
	switch outcome {
	case events.Sent:
		s.metrics.count("sent")
		log.Info("event sent")
	case events.Dead:
		s.metrics.count("dead")
		log.Warn("event given up", "reason", a.Error)
	default:
		s.metrics.count("failed")
		log.Info("event not sent", "reason", a.Error, "next", next.UTC().Format(time.RFC3339))
	}

	s.cfg.Store.Publish(notice.Notice{Topic: notice.Sync, ID: e.FactoryUID})
}
