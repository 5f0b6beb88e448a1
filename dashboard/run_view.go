package dashboard

import (
	"time"

	"millwright/state"
	"millwright/state/outputs"
)

// window is the part of a conversation that a page shows: the newest entries, or those after one.
type window struct {
	After  int64 // the entry that it begins after
	Newest bool  // it ends with the conversation, and grows with it
	Prev   int64 // what the page before begins after
	Next   int64 // what the next page begins after; 0: none
}

// moment is a change of a run's state.
type moment struct {
	State   state.RunState
	At      time.Time
	Took    string // in the state before
	Detail  string
	Attempt int
}

// question is what the agent of a run asks.
type question struct {
	state.Question
	Detail string // what it is about to do, pretty-printed
}

// outputRow is an output on the page of its run.
type outputRow struct {
	outputs.Output
	Name  string // of its kind, for people
	About string
	Text  string // what is sent
	Tone  string
}

type runView struct {
	Run         state.Run
	Unheard     string // what happens next, since its worker is silent
	Factory     string // its name
	Automation  string
	Webhook     string
	Config      string // pretty-printed
	Prompt      string // what the first execution was given; "" when the page begins later
	Timeline    []moment
	Turns       []turn
	Waterfalls  []*waterfall // of the executions that the page shows
	Outputs     []outputRow
	Openable    []string // repositories whose changes may become a pull request
	Skills      []skill  // that the agent said it has
	Deliveries  []state.RecordedDecision
	Attachments []state.Attachment
	Changes     []changeSet      // that the run left
	Files       []state.Artifact // those of changes too
	Links       []state.Artifact
	Window      window
	Form        form
	Followup    string // what the next message would do
	NoForeman   bool   // the factory was given work, and its definition names nobody to do it
	Questions   []question
	Given       *givenView
	Usage       *usageView // nil: none was reported
}
