package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"millwright/schema"
)

// Routing is what the ingress needs to judge a delivery: the live webhooks of every attached factory
// with their credentials, and the automations that a delivery may start.
type Routing struct {
	// Generation counts changes of the routing facts of all factories.
	Generation int64
	Factories  []RoutedFactory
}

// RoutedFactory is one factory's part of the routing facts.
type RoutedFactory struct {
	UID  string
	Name string
	// Generation is the value of Routing.Generation at the factory's last change. A delivery is accepted
	// only while it is still that.
	Generation  int64
	Webhooks    []RoutedWebhook
	Automations []RoutedAutomation
	// Err says why what a delivery starts is not known: the factory's definition cannot be read as it is
	// stored. Then Automations is nil and every webhook has an error.
	Err error

	spec string // factory.yaml as it is stored
	file *schema.FactoryFile
}

// RoutedWebhook is a live webhook, disabled ones included.
type RoutedWebhook struct {
	ID      int64 // the row's key, short for the hot path
	UID     string
	Spec    schema.Webhook
	Secret  []byte // the value of the version that was applied; nil when Pending
	Pending bool
	Err     error // why no delivery to it can be judged; nil when one can
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

// LoopRouting is the reading of the routing facts, as a loop that may skip rows.
const LoopRouting = "routing"

// Routing reads the routing facts in one consistent view. A factory or webhook that cannot be read as it is
// stored says so by its Err, and is skipped.
func (s *Store) Routing(ctx context.Context) (Routing, error) {
	var r Routing
	err := s.view(ctx, func(tx *sql.Tx) error {
		r = Routing{}
		if err := tx.QueryRowContext(ctx, `SELECT generation FROM routing WHERE id = 1`).Scan(&r.Generation); err != nil {
			return err
		}

		rows, err := tx.QueryContext(
			ctx,
			`SELECT uid, name, generation, spec FROM factories WHERE detached = 0 ORDER BY name`,
		)
		if err != nil {
			return err
		}
		defer rows.Close()

		for rows.Next() {
			var f RoutedFactory
			if err := rows.Scan(&f.UID, &f.Name, &f.Generation, &f.spec); err != nil {
				return err
			}

			f.Err = json.Unmarshal([]byte(f.spec), &f.file)
			r.Factories = append(r.Factories, f)
		}

		if err := rows.Err(); err != nil {
			return err
		}

		for i := range r.Factories {
			if err := s.routeFactory(ctx, tx, &r.Factories[i]); err != nil {
				return fmt.Errorf("factory %q: %w", r.Factories[i].Name, err)
			}
		}

		return nil
	})
	if err != nil {
		return r, s.classify(err)
	}

	for _, f := range r.Factories {
		s.Skip(LoopRouting, f.UID, "factory "+f.UID, f.Err)
		for _, w := range f.Webhooks {
			if f.Err == nil {
				s.Skip(LoopRouting, f.UID, "webhook "+w.UID, w.Err)
			}
		}
	}

	return r, nil
}

// routeFactory reads the webhooks and automations of a factory. Its error is the database's; what is wrong
// with rows is noted at the webhook or the factory.
func (s *Store) routeFactory(ctx context.Context, tx *sql.Tx, f *RoutedFactory) error {
	rows, err := tx.QueryContext(ctx, `SELECT w.id, w.uid, w.spec, v.name, v.sealed FROM webhooks w
		JOIN secret_versions v ON v.name = w.secret_name AND v.version = w.secret_version
		WHERE w.factory_uid = $1 AND w.deleted_at IS NULL ORDER BY w.name`, f.UID)
	if err != nil {
		return err
	}
	defer rows.Close()

	for rows.Next() {
		var w RoutedWebhook
		var spec, name string
		var sealed []byte
		if err := rows.Scan(&w.ID, &w.UID, &spec, &name, &sealed); err != nil {
			return err
		}

		w.Err = json.Unmarshal([]byte(spec), &w.Spec)
		if w.Pending = sealed == nil; !w.Pending && w.Err == nil {
			w.Secret, w.Err = s.seal.open("secret "+name, sealed)
		}

		f.Webhooks = append(f.Webhooks, w)
	}

	if err := rows.Err(); err != nil {
		return err
	}

	d, err := s.applied(ctx, tx, f.UID, f.Generation)
	switch {
	case errors.Is(err, ErrUnreadable):
		f.Err = err
	case err != nil:
		return err
	case f.Err == nil:
		f.Automations, f.Err = d.route(f.spec, f.file)
	}

	if f.Err != nil {
		f.Automations = nil
		for i := range f.Webhooks {
			f.Webhooks[i].Err = f.Err
		}
	}

	return nil
}

// view runs f in a read-only transaction with one consistent view.
func (s *Store) view(ctx context.Context, f func(*sql.Tx) error) error {
	opts := &sql.TxOptions{ReadOnly: true}
	if s.dialect == postgres {
		opts.Isolation = sql.LevelRepeatableRead
	}
	tx, err := s.read.BeginTx(ctx, opts)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return f(tx)
}

// RoutingGeneration returns the present value of Routing.Generation, to see cheaply whether it moved.
func (s *Store) RoutingGeneration(ctx context.Context) (int64, error) {
	var generation int64
	err := s.read.QueryRowContext(ctx, `SELECT generation FROM routing WHERE id = 1`).Scan(&generation)
	return generation, s.classify(err)
}
