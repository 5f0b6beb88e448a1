package runs

import (
	"context"
	"slices"

	"millwright/api"
	"millwright/state"
)

// reached returns those of some factories that a limited key reaches; of none all that it reaches.
func reached(key state.Key, some []string) []string {
	if len(some) == 0 {
		return key.Factories
	}
	return slices.DeleteFunc(slices.Clone(some), func(uid string) bool { return !key.Reaches(uid) })
}

// definitions returns the applied definitions of the factories that the caller reaches.
func (s *service) definitions(ctx context.Context) ([]state.Current, error) {
	key := api.KeyOf(ctx)
	all, err := s.Store.Definitions(ctx)
	return slices.DeleteFunc(all, func(d state.Current) bool { return !key.Reaches(d.Factory.UID) }), err
}

// mayRead returns nil if the caller reaches every run of a conversation. To a limited key, other conversations do
// not exist. It leaves it to the endpoint to report one that does not exist.
func (s *service) mayRead(ctx context.Context, conversationID string) error {
	key := api.KeyOf(ctx)
	if !key.Limited() {
		return nil
	}

	factories, err := s.Store.ConversationFactories(ctx, conversationID)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(factories, func(uid string) bool { return !key.Reaches(uid) }) {
		return api.Problem("resource_not_found", "conversation %q does not exist", conversationID)
	}

	return nil
}

// mayJoin returns nil if the caller may add a run to a conversation and below a parent; both may be empty.
func (s *service) mayJoin(ctx context.Context, conversationID, parentRunID string) error {
	err := s.mayRead(ctx, conversationID)
	if api.IsNotFound(err) {
		return api.Problem("invalid_request", "conversation %q does not exist", conversationID)
	}

	key := api.KeyOf(ctx)
	if err != nil || parentRunID == "" || !key.Limited() {
		return err
	}

	parent, err := s.Store.Run(ctx, parentRunID)
	if err != nil && !api.IsNotFound(err) {
		return err
	}
	if err == nil && !key.Reaches(parent.FactoryUID) {
		return api.Problem("invalid_request", "parent run %q does not exist", parentRunID)
	}

	return nil
}
