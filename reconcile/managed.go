package reconcile

import (
	"context"
	"errors"
	"fmt"

	"millwright/schema"
	"millwright/state"
)

// ManagedConfig configures the source of a managed factory. Both fields are required.
type ManagedConfig struct {
	Store   *state.Store
	Factory string // its name in the settings
}

// managedSource is a managed definition in the state. Edits are applied together with
// the revision that they make, so that a Loop finds something to do only before the first of them, when it
// is asked to apply again, and when the factory's definition came from elsewhere until now.
type managedSource struct {
	cfg  ManagedConfig
	last Snapshot
}

// Managed returns the source of a managed definition. Its revision is the newest one;
// before the first it is an empty tree.
func Managed(cfg ManagedConfig) (Source, error) {
	if cfg.Store == nil || cfg.Factory == "" {
		return nil, errors.New("a managed source needs a state and the name of its factory")
	}
	return &managedSource{cfg: cfg}, nil
}

func (m *managedSource) Describe() state.Source { return state.Source{Kind: "managed"} }

func (m *managedSource) Close() error { return nil }

// Watch does nothing: edits apply themselves.
func (m *managedSource) Watch(ctx context.Context, _ func()) { <-ctx.Done() }

func (m *managedSource) Fetch(ctx context.Context) (Snapshot, error) {
	f, err := m.cfg.Store.Factory(ctx, m.cfg.Factory)
	if err != nil {
		return Snapshot{}, err
	}

	head, err := m.cfg.Store.ManagedHead(ctx, f.UID)
	switch {
	case err != nil:
		return Snapshot{}, err
	case head.Number == 0 && f.Applied.ID != "" && !f.Applied.Managed:
		return Snapshot{}, fmt.Errorf(
			"the server holds no definition of this factory yet, and the applied revision %s came from "+
				"elsewhere: import its files (PUT /factory/%s/files)",
			f.Applied.ID,
			f.UID,
		)

	case m.last.FS != nil && same(m.last.Revision, head.Revision):
		return m.last, nil
	}

	files, err := m.cfg.Store.ManagedFiles(ctx, f.UID, head.Number)
	if err != nil {
		return Snapshot{}, err
	}

	tree, err := schema.FilesFS(files)
	if err != nil {
		return Snapshot{}, fmt.Errorf("revision %s: %w", head.ID, err)
	}

	m.last = Snapshot{Revision: head.Revision, FS: tree}
	return m.last, nil
}
