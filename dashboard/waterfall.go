package dashboard

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"millwright/state"
)

// maxSteps is how many steps of an execution a waterfall shows, the latest.
const maxSteps = 200

// waterfall has the steps of an execution in the order of time.
type waterfall struct {
	Execution   int
	Steps       []*step
	Left        int // steps before these
	from, until time.Time
	last        time.Time        // when the latest step ended
	ready       *step            // what goes on until the next change of the run's state
	answer      *step            // the latest answer of the model
	answering   bool             // nothing came after it
	actions     map[string]*step // by ID, those that have no result yet
}

// step is a part of an execution: getting ready, an answer of the model, an action, or a question.
type step struct {
	Kind    string // prepare, model, action or question: the class of its bar
	Name    string
	Command string // of an action
	Key     string // of the action in the conversation
	Began   time.Time
	Ended   time.Time
	Running bool
	Failed  bool
	X, Wide int // of its bar, of 1000
	input   int64
	output  int64
}

// Took is how long the step took, for people.
func (s *step) Took() string { return spell(max(s.Ended.Sub(s.Began), 0)) }

// Tokens are those of the step, for people; empty where the agent did not report any.
func (s *step) Tokens() string { return tokensOf(s.input, s.output) }

// Took is how long the execution took.
func (w *waterfall) Took() string { return spell(max(w.until.Sub(w.from), 0)) }

// Tokens are those of the steps.
func (w *waterfall) Tokens() string {
	var input, output int64
	for _, s := range w.Steps {
		input, output = input+s.input, output+s.output
	}
	return tokensOf(input, output)
}

func tokensOf(input, output int64) string {
	if input == 0 && output == 0 {
		return ""
	}
	return fmt.Sprintf("%d in, %d out", input, output)
}

// waterfalls returns the steps that entries of a conversation show, by execution. A step of a live run goes on
// until now.
func waterfalls(entries []state.Entry, now time.Time, live bool) (all []*waterfall) {
	var w *waterfall
	for _, e := range entries {
		if w == nil || w.Execution != e.Execution {
			w = &waterfall{Execution: e.Execution, actions: map[string]*step{}}
			all = append(all, w)
		}

		if e.Change != nil {
			w.change(e.Change.State, e.At)
		} else if e.Message.Role == state.RoleAssistant {
			w.message(e)
		}
	}

	for i, w := range all {
		w.end(now, live && i == len(all)-1)
	}
	return slices.DeleteFunc(all, func(w *waterfall) bool { return len(w.Steps) == 0 })
}

// begin adds a step.
func (w *waterfall) begin(s step) *step {
	w.Steps = append(w.Steps, &s)
	return &s
}

// change takes a change of the run's state: what went on until then has ended.
func (w *waterfall) change(to state.RunState, at time.Time) {
	if w.ready != nil {
		w.ready.Ended, w.ready = at, nil
	}
	for id, s := range w.actions {
		s.Ended = at
		delete(w.actions, id)
	}

	switch to {
	case state.RunClaimed:
		w.ready = w.begin(step{Kind: "prepare", Name: "Preparation", Began: at, Ended: at})
	case state.RunBlocked:
		w.ready = w.begin(step{Kind: "question", Name: "Waits for an answer", Began: at, Ended: at})
	}
	w.last, w.answering = at, false
}

// message takes what the agent said. Its blocks came at the same time.
func (w *waterfall) message(e state.Entry) {
	for i, b := range e.Message.Content[:min(len(e.Message.Content), maxBlocks)] {
		switch {
		case b.Type == "event" && b.Name == usageEvent:
			w.use(b.Data, e.At)
		case b.Type == "text", b.Type == "event" && b.Name == "thinking":
			w.answered(e.At)
		case b.Type == "action":
			w.answered(e.At)
			w.act(b, partKey(e.Seq, i), e.At)
		case b.Type == "action_result":
			w.result(b, e.At)
		}
	}
}

// answered adds an answer of the model, which began when the step before ended, or continues the latest one.
func (w *waterfall) answered(at time.Time) {
	if w.answering {
		w.answer.Ended, w.last = at, at
		return
	}

	began := w.last
	if began.IsZero() { // the page begins here
		began = at
	}
	w.answer = w.begin(step{Kind: "model", Name: "Agent", Began: began, Ended: at})
	w.last, w.answering = at, true
}

// act adds an action. Actions that begin before others have ended run beside them.
func (w *waterfall) act(b state.Block, key string, at time.Time) {
	s := w.begin(step{
		Kind:    "action",
		Name:    line(b.Name),
		Command: commandOf(b.Input),
		Key:     key,
		Began:   at,
		Ended:   at,
	})
	if s.Command == b.Name {
		s.Command = ""
	}
	if b.ID != "" {
		w.actions[b.ID] = s
	}
}

func (w *waterfall) result(b state.Block, at time.Time) {
	if s := w.actions[b.ActionID]; s != nil {
		s.Ended, s.Failed = at, failedState(b.State)
		delete(w.actions, b.ActionID)
	}
	w.last, w.answering = at, false
}

// use adds tokens to the latest answer: the agent reports them after it.
func (w *waterfall) use(data json.RawMessage, at time.Time) {
	var used struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	}
	if json.Unmarshal(data, &used) != nil || used.Input < 0 || used.Output < 0 {
		return
	}

	if w.answer == nil {
		w.answered(at)
	}
	w.answer.input += used.Input
	w.answer.output += used.Output
}

// end ends what still goes on, keeps the latest steps, and measures their bars.
func (w *waterfall) end(now time.Time, live bool) {
	if live && w.ready == nil && len(w.actions) == 0 && !w.last.IsZero() {
		w.ready = w.begin(step{Kind: "model", Name: "Agent", Began: w.last})
	}

	open := w.last
	if live {
		open = now
	}
	for _, s := range w.actions {
		s.Ended, s.Running = open, live
	}
	if w.ready != nil {
		w.ready.Ended, w.ready.Running = open, live
	}

	w.Left = max(len(w.Steps)-maxSteps, 0)
	w.Steps = w.Steps[w.Left:]
	for i, s := range w.Steps {
		if i == 0 || s.Began.Before(w.from) {
			w.from = s.Began
		}
		if s.Ended.After(w.until) {
			w.until = s.Ended
		}
	}

	whole := float64(max(w.until.Sub(w.from), time.Millisecond))
	for _, s := range w.Steps {
		s.X = min(int(1000*float64(s.Began.Sub(w.from))/whole), 996)
		s.Wide = max(min(int(1000*float64(s.Ended.Sub(s.Began))/whole), 1000-s.X), 4)
	}
}
