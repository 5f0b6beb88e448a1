package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"millwright/api"
	"millwright/state"
)

const runRows = 25

// runQuery is the filter of the list of runs, as it was typed.
type runQuery struct {
	State, Source, Factory, Name, Model, Creator, From, To, Search string
	Webhook, Delivery, Automation                                  string
	Errors                                                         map[string]string
}

// Set reports whether anything but the list's first fields is filtered by.
func (v runQuery) Set() bool {
	return v.Source+v.Name+v.Model+v.Creator+v.From+v.To+v.Webhook+v.Delivery+v.Automation != ""
}

func (v *runQuery) fields() map[string]*string {
	return map[string]*string{
		"state": &v.State, "source": &v.Source, "factory": &v.Factory, "name": &v.Name, "model": &v.Model, "creator": &v.Creator,
		"from": &v.From, "to": &v.To, "q": &v.Search, "webhook": &v.Webhook, "delivery": &v.Delivery, "automation": &v.Automation,
	}
}

func runQueryOf(in url.Values) runQuery {
	var v runQuery
	for name, at := range v.fields() {
		*at = strings.TrimSpace(clip(200, in.Get(name)))
	}
	return v
}

func (v runQuery) address(cursor string) string {
	values := url.Values{}
	for name, text := range v.fields() {
		if *text != "" {
			values.Set(name, *text)
		}
	}

	if cursor != "" {
		values.Set("cursor", cursor)
	}
	if len(values) == 0 {
		return "/runs"
	}

	return "/runs?" + values.Encode()
}

func (v *runQuery) filter() state.RunFilter {
	v.Errors = map[string]string{}
	f := state.RunFilter{
		Name:          v.Name,
		ModelID:       v.Model,
		Creator:       v.Creator,
		Query:         v.Search,
		WebhookUID:    v.Webhook,
		DeliveryUID:   v.Delivery,
		AutomationUID: v.Automation,
	}

	if v.State != "" {
		if f.States = []state.RunState{state.RunState(v.State)}; !slices.Contains(state.RunStates(), f.States[0]) {
			f.States, v.Errors["state"] = nil, "is none of the states"
		}
	}

	if v.Source != "" {
		f.Sources = []string{v.Source}
	}
	if v.Factory != "" {
		f.Factories = []string{v.Factory}
	}

	for _, at := range []struct {
		name, text string
		to         **time.Time
	}{{"from", v.From, &f.CreatedAfter}, {"to", v.To, &f.CreatedBefore}} {
		if at.text == "" {
			continue
		}

		t, err := time.Parse(inputTime, at.text)
		if err != nil || t.Year() < 1970 || t.Year() > 9999 {
			v.Errors[at.name] = "is not a time such as 2026-01-31T08:30"
			continue
		}

		*at.to = &t
	}

	return f
}

type runsView struct {
	Runs      []state.Run
	Names     map[string]string // of factories, by UID
	Query     runQuery
	States    []state.RunState
	Sources   []string
	Factories []state.Factory
	Next      string
	First     string
	Chart     *chart
	Queue     state.QueueStats
}

// Empty says why the page has no run.
func (v runsView) Empty() string {
	switch {
	case v.Next != "":
		return "None of those looked at so far matches. Older ones may."
	case v.Query.Set() || v.Query.State != "" || v.Query.Factory != "" || v.Query.Search != "":
		return "None matches."
	}
	return "No run has been started yet."
}

var runSources = []string{"API", "CLI", "WEB_APP", "CUSTOM_WEBHOOK", "SCHEDULED_AGENT", "ORCHESTRATION"}

func (q *request) runs() error {
	v := runsView{
		Query:   runQueryOf(q.URL.Query()),
		States:  state.RunStates()[1:],
		Sources: runSources,
		Names:   map[string]string{},
	}

	f := v.Query.filter()
	var after *state.RunPosition
	if cursor := q.URL.Query().Get("cursor"); cursor != "" {
		after = &state.RunPosition{}
		if err := api.DecodeCursor(clip(1024, cursor), after); err != nil {
			return err
		}

		v.First = v.Query.address("")
	}

	var next *state.RunPosition
	var err error
	if v.Runs, next, err = q.Store.Runs(q.Context(), f, state.RunOrder{}, after, runRows); err != nil {
		return err
	}
	if next != nil {
		v.Next = v.Query.address(api.EncodeCursor(next))
	}
	if v.Factories, err = q.Store.Factories(q.Context()); err != nil {
		return err
	}

	for _, f := range v.Factories {
		v.Names[f.UID] = f.Name
	}

	v.Queue = q.queue()
	if after == nil {
		tallies, known := q.runTallies()
		c := runChart(time.Now(), tallies, known)
		v.Chart = &c
	}

	return q.render("runs", page{Title: "Runs", Section: "runs", Live: []string{"run"}, Data: v})
}

// Bounds of what the page of a run shows.
const (
	runEntries  = 300     // at a time
	maxRunBytes = 1 << 20 // of the conversation on one page
)

type runView struct {
	Run         state.Run
	Unheard     string // what becomes of it, since its worker is silent
	Factory     string // its name
	Automation  string
	Webhook     string
	Config      string // pretty-printed
	Prompt      string // all that the agent was given
	Timeline    []moment
	Messages    []message
	Skills      []skill // that the agent said it has
	Attachments []state.Attachment
	Next        int64 // the entry to go on after; 0: no more
	After       int64
	Form        form
	Followup    string // what the next message would do
}

// moment is a change of a run's state.
type moment struct {
	State   state.RunState
	At      time.Time
	Took    string // in the state before
	Detail  string
	Attempt int
}

// message is a turn of a conversation.
type message struct {
	Role      state.MessageRole
	Execution int
	GivenUp   bool // another attempt began after it
	At        time.Time
	Blocks    []blockView
}

// blockView is a part of a message, ready to be shown.
type blockView struct {
	state.Block
	Skill  *skill // a skill that is loaded
	Text   string
	Detail string // input, output or data, pretty-printed
	Failed bool
}

// skill is a skill of an agent (service.md, Skill actions in conversation data).
type skill struct {
	Name      string `json:"name"`
	Path      string `json:"skill_path"`
	BundledID string `json:"bundled_skill_id"`
}

// run shows one run.
func (q *request) run() error { return q.showRun(http.StatusOK, form{}) }

func (q *request) showRun(status int, typed form) error {
	ctx, id := q.Context(), strings.ToLower(q.param("run"))
	r, err := q.Store.Run(ctx, id)
	if err != nil {
		return err
	}

	v := runView{Run: r, Form: typed, Unheard: q.Store.Unheard(r)}
	if _, err := fmt.Sscan(q.URL.Query().Get("after"), &v.After); err != nil || v.After < 0 {
		v.After = 0
	}
	if v.Attachments, err = q.Store.Attachments(ctx, r); err != nil {
		return err
	}
	if v.Prompt, err = q.Store.SubmittedPrompt(ctx, r); err != nil {
		return err
	}
	if v.Timeline, err = q.timeline(r); err != nil {
		return err
	}

	entries, err := q.Store.Entries(ctx, r.ID, v.After, runEntries+1)
	if err != nil {
		return err
	}

	v.converse(entries)
	if err := q.nameOrigin(&v); err != nil {
		return err
	}
	if json.Unmarshal(r.Skills, &v.Skills) != nil || len(v.Skills) > 200 {
		v.Skills = nil
	}
	if string(r.Config) != "{}" {
		v.Config = pretty(r.Config)
	}

	switch {
	case r.State == state.RunQueued:
		v.Followup = "It joins the prompt, since the run has not started yet."
	case r.State.Held():
		v.Followup = "It is the next prompt, as soon as the present execution ends."
	default:
		v.Followup = "It reopens the run as a new execution."
	}

	return q.renderStatus(
		status,
		"run",
		page{
			Title:   line(r.Title),
			Section: "runs",
			Crumbs:  []crumb{{"Runs", "/runs"}},
			Live:    []string{"run." + r.ID},
			Self:    "/runs/" + r.ID,
			Data:    v,
		},
	)
}

// converse makes messages of entries, as many as a page may show.
func (v *runView) converse(entries []state.Entry) {
	shown := 0
	for i, e := range entries {
		if i == runEntries || shown > maxRunBytes {
			v.Next = entries[i-1].Seq
			return
		}

		if e.Message == nil {
			for i := range v.Messages {
				m := &v.Messages[i]
				m.GivenUp = m.GivenUp || e.Change.State == state.RunQueued && m.Execution == e.Change.Execution
			}
			continue
		}

		m := message{Role: e.Message.Role, Execution: e.Execution, At: e.At}
		for _, b := range e.Message.Content[:min(len(e.Message.Content), 100)] {
			seen := newBlock(b)
			shown += len(seen.Text) + len(seen.Detail)
			m.Blocks = append(m.Blocks, seen)
		}

		v.Messages = append(v.Messages, m)
	}
}

func newBlock(b state.Block) blockView {
	v := blockView{Block: b, Text: prose(b.Text), Failed: b.State == "failed" || b.State == "error"}
	for _, raw := range []json.RawMessage{b.Input, b.Output, b.Data} {
		if len(raw) > 0 && string(raw) != "null" {
			var text string
			if json.Unmarshal(raw, &text) == nil {
				v.Detail = prose(text)
			} else {
				v.Detail = prose(pretty(raw))
			}
		}
	}

	if b.Type == "action" && b.Name == "read_skill" {
		v.Skill = &skill{}
		if json.Unmarshal(b.Input, v.Skill) != nil {
			v.Skill = &skill{}
		}
	}

	return v
}

// maxMoments is how many changes of state a timeline shows, the latest.
const maxMoments = 200

// timeline lists a run's changes of state.
func (q *request) timeline(r state.Run) ([]moment, error) {
	changes, err := q.Store.Changes(q.Context(), r.ID, maxMoments)
	if err != nil {
		return nil, err
	}

	all := []moment{{State: state.RunQueued, At: r.Created, Detail: "created", Attempt: 1}}
	last := r.Created
	for _, e := range changes {
		m := moment{
			State:   e.Change.State,
			At:      e.At,
			Took:    spell(max(e.At.Sub(last), 0)),
			Attempt: e.Change.Attempt,
			Detail:  e.Change.Message,
		}
		if m.Detail == "" && e.Change.Worker != "" {
			m.Detail = "by " + e.Change.Worker
		}
		if e.Change.ErrorCode != "" {
			m.Detail = strings.TrimPrefix(m.Detail+" ("+e.Change.ErrorCode+")", " ")
		}

		all, last = append(all, m), e.At
	}

	return all, nil
}

// nameOrigin finds the names of what started a run.
func (q *request) nameOrigin(v *runView) error {
	r := v.Run
	if r.FactoryUID == "" {
		return nil
	}

	cur, err := q.Store.Current(q.Context(), r.FactoryUID)
	if api.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}

	v.Factory = cur.Factory.Name
	for _, a := range cur.Tree.Automations {
		if cur.UIDs[state.ResourceKey("automation", a.Name)] == r.AutomationUID && r.AutomationUID != "" {
			v.Automation = a.Name
		}
	}

	if r.WebhookUID != "" {
		w, err := q.Store.Webhook(q.Context(), r.FactoryUID, r.WebhookUID)
		if err != nil && !api.IsNotFound(err) {
			return err
		}

		v.Webhook = w.Spec.Name
	}

	return nil
}

// followup sends a message to the run.
func (q *request) followup() error {
	id := strings.ToLower(q.param("run"))
	typed := q.formOf("message")
	in := map[string]string{"message": strings.ReplaceAll(typed.Values["message"], "\r\n", "\n")}
	if strings.TrimSpace(in["message"]) == "" {
		typed.Errors["message"] = "is empty: write what the agent should do next"
		return q.showRun(http.StatusUnprocessableEntity, typed)
	}

	if err := q.call(http.MethodPost, "/agent/runs/"+url.PathEscape(id)+"/followups", in, nil); err != nil {
		if !typed.take(err) {
			return err
		}
		return q.showRun(http.StatusUnprocessableEntity, typed)
	}

	return q.redirect("/runs/"+url.PathEscape(id), "followup")
}

// cancel asks a run to stop.
func (q *request) cancel() error {
	id := strings.ToLower(q.param("run"))
	if err := q.call(http.MethodPost, "/agent/runs/"+url.PathEscape(id)+"/cancel", nil, nil); err != nil {
		return err
	}

	r, err := q.Store.Run(q.Context(), id)
	if err != nil {
		return err
	}

	return q.redirect(
		"/runs/"+r.ID,
		map[bool]string{true: "cancelled", false: "cancel"}[r.State == state.RunCancelled],
	)
}

// attachment sends a file of a run.
func (q *request) attachment() error {
	r, err := q.Store.Run(q.Context(), strings.ToLower(q.param("run")))
	if err != nil {
		return err
	}
	a, err := q.Store.Attachment(q.Context(), r, q.param("name"))
	if err != nil {
		return err
	}
	q.download(a.Name, a.Body)
	return nil
}
