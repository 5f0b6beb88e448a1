// Package flow stores how the runs of an automation wait for one another: the keys that name them, and what
// became of deliveries that started no run of their own.
//
// Whoever calls it for an automation keeps others from doing so until the transaction ends.
package flow

import (
	"encoding/hex"
	"fmt"
	"time"

	"millwright/schema"
)

// Flow is how a run waits for others of its automation, as the definition had it when the run was made. A part
// is zero where the definition lacks it, or where the delivery has no key for it.
type Flow struct {
	Concurrency  *Concurrency `json:"concurrency,omitempty"`
	Debounce     *Debounce    `json:"debounce,omitempty"`
	Conversation string       `json:"conversation,omitempty"` // key
	Retry        *Retry       `json:"retry,omitempty"`
	SupersededBy string       `json:"superseded_by,omitempty"` // the run that it gave way to

	// Message is what the run of the conversation gets when the delivery is a follow-up.
	Message string `json:"-"`
}

// Concurrency bounds the runs of a key that go on at once.
type Concurrency struct {
	Key      string          `json:"key"`
	Limit    int             `json:"limit"`
	WhenBusy schema.WhenBusy `json:"when_busy"`
}

// Debounce makes one run of a burst of deliveries.
type Debounce struct {
	Key  string        `json:"key"`
	Wait time.Duration `json:"wait"`
	Max  time.Duration `json:"max"`
}

// Retry executes a run again.
type Retry struct {
	Attempts int           `json:"attempts"`
	On       []string      `json:"on"`
	Pause    time.Duration `json:"pause"`
	Tried    int           `json:"tried,omitempty"` // executions of the present series that have ended
	First    int           `json:"first,omitempty"` // the number of its first execution
}

// The parts whose keys name runs.
const (
	PartConcurrency  = "concurrency"
	PartDebounce     = "debounce"
	PartConversation = "conversation"
)

// What a queued run waits for.
const (
	WaitsDebounce    = "debounce"
	WaitsConcurrency = "concurrency"
	WaitsRetry       = "retry"
)

// Bounds of an automation.
const (
	MaxWaiting = 1000   // runs that wait
	MaxKeys    = 10_000 // keys of one part
)

// Decision is what flow made of a delivery for one automation. RunID is the run that it went to, or that it
// started and that waits; empty when nothing started.
type Decision struct {
	AutomationUID string `json:"automation_id"`
	Decision      string `json:"decision"`
	RunID         string `json:"run_id,omitempty"`
	Detail        string `json:"detail,omitempty"` // why, in words
}

// The decisions.
const (
	SkippedBusy = "skipped: concurrency"
	SkippedFull = "skipped: queue full"
	Debounced   = "debounced"
	FollowedUp  = "follow-up"

	WaitsForge     = "waits: forge"     // the forge's answer decides
	SkippedForge   = "skipped: forge"   // the forge gave no answer
	SkippedNewer   = "skipped: newer"   // runs of newer deliveries took its place meanwhile
	SkippedTrigger = "skipped: trigger" // no trigger matches, by the forge's answer
)

// Why explains the decision in a sentence.
func (d Decision) Why() string {
	switch d.Decision {
	case SkippedBusy:
		return "As many runs of its key went on as concurrency allows, and whenBusy is skip."
	case SkippedFull:
		return fmt.Sprintf("The queue is full: %d runs of the automation wait, %d keys are remembered, "+
			"or too many messages wait for the run of its conversation.", MaxWaiting, MaxKeys)
	case SkippedNewer:
		return "While the server asked the forge, newer deliveries of its key started runs. They replace its run."
	case Debounced:
		return "Deliveries of its key that come in a burst are one run, with the newest payload."
	case FollowedUp:
		return "It is a message to the run that an earlier delivery of its key started."
	}
	return ""
}

// Skipped reports whether nothing started.
func (d Decision) Skipped() bool {
	switch d.Decision {
	case SkippedBusy, SkippedFull, SkippedForge, SkippedTrigger, SkippedNewer:
		return true
	}
	return false
}

// Merged reports whether the delivery started no run of its own.
func (d Decision) Merged(own string) bool { return d.Skipped() || d.Decision != "" && d.RunID != own }

// Of returns the flow of the run that a payload starts by an automation; nil when it waits for no others.
func Of(spec schema.Flow, automationUID, webhookUID string, p schema.Payload, message string) *Flow {
	f := Flow{Message: message}
	key := func(part string, paths []string) (string, bool) {
		key, ok := p.Key(paths, []string{part, automationUID, webhookUID})
		return hex.EncodeToString(key[:]), ok
	}

	if c := spec.Concurrency; c != nil {
		if hash, ok := key(PartConcurrency, c.Key); ok {
			f.Concurrency = &Concurrency{Key: hash, Limit: c.Limit, WhenBusy: c.WhenBusy}
		}
	}

	if b := spec.Debounce; b != nil && webhookUID != "" {
		if hash, ok := key(PartDebounce, b.Key); ok {
			wait, most := b.Waits()
			f.Debounce = &Debounce{Key: hash, Wait: wait, Max: most}
		}
	}

	if c := spec.Conversation; c != nil && webhookUID != "" {
		if hash, ok := key(PartConversation, c.Key); ok {
			f.Conversation = hash
		}
	}

	if r := spec.Retry; r != nil {
		f.Retry = &Retry{Attempts: r.Attempts, On: r.On, Pause: r.Pause()}
	}

	if f.Concurrency == nil && f.Debounce == nil && f.Conversation == "" && f.Retry == nil {
		return nil
	}
	return &f
}
