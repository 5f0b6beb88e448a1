package state

import (
	"sync"
	"time"

	"millwright/bounds"
)

// Rejection is a request that was judged and starts nothing: refused, or a provider's set-up probe that
// was answered.
type Rejection struct {
	FactoryUID string
	WebhookID  int64
	WebhookUID string
	Outcome    DeliveryOutcome // not accepted or duplicate
	Reason     string
	Size       *int64 // of the body as far as known
	Sender     string
	Identity   Identity
	Event      string // preview
	Generation int64
	Received   time.Time

	uid     string
	count   int64
	sizeMax *int64
	last    *time.Time
}

// manySenders stands for senders that had no room of their own.
const manySenders = "many"

// rejects counts the rejections of each webhook and gathers those beyond the cap.
type rejects struct {
	mu      sync.Mutex
	began   time.Time     // of the minute that is counted
	seen    map[int64]int // in it, by webhook
	waiting map[rejectKey]*sharedReject
	rows    map[int64]int // of waiting, by webhook
}

type rejectKey struct {
	webhook int64
	outcome DeliveryOutcome
	sender  string
	minute  int64
}

type sharedReject struct {
	Rejection
	dirty bool // not all of it is written
}

// share takes r into a shared row if its webhook is beyond the cap, and reports whether it did.
func (r *rejects) share(one *Rejection) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.count(one.WebhookID, 1) <= bounds.RejectedRows {
		return false
	}

	key := rejectKey{one.WebhookID, one.Outcome, one.Sender, one.Received.Unix() / 60}
	row := r.waiting[key]
	if row == nil &&
		(len(r.waiting) >= bounds.SharedRejectedRows || r.rows[one.WebhookID] >= bounds.SharedRejectedRowsOfWebhook) {
		key.sender = manySenders
		row = r.waiting[key]
	}

	if row == nil {
		if r.waiting == nil {
			r.waiting, r.rows = map[rejectKey]*sharedReject{}, map[int64]int{}
		}

		r.rows[one.WebhookID]++
		row = &sharedReject{Rejection: *one}
		row.uid, row.Sender, row.Identity, row.Event, row.Size = NewID(
			PrefixDelivery,
		), key.sender, Identity{}, "", nil
		r.waiting[key] = row
	}

	row.add(one)
	return true
}

// count returns how many rejections a webhook had in the minute, with n more. The minute is one of the
// monotonic clock: neither a request that began earlier nor a clock that is set begins another.
func (r *rejects) count(webhook int64, n int) int {
	if now := time.Now(); r.seen == nil || now.Sub(r.began) >= time.Minute {
		r.began, r.seen = now, map[int64]int{}
	}
	r.seen[webhook] += n
	return r.seen[webhook]
}

func (s *sharedReject) add(r *Rejection) {
	s.dirty = true
	s.count++
	if s.Received.After(r.Received) {
		s.Received = r.Received
	}
	if s.last == nil || s.last.Before(r.Received) {
		last := r.Received
		s.last = &last
	}
	if r.Size == nil {
		return
	}

	if size := *r.Size; s.Size == nil {
		smallest, largest := size, size
		s.Size, s.sizeMax = &smallest, &largest
	} else {
		*s.Size, *s.sizeMax = min(*s.Size, size), max(*s.sizeMax, size)
	}
}

// due returns copies of the shared rows that are to be written, and drops those of past minutes that
// were written in full.
func (r *rejects) due(now time.Time) map[rejectKey]Rejection {
	r.mu.Lock()
	defer r.mu.Unlock()

	rows := map[rejectKey]Rejection{}
	for key, row := range r.waiting {
		switch {
		case row.dirty:
			row.dirty = false
			rows[key] = row.copy()
		case key.minute < now.Unix()/60:
			delete(r.waiting, key)
			if r.rows[key.webhook]--; r.rows[key.webhook] == 0 {
				delete(r.rows, key.webhook)
			}
		}
	}

	return rows
}

func (s *sharedReject) copy() Rejection {
	c := s.Rejection
	if s.Size != nil {
		smallest, largest := *s.Size, *s.sizeMax
		c.Size, c.sizeMax = &smallest, &largest
	}
	last := *s.last
	c.last = &last
	return c
}

func (r *rejects) again(key rejectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if row := r.waiting[key]; row != nil {
		row.dirty = true
	}
}
