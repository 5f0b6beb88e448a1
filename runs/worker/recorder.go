//go:build unix

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"millwright/runs/wire"
	"millwright/runs/worker/preset"
)

// Bounds of what one execution may add to its conversation. Sizes are of JSON, in bytes.
const (
	maxOutput  = 16 << 20  // all blocks together
	maxText    = 64 << 10  // one text, or the input, output or data of another block
	maxBatch   = 400 << 10 // one message
	maxWaiting = 2 << 20   // what waits for the server; then the harness waits
)

// flushEvery is how long blocks wait for others to share a message with.
const flushEvery = 100 * time.Millisecond

// recorder takes the blocks that a harness puts out and appends them to the run's conversation, several
// in a message. It is safe for use by several goroutines.
type recorder struct {
	client *wire.Client
	order  *wire.Order
	redact *redactor
	stop   context.CancelCauseFunc // of the run
	wake   chan struct{}           // something waits
	quit   chan struct{}           // closed by close
	done   chan struct{}           // closed when the sending goroutine has ended

	sending sync.Mutex // of a message

	mu      sync.Mutex
	room    *sync.Cond // less waits
	waiting []sized
	size    int // of waiting
	total   int
	ended   bool            // nothing more is taken
	sent    int             // messages that the server has
	message *wire.Message   // on its way; kept until the server has it
	skills  json.RawMessage // on their way
	acted   bool            // an action was recorded
	session string          // of the agent
	before  wire.Usage      // of a try before
	usage   wire.Usage      // of this one
	noted   wire.Usage      // the part of usage that the conversation has
	counted wire.Usage      // of the whole session, as the agent counts it
	unsent  bool            // the server has not all of usage
}

// sized is a block, or texts that become one, and its size as JSON.
type sized struct {
	wire.Block
	texts []string
	size  int
}

// block returns the block with its texts joined.
func (s sized) block() wire.Block {
	if len(s.texts) > 0 {
		s.Text = strings.Join(s.texts, "\n")
	}
	return s.Block
}

// text records assistant text.
func (r *recorder) text(text string) { r.Add(wire.Text(text)) }

// Add records a block, with its secrets redacted, unless it lacks what its type needs. Consecutive texts
// become one. It waits while the server is far behind.
func (r *recorder) Add(b wire.Block) {
	if !b.Valid() || r.stopped() {
		return
	}

	item := bounded(r.redact.block(b))
	r.mu.Lock()
	defer r.mu.Unlock()

	for r.size > maxWaiting && !r.ended {
		r.room.Wait()
	}

	if r.ended {
		return
	}

	r.acted = r.acted || b.Type == "action"
	r.enqueue(item)
	r.signal()
}

// enqueue has a block sent, or ends the recording when it is too much.
func (r *recorder) enqueue(item sized) {
	if r.total += item.size; r.total > maxOutput {
		r.ended = true
		item = bounded(wire.Text(fmt.Sprintf("[The output continues; its first %d MiB are stored.]", maxOutput>>20)))
	}

	if last := len(r.waiting) - 1; item.Type == "text" && last >= 0 && r.waiting[last].Type == "text" &&
		r.waiting[last].size+item.size < maxText {
		r.waiting[last].texts = append(r.waiting[last].texts, item.Text)
		r.waiting[last].size += item.size
	} else {
		r.waiting = append(r.waiting, item)
	}

	r.size += item.size
}

// SetSkills records what the agent says it has.
func (r *recorder) SetSkills(skills []preset.Skill) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skills = r.redact.json(quoted(preset.Known(skills)))
	r.signal()
}

// Session records which session the agent works in.
func (r *recorder) Session(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = id
}

// Usage records what the execution has used so far, and what the agent has counted of its session.
func (r *recorder) Usage(execution, session wire.Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended { // nothing more is sent
		return
	}

	r.usage, r.counted, r.unsent = execution.Clean(), session.Clean(), true
	r.noteUsage()
	r.signal()
}

// noteUsage adds the tokens that were used since the last note to the conversation, behind what they were used
// for.
func (r *recorder) noteUsage() {
	input := max(r.usage.InputTokens-r.noted.InputTokens, 0)
	output := max(r.usage.OutputTokens-r.noted.OutputTokens, 0)
	cached := max(r.usage.CachedTokens-r.noted.CachedTokens, 0)
	if input+output == 0 {
		return
	}

	r.noted = r.usage
	r.enqueue(bounded(preset.Event("usage", map[string]int64{
		"input_tokens":        input,
		"output_tokens":       output,
		"cached_input_tokens": cached,
	})))
}

// worked reports whether the agent acted, or asked a model.
func (r *recorder) worked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.acted || !r.usage.Zero()
}

func (r *recorder) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// bounded cuts what is too long, and makes a text of what is nested too deep.
func bounded(b wire.Block) sized {
	b.Text = cut(b.Text, maxText)
	for _, raw := range []*json.RawMessage{&b.Input, &b.Output, &b.Data} {
		if len(*raw) > maxText || wire.Deep(*raw) {
			*raw = quoted(cut(string(*raw), maxText/2))
		}
	}

	for _, name := range []*string{&b.ID, &b.ActionID, &b.Category, &b.Name, &b.State} {
		*name = cut(*name, 1000)
	}

	size := len(quoted(b))
	if size > 4*maxText { // characters that JSON writes with six
		b.Text, b.Input, b.Output, b.Data = cut(b.Text, maxText/8), nil, nil, nil
		size = len(quoted(b))
	}

	item := sized{Block: b, size: size}
	if b.Type == "text" {
		item.texts = []string{b.Text}
	}

	return item
}

// loop sends what is recorded, a little later, so that bursts share a message.
func (r *recorder) loop() {
	defer close(r.done)
	for {
		select {
		case <-r.quit:
			return
		case <-r.wake:
		}

		if !r.plenty() {
			select {
			case <-r.quit:
				return
			case <-time.After(flushEvery):
			}
		}

		more, err := r.flush(context.Background())
		if errors.Is(err, wire.ErrLost) {
			r.end() // nobody will take it
			return
		}

		if err != nil && !errors.Is(err, wire.ErrRefused) {
			select {
			case <-r.quit:
				return
			case <-time.After(flushEvery):
			}
		}

		if more {
			r.signal()
		}
	}
}

func (r *recorder) stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// plenty reports whether a whole message waits.
func (r *recorder) plenty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size > maxBatch
}

// end takes nothing more, and lets whoever waits go on.
func (r *recorder) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.room.Broadcast()
}

// take makes the next message of what waits, unless one is on its way.
func (r *recorder) take() {
	if r.message != nil || len(r.waiting) == 0 {
		return
	}

	m := &wire.Message{Role: wire.Assistant, At: time.Now()}
	for size := 0; len(r.waiting) > 0; r.waiting = r.waiting[1:] {
		b := r.waiting[0]
		if size += b.size; size > maxBatch && len(m.Content) > 0 {
			break
		}
		if block := b.block(); block.Type != "text" || block.Text != "" { // a blank line alone says nothing
			m.Content = append(m.Content, block)
		}

		r.size -= b.size
	}

	if len(m.Content) > 0 {
		r.message = m
	}

	r.room.Broadcast()
}

// flush sends one message. more says that another waits, or this one still does. What the server refuses
// is dropped.
func (r *recorder) flush(ctx context.Context) (more bool, err error) {
	r.sending.Lock()
	defer r.sending.Unlock()

	r.mu.Lock()
	r.take()
	message, from, skills, usage := r.message, r.sent, r.skills, r.told()
	r.unsent = false
	r.mu.Unlock()
	var messages []wire.Message
	if message != nil {
		messages = []wire.Message{*message}
	}
	if message != nil || skills != nil || usage != nil {
		err = r.client.Append(ctx, r.order, from, messages, skills, usage)
	}

	var over wire.OverBudgetError
	if errors.As(err, &over) {
		r.stop(over)
		err = nil
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	if err == nil {
		r.sent += len(messages)
	} else if usage != nil && !errors.Is(err, wire.ErrRefused) {
		r.unsent = true
	}

	if err == nil || errors.Is(err, wire.ErrRefused) {
		r.message = nil
		if string(r.skills) == string(skills) {
			r.skills = nil
		}
	}

	return r.message != nil || len(r.waiting) > 0, err
}

// told returns the unreported usage, or nil.
func (r *recorder) told() *wire.Usage {
	if !r.unsent {
		return nil
	}
	usage := r.before.Plus(r.usage)
	return &usage
}

// again begins to record another try of the same attempt.
func (r *recorder) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before, r.usage, r.counted = r.before.Plus(r.usage), wire.Usage{}, wire.Usage{}
	r.noted = wire.Usage{}
	r.session, r.acted = "", false
}

// left returns the agent's session and its usage.
func (r *recorder) left() (session string, counted wire.Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session, r.counted
}

// close ends the recording. It sends all but the last message, which is left to rest, or stops when ctx
// ends.
func (r *recorder) close(ctx context.Context) {
	r.end()
	close(r.quit)
	<-r.done
	for ctx.Err() == nil {
		r.mu.Lock()
		r.take()
		last := len(r.waiting) == 0 && r.skills == nil && !r.unsent
		r.mu.Unlock()
		if last {
			return
		}

		if _, err := r.flush(ctx); errors.Is(err, wire.ErrLost) {
			return
		} else if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(flushEvery):
			}
		}
	}
}

// rest puts into a result what the server does not have yet: the last message and the usage, and how many messages
// it has.
func (r *recorder) rest(result *wire.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.take()
	result.From, result.Messages, result.Usage = r.sent, nil, r.told()
	if r.message != nil {
		result.Messages = []wire.Message{*r.message}
	}
}

// drop lets go of the message that the server refuses.
func (r *recorder) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.message = nil
}

// drain sends what is recorded, as far as a server takes it.
func (r *recorder) drain(ctx context.Context) {
	for ctx.Err() == nil {
		if more, err := r.flush(ctx); !more || err != nil {
			return
		}
	}
}

// waitForRoom returns when less waits for the server than makes Add wait.
func (r *recorder) waitForRoom() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.size > maxWaiting/2 && !r.ended {
		r.room.Wait()
	}
}
