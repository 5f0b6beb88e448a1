// Package state holds what millwright remembers, and which changes to it are legal.
//
// One [Store] serves SQLite (embedded, the default) and PostgreSQL (many replicas), through package db. Illegal
// states are refused by the tables themselves. Every method is safe for concurrent use. A method that changes
// something either changes all of it, durably, or nothing.
package state

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"millwright/schema"
	"millwright/state/audit"
	"millwright/state/checks"
	"millwright/state/db"
	"millwright/state/events"
	"millwright/state/notice"
	"millwright/state/outputs"
	"millwright/state/registrations"
	"millwright/state/seal"
	"millwright/state/search"
	"millwright/state/skip"
	"millwright/state/trees"
	"millwright/state/workers"
)

// Config describes the state to open. MasterKey is required: see [seal.LoadKey].
type Config struct {
	// DSN is a path, sqlite:PATH, or postgres://…
	DSN string
	// MasterKey seals secrets at rest: 32 bytes, or the 64 of two keys, of which the state is sealed under one.
	MasterKey []byte
	// Log receives notices of background work; nil discards them.
	Log *slog.Logger
}

// Store is an open state.
type Store struct {
	*notice.Bus

	db          *db.DB
	seal        *seal.Sealer
	log         *slog.Logger
	audit       *audit.Log
	accept      *acceptor
	local       localReplicas
	definitions definitions
	skips       skip.Rows
	budget      atomic.Pointer[schema.Budget] // of the settings; nil: none
	stop        context.CancelFunc
	background  sync.WaitGroup
}

// Open opens the state that cfg names, creating and migrating it as needed. It refuses, and changes
// nothing, when the state is of a newer version, is sealed under another master key, or is a SQLite
// file that another process holds.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}

	sealer, err := seal.New(cfg.MasterKey)
	if err != nil {
		return nil, err
	}

	d, err := db.Open(ctx, cfg.DSN, cfg.Log)
	if err != nil {
		return nil, err
	}

	s := &Store{Bus: notice.New(d, cfg.Log), db: d, seal: sealer, log: cfg.Log, audit: audit.New(d, cfg.Log)}
	session, err := s.prepare(ctx)
	if err != nil {
		d.Close()
		return nil, err
	}

	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.accept = newAcceptor(s)
	s.background.Go(func() { s.accept.run(background) })
	if session != nil {
		s.background.Go(func() { s.Send(background) })
		s.background.Go(func() { s.Receive(background, session, s.resumed) })
	}

	return s, nil
}

// Examine looks for what is wrong with the database that dsn names, also while a server uses it. It changes
// nothing.
func Examine(ctx context.Context, dsn string) (db.Examination, error) {
	d, err := db.OpenReading(ctx, dsn)
	if err != nil {
		return db.Examination{}, err
	}
	defer d.Close()

	return d.Examine(ctx)
}

// OpenReading opens the state that cfg names for reading, also while a server uses it. Nothing is created or
// migrated, and writing fails. [seal.ErrWrongKey] if it is sealed under another master key.
func OpenReading(ctx context.Context, cfg Config) (*Store, error) {
	sealer, err := seal.New(cfg.MasterKey)
	if err != nil {
		return nil, err
	}

	d, err := db.OpenReading(ctx, cfg.DSN)
	if err != nil {
		return nil, err
	}
	if err := sealer.Check(ctx, d); err != nil {
		d.Close()
		return nil, err
	}

	log := slog.New(slog.DiscardHandler)
	return &Store{Bus: notice.New(d, log), db: d, seal: sealer, log: log, stop: func() {}}, nil
}

// prepare shows that we use a PostgreSQL state by a session, then checks the state and migrates it.
func (s *Store) prepare(ctx context.Context) (session *pgx.Conn, err error) {
	if s.db.Postgres() {
		if session, err = s.db.Use(ctx); err != nil {
			return nil, err
		}
	}

	err = s.db.Migrate(ctx, s.checkKey)
	if err == nil {
		err = s.seal.Bind(ctx, s.db)
	}
	if err != nil && session != nil {
		session.Close(context.WithoutCancel(ctx))
	}

	return session, err
}

func (s *Store) checkKey(ctx context.Context) error { return s.seal.Check(ctx, s.db) }

// resumed reports whether this process may go on after it was without a session: meanwhile the master key may
// have been rotated, and then it must change nothing any more.
func (s *Store) resumed(ctx context.Context) error {
	err := s.checkKey(ctx)
	if errors.Is(err, seal.ErrWrongKey) {
		s.db.Refuse(fmt.Errorf("%w: the master key was rotated: start this server again, with the new one",
			ErrUnavailable))
		s.log.Error("the master key was rotated while this server had no connection to the database: " +
			"start it again, with the new key")
	}

	return err
}

// Close ends the background work and closes the database. Accepts in flight are answered first.
func (s *Store) Close() error {
	s.stop()
	s.background.Wait()
	return s.db.Close()
}

// Outputs returns the outputs of runs.
func (s *Store) Outputs() outputs.Table { return outputs.New(s.db, s.audit, newEventID) }

// Audit returns the log of who changed what.
func (s *Store) Audit() *audit.Log { return s.audit }

// Checks returns what is owed to forges about revisions.
func (s *Store) Checks() checks.Table { return checks.New(s.db) }

// Events returns the events for receivers outside.
func (s *Store) Events() events.Table { return events.New(s.db) }

// ExpireEvents deletes the events that ended too long ago, and the oldest of a factory beyond its share.
func (s *Store) ExpireEvents(ctx context.Context) error {
	return s.Events().Expire(ctx, func(t time.Time) string { return leastID(PrefixEvent, t) })
}

// Search returns what finds webhooks, automations and deliveries for people.
func (s *Store) Search() search.Finder { return search.New(s.db) }

// Registrations returns the webhooks that the server makes at forges.
func (s *Store) Registrations() registrations.Table { return registrations.New(s.db) }

// Trees returns the applied definitions whose files are kept.
func (s *Store) Trees() trees.Table { return trees.New(s.db) }

// Workers returns the processes that take runs.
func (s *Store) Workers() workers.Table { return workers.New(s.db) }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// Shared reports whether several processes may serve this state at once (PostgreSQL).
func (s *Store) Shared() bool { return s.db.Postgres() }

// ClockSkew returns by how much this machine's clock is ahead of the clock that leases go by, at the last
// reading of that; 0 with SQLite.
func (s *Store) ClockSkew() time.Duration { return s.db.ClockSkew() }

// DeriveKey returns 32 bytes that every server of this state derives from the master key, and nobody else
// can, for one purpose: a secret that servers share.
func (s *Store) DeriveKey(purpose string) []byte { return s.seal.Derive(purpose) }

// SQLitePath returns the database file that dsn names, and false when dsn names a PostgreSQL state.
func SQLitePath(dsn string) (string, bool) { return db.SQLitePath(dsn) }

// Prefixes of identifiers (docs/contract.md, section 1).
const (
	PrefixFactory     = "fac"
	PrefixWebhook     = "wh"
	PrefixAutomation  = "auto"
	PrefixAgent       = "agt"
	PrefixRunner      = "rnr"
	PrefixSkill       = "skl"
	PrefixDelivery    = "dlv"
	PrefixKey         = "key"
	PrefixReplica     = "rep"
	PrefixFollowup    = "fup"
	PrefixWorker      = "wrk"
	PrefixArtifact    = "art"
	PrefixQuestion    = "qst"
	PrefixEnvironment = "env"
	PrefixOutput      = "out"

	PrefixNotification = "ntf"
	PrefixEvent        = "evt"
)

const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// NewID returns a fresh identifier in TypeID form: the prefix, an underscore, and a version 7 UUID as
// 26 characters of lower-case base32, so that identifiers of one kind sort by their time of making.
func NewID(prefix string) string {
	return prefix + "_" + encodeID(uuid.Must(uuid.NewV7()))
}

func newEventID() string { return NewID(PrefixEvent) }

// NewRunID returns a fresh run identifier: a version 7 UUID in its usual form.
func NewRunID() string { return uuid.Must(uuid.NewV7()).String() }

// WebhookUID returns the UID that a webhook of this name gets in the factory whose key is given, when
// ordinal webhooks of that name came before it. It is a keyed hash, so a plan can name the UID
// before the first apply, and nobody without the key can guess it.
func WebhookUID(factoryKey []byte, name string, ordinal int) string {
	mac := hmac.New(sha256.New, factoryKey)
	mac.Write([]byte("webhook\x00" + name + "\x00" + strconv.Itoa(ordinal)))
	return PrefixWebhook + "_" + encodeID([16]byte(mac.Sum(nil)[:16]))
}

// WorkerUID returns the UID of one of the processes that share what a worker's claims are bound to.
func WorkerUID(worker, instance string) string {
	sum := sha256.Sum256([]byte(worker + "\x00" + instance))
	return PrefixWorker + "_" + encodeID([16]byte(sum[:16]))
}

// encodeID writes 128 bits as 26 base32 digits, most significant first; the first digit is 0 to 7.
func encodeID(b [16]byte) string {
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	var out [26]byte
	for i := 25; i >= 0; i-- {
		out[i] = idAlphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out[:])
}

// ValidID reports whether s is an identifier of the given prefix.
func ValidID(prefix, s string) bool {
	rest, ok := strings.CutPrefix(s, prefix+"_")
	if !ok || len(rest) != 26 || rest[0] > '7' {
		return false
	}
	for i := range len(rest) {
		if strings.IndexByte(idAlphabet, rest[i]) < 0 {
			return false
		}
	}
	return true
}

// TokenPrefix begins every token that is made up for a webhook, so that a leaked one can be told.
const TokenPrefix = "mwt_"

// NewToken returns prefix and 32 random bytes as URL-safe text.
func NewToken(prefix string) string {
	var b [32]byte
	rand.Read(b[:])
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// HashToken returns the stored form of a random token: its SHA-256.
func HashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// clockSlack is how far the time in a delivery's UID may be from the time it was received.
const clockSlack = 5 * time.Minute

// DeliveryUIDAt returns the least UID of a delivery made at t.
func DeliveryUIDAt(t time.Time) string { return leastID(PrefixDelivery, t) }

// leastID returns the least identifier of the prefix that NewID makes at t.
func leastID(prefix string, t time.Time) string {
	var id uuid.UUID
	if ms := t.UnixMilli(); ms > 0 {
		for i := range 6 {
			id[i] = byte(ms >> (40 - 8*i))
		}
	}
	return prefix + "_" + encodeID(id)
}

// DeliveryTime returns when the delivery with this valid UID was made, to the millisecond.
func DeliveryTime(uid string) time.Time {
	var ms int64
	for _, c := range []byte(uid[len(PrefixDelivery)+1:][:10]) { // 48 bits
		ms = ms<<5 | int64(strings.IndexByte(idAlphabet, c))
	}
	return time.UnixMilli(ms)
}

var (
	// ErrNotFound says that the named thing does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the change contradicts the state.
	ErrConflict = errors.New("conflict")
	// ErrFull says that as many messages wait for a run as may.
	ErrFull = errors.New("full")
	// ErrLost says that a worker no longer holds the run it writes to.
	ErrLost = errors.New("the claim on this run is lost")
	// ErrMoved says that the factory's definition changed since it was read.
	ErrMoved = errors.New("the definition changed meanwhile")
	// ErrUnreadable: a stored row cannot be read; the wrapping error names it.
	ErrUnreadable = errors.New("it cannot be read as it is stored")
	// ErrUnavailable says that the database cannot be reached or written just now; a retry may help.
	ErrUnavailable = db.ErrUnavailable
)

// Refusal is an ErrNotFound, ErrConflict or ErrFull with what it is about.
type Refusal struct {
	Kind   error
	Detail string // names the thing, or the contradiction, without the kind
}

// Error returns the detail and the kind.
func (r *Refusal) Error() string { return r.Detail + ": " + r.Kind.Error() }

// Unwrap returns the kind.
func (r *Refusal) Unwrap() error { return r.Kind }

// Detail returns what the refusal in err is about; the text of any other error.
func Detail(err error) string {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Detail
	}
	return err.Error()
}

func refuse(kind error, format string, args ...any) error {
	return &Refusal{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// orNotFound returns an ErrNotFound for a look-up, or a change, that found no row.
func orNotFound(err error, format string, args ...any) error {
	if errors.Is(err, sql.ErrNoRows) || errors.Is(err, db.ErrNoRow) {
		return refuse(ErrNotFound, format, args...)
	}
	return err
}

// orMoved returns ErrMoved for a change that found no row.
func orMoved(err error) error {
	if errors.Is(err, db.ErrNoRow) {
		return ErrMoved
	}
	return err
}

// ofRow reports whether an error is a row's own: it repeats at every attempt, regardless of the database.
func ofRow(err error) bool {
	for _, other := range []error{
		ErrUnavailable, ErrLost, ErrConflict, ErrNotFound, ErrMoved, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	return err != nil
}

// The loops over the rows of all factories, by the names that Skipped has for them.
const (
	loopReap    = "lease recovery"
	loopRetain  = "retention"
	loopRejects = "rejected deliveries"
)

// Skip notes that a loop passes over a row. The end of a context, and a database that is out of reach, are
// not the row's.
func (s *Store) Skip(loop, factoryUID, row string, err error) {
	if ofRow(err) {
		s.skips.Add(s.log, loop, factoryUID, row, err)
	}
}

// Skipped returns the rows that loops of this process pass over now, by loop and row.
func (s *Store) Skipped() []skip.Row { return s.skips.All() }
