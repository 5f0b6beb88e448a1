// Package notice carries cues that something changed: to the subscribers in this process, and to the other
// processes that share a PostgreSQL state. A notice is only a hint: it is dropped when a subscriber is slow
// or the database is away, so whoever must not miss a change also looks at the state from time to time.
package notice

import (
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"millwright/state/db"
)

// Topic names what a [Notice] is about.
type Topic string

// The topics.
const (
	Routing  Topic = "routing"  // the routing facts changed
	Queued   Topic = "queued"   // a run was queued; without an ID another replica has runs and no worker for them
	Cancel   Topic = "cancel"   // the end of a held run was asked for; ID is its worker's UID, a space, and its ID
	Wake     Topic = "wake"     // a held run has a message or an answer; ID is its worker's UID, a space, and its ID
	Run      Topic = "run"      // a run changed
	Delivery Topic = "delivery" // a delivery was logged; ID names its webhook
	Follow   Topic = "follow"   // somebody follows the deliveries of a webhook
	Source   Topic = "source"   // a factory's source may have a new revision; ID names the factory
	Secret   Topic = "secret"   // a secret has a new value
	Sync     Topic = "sync"     // an attempt to apply ended; ID names the factory
	Check    Topic = "check"    // the check of a revision or a pull request changed; ID names the factory
	Event    Topic = "event"    // an event for a receiver outside is due or changed
	Budgets  Topic = "budgets"  // what senders used of their budgets; ID is of package ingress
)

// Notice is a cue that something changed. ID names it, where the topic does not say otherwise.
type Notice struct {
	Topic Topic
	ID    string
}

// Bus hands notices to the subscribers in this process and to the other replicas.
type Bus struct {
	db       *db.DB
	log      *slog.Logger
	instance string      // names this process among the replicas
	outgoing chan Notice // for the other replicas
	followed followed

	mu   sync.Mutex
	next int
	subs map[int]subscriber
}

type subscriber struct {
	topics map[Topic]bool
	ch     chan Notice
}

// New returns the bus of a state. [Bus.Send] and [Bus.Receive] tie it to the other replicas.
func New(d *db.DB, log *slog.Logger) *Bus {
	return &Bus{
		db:       d,
		log:      log,
		instance: rand.Text(),
		outgoing: make(chan Notice, 10_000),
		subs:     map[int]subscriber{},
	}
}

// Subscribe returns a channel of notices about topics, and a function that ends the subscription.
// The channel holds buffer notices; more are dropped. It is never closed.
func (b *Bus) Subscribe(buffer int, topics ...Topic) (<-chan Notice, func()) {
	sub := subscriber{topics: map[Topic]bool{}, ch: make(chan Notice, buffer)}
	for _, t := range topics {
		sub.topics[t] = true
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	id := b.next
	b.next++
	b.subs[id] = sub
	return sub.ch, func() {
		b.mu.Lock()
		defer b.mu.Unlock()

		delete(b.subs, id)
	}
}

// Publish hands notices to the subscribers in this process.
func (b *Bus) Publish(notices ...Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()

	for _, sub := range b.subs {
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

// followed are the webhooks whose deliveries somebody follows. The zero value is ready.
type followed struct {
	mu    sync.RWMutex
	until map[string]time.Time // by webhook UID
}
