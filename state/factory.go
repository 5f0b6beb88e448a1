package state

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"millwright/schema"
	"millwright/schema/agefile"
	"millwright/state/audit"
	"millwright/state/db"
)

// Source is the origin of a factory's definition.
type Source struct {
	Kind   string `json:"kind"` // git, dir or managed
	URL    string `json:"url,omitempty"`
	Branch string `json:"branch,omitempty"`
	Path   string `json:"path,omitempty"`
}

// Revision is a version of a definition tree.
type Revision struct {
	ID      string     `json:"revision"`          // a git commit, sha256:… of the content, or r12 of a managed one
	Author  string     `json:"author,omitempty"`  // where the source knows it
	Subject string     `json:"subject,omitempty"` // first line of the commit message
	At      *time.Time `json:"at,omitempty"`      // of the commit, UTC
	Signer  string     `json:"signer,omitempty"`  // who signed the commit, where the source verifies it
	Tree    string     `json:"tree,omitempty"`    // names the content: the same for the same files
	Managed bool       `json:"managed,omitempty"` // the server holds the definition itself: see ManagedRevision
}

// SyncState is the outcome of a factory's last attempt to apply.
type SyncState string

// The values of SyncState.
const (
	SyncPending SyncState = "pending" // no attempt yet
	SyncApplied SyncState = "applied"
	SyncRefused SyncState = "refused" // the definition has errors; the last applied one serves
	SyncFailed  SyncState = "failed"  // the source could not be read; the last applied one serves
)

// Outcome is the result of one attempt to apply.
type Outcome string

// The values of Outcome.
const (
	OutcomeApplied   Outcome = "applied"
	OutcomeRefused   Outcome = "refused"
	OutcomeUnchanged Outcome = "unchanged"
	OutcomeFailed    Outcome = "failed"
	OutcomeSuspended Outcome = "suspended" // valid, and not applied since the factory was rolled back
)

// Factory is a configured factory and where its definition stands.
type Factory struct {
	UID           string
	Name          string // its identity: the name in the settings
	Source        Source
	Spec          *schema.FactoryFile // factory.yaml of the applied definition; nil when it has none
	Detached      bool                // no longer configured
	Suspended     bool
	Generation    int64
	SyncState     SyncState
	SyncSince     time.Time // when SyncState last changed
	Attempted     Revision
	Applied       Revision
	LastAttempted *time.Time
	LastApplied   *time.Time
	Problems      []schema.Problem // of the last attempt
	Message       string           // why the last attempt failed, when it did
	Recipient     string           // to which the secrets in its definition are encrypted
	Pin           *Pin             // since a rollback: the applied revision stays until somebody resumes
	Created       time.Time
	Updated       time.Time

	unreadable bool // something of the row
}

const factoryColumns = `
	uid, name, generation, source, spec, detached, suspended, sync_state, sync_since, attempted_revision,
	applied_revision, last_attempted_at, last_applied_at, problems, message, recipient, pin, created_at,
	updated_at`

func scanFactory(row db.Row) (Factory, error) {
	var f Factory
	var source, spec, attempted, appliedRev, problems, pin string
	var lastAttempted, lastApplied sql.NullInt64
	var since, created, updated int64
	err := row.Scan(
		&f.UID,
		&f.Name,
		&f.Generation,
		&source,
		&spec,
		&f.Detached,
		&f.Suspended,
		&f.SyncState,
		&since,
		&attempted,
		&appliedRev,
		&lastAttempted,
		&lastApplied,
		&problems,
		&f.Message,
		&f.Recipient,
		&pin,
		&created,
		&updated,
	)
	if err != nil {
		return Factory{}, err
	}

	f.LastAttempted, f.LastApplied = db.TimeOrNil(lastAttempted), db.TimeOrNil(lastApplied)
	f.SyncSince, f.Created, f.Updated = db.Time(since), db.Time(created), db.Time(updated)
	broken := errors.Join(json.Unmarshal([]byte(source), &f.Source), json.Unmarshal([]byte(spec), &f.Spec),
		json.Unmarshal([]byte(attempted), &f.Attempted), json.Unmarshal([]byte(appliedRev), &f.Applied),
		json.Unmarshal([]byte(problems), &f.Problems), json.Unmarshal([]byte(pin), &f.Pin))
	if broken != nil { // it must not hide the others; it is written anew by the next apply
		f.unreadable, f.Applied, f.SyncState = true, Revision{}, SyncFailed
		f.Message = "the state's row of this factory cannot be read: " + strings.ReplaceAll(
			broken.Error(),
			"\n",
			"; ",
		)
	}

	return f, nil
}

// FactorySettings are what the settings say of a factory.
type FactorySettings struct {
	Name      string
	Source    Source
	Suspended bool
}

// EnsureFactory makes the factory of this name exist, attached, with the given source. Its UID and its
// key for webhook UIDs are made the first time and never change. A factory that was detached, or whose
// source or suspension changed, keeps its applied definition.
func (s *Store) EnsureFactory(ctx context.Context, name string, source Source, suspended bool) (Factory, error) {
	all, err := s.configure(ctx, []FactorySettings{{name, source, suspended}}, false)
	if err != nil {
		return Factory{}, err
	}
	return all[0], nil
}

// ConfigureFactories makes these the factories that are attached, each as EnsureFactory does, and returns
// them in the same order. Every other one is detached: its webhooks answer 404, its history stays
// readable, and it gets its UIDs back when it is configured again. All of it happens in one transaction.
func (s *Store) ConfigureFactories(ctx context.Context, want []FactorySettings) ([]Factory, error) {
	return s.configure(ctx, want, true)
}

func (s *Store) configure(ctx context.Context, want []FactorySettings, alone bool) ([]Factory, error) {
	all := make([]Factory, len(want))
	var generation int64
	var detached []string
	err := s.audit.Write(ctx, func(ctx context.Context, tx *db.Tx) (rows audit.Entries, err error) {
		generation, detached = 0, nil
		now := time.Now()
		if err := s.insertFactories(ctx, tx, want, now); err != nil {
			return nil, err
		}

		query := `SELECT ` + factoryColumns + ` FROM factories ORDER BY uid` + s.db.ForUpdate()
		present, err := db.All(ctx, tx.Reader, scanFactory, query)
		if err != nil {
			return nil, err
		}

		for _, f := range present {
			i := slices.IndexFunc(want, func(w FactorySettings) bool { return w.Name == f.Name })
			is := f
			if i >= 0 {
				is.Source, is.Suspended, is.Detached = want[i].Source, want[i].Suspended, false
			} else if alone {
				is.Detached = true
			}

			if f.Source != is.Source || f.Suspended != is.Suspended || f.Detached != is.Detached ||
				i >= 0 && f.Generation == 0 {
				if is.Generation, err = s.updateFactory(ctx, tx, is, now); err != nil {
					return nil, err
				}

				generation = is.Generation
				rows = append(rows, configured(f, is))
			}

			if i >= 0 {
				all[i] = is
			} else if is.Detached {
				detached = append(detached, f.UID)
			}
		}

		return rows, nil
	})
	if err != nil {
		return nil, err
	}

	for _, uid := range detached {
		s.definitions.drop(uid)
	}

	if generation == 0 {
		return all, nil
	}

	return all, s.announce(ctx, generation)
}

// configured returns the row of the audit log about new settings of a factory.
func configured(was, is Factory) audit.Entry {
	var changes []string
	switch {
	case was.Generation == 0:
		changes = append(changes, "configured, source "+is.Source.Kind)
	case was.Source != is.Source:
		changes = append(changes, "source "+is.Source.Kind)
	}
	if was.Suspended != is.Suspended {
		changes = append(changes, map[bool]string{true: "suspended", false: "resumed"}[is.Suspended])
	}
	if was.Detached != is.Detached {
		changes = append(changes, map[bool]string{true: "detached", false: "attached"}[is.Detached])
	}

	return audit.Entry{
		FactoryUID: is.UID,
		Action:     audit.FactorySetting,
		Subject:    is.Name,
		Detail:     strings.Join(changes, ", "),
	}
}

const insertFactorySQL = `INSERT INTO factories (
	uid, name, uid_key, identity, recipient, generation, source, sync_since, created_at, updated_at
)
VALUES ($1, $2, $3, $4, $5, 0, '{}', $6, $6, $6)
ON CONFLICT (name) DO NOTHING`

// insertFactories makes those that do not exist yet, in an order that is the same on every replica.
func (s *Store) insertFactories(ctx context.Context, tx *db.Tx, want []FactorySettings, now time.Time) error {
	want = slices.SortedFunc(
		slices.Values(want),
		func(a, b FactorySettings) int { return cmp.Compare(a.Name, b.Name) },
	)
	for _, w := range want {
		var key [32]byte
		rand.Read(key[:])
		uid := NewID(PrefixFactory)
		sealed := s.seal.Seal("factory "+uid, key[:])

		identity, err := agefile.NewIdentity()
		if err != nil {
			return err
		}

		if _, err := tx.Exec(
			ctx,
			insertFactorySQL,
			uid,
			w.Name,
			sealed,
			s.seal.Seal("identity "+uid, []byte(identity.Key())),
			identity.Recipient(),
			db.Micros(now),
		); err != nil {
			return err
		}
	}

	return nil
}

const updateFactorySQL = `UPDATE factories
SET
	source = $1,
	detached = $2,
	suspended = $3,
	updated_at = $4
WHERE uid = $5`

// updateFactory writes what the settings say of a factory and returns its new generation.
func (s *Store) updateFactory(ctx context.Context, tx *db.Tx, f Factory, now time.Time) (int64, error) {
	source, err := json.Marshal(f.Source)
	if err != nil {
		return 0, err
	}
	if _, err := tx.Exec(ctx, updateFactorySQL,
		string(source), db.Flag(f.Detached), db.Flag(f.Suspended), db.Micros(now), f.UID); err != nil {
		return 0, err
	}
	return s.bump(ctx, tx, f.UID)
}

// Factories returns every factory, detached ones included, by name.
func (s *Store) Factories(ctx context.Context) ([]Factory, error) {
	rows, err := s.db.Query(ctx, `SELECT `+factoryColumns+` FROM factories ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()

	var all []Factory
	for rows.Next() {
		f, err := scanFactory(rows)
		if err != nil {
			return nil, err
		}

		all = append(all, f)
	}

	return all, rows.Err()
}

const factorySQL = `SELECT ` + factoryColumns + `
FROM factories
WHERE uid = $1 OR name = $1
ORDER BY CASE WHEN uid = $1 THEN 0 ELSE 1 END
LIMIT 1`

// Factory returns the factory with this UID or, failing that, this name. ErrNotFound if there is none.
func (s *Store) Factory(ctx context.Context, uidOrName string) (Factory, error) {
	f, err := scanFactory(s.db.QueryRow(ctx, factorySQL, uidOrName))
	return f, orNotFound(err, "factory %q", uidOrName)
}

// FactoryUIDs returns the UIDs of the factories with these names, without names that no factory has. It is never
// nil.
func (s *Store) FactoryUIDs(ctx context.Context, names []string) ([]string, error) {
	all, err := s.Factories(ctx)
	uids := []string{}
	for _, f := range all {
		if slices.Contains(names, f.Name) {
			uids = append(uids, f.UID)
		}
	}
	return uids, err
}

// Condition is one statement on a factory, as in Kubernetes: whether it holds, why, and since when.
type Condition struct {
	Type    string    `json:"type"`   // Ready, Reconciling or Stalled
	Status  string    `json:"status"` // True, False or Unknown
	Reason  string    `json:"reason"` // one word
	Message string    `json:"message"`
	Since   time.Time `json:"last_transition_time"`
}

// Conditions describes the factory. Ready: the newest revision of the source is applied, and each automation
// can fire. Reconciling: it is not applied yet, and the server keeps trying. Stalled: it is not applied, and
// will not be before someone acts.
func (f Factory) Conditions() []Condition {
	var reason, message string
	var ready, reconciling, stalled bool
	switch f.SyncState {
	case SyncApplied:
		reason, message, ready = "Applied", "applied revision "+f.Applied.ID, true
		if deaf := f.Deaf(); deaf != "" {
			reason, message, ready = "Degraded", deaf, false
		}
	case SyncRefused:
		reason, message, stalled = "Refused", f.Message, true
	case SyncFailed:
		reason, message, reconciling = "Retrying", f.Message, true
	default:
		reason, message, reconciling = "Pending", "no attempt yet", true
	}

	if f.Suspended && reconciling {
		reconciling, stalled, reason = false, true, "Suspended"
	}

	if f.Pin != nil {
		ready, reconciling, stalled, reason = false, false, true, "Suspended"
		message = f.PinMessage()
	}

	status := map[bool]string{true: "True", false: "False"}
	return []Condition{
		{Type: "Ready", Status: status[ready], Reason: reason, Message: message, Since: f.SyncSince},
		{Type: "Reconciling", Status: status[reconciling], Reason: reason, Message: message, Since: f.SyncSince},
		{Type: "Stalled", Status: status[stalled], Reason: reason, Message: message, Since: f.SyncSince},
	}
}

const recordAttemptedSQL = `UPDATE factories
SET attempted_revision = $1
WHERE uid = $2`

const recordAppliedSQL = `UPDATE factories
SET applied_revision = $1, last_applied_at = $2
WHERE uid = $3`

const insertAttemptSQL = `INSERT INTO syncs (
	factory_uid, started_at, finished_at, revision, outcome, counts, problems, message, changes, source
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, (SELECT source FROM factories WHERE uid = $1))
RETURNING id`

const expireAttemptsSQL = `DELETE FROM syncs
WHERE factory_uid = $1 AND id <= (
	SELECT id
	FROM syncs
	WHERE factory_uid = $1
	ORDER BY id DESC
	LIMIT 1 OFFSET $2
)`

// PinMessage describes a factory that was rolled back, and what its source has.
func (f Factory) PinMessage() string {
	if f.Pin == nil {
		return ""
	}

	text := fmt.Sprintf("suspended at revision %s since %s rolled back", f.Applied.ID, f.Pin.By)
	switch {
	case f.SyncState == SyncFailed:
		text += "; the source cannot be read: " + f.Message
	case f.SyncState == SyncRefused:
		text += fmt.Sprintf("; revision %s would be refused: %s", f.Attempted.ID, f.Message)
	case f.Attempted.ID != f.Applied.ID:
		text += fmt.Sprintf("; revision %s is valid and waits", f.Attempted.ID)
	}

	return text + "; resume the factory to follow its source again"
}

// Deaf names an automation of the applied definition that selects a webhook which does not exist, and counts
// the others; it is empty when there is none.
func (f Factory) Deaf() string {
	first, n := "", 0
	for _, p := range f.Problems {
		if p.Code != schema.RuleWebhookUnknown.Code() {
			continue
		}
		if n++; n == 1 {
			first = fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message)
		}
	}

	if n > 1 {
		first += fmt.Sprintf(" (and %d more)", n-1)
	}
	return first
}
