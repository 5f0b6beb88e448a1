package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"millwright/schema"
	"millwright/state/db"
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

// LoopRouting is the reading of the routing facts, as a loop that may skip rows.
const LoopRouting = "routing"

const routingGenerationSQL = `SELECT generation FROM routing WHERE id = 1`

const attachedFactoriesSQL = `SELECT uid, name, generation, spec
FROM factories
WHERE detached = 0
ORDER BY name`

func scanRoutedFactory(row db.Row) (f RoutedFactory, err error) {
	err = row.Scan(&f.UID, &f.Name, &f.Generation, &f.spec)
	f.Err = json.Unmarshal([]byte(f.spec), &f.file)
	return f, err
}

// Routing reads the routing facts in one consistent view. A factory or webhook that cannot be read as it is
// stored says so by its Err, and is skipped.
func (s *Store) Routing(ctx context.Context) (Routing, error) {
	var r Routing
	err := s.db.View(ctx, func(tx db.View) error {
		r = Routing{}
		err := tx.QueryRow(ctx, routingGenerationSQL).Scan(&r.Generation)
		if err != nil {
			return err
		}

		r.Factories, err = db.All(ctx, tx.Reader, scanRoutedFactory, attachedFactoriesSQL)
		if err != nil {
			return err
		}

		for i := range r.Factories {
			if err := s.routeFactory(ctx, tx.Reader, &r.Factories[i]); err != nil {
				return fmt.Errorf("factory %q: %w", r.Factories[i].Name, err)
			}
		}

		return nil
	})
	if err != nil {
		return r, err
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

const routedWebhooksSQL = `SELECT w.id, w.uid, w.spec, v.name, v.sealed
FROM webhooks w
JOIN secret_versions v ON v.name = w.secret_name AND v.version = w.secret_version
WHERE w.factory_uid = $1 AND w.deleted_at IS NULL
ORDER BY w.name`

func (s *Store) scanRoutedWebhook(row db.Row) (w RoutedWebhook, err error) {
	var spec, name string
	var sealed []byte
	if err := row.Scan(&w.ID, &w.UID, &spec, &name, &sealed); err != nil {
		return w, err
	}

	w.Err = json.Unmarshal([]byte(spec), &w.Spec)
	w.Pending = sealed == nil
	if !w.Pending && w.Err == nil {
		w.Secret, w.Err = s.seal.Open("secret "+name, sealed)
	}

	return w, nil
}

// routeFactory reads the webhooks and automations of a factory. Its error is the database's; what is wrong
// with rows is noted at the webhook or the factory.
func (s *Store) routeFactory(ctx context.Context, r db.Reader, f *RoutedFactory) error {
	var err error
	f.Webhooks, err = db.All(ctx, r, s.scanRoutedWebhook, routedWebhooksSQL, f.UID)
	if err != nil {
		return err
	}

	d, err := s.applied(ctx, r, f.UID, f.Generation)
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

// RoutingGeneration returns the present value of Routing.Generation, to see cheaply whether it moved.
func (s *Store) RoutingGeneration(ctx context.Context) (int64, error) {
	var generation int64
	err := s.db.QueryRow(ctx, routingGenerationSQL).Scan(&generation)
	return generation, err
}
