package schema

import (
	"crypto/sha256"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Flow is how the runs of an automation wait for one another. Each part is nil when the file has none.
type Flow struct {
	Concurrency  *Concurrency  `json:"concurrency,omitempty"`
	Debounce     *Debounce     `json:"debounce,omitempty"`
	Conversation *Conversation `json:"conversation,omitempty"`
	Retry        *Retry        `json:"retry,omitempty"`
}

// Keyed reports whether the flow compares payloads.
func (f Flow) Keyed() bool {
	return f.Concurrency != nil && len(f.Concurrency.Key) > 0 || f.Debounce != nil && len(f.Debounce.Key) > 0 ||
		f.Conversation != nil
}

// Concurrency bounds the runs that go on at once for one key.
type Concurrency struct {
	Key      []string `json:"key,omitempty"` // paths into the payload; none: one bound for each webhook
	Limit    int      `json:"limit"`
	WhenBusy WhenBusy `json:"whenBusy"`
}

// WhenBusy is the effect of a delivery while the limit of runs of its key is reached.
type WhenBusy string

// The values of whenBusy.
const (
	BusyQueue  WhenBusy = "queue"  // its run waits for the others, in order
	BusySkip   WhenBusy = "skip"   // it starts nothing
	BusyCancel WhenBusy = "cancel" // the oldest of the others is cancelled
	BusyLatest WhenBusy = "latest" // its run waits, and replaces the one that waited
)

// Debounce makes one run of the deliveries of a key that come in a burst.
type Debounce struct {
	Key  []string `json:"key,omitempty"`
	Wait string   `json:"wait"`          // as the file writes it
	Max  string   `json:"max,omitempty"` // as the file writes it
}

// Waits returns how long the run waits after each delivery, and how long after the first at most.
func (d Debounce) Waits() (wait, most time.Duration) {
	wait, most = flowDuration(d.Wait), flowDuration(d.Max)
	if most == 0 {
		most = 10 * wait
	}
	return wait, most
}

// Conversation makes a delivery a follow-up of the run that an earlier delivery of its key started.
type Conversation struct {
	Key []string `json:"key"`
}

// Retry executes a run again that ended in one of some states.
type Retry struct {
	Attempts int      `json:"attempts"` // the first one counted
	On       []string `json:"on"`       // FAILED, ERROR
	Backoff  string   `json:"backoff"`  // as the file writes it
}

// Pause returns the time between two attempts.
func (r Retry) Pause() time.Duration { return flowDuration(r.Backoff) }

// Bounds and defaults of a flow that the JSON Schema does not have alone.
const (
	maxFlowPath     = 256 // characters of a path
	defaultAttempts = 3
	defaultBackoff  = "1m"
)

// Patterns of the values of a flow.
const (
	flowStep        = `(?:[^.\s"'\[\]{}()$*/,:;]+|"[^"\x00-\x1f\x7f-\x9f]+")`
	flowPathPattern = `^` + flowStep + `(?:\.` + flowStep + `){0,9}$`
	waitPattern     = `^([1-9][0-9]{0,2}s|([1-9]|[1-5][0-9]|60)m|1h)$`
	mostPattern     = `^([1-9][0-9]{0,3}s|[1-9][0-9]{0,2}m|([1-9]|1[0-9]|2[0-4])h)$`
	backoffPattern  = `^(([6-9][0-9]|[1-9][0-9]{2})s|[1-9][0-9]{0,2}m|([1-9]|1[0-9]|2[0-4])h)$`
)

// flowDuration reads a duration that its pattern admits; 0 for any other text.
func flowDuration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0
	}
	return d
}

var flowSteps = regexp.MustCompile(flowStep)

// splitFlowPath returns the names of fields that a path leads through.
func splitFlowPath(path string) []string {
	steps := flowSteps.FindAllString(path, -1)
	for i, step := range steps {
		steps[i] = strings.Trim(step, `"`)
	}
	return steps
}

// FlowKey is a hash of the values that a payload has at the paths of a key.
type FlowKey [16]byte

// Key returns the key of a payload: equal for payloads with equal values at the paths, within one use of the
// key. scope names that use: the automation, the webhook and the part of the flow. A payload that lacks a value
// at a path, or has null, an object or an array there, has no key.
func (p Payload) Key(paths, scope []string) (key FlowKey, ok bool) {
	h := sha256.New()
	write := func(text []byte) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(text)))
		h.Write(size[:])
		h.Write(text)
	}
	for _, part := range scope {
		write([]byte(part))
	}

	for _, path := range paths {
		k, value, missing := p.scalar(splitFlowPath(path))
		if missing != "" {
			return FlowKey{}, false
		}

		write([]byte(path))
		write([]byte{byte(k)})
		write(value)
	}

	return FlowKey(h.Sum(nil)[:len(key)]), true
}

// Unkeyed returns why a payload has no key for parts of the flow, a line for each: its delivery starts a run of
// its own there. The lines have no value of the payload.
func (f Flow) Unkeyed(p Payload) (reasons []string) {
	look := func(part string, paths []string) {
		for _, path := range paths {
			if _, _, missing := p.scalar(splitFlowPath(path)); missing != "" {
				reasons = append(reasons, part+": "+path+" "+missing)
				return
			}
		}
	}

	if f.Concurrency != nil {
		look("concurrency", f.Concurrency.Key)
	}
	if f.Debounce != nil {
		look("debounce", f.Debounce.Key)
	}
	if f.Conversation != nil {
		look("conversation", f.Conversation.Key)
	}
	return reasons
}

// scalar returns the string, number or boolean that names of fields lead to. missing is why there is none.
func (p Payload) scalar(steps []string) (k kind, text []byte, missing string) {
	const absence = "is not in the payload"
	s := scanner{text: p.body}
	for _, step := range steps {
		if p.body == nil || s.kind() != kindObject {
			return 0, nil, absence
		}

		at := s.find(step)
		if at == absent {
			return 0, nil, absence
		}

		s.at = int(at)
	}

	switch k = s.kind(); k {
	case kindNull:
		return 0, nil, "is null"
	case kindArray:
		return 0, nil, "is a list"
	case kindObject:
		return 0, nil, "is an object"
	}
	return k, slices.Clone(s.scalar(k)), ""
}

// find returns the place of the last member of the object at s that has a name.
func (s *scanner) find(name string) int32 {
	at := int32(absent)
	for s.enter(); s.more(); s.skip() {
		if string(s.key()) == name {
			at = int32(s.at)
		}
	}
	return at
}
