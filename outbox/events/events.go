// Package events sends events to the receivers that notifications name.
//
// The rows of the state are the outbox. One server at a time sends them. Each event arrives at least once, in no
// guaranteed order: a receiver knows a repeat by its webhook-id. A receiver that is slow or dead delays no other.
package events

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/state"
	"millwright/state/events"
)

// Config configures a Sender. Store is required.
type Config struct {
	Store *state.Store
	// PublicURL is the origin of the dashboard, for links.
	PublicURL string
	// Allow returns the addresses that are not public and that a factory may send to; nil: none.
	Allow func(factory string) []netip.Prefix
	// Leads reports whether this server sends; nil: it always does.
	Leads func() bool
	// Resolver finds the addresses of hosts; nil: the system's.
	Resolver *net.Resolver
	// Timeout is the time of one attempt; 0: 15 seconds.
	Timeout time.Duration
	// Roots are the authorities of receivers; nil: the system's.
	Roots *x509.CertPool
	// Log receives failures, and what was given up; nil discards them.
	Log *slog.Logger
	// Registerer receives the metrics; nil: none.
	Registerer prometheus.Registerer
}

const (
	looks     = time.Second // between looks at the rows without a notice
	noticeGap = 50 * time.Millisecond
	batch     = 100 // events of a receiver that are read at once

	atOnce    = 4   // attempts at one receiver
	allAtOnce = 256 // attempts in all
	// allTroubled bounds the attempts at receivers that failed or were slow last, so that others have room.
	allTroubled = 128
	slow        = 2 * time.Second // an answer that takes longer

	firstBackoff = 5 * time.Second
	maxBackoff   = time.Hour

	recordTime  = 30 * time.Second // for which an outcome is tried to be recorded
	recordAgain = 200 * time.Millisecond
)

// Sender sends stored events to their receivers, each at least once, and records every attempt.
type Sender struct {
	cfg     Config
	metrics *metrics
	freed   chan struct{} // a receiver has room
	wg      sync.WaitGroup

	mu       sync.Mutex
	lanes    map[string]*lane // by UID of the notification
	sending  int
	troubled int // of sending, to receivers in trouble
	first    int // the receiver that is served first
}

// lane is the attempts at one receiver.
type lane struct {
	waiting  []events.Event
	sending  int
	troubled bool // the last attempt failed or was slow
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
