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
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"millwright/schema"
	"millwright/state/audit"
	"millwright/state/batch"
	"millwright/state/checks"
	"millwright/state/db"
	"millwright/state/events"
	"millwright/state/flow"
	"millwright/state/notice"
	"millwright/state/outputs"
	"millwright/state/registrations"
	"millwright/state/seal"
	"millwright/state/search"
	"millwright/state/skip"
	"millwright/state/trees"
	"millwright/state/workers"
)

// Store is an open state.
type Store struct {
	*notice.Bus

	db          *db.DB
	seal        *seal.Sealer
	log         *slog.Logger
	audit       *audit.Log
	accept      *batch.Queue
	rejects     rejects
	local       localReplicas
	announced   atomic.Int64 // the newest generation that this process made
	definitions definitions
	skips       skip.Rows
	budget      atomic.Pointer[schema.Budget] // of the settings; nil: none
	stop        context.CancelFunc
	background  sync.WaitGroup
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

// WriteFile replaces a file beside a state, or makes it for its owner only. After a power failure it has its old
// content or the new one, and the new one when WriteFile returned.
func WriteFile(name string, content []byte) error { return db.Write(name, content) }

// WriteNewFile is [WriteFile] for a file that does not exist yet: [os.ErrExist] if it exists.
func WriteNewFile(name string, content []byte) error { return db.WriteNew(name, content) }

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
	// ErrNotFound: the named thing does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the stored data does not allow the change.
	ErrConflict = errors.New("conflict")
	// ErrFull: the most messages that may wait for a run already do.
	ErrFull = errors.New("full")
	// ErrLost: the worker no longer holds the run to which it writes.
	ErrLost = errors.New("the claim on this run is lost")
	// ErrMoved: the factory's definition changed after the caller read it.
	ErrMoved = errors.New("the definition changed meanwhile")
	// ErrUnreadable: a stored row cannot be read; the wrapping error names it.
	ErrUnreadable = errors.New("it cannot be read as it is stored")
	// ErrUnavailable: the database cannot be reached or written now. A retry may succeed. Every method that
	// reads or writes the database can return it.
	ErrUnavailable = db.ErrUnavailable
)

// Refusal is an ErrNotFound, ErrConflict or ErrFull that names its subject.
type Refusal struct {
	Kind   error
	Detail string // names the thing, or the contradiction, without the kind
}

// Error returns the detail and the kind.
func (r *Refusal) Error() string { return r.Detail + ": " + r.Kind.Error() }

// Unwrap returns the kind.
func (r *Refusal) Unwrap() error { return r.Kind }

// Detail returns the detail of the Refusal that err wraps, or the text of err if it wraps none.
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

// definition is the automations, agents, runners and skills of a factory as one generation of it has them.
// Only its routes ever change.
type definition struct {
	generation int64
	tree       schema.Factory    // without the file and the webhooks; lists are in the order of resource names
	uids       map[string]string // by ResourceKey

	mu     sync.Mutex
	routes map[string]RoutedAutomation // by UID; those that were asked for
	file   string                      // factory.yaml that they were made with
}

// definitions are the definitions of attached factories that this process used last, one each.
type definitions struct {
	mu  sync.Mutex
	all map[string]*definition // by factory UID
}

// RoutedAutomation is an automation with what a run of it gets.
type RoutedAutomation struct {
	UID     string
	Spec    schema.Automation
	Config  json.RawMessage // AmbientAgentConfig resolved from the definition, secret values masked
	Sealed  []byte          // the mcp_servers of Config with their secret values; nil when Config masks nothing
	Model   string
	Env     string   // environment ID
	Agent   string   // UID of the agent, or empty
	Secrets []string // names of the team secrets that the harness gets
}

// DeliveryOutcome is the result of a request to a webhook.
type DeliveryOutcome string

// IdentitySource is the origin of a delivery's identity (docs/contract.md, section 8).
type IdentitySource string

// Identity is what tells deliveries of one webhook apart. The zero Identity is none.
type Identity struct {
	Source  IdentitySource
	Hash    [16]byte // of source and value, so that tiers never collide
	Preview string   // the value, escaped and cut for people to read
}

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
	Shown      []byte // headers, as of [Acceptance]
	Status     int    // of the answer
	Generation int64
	Received   time.Time

	uid     string
	count   int64
	sizeMax *int64
	last    *time.Time
}

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

// Replica is one process that serves the ingress. A change of the routing facts returns only when every
// replica with a live lease has loaded it.
type Replica struct {
	s      *Store
	uid    string
	loaded atomic.Int64
	until  atomic.Int64 // nanoseconds since base
	base   time.Time
}

// localReplicas are the replicas of a SQLite state, which all live in this process.
type localReplicas struct {
	mu   sync.Mutex
	all  map[*Replica]struct{}
	cond chan struct{} // closed and replaced when a replica loads or leaves
}

// Usage is what the language models of a run were asked for, and what it cost: the sum of all its executions
// and attempts.
type Usage struct {
	InputTokens  int64        `json:"input_tokens"` // cached ones included
	OutputTokens int64        `json:"output_tokens"`
	CachedTokens int64        `json:"cached_input_tokens"`
	CostUSD      *float64     `json:"inference_cost_usd,omitempty"` // nil: nobody knows
	Models       []ModelUsage `json:"models,omitempty"`             // in the order of their names
}

// ModelUsage is the part of one model. Model is empty for what no model is named for.
type ModelUsage struct {
	Model        string   `json:"model_id"`
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CachedTokens int64    `json:"cached_input_tokens"`
	CostUSD      *float64 `json:"inference_cost_usd,omitempty"`
}

// How a run waits for others of its automation: see [flow.Flow].
type (
	Flow             = flow.Flow
	FlowConcurrency  = flow.Concurrency
	FlowDebounce     = flow.Debounce
	FlowRetry        = flow.Retry
	FlowDecision     = flow.Decision
	RecordedDecision = flow.Recorded
)
