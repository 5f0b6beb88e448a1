package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"millwright/schema"
	"millwright/schema/agefile"
	"millwright/state/audit"
	"millwright/state/db"
)

// Current is what a plan compares a tree with: one consistent view of a factory's applied definition
// and of the team's secrets. The tree and the UIDs are shared: read them only.
type Current struct {
	Factory  Factory
	Key      []byte // of the factory, for WebhookUID
	Tree     schema.Factory
	Webhooks []Webhook         // live, by name
	UIDs     map[string]string // of live automations, agents, runners and skills, by ResourceKey
	Ordinals map[string]int    // how many webhooks had a name first, ever
	// Restorable are the deleted webhooks that a file of their name brings back, by name.
	Restorable map[string]Webhook
	// Gone gives the name of deleted webhooks by UID, those deleted last.
	Gone map[string]string
	// LastInUse reports that the factory has one webhook, which accepted a delivery within a week.
	LastInUse bool
	Secrets   map[string]SecretInfo // of the team
	Own       map[string]SecretInfo // that only this factory sees: those in its definition
	Identity  agefile.Identity      // opens the secrets in its definition
	PlannedAt time.Time
}

// Current reads what a plan for the factory compares with. With ErrUnreadable the factory is returned too.
func (s *Store) Current(ctx context.Context, factoryUID string) (Current, error) {
	var c Current
	err := s.db.View(ctx, func(tx db.View) (err error) {
		c, err = s.current(ctx, tx.Reader, factoryUID)
		return err
	})
	c.PlannedAt = time.Now()
	return c, err
}

func (s *Store) current(ctx context.Context, tx db.Reader, factoryUID string) (Current, error) {
	c := Current{Ordinals: map[string]int{}}
	var err error
	query := `SELECT ` + factoryColumns + ` FROM factories WHERE uid = $1`
	c.Factory, err = scanFactory(tx.QueryRow(ctx, query, factoryUID))
	if err != nil {
		return c, orNotFound(err, "factory %q", factoryUID)
	}

	if err := s.openKeys(ctx, tx, &c); err != nil {
		return c, err
	}

	d, err := s.applied(ctx, tx, factoryUID, c.Factory.Generation)
	if err != nil {
		return c, err
	}

	c.Tree, c.UIDs = d.tree, d.uids
	if c.Webhooks, err = liveWebhooks(ctx, tx, factoryUID); err != nil {
		return c, err
	}

	c.Tree.File = c.Factory.Spec
	for _, w := range c.Webhooks {
		c.Tree.Webhooks = append(c.Tree.Webhooks, w.Spec)
	}

	if err := ordinals(ctx, tx, factoryUID, c.Ordinals); err != nil {
		return c, err
	}

	if err := c.readDeleted(ctx, tx); err != nil {
		return c, err
	}

	if len(c.Webhooks) == 1 {
		if c.LastInUse, err = inUse(ctx, tx, c.Webhooks[0].ID); err != nil {
			return c, err
		}
	}

	return c, c.readSecrets(ctx, tx)
}

// openKeys reads the key of webhook UIDs and the age identity of the factory.
func (s *Store) openKeys(ctx context.Context, tx db.Reader, c *Current) error {
	uid := c.Factory.UID
	var key, identity []byte
	err := tx.QueryRow(ctx, `SELECT uid_key, identity FROM factories WHERE uid = $1`, uid).Scan(&key, &identity)
	if err != nil {
		return err
	}

	if c.Key, err = s.seal.Open("factory "+uid, key); err != nil {
		return fmt.Errorf("key of factory %q: %w: %w", uid, ErrUnreadable, err)
	}

	plain, err := s.seal.Open("identity "+uid, identity)
	if err == nil {
		c.Identity, err = agefile.ParseIdentity(string(plain))
	}
	if err != nil {
		return fmt.Errorf("age identity of factory %q: %w: %w", uid, ErrUnreadable, err)
	}

	return nil
}

// readSecrets reads what may be told of the team's secrets and of the factory's own.
func (c *Current) readSecrets(ctx context.Context, tx db.Reader) error {
	all, err := secretInfos(ctx, tx)
	c.Secrets, c.Own = map[string]SecretInfo{}, map[string]SecretInfo{}
	for _, info := range all {
		switch info.FactoryUID {
		case "":
			c.Secrets[info.Name] = info
		case c.Factory.UID:
			c.Own[info.Name] = info
		}
	}

	return err
}

const ordinalsSQL = `SELECT first_name, count(*)
FROM webhooks
WHERE factory_uid = $1
GROUP BY first_name`

func ordinals(ctx context.Context, tx db.Reader, factoryUID string, into map[string]int) error {
	rows, err := tx.Query(ctx, ordinalsSQL, factoryUID)
	if err != nil {
		return err
	}
	defer rows.Close()

	for rows.Next() {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			return err
		}

		into[name] = n
	}

	return rows.Err()
}

// RestoreWindow is how long a deleted webhook is the same one again when its file comes back.
const RestoreWindow = 30 * 24 * time.Hour

const (
	maxGone     = 1000               // deleted webhooks of a factory that a plan knows
	useWindow   = 7 * 24 * time.Hour // in which a delivery shows that a webhook is in use
	maxUseLook  = 10_000             // rows of a log that are looked at for one
	deletedByAt = `
		SELECT ` + webhookColumns + webhookTables + `
		WHERE w.factory_uid = $1 AND w.deleted_at IS NOT NULL
		ORDER BY w.deleted_at DESC, w.ordinal DESC
		LIMIT $2`
)

// readDeleted reads the webhooks that were deleted last. One that cannot be read is left out.
func (c *Current) readDeleted(ctx context.Context, r db.Reader) error {
	deleted, err := db.All(ctx, r, func(row db.Row) (Webhook, error) {
		w, err := scanWebhook(row)
		if errors.Is(err, ErrUnreadable) {
			return Webhook{}, nil
		}
		return w, err
	}, deletedByAt, c.Factory.UID, maxGone)

	now := time.Now()
	c.Restorable, c.Gone = map[string]Webhook{}, make(map[string]string, len(deleted))
	for _, w := range deleted {
		if w.UID == "" {
			continue
		}

		c.Gone[w.UID] = w.Spec.Name
		_, newer := c.Restorable[w.Spec.Name]
		if !newer && w.Restorable != nil && w.Restorable.After(now) {
			c.Restorable[w.Spec.Name] = w
		}
	}

	return err
}

const inUseSQL = `
	SELECT 1
	FROM (
		SELECT outcome
		FROM deliveries
		WHERE webhook_id = $1 AND uid >= $2
		ORDER BY uid DESC
		LIMIT $3
	) AS newest
	WHERE outcome = 'accepted'
	LIMIT 1`

// inUse reports whether a webhook accepted a delivery within a week, as far as the newest rows of its log say.
func inUse(ctx context.Context, r db.Reader, webhook int64) (bool, error) {
	since := DeliveryUIDAt(time.Now().Add(-useWindow))
	var one int
	err := r.QueryRow(ctx, inUseSQL, webhook, since, maxUseLook).Scan(&one)
	return err == nil, db.NoRows(err)
}

// Stamps tells when a resource of a definition was first applied, and when it last changed.
type Stamps struct {
	Created, Updated time.Time
}

// ResourceStamps returns the stamps of a factory's applied agents, automations, runners and skills, by UID.
func (s *Store) ResourceStamps(ctx context.Context, factoryUID string) (map[string]Stamps, error) {
	all := map[string]Stamps{}
	err := db.Each(ctx, s.db.Reader, func(row db.Row) error {
		var uid string
		var created, updated int64
		err := row.Scan(&uid, &created, &updated)
		all[uid] = Stamps{db.Time(created), db.Time(updated)}
		return err
	}, `
		SELECT uid, created_at, updated_at
		FROM resources
		WHERE factory_uid = $1 AND deleted_at IS NULL`, factoryUID)

	return all, err
}

// Definitions returns the applied definitions of the attached factories, by name. One that cannot be read as it
// is stored is skipped.
func (s *Store) Definitions(ctx context.Context) ([]Current, error) {
	factories, err := s.Factories(ctx)
	if err != nil {
		return nil, err
	}

	var all []Current
	for _, f := range factories {
		if f.Detached {
			continue
		}

		current, err := s.Current(ctx, f.UID)
		switch {
		case errors.Is(err, ErrUnreadable), errors.Is(err, ErrNotFound):
		case err != nil:
			return nil, err
		default:
			all = append(all, current)
		}
	}

	return all, nil
}

// Webhook is a webhook of a factory, live or deleted.
type Webhook struct {
	ID            int64
	UID           string
	FactoryUID    string
	Spec          schema.Webhook
	FirstName     string // that it had when it was made
	Ordinal       int    // how many webhooks had that name first, before it
	SecretVersion int64  // that was applied; 0 when deleted
	SecretStale   bool   // the secret has a newer version, which waits for the next apply
	SecretPending bool   // the applied version has no value yet
	SecretOwn     bool   // the secret is one of the factory's definition
	Created       time.Time
	Updated       time.Time
	Deleted       *time.Time
	Restorable    *time.Time // until when a webhook of its name is this one again; nil: never
}

// SecretKey is the key of the webhook's secret in [Store.Secrets].
func (w Webhook) SecretKey() string {
	if w.SecretOwn {
		return SecretKey(w.FactoryUID, w.Spec.SecretName)
	}
	return w.Spec.SecretName
}

const webhookColumns = `
	w.id, w.uid, w.factory_uid, w.spec, w.first_name, w.ordinal, coalesce(w.secret_version, 0),
	coalesce(s.version, 0), coalesce(v.sealed IS NULL AND v.name IS NOT NULL, FALSE),
	coalesce(s.factory_uid, '') <> '', w.created_at, w.updated_at, w.deleted_at, w.restorable_until`

const webhookTables = `
FROM webhooks w
LEFT JOIN secrets s ON s.name = w.secret_name
LEFT JOIN secret_versions v ON v.name = w.secret_name AND v.version = w.secret_version
`

func scanWebhook(row db.Row) (Webhook, error) {
	var w Webhook
	var spec string
	var latest, created, updated int64
	var deleted, restorable sql.NullInt64
	err := row.Scan(&w.ID, &w.UID, &w.FactoryUID, &spec, &w.FirstName, &w.Ordinal, &w.SecretVersion, &latest,
		&w.SecretPending, &w.SecretOwn, &created, &updated, &deleted, &restorable)
	if err != nil {
		return Webhook{}, err
	}

	w.SecretStale = w.SecretVersion != 0 && latest > w.SecretVersion
	w.Created, w.Updated, w.Deleted = db.Time(created), db.Time(updated), db.TimeOrNil(deleted)
	w.Restorable = db.TimeOrNil(restorable)
	if err := json.Unmarshal([]byte(spec), &w.Spec); err != nil {
		return w, fmt.Errorf("webhook %s: %w: %w", w.UID, ErrUnreadable, err)
	}

	return w, nil
}

const liveWebhooksSQL = `SELECT ` + webhookColumns + webhookTables + `WHERE w.factory_uid = $1 AND w.deleted_at IS NULL
ORDER BY w.name`

func liveWebhooks(ctx context.Context, tx db.Reader, factoryUID string) ([]Webhook, error) {
	return db.All(ctx, tx, scanWebhook, liveWebhooksSQL, factoryUID)
}

// Webhooks returns a factory's webhooks in the order of their names, with the deleted ones if deleted is true.
// It returns none for a factory that does not exist.
func (s *Store) Webhooks(ctx context.Context, factoryUID string, deleted bool) ([]Webhook, error) {
	query := `SELECT ` + webhookColumns + webhookTables + `WHERE w.factory_uid = $1`
	if !deleted {
		query += ` AND w.deleted_at IS NULL`
	}
	all, err := db.All(ctx, s.db.Reader, scanWebhook, query+` ORDER BY w.name, w.ordinal`, factoryUID)
	return all, err
}

// Webhook returns one webhook of a factory, live or deleted. ErrNotFound if there is none.
func (s *Store) Webhook(ctx context.Context, factoryUID, uid string) (Webhook, error) {
	w, err := scanWebhook(
		s.db.QueryRow(
			ctx,
			`SELECT `+webhookColumns+webhookTables+`WHERE w.factory_uid = $1 AND w.uid = $2`,
			factoryUID,
			uid,
		),
	)
	return w, orNotFound(err, "webhook %q", uid)
}

// Attempt is one attempt to make the state equal to a revision.
type Attempt struct {
	ID         int64
	FactoryUID string
	Source     Source // of the factory at that time; what is recorded takes it from the factory
	Started    time.Time
	Finished   time.Time
	Revision   Revision
	Outcome    Outcome
	Counts     Counts
	Problems   []schema.Problem
	Message    string          // why it failed or was refused, in one line; empty when it was applied
	CheckURL   string          // address of the git source, whose forge is owed a status of the revision; empty: none
	Changes    json.RawMessage // what was applied, as the planner wrote it; only [Store.Attempt] reads it
}

// Counts says how many resources an attempt created, updated, deleted and left alone.
type Counts struct {
	Created   int `json:"created"`
	Updated   int `json:"updated"`
	Deleted   int `json:"deleted"`
	Unchanged int `json:"unchanged"`
	Secrets   int `json:"secrets"` // webhooks that picked up a new version of their secret
}

// historyKept is how many attempts are kept of each factory.
const historyKept = 200

// ChangeSet is a planned change of a factory, ready to be made. Everything that can be wrong with it
// has been looked at, except what others did since the plan was made.
type ChangeSet struct {
	FactoryUID   string
	Base         int64  // the factory's generation that the plan compared with
	BaseRevision string // the ID of the applied revision that it compared with
	Started      time.Time
	Revision     Revision
	Counts       Counts
	Changes      json.RawMessage  // what the application does, for people who look at it later
	Problems     []schema.Problem // warnings and notices
	CheckURL     string           // as that of an Attempt

	File            *schema.FactoryFile
	FileChanged     bool
	Webhooks        []WebhookChange // created or updated, or with a new secret version
	DeleteWebhooks  []string        // UIDs
	ForgetWebhooks  []string        // those of DeleteWebhooks that do not come back with their file
	Resources       []ResourceChange
	DeleteResources []string // UIDs

	// Secrets get new values together with the change, and Edit, if it is not nil, is the next revision of
	// a managed definition: Revision names it.
	Secrets []SecretChange
	Edit    *ManagedEdit

	// Files are kept for a rollback. A rollback has the digest of the kept files that it applies instead, and
	// suspends the factory.
	Files    []schema.File
	Rollback string

	// Audit describes the change in the audit log; without an action it is an apply.
	Audit audit.Entry

	Own       []OwnSecret // of the definition: new, or with another file
	DeleteOwn []string    // names of those whose file is gone
}

// SecretChange gives a secret a new value; nil makes it pending.
type SecretChange struct {
	Name    string
	Value   []byte
	Version int64 // that this value gets: ErrMoved when another one came first

	Generate bool // the value is made when it is stored
}

// WebhookChange creates or updates a webhook.
type WebhookChange struct {
	UID           string
	FirstName     string // that the webhook had when it was made
	Ordinal       int    // how many had that name first, before it
	Spec          schema.Webhook
	SecretVersion int64
	SecretOwn     bool // the secret is one of the factory's definition
}

// ResourceChange creates or updates an automation, agent, runner or skill.
type ResourceChange struct {
	UID  string // empty: a new one
	Kind string
	Name string
	Spec any
}

// Empty reports whether the application changes nothing but the revision.
func (a *ChangeSet) Empty() bool {
	return !a.FileChanged && len(a.Webhooks)+len(a.DeleteWebhooks)+len(a.Resources)+len(a.DeleteResources)+
		len(a.Own)+len(a.DeleteOwn) == 0
}

// ManagedEdit is what makes the next revision of a managed definition out of revision Base.
type ManagedEdit struct {
	Base   int64
	Write  []schema.File // new ones, and new content of others
	Delete []string      // paths
}
