package language

import (
	"context"
	"time"
)

// ask asks the server of the program about the trees: when a session begins, after each save, and now and
// then. A server that does not answer leaves what it said before.
func (s *session) ask(ctx context.Context) {
	if s.config.Lookup == nil {
		return
	}

	tick := time.NewTicker(askEvery)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.asking:
		}

		s.search()
		for _, t := range s.all() {
			_, _ = protected(func() (any, error) { return nil, s.askAbout(ctx, t) })
		}
	}
}

func (s *session) askAbout(ctx context.Context, t *tree) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()

	s.mu.Lock()
	open := s.documentsOf(t.dir)
	s.mu.Unlock()

	said, err := s.config.Lookup.Judge(ctx, newOverlay(diskFS(t.dir), open, ""))
	if err != nil {
		s.log(ctx, "the server was not asked: "+err.Error())
		return err
	}

	s.facts.set(t.dir, said)
	s.mu.Lock()
	defer s.mu.Unlock()

	s.changed()
	return nil
}
