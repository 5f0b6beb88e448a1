//go:build unix

package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"millwright/runs/wire"
	"millwright/runs/worker/preset"
)

// next returns the next message to the run, and makes it a part of the conversation; empty when there is
// none.
func (s *session) next(ctx context.Context) (wire.LiveMessage, error) {
	s.out.drain(ctx)
	fresh, err := s.fetch(ctx)
	if err != nil || len(fresh) == 0 {
		return wire.LiveMessage{}, err
	}

	s.seen = fresh[0].UID
	_, err = s.fetch(ctx)
	return fresh[0], err
}

// fetch asks for messages and for answers, and hands out the answers. While no server answers it asks again.
func (s *session) fetch(ctx context.Context) ([]wire.LiveMessage, error) {
	for {
		inbox, err := s.job.worker.cfg.Client.Inbox(ctx, s.job.order, s.seen)
		switch {
		case err == nil:
			s.reply(inbox.Replies)
			return inbox.Messages, nil
		case !errors.Is(err, wire.ErrUnavailable):
			return nil, err
		}

		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// reply hands answers to the requests that wait for them.
func (s *session) reply(replies []wire.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, r := range replies {
		if waiting := s.asking[r.Question]; waiting != nil {
			delete(s.asking, r.Question)
			waiting <- r
		}
	}
}

// follow asks for answers while questions wait: when a server gives a cue, and from time to time.
func (s *session) follow(ctx context.Context) {
	tick := time.NewTicker(s.job.order.Lease / 3)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-tick.C:
		}

		if !s.waits() {
			continue
		}
		if inbox, err := s.job.worker.cfg.Client.Inbox(ctx, s.job.order, ""); err == nil {
			s.reply(inbox.Replies)
		}
	}
}

// RequestPermission asks the run's people what the agent asks, and waits for their answer.
func (s *session) RequestPermission(
	ctx context.Context,
	p acp.RequestPermissionRequest,
) (acp.RequestPermissionResponse, error) {
	cancelled := acp.RequestPermissionResponse{
		Outcome: acp.RequestPermissionOutcome{Cancelled: &acp.RequestPermissionOutcomeCancelled{}},
	}
	q := s.talk.question(p)
	if reply, ok := s.late(q); ok {
		return chosen(reply), nil
	}

	s.talk.pause()
	s.out.drain(ctx)
	waiting, err := s.ask(ctx, q)
	if err != nil {
		s.out.Add(preset.Event("question_refused",
			map[string]string{"title": q.Title, "reason": err.Error()}))
		return cancelled, nil
	}

	patience := time.NewTimer(s.idle)
	defer patience.Stop()

	select {
	case reply := <-waiting:
		return chosen(reply), nil
	case <-ctx.Done():
		return cancelled, nil
	case <-patience.C:
		s.stop(errIdle)
		<-ctx.Done() // no answer: the agent would go on
		return cancelled, nil
	}
}

const maxAsking = 20 // questions that wait at once

// ask sends a question, and returns what its answer comes by.
func (s *session) ask(ctx context.Context, q wire.Question) (<-chan wire.Reply, error) {
	s.mu.Lock()
	full := len(s.asking) >= maxAsking
	s.mu.Unlock()
	if full {
		return nil, fmt.Errorf("%d questions wait already", maxAsking)
	}

	for {
		uid, err := s.job.worker.cfg.Client.Ask(ctx, s.job.order, q)
		if err == nil {
			waiting := make(chan wire.Reply, 1)
			s.mu.Lock()
			s.asking[uid] = waiting
			s.mu.Unlock()
			s.cue()
			return waiting, nil
		}
		if !errors.Is(err, wire.ErrUnavailable) {
			return nil, err
		}

		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// late returns the answer to a question that the session before asked alike, once.
func (s *session) late(q wire.Question) (wire.Reply, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for i, r := range s.replies {
		has := slices.ContainsFunc(q.Choices, func(c wire.Choice) bool { return c.ID == r.Choice })
		if r.Title == q.Title && has {
			s.replies = slices.Delete(s.replies, i, i+1)
			return r, true
		}
	}
	return wire.Reply{}, false
}

func chosen(r wire.Reply) acp.RequestPermissionResponse {
	selected := &acp.RequestPermissionOutcomeSelected{OptionId: acp.PermissionOptionId(r.Choice)}
	return acp.RequestPermissionResponse{Outcome: acp.RequestPermissionOutcome{Selected: selected}}
}

// cue has the session look for answers soon.
func (s *session) cue() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// waits reports whether the agent waits for an answer.
func (s *session) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asking) > 0
}
