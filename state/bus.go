package state

import (
	"context"
	"sync"
)

// Topic names what a [Notice] is about.
type Topic string

const (
	// TopicRouting: the routing facts changed; Generation says to what.
	TopicRouting Topic = "routing"
	// TopicQueued: a run was queued; ID names it. Without an ID another replica has runs for which it has
	// no worker.
	TopicQueued Topic = "queued"
	// TopicCancel: the end of a held run was asked for; ID is the worker's UID and the run's, with a space
	// between them.
	TopicCancel Topic = "cancel"
	// TopicRun: a run changed; ID names it.
	TopicRun Topic = "run"
	// TopicDelivery: a delivery was logged; ID names its webhook.
	TopicDelivery Topic = "delivery"
	// TopicListen: somebody follows the deliveries of a webhook; ID names it.
	TopicListen Topic = "listen"
	// TopicSource: a factory's source may have a new revision; ID names the factory.
	TopicSource Topic = "source"
	// TopicSecret: a secret has a new value; ID names it.
	TopicSecret Topic = "secret"
	// TopicSync: an attempt to apply ended; ID names the factory.
	TopicSync Topic = "sync"
)

// Notice is a cue that something changed. It is only a hint: notices are dropped when a subscriber is
// slow, so whoever must not miss a change also looks at the state from time to time.
type Notice struct {
	Topic Topic
	ID    string
}

// bus hands notices to the subscribers in this process.
type bus struct {
	mu   sync.Mutex
	next int
	subs map[int]subscriber
}

type subscriber struct {
	topics map[Topic]bool
	ch     chan Notice
}

func (b *bus) init() { b.subs = map[int]subscriber{} }

// Subscribe returns a channel of notices about topics, and a function that ends the subscription.
// The channel holds buffer notices; more are dropped. It is never closed.
func (s *Store) Subscribe(buffer int, topics ...Topic) (<-chan Notice, func()) {
	sub := subscriber{topics: map[Topic]bool{}, ch: make(chan Notice, buffer)}
	for _, t := range topics {
		sub.topics[t] = true
	}

	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()

	id := s.bus.next
	s.bus.next++
	s.bus.subs[id] = sub
	return sub.ch, func() {
		s.bus.mu.Lock()
		defer s.bus.mu.Unlock()

		delete(s.bus.subs, id)
	}
}

// Publish hands notices to the subscribers in this process. Notices from other replicas come in by it.
func (s *Store) Publish(notices ...Notice) {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()

	for _, sub := range s.bus.subs {
		for _, n := range notices {
			if !sub.topics[n.Topic] {
				continue
			}
			select {
			case sub.ch <- n:
			default:
			}
		}
	}
}

// Wake tells whoever reconciles the factory, in this process or another, that its source may have a new
// revision.
func (s *Store) Wake(ctx context.Context, factoryUID string) {
	s.notify(ctx, Notice{Topic: TopicSource, ID: factoryUID})
}
