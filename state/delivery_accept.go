package state

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"millwright/state/audit"
	"millwright/state/db"
	"millwright/state/notice"
)

// Accept stores a delivery, its identity, its payload and its runs in one durable transaction, which it
// shares with other deliveries that wait at the same time. When it returns nil, all of that is on disk.
// A delivery whose identity was accepted before is logged as a duplicate and starts nothing.
//
// ErrMoved: the factory's definition changed since the delivery was judged; nothing was stored.
// ErrUnavailable: the database cannot be written, or too much is waiting, or ctx ended first. Then the
// delivery may have been stored after all, which its identity will show when it is sent again.
func (s *Store) Accept(ctx context.Context, a Acceptance) (Accepted, error) {
	a.stored = db.Compress(a.Body)
	if a.ReplayOf != "" {
		a.audited = audit.Entry{
			FactoryUID: a.FactoryUID,
			Action:     audit.DeliveryReplay,
			Subject:    a.ReplayOf,
			Detail:     "as " + a.UID,
		}.Complete(ctx)
	}

	j := &job{accept: &a, done: make(chan outcome, 1)}
	o := s.accept.submit(ctx, j)
	if o.err == nil && a.ReplayOf != "" {
		s.audit.Tell(a.audited)
	}

	return o.Accepted, o.err
}

const (
	acceptQueue    = 2048    // jobs that may wait
	acceptBatch    = 256     // jobs in one transaction
	acceptBytes    = 8 << 20 // of bodies in one transaction
	acceptDeadline = 10 * time.Second
)

// acceptor is the group commit: writers that each take what is waiting, write it in one transaction, and
// answer after the commit. There is no timer: a writer that finds one job commits one.
type acceptor struct {
	s       *Store
	queue   chan *job
	closed  chan struct{} // closed when no writer will take a job any more
	rejects rejects
}

func newAcceptor(s *Store) *acceptor {
	return &acceptor{s: s, queue: make(chan *job, acceptQueue), closed: make(chan struct{})}
}

// submit hands j to a writer and waits for its answer.
func (a *acceptor) submit(ctx context.Context, j *job) outcome {
	select {
	case <-a.closed:
		return outcome{err: fmt.Errorf("%w: the state is closed", ErrUnavailable)}
	default:
	}

	select {
	case a.queue <- j:
	default:
		return outcome{err: fmt.Errorf("%w: too many deliveries are waiting to be written", ErrUnavailable)}
	}

	var why error
	select {
	case o := <-j.done:
		return o
	case <-ctx.Done():
		why = ctx.Err()
	case <-a.closed:
		why = errors.New("the state is closed")
	}

	if !j.state.CompareAndSwap(jobWaiting, jobWithdrawn) {
		select { // a writer has it; it may be done by now
		case o := <-j.done:
			return o
		default:
		}
	}

	return outcome{err: fmt.Errorf("%w: %w", ErrUnavailable, why)}
}

// run serves the queue until ctx ends, and then what still waits.
func (a *acceptor) run(ctx context.Context) {
	defer close(a.closed)

	var writers sync.WaitGroup
	for range a.writers() {
		writers.Go(func() { a.write(ctx) })
	}

	tick := time.NewTicker(time.Second)
	defer tick.Stop()

	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			a.flushRejects(ctx)
		}
	}

	writers.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptDeadline)
	defer cancel()

	a.flushRejects(last)
}

// writers is how many transactions may be under way: SQLite has one writer.
func (a *acceptor) writers() int {
	if a.s.db.Postgres() {
		return 3
	}
	return 1
}

func (a *acceptor) write(ctx context.Context) {
	for {
		var first *job
		select {
		case first = <-a.queue:
		default:
			select {
			case first = <-a.queue:
			case <-ctx.Done():
				select {
				case first = <-a.queue: // answered before the end
				default:
					return
				}
			}
		}

		if batch := a.take(first); len(batch) > 0 {
			a.commit(context.WithoutCancel(ctx), batch)
		}
	}
}

// take returns first and what waits behind it, as far as a batch goes.
func (a *acceptor) take(first *job) []*job {
	batch := make([]*job, 0, 16)
	bytes := 0
	for j := first; ; {
		if j.state.CompareAndSwap(jobWaiting, jobTaken) {
			batch = append(batch, j)
			bytes += j.size()
		}
		if len(batch) == acceptBatch || bytes >= acceptBytes {
			return batch
		}

		select {
		case j = <-a.queue:
		default:
			return batch
		}
	}
}

// commit writes a batch and answers its jobs. What fails for another reason than the database being out
// of reach is tried again one by one, so that it fails alone.
func (a *acceptor) commit(ctx context.Context, batch []*job) {
	ctx, cancel := context.WithTimeout(ctx, acceptDeadline)
	defer cancel()

	slices.SortFunc(batch, (*job).order)
	outcomes, err := a.transact(ctx, batch)
	if err != nil && len(batch) > 1 && !errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
		for i := range batch {
			a.commit(ctx, batch[i:i+1])
		}
		return
	}

	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}

		for _, j := range batch {
			j.done <- outcome{err: err}
		}

		return
	}

	a.s.Publish(notices(batch, outcomes)...)
	for _, webhookUID := range followed(batch) {
		a.s.Notify(notice.Delivery, webhookUID)
	}

	for i, j := range batch {
		a.s.movedAll(ctx, outcomes[i].changed)
		j.done <- outcomes[i]
	}
}

func notices(batch []*job, outcomes []outcome) []notice.Notice {
	all := make([]notice.Notice, 0, 2*len(batch))
	for i, j := range batch {
		switch {
		case outcomes[i].err != nil:
			continue
		case j.entry != nil:
			all = append(all, notice.Notice{Topic: notice.Delivery, ID: j.entry.WebhookUID})
			continue
		case !outcomes[i].Duplicate:
			for _, r := range outcomes[i].Started(j.accept.Runs) {
				all = append(all, notice.Notice{Topic: notice.Queued, ID: r.ID})
			}
		}

		all = append(all, notice.Notice{Topic: notice.Delivery, ID: j.accept.WebhookUID})
	}

	return all
}

// followed returns the webhooks of a batch that somebody may follow on another replica.
func followed(batch []*job) (webhookUIDs []string) {
	for _, j := range batch {
		if j.accept != nil && j.accept.Headers != nil {
			webhookUIDs = append(webhookUIDs, j.accept.WebhookUID)
		}
	}
	return webhookUIDs
}

// transact writes a sorted batch in one transaction and returns each job's outcome, in the same order.
func (a *acceptor) transact(ctx context.Context, batch []*job) (outcomes []outcome, err error) {
	if a.s.db.Postgres() {
		err = a.s.db.Pipeline(ctx, func(ctx context.Context, pipe db.Pipe) (err error) {
			outcomes, err = a.s.writePostgres(ctx, pipe, batch)
			return err
		})
		return outcomes, err
	}

	// Without a deadline: that would cost a goroutine for each statement, and a disk does not heed it.
	err = a.s.db.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *db.Tx) (err error) {
		outcomes, err = a.s.writeSQLite(ctx, tx, batch)
		return err
	})
	return outcomes, err
}

// IdentitySource is the origin of a delivery's identity (docs/contract.md, section 8).
type IdentitySource string

// The values of IdentitySource, in order of preference.
const (
	IdentityHeader        IdentitySource = "header"         // the header of the webhook's deliveryIdHeader
	IdentityProvider      IdentitySource = "provider"       // the provider's own delivery header
	IdentityServiceHeader IdentitySource = "service_header" // X-Service-Delivery-Id
	IdentityBodyHash      IdentitySource = "body_hash"      // SHA-256 of the body
)

// Identity is what tells deliveries of one webhook apart. The zero Identity is none.
type Identity struct {
	Source  IdentitySource
	Hash    [16]byte // of source and value, so that tiers never collide
	Preview string   // the value, escaped and cut for people to read
}

// IdentityOf returns the identity that value gives in the tier source. The value is foreign text.
func IdentityOf(source IdentitySource, value string) Identity {
	h := sha256.New()
	h.Write([]byte(source))
	h.Write([]byte{0})
	h.Write([]byte(value))
	id := Identity{Source: source, Preview: Preview(value)}
	copy(id.Hash[:], h.Sum(nil))
	return id
}

// previewLength is how much of a foreign string is kept for people to read, in characters.
const previewLength = 128

// Preview returns foreign text as printable ASCII, escaped as in a Go string, at most 128 characters
// of it; what was cut shows as "...".
func Preview(text string) string {
	if len(text) <= previewLength && printable(text) {
		return text
	}

	var b strings.Builder
	for rest := text; rest != ""; {
		_, size := utf8.DecodeRuneInString(rest)
		quoted := strconv.QuoteToASCII(rest[:size])
		piece := quoted[1 : len(quoted)-1]
		if b.Len()+len(piece) > previewLength-3 {
			b.WriteString("...")
			break
		}

		b.WriteString(piece)
		rest = rest[size:]
	}

	return b.String()
}

// printable reports whether text needs no escaping.
func printable(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// stale is the UID below which a delivery's identity does not count any more; "" when it does for ever.
func (a *Acceptance) stale() string {
	if a.Window == 0 {
		return ""
	}
	return DeliveryUIDAt(a.Received.Add(-a.Window))
}

// Acceptance is a delivery that was judged good, with the runs that it starts.
type Acceptance struct {
	UID        string // the delivery's, from NewID(PrefixDelivery)
	FactoryUID string
	Generation int64 // of the factory, as it was judged by
	WebhookID  int64
	WebhookUID string
	Identity   Identity // of the zero Identity nothing is stored
	// Window is how long Identity counts after the delivery that had it first; 0: for ever.
	Window time.Duration
	// Digest stands for the signed bytes where the identity is not among them; else nil. A delivery with
	// the digest of an earlier one is accepted all the same, with a note in its row.
	Digest   []byte
	Sender   string
	Body     []byte // must not change until Accept returns, nor afterwards
	Headers  []byte // to be kept with it, as Request returns them; nil for none
	Shown    []byte // a few harmless ones for its row, as lines "Name: value" that end in CR LF
	Status   int    // of the answer to the sender
	Reason   string
	Event    string // preview
	ReplayOf string
	Received time.Time
	Runs     []NewRun // QUEUED by this delivery
	// Undecided has the UIDs of the automations that an answer of the forge decides on: see Decide.
	Undecided []string

	stored  []byte      // Body, in the form in which it is stored
	audited audit.Entry // of a replay
}

// Accepted is the result of an Acceptance.
type Accepted struct {
	// DeliveryUID is the delivery's UID or, of a duplicate, that of the delivery accepted first.
	DeliveryUID string
	Duplicate   bool
	// Flow has the automations that the delivery started no run of its own for, or one that waits for a time.
	Flow []FlowDecision
}

// Started returns those of the runs that the delivery started, which are Acceptance.Runs.
func (a Accepted) Started(runs []NewRun) []NewRun {
	if len(a.Flow) == 0 {
		return runs
	}
	return slices.DeleteFunc(slices.Clone(runs), func(r NewRun) bool {
		return slices.ContainsFunc(a.Flow, func(d FlowDecision) bool {
			return d.AutomationUID == r.AutomationUID && d.Merged(r.ID)
		})
	})
}

// job is a delivery on its way to the database: accepted, or to be logged only.
type job struct {
	accept *Acceptance
	entry  *Rejection // set instead of accept
	state  atomic.Int32
	done   chan outcome
}

const (
	jobWaiting int32 = iota
	jobTaken
	jobWithdrawn
)

type outcome struct {
	Accepted
	changed []Run // earlier runs
	err     error
}

func (j *job) webhook() int64 {
	if j.accept != nil {
		return j.accept.WebhookID
	}
	return j.entry.WebhookID
}

func (j *job) size() int {
	if j.accept != nil {
		return len(j.accept.stored)
	}
	return 0
}

// order sorts a batch, so that transactions of several writers never wait for one another in a circle.
func (j *job) order(o *job) int {
	if c := cmp.Compare(j.webhook(), o.webhook()); c != 0 {
		return c
	}
	if j.accept == nil || o.accept == nil {
		return cmp.Compare(btoi(j.accept != nil), btoi(o.accept != nil))
	}
	if c := bytes.Compare(j.accept.Identity.Hash[:], o.accept.Identity.Hash[:]); c != 0 {
		return c
	}
	return cmp.Compare(j.accept.UID, o.accept.UID) // the earlier one is the first
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
