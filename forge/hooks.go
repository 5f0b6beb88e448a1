package forge

import (
	"context"
	"slices"
	"time"
)

// Hook is a webhook of a repository.
type Hook struct {
	ID     int64
	URL    string // that the forge posts to
	Events []string
	Active bool
}

// NewHook is what a webhook is to be. It is active.
type NewHook struct {
	URL    string
	Secret string
	Events []string // in the forge's words; those of GitLab without _events
}

// Hooks are the webhooks of a forge's repositories. The forges of kind github, gitlab and gitea have them.
type Hooks interface {
	// Hooks returns the webhooks of a repository, at most MaxHooks.
	Hooks(context.Context, Repository) ([]Hook, error)
	// CreateHook adds a webhook.
	CreateHook(context.Context, Repository, NewHook) (Hook, error)
	// UpdateHook replaces the events and the secret of a webhook, and enables it.
	UpdateHook(ctx context.Context, repo Repository, id int64, hook NewHook) error
	// HookEvents returns events as Hooks lists them when a webhook was made with them.
	HookEvents(events []string) []string
	// DeleteHook removes a webhook. One that is gone is no error.
	DeleteHook(ctx context.Context, repo Repository, id int64) error
}

// Delivery is a delivery of a webhook that the forge can send again.
type Delivery struct {
	ID   int64
	GUID string // the same when it is sent again
	At   time.Time
}

// Redeliveries are what a forge can send again. The forges of kind github have them.
type Redeliveries interface {
	// FailedDeliveries returns the latest attempt of each delivery since a time that no attempt delivered,
	// oldest first, at most MaxRedeliveries. It looks at the newest 10,000 attempts.
	FailedDeliveries(ctx context.Context, repo Repository, hook int64, since time.Time) ([]Delivery, error)
	// Redeliver has a delivery sent again.
	Redeliver(ctx context.Context, repo Repository, hook, delivery int64) error
}

// Limits of webhooks.
const (
	MaxHooks        = 300
	MaxRedeliveries = 200
	maxDeliveryList = 100 // pages of deliveries that one look reads
)

// hookPages collects pages of webhooks until a page that is not full.
func hookPages(page func(int) ([]Hook, error)) ([]Hook, error) {
	var all []Hook
	for n := 1; len(all) < MaxHooks; n++ {
		list, err := page(n)
		if err != nil {
			return nil, err
		}

		all = append(all, list...)
		if len(list) < pageSize {
			break
		}
	}

	return all, nil
}

// orNil returns nil for an object that is gone.
func orNil(err error, gone bool) error {
	if gone {
		return nil
	}
	return err
}

func sorted(events []string) []string { return slices.Sorted(slices.Values(events)) }
