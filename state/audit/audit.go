// Package audit stores who changed what, when and from where: one row a change, written in the transaction
// of the change. Rows are never changed, and deleted by age alone, unless there are too many.
package audit

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"millwright/state/db"
)

// Kinds of actors beside those of api.CallerKind.
const (
	KindServer  = "server"  // the server by itself, such as after a change of its settings
	KindSource  = "source"  // a revision of a factory's source; the name is its author, who is not verified
	KindConsole = "console" // a command on the machine of the state
)

// Actor is who makes a change.
type Actor struct {
	Kind   string
	UID    string // of the API key; may be empty
	Name   string
	Source string // the remote address; empty for a change that no request asked for
}

// Actions. The part before the dot is the kind of the subject.
const (
	SignIn          = "session.create"
	SignInRefused   = "session.refuse" // a count of refused keys
	KeyCreate       = "key.create"
	KeyRevoke       = "key.revoke"
	KeyRotate       = "key.rotate" // the master key
	SecretSet       = "secret.set"
	SecretDelete    = "secret.delete"
	FactoryApply    = "factory.apply"
	FactoryEdit     = "factory.edit"
	FactoryRestore  = "factory.restore"
	FactoryRollback = "factory.rollback"
	FactoryResume   = "factory.resume"
	FactorySetting  = "factory.settings"
	WebhookCreate   = "webhook.create"
	WebhookUpdate   = "webhook.update"
	WebhookEnable   = "webhook.enable"
	WebhookDisable  = "webhook.disable"
	WebhookRotate   = "webhook.rotate"
	WebhookDelete   = "webhook.delete"
	DeliveryReplay  = "delivery.replay"
	RunCancel       = "run.cancel"
	OutputOpen      = "output.open"
	OutputApprove   = "output.approve"
	OutputReject    = "output.reject"
	OutputRetry     = "output.retry"
	StateRestore    = "state.restore" // the state was made from a backup
)

// actions holds every action, in the order of the constants.
var actions = []string{
	SignIn, SignInRefused,
	KeyCreate, KeyRevoke, KeyRotate,
	SecretSet, SecretDelete,
	FactoryApply, FactoryEdit, FactoryRestore, FactoryRollback, FactoryResume, FactorySetting,
	WebhookCreate, WebhookUpdate, WebhookEnable, WebhookDisable, WebhookRotate, WebhookDelete,
	DeliveryReplay,
	RunCancel,
	OutputOpen, OutputApprove, OutputReject, OutputRetry,
	StateRestore,
}

// Kinds returns the kinds of actions: their parts before the dot, in the order of the constants.
func Kinds() []string {
	var kinds []string
	for _, action := range actions {
		kind, _, _ := strings.Cut(action, ".")
		kinds = append(kinds, kind)
	}
	return slices.Compact(kinds)
}

// Known reports whether name is an action or a kind of actions.
func Known(name string) bool { return slices.Contains(actions, name) || slices.Contains(Kinds(), name) }

// Actions returns the actions of a kind, in the order of the constants.
func Actions(kind string) []string {
	return slices.DeleteFunc(slices.Clone(actions), func(action string) bool {
		return !strings.HasPrefix(action, kind+".")
	})
}

// Entry is a row of the log. It never has a secret.
type Entry struct {
	UID        string
	At         time.Time
	Actor      Actor // the zero Actor: that of the context
	FactoryUID string
	Action     string
	Subject    string // UID or name of what changed
	Detail     string
}

// Entries are the rows of one change.
type Entries []Entry

// One returns the only row of a change.
func One(e Entry) Entries { return Entries{e} }

// Bounds of a row, in characters.
const (
	maxName    = 200
	maxSubject = 300
	maxDetail  = 500
)

type contextKey struct{}

// WithActor returns a context whose changes are those of an actor.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, contextKey{}, a)
}

// ActorOf returns the actor of a context; the server when it has none.
func ActorOf(ctx context.Context) Actor {
	a, ok := ctx.Value(contextKey{}).(Actor)
	if !ok || a.Kind == "" {
		a.Kind, a.Name = KindServer, "server"
	}
	return a
}

// SourceOf returns the remote address of the actor of a context; empty when it has none.
func SourceOf(ctx context.Context) string {
	a, _ := ctx.Value(contextKey{}).(Actor)
	return a.Source
}

// Log is the audit log of a state.
type Log struct {
	db  *db.DB
	log *slog.Logger

	mu      sync.Mutex
	refused refused
}

// New returns the log in a database. Every row is also a line of log.
func New(d *db.DB, log *slog.Logger) *Log { return &Log{db: d, log: log} }

// InsertSQL inserts a row. Its arguments are those of Row.
const InsertSQL = `INSERT INTO audit_log (
	at, uid, factory_uid, actor_kind, actor_uid, actor, source, action, subject, detail
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

// Row returns the arguments of InsertSQL.
func (e Entry) Row() []any {
	return []any{
		db.Micros(e.At), e.UID, e.FactoryUID, e.Actor.Kind, e.Actor.UID, e.Actor.Name, e.Actor.Source,
		e.Action, e.Subject, e.Detail,
	}
}

// Complete returns the entry with a UID, a time and an actor, and with bounded text.
func (e Entry) Complete(ctx context.Context) Entry {
	if e.Actor == (Actor{}) {
		e.Actor = ActorOf(ctx)
	}

	e.UID = "aud_" + uuid.Must(uuid.NewV7()).String()
	e.At = time.Now().Truncate(time.Microsecond).UTC()
	e.Actor.Name, e.Actor.Source = db.Bounded(e.Actor.Name, maxName), db.Bounded(e.Actor.Source, maxName)
	e.Subject, e.Detail = db.Bounded(e.Subject, maxSubject), db.Bounded(e.Detail, maxDetail)
	return e
}

// Write runs f in a transaction and adds the rows that it returns. A change that fails leaves no row.
func (l *Log) Write(ctx context.Context, f func(context.Context, *db.Tx) (Entries, error)) error {
	var entries Entries
	err := l.db.Write(ctx, func(ctx context.Context, tx *db.Tx) (err error) {
		if entries, err = f(ctx, tx); err != nil {
			return err
		}

		for i := range entries {
			entries[i] = entries[i].Complete(ctx)
			if _, err := tx.Exec(ctx, InsertSQL, entries[i].Row()...); err != nil {
				return fmt.Errorf("audit log: %w", err)
			}
		}

		return nil
	})
	if err != nil {
		return err
	}

	for _, e := range entries {
		l.Tell(e)
	}

	return nil
}

// Tell writes the log line of a row that is committed.
func (l *Log) Tell(e Entry) {
	l.log.Info(
		"audit",
		"action", e.Action,
		"actor", e.Actor.Name,
		"actor_kind", e.Actor.Kind,
		"actor_uid", e.Actor.UID,
		"source", e.Actor.Source,
		"factory_uid", e.FactoryUID,
		"subject", e.Subject,
		"detail", e.Detail,
		"audit_uid", e.UID,
	)
}

// refused counts the keys that were refused since the last row about them.
type refused struct {
	count   int
	senders map[string]bool
	written time.Time
}
