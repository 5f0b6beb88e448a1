package events

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"millwright/state/events"
	"millwright/state/notice"
)

// New returns a sender, which sends nothing until Run is called.
func New(cfg Config) (*Sender, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Leads == nil {
		cfg.Leads = func() bool { return true }
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = attemptTime
	}
	cfg.PublicURL = strings.TrimSuffix(cfg.PublicURL, "/")

	s := &Sender{
		cfg:     cfg,
		metrics: newMetrics(cfg.Store),
		freed:   make(chan struct{}, 1),
		lanes:   map[string]*lane{},
	}
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(s.metrics); err != nil {
			return nil, err
		}
	}

	return s, nil
}

// Run sends events until ctx ends. It returns when no attempt is under way.
func (s *Sender) Run(ctx context.Context) {
	if s.cfg.Registerer != nil {
		defer s.cfg.Registerer.Unregister(s.metrics)
	}

	notices, end := s.cfg.Store.Subscribe(1, notice.Run, notice.Sync, notice.Event)
	defer end()
	defer s.wg.Wait()

	for ctx.Err() == nil {
		next := looks
		if s.cfg.Leads() {
			next = s.round(ctx)
		}

		select {
		case <-ctx.Done():
		case <-s.freed:
		case <-time.After(next):
		case <-notices:
			pause(ctx, noticeGap)
		}
	}
}

// round begins what is due while there is room, and returns when to look again.
func (s *Sender) round(ctx context.Context) time.Duration {
	all, err := s.cfg.Store.Events().Receivers(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.cfg.Log.Warn("events: read the receivers", "error", err)
		}
		return looks
	}

	s.forget(all)
	next := looks
	for i := range all {
		r := all[(i+s.first)%len(all)]
		if r.Gone != "" {
			s.drop(ctx, r)
			continue
		}
		if due := time.Until(r.NextAt); due > 0 {
			next = min(next, due)
			continue
		}
		s.fill(ctx, r)
	}
	s.first++

	return max(next, time.Millisecond)
}

// forget removes the lanes that nothing waits for.
func (s *Sender) forget(waiting []events.Receiver) {
	s.mu.Lock()
	defer s.mu.Unlock()

	known := make(map[string]bool, len(waiting))
	for _, r := range waiting {
		known[r.NotificationUID] = true
	}
	for uid, l := range s.lanes {
		if !known[uid] && l.sending == 0 && len(l.waiting) == 0 {
			delete(s.lanes, uid)
		}
	}
}

// drop ends the events of a notification that nothing is sent to any more.
func (s *Sender) drop(ctx context.Context, r events.Receiver) {
	n, err := s.cfg.Store.Events().Drop(ctx, r.NotificationUID, r.Gone)
	if err != nil {
		s.cfg.Log.Warn("events: drop those of a notification", "notification_uid", r.NotificationUID, "error", err)
		return
	}

	s.metrics.attempts.WithLabelValues("dropped").Add(float64(n))
	s.cfg.Log.Info("events dropped", "notification_uid", r.NotificationUID, "reason", r.Gone, "events", n)
}

// fill reads the events of a receiver that are due, unless some wait here, and begins what there is room for.
func (s *Sender) fill(ctx context.Context, r events.Receiver) {
	s.mu.Lock()
	l := s.lanes[r.NotificationUID]
	if l == nil {
		l = &lane{}
		s.lanes[r.NotificationUID] = l
	}
	empty := l.sending == 0 && len(l.waiting) == 0
	s.mu.Unlock()

	if empty { // and no other goroutine fills it
		due, err := s.cfg.Store.Events().Due(ctx, r.NotificationUID, batch)
		if err != nil {
			s.cfg.Log.Warn("events: read what is due", "notification_uid", r.NotificationUID, "error", err)
			return
		}
		s.mu.Lock()
		l.waiting = due
		s.mu.Unlock()
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(ctx, l)
}

// begin begins the attempts of a lane that there is room for. s.mu is held.
func (s *Sender) begin(ctx context.Context, l *lane) {
	for len(l.waiting) > 0 && ctx.Err() == nil && s.cfg.Leads() {
		troubled := l.troubled
		if l.sending >= atOnce || troubled && (l.sending > 0 || s.troubled >= allTroubled) || s.sending >= allAtOnce {
			return
		}

		e := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.sending++
		s.sending++
		if troubled {
			s.troubled++
		}

		s.wg.Go(func() {
			fine := s.attempt(context.WithoutCancel(ctx), e)
			s.ended(ctx, l, troubled, !fine)
		})
	}
}

// ended counts an attempt that is over, and begins the next one.
func (s *Sender) ended(ctx context.Context, l *lane, was, troubled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	l.sending--
	s.sending--
	if was {
		s.troubled--
	}
	l.troubled = troubled
	full := s.sending+1 >= allAtOnce || was && s.troubled+1 >= allTroubled
	if !full { // else it is another receiver's turn
		s.begin(ctx, l)
	}

	if len(l.waiting) > 0 && l.sending > 0 {
		return
	}
	select {
	case s.freed <- struct{}{}:
	default:
	}
}
