package language

import (
	"context"
	"io/fs"
	"sync"
	"time"

	"millwright/schema"
)

// Lookup answers what only a server of the program knows. It is safe for concurrent use.
type Lookup interface {
	// Judge shows a tree to the server and returns what the server knows of it.
	Judge(ctx context.Context, tree fs.FS) (Judgement, error)
	// Deliveries returns the newest accepted deliveries of a webhook, at most so many, and what the filter of
	// a trigger, as it stands in a file, would do with them.
	Deliveries(ctx context.Context, uid, filter string, most int) ([]Delivery, error)
}

// Delivery is a delivery that a server accepted.
type Delivery struct {
	ID, Event  string
	ReceivedAt time.Time
	Matches    bool   // the filter lets it through
	Failed     string // the field and the operator that it fails first; never a value of the payload
}

// Judgement is what a server knows of a tree.
type Judgement struct {
	Known    schema.Known
	Webhooks map[string]Webhook // by UID
	Secrets  []Secret
	Fired    map[string]Fired // by the name of the automation
}

// Webhook is a webhook that a server serves.
type Webhook struct {
	Name, Factory, URL string
}

// Secret is a team secret. A value is never part of it.
type Secret struct {
	Name, Standing string
}

// Fired counts how often the triggers of an automation would have fired in Days days, if the stored
// deliveries came again.
type Fired struct {
	Count, LookedAt, Days int
	Complete              bool
}

// facts are what the server of the program said, by the directory of the tree.
type facts struct {
	mu   sync.Mutex
	said map[string]Judgement
}

func newFacts() *facts { return &facts{said: map[string]Judgement{}} }

func (f *facts) of(dir string) (Judgement, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()

	j, ok := f.said[dir]
	return j, ok
}

func (f *facts) set(dir string, j Judgement) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.said[dir] = j
}

// known returns what rules that need state are checked against, nil before the server answered.
func (f *facts) known(dir string) *schema.Known {
	if j, ok := f.of(dir); ok {
		return &j.Known
	}
	return nil
}

// webhookName returns the name of the webhook of a UID, "" if it is not known.
func (f *facts) webhookName(dir, uid string) string {
	j, _ := f.of(dir)
	return j.Known.KnownUIDs[uid]
}

// Bounds of asking the server of the program.
const (
	lookupTime = 20 * time.Second
	askEvery   = 5 * time.Minute
)
