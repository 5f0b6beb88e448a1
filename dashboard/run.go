package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"millwright/api"
	"millwright/schema/agentconfig"
	"millwright/state"
)

// maxDeliveriesShown is how many deliveries of one run the page names, the newest.
const maxDeliveriesShown = 100

// windowOf reads which part of a conversation of so many entries an address asks for.
func windowOf(address url.Values, last int64) window {
	w := window{Newest: true, After: max(last-runEntries, 0)}
	if after, err := strconv.ParseInt(address.Get("after"), 10, 64); err == nil && after >= 0 {
		w.Newest, w.After = false, after
	}
	w.Prev = max(w.After-runEntries, 0)
	return w
}

// run shows one run.
func (q *request) run() error { return q.showRun(http.StatusOK, form{}) }

func (q *request) showRun(status int, typed form) error {
	ctx, id := q.Context(), strings.ToLower(q.param("run"))
	r, err := q.Store.Run(ctx, id)
	if err != nil {
		return err
	}

	v := runView{
		Run:     r,
		Form:    typed,
		Unheard: q.Store.Unheard(r),
		Window:  windowOf(q.URL.Query(), r.LastEntry()),
		Usage:   usageOf(r.Usage),
	}
	if v.Attachments, err = q.Store.Attachments(ctx, r); err != nil {
		return err
	}
	if err := q.readArtifacts(&v); err != nil {
		return err
	}
	if v.Timeline, err = q.timeline(r); err != nil {
		return err
	}

	if r.Flow != nil && r.DeliveryUID != "" {
		v.Deliveries, err = q.Store.FlowDecisions(ctx, r.AutomationUID, r.ID, maxDeliveriesShown)
		if err != nil {
			return err
		}
	}
	if err := q.converse(&v); err != nil {
		return err
	}
	if v.Questions, err = q.questions(r); err != nil {
		return err
	}
	if err := q.nameOrigin(&v); err != nil {
		return err
	}
	if err := q.outputs(&v); err != nil {
		return err
	}

	if json.Unmarshal(r.Skills, &v.Skills) != nil || len(v.Skills) > 200 {
		v.Skills = nil
	}
	if config, err := agentconfig.Stored(r.Config); err == nil && string(r.Config) != "{}" {
		text, _ := json.Marshal(config) // what was read is written
		v.Config = pretty(text)
	}

	switch {
	case r.State == state.RunQueued:
		v.Followup = "The message joins the prompt: the run has not started yet."
	case r.Live():
		v.Followup = "The agent gets the message when its present turn ends."
	case r.Held():
		v.Followup = "The agent gets the message when the present execution ends."
	default:
		v.Followup = "The message reopens the run as a new execution."
	}

	return q.renderStatus(status, "run", page{
		Title:   line(r.Title),
		Section: "runs",
		Crumbs:  []crumb{{"Runs", "/runs"}},
		Live:    []string{"run." + r.ID},
		Self:    "/runs/" + r.ID,
		Data:    v,
	})
}

// converse reads the part of the conversation that the page shows.
func (q *request) converse(v *runView) error {
	prompts, err := q.Store.Prompts(q.Context(), v.Run)
	if err != nil {
		return err
	}

	// The entry before the window says whether an execution begins with it.
	entries, err := q.Store.Entries(q.Context(), v.Run.ID, max(v.Window.After-1, 0), runEntries+2)
	if err != nil {
		return err
	}

	c := conversation{dashboard: q.dashboard, prompts: prompts, begun: 1}
	if v.Window.After > 0 && len(entries) > 0 && entries[0].Seq <= v.Window.After {
		c.begun, entries = entries[0].Execution, entries[1:]
	}

	entries = v.fit(entries)
	shown := entries

	for i, e := range entries {
		if !v.Window.Newest && (i == runEntries || c.shown > maxRunBytes) {
			v.Window.Next, shown = entries[i-1].Seq, entries[:i]
			break
		}
		c.add(e)
	}

	if v.Window.After == 0 && len(prompts[0].Content) > 0 {
		v.Prompt = prompts[0].Content[0].Text
	}

	if v.Run.Held() && v.Window.Next == 0 {
		if err := q.waiting(&c, v.Run); err != nil {
			return err
		}
	}

	v.Turns = c.Turns
	v.Waterfalls = waterfalls(shown, time.Now(), v.Run.Held() && v.Window.Next == 0)
	v.Given, err = q.given(v.Run, prompts)
	return err
}

// fit drops the oldest entries of a window at the end until the others may be shown.
func (v *runView) fit(entries []state.Entry) []state.Entry {
	if !v.Window.Newest {
		return entries
	}

	first, size := len(entries), 0
	for first > 0 && size <= maxRunBytes {
		first--
		if m := entries[first].Message; m != nil {
			size += sizeOf(*m)
		}
	}

	if size > maxRunBytes && first+1 < len(entries) {
		v.Window.After = entries[first].Seq
		v.Window.Prev = max(v.Window.After-runEntries, 0)
		return entries[first+1:]
	}

	return entries[first:]
}

// sizeOf returns about how many bytes a page shows of a message.
func sizeOf(m state.Message) (size int) {
	for _, b := range m.Content {
		size += min(len(b.Text)+len(b.Input)+len(b.Output)+len(b.Data), maxText)
	}
	return size
}

// waiting adds the messages that the agent has not got.
func (q *request) waiting(c *conversation, r state.Run) error {
	texts, err := q.Store.WaitingMessages(q.Context(), r)
	if err != nil || len(texts) == 0 {
		return err
	}

	m := state.Message{Role: state.RoleUser, At: r.Updated}
	for _, text := range texts {
		m.Content = append(m.Content, state.Text(text))
	}
	c.ask(m, r.Execution+1, true)
	return nil
}

// runLog sends the whole conversation as a text file.
func (q *request) runLog() error {
	r, err := q.Store.Run(q.Context(), strings.ToLower(q.param("run")))
	if err != nil {
		return err
	}

	steps, err := q.Store.Steps(q.Context(), r, 0)
	if err != nil {
		return err
	}

	var b strings.Builder
	fmt.Fprintf(&b, "%s\nrun %s, %s\n", line(r.Title), r.ID, r.State)
	for i, step := range steps {
		for _, given := range step.Steps {
			writeLog(&b, fmt.Sprintf("execution %d, given up", i+1), given.Messages)
		}
		writeLog(&b, fmt.Sprintf("execution %d", i+1), step.Messages)
	}

	q.download("run-"+r.ID+".txt", visible([]byte(b.String())))
	return nil
}

func writeLog(b *strings.Builder, execution string, messages []state.Message) {
	for _, m := range messages {
		fmt.Fprintf(b, "\n--- %s, %s, %s\n", m.Role, execution, m.At.UTC().Format(time.RFC3339))

		for _, block := range m.Content {
			switch block.Type {
			case "text":
				fmt.Fprintln(b, block.Text)
			case "action":
				fmt.Fprintf(b, "> %s %s\n", block.Name, block.Input)
			case "action_result":
				fmt.Fprintf(b, "< %s %s %s\n", block.Name, block.State, block.Output)
			default:
				fmt.Fprintf(b, "* %s %s\n", block.Name, block.Data)
			}
		}
	}
}

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
	v.NoForeman = r.AgentUID == "" && r.AutomationUID == "" && r.DeliveryUID == ""
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

// retry starts a run that has ended again.
func (q *request) retry() error {
	var again struct {
		RunID string `json:"run_id"`
	}
	id := strings.ToLower(q.param("run"))
	path := "/agent/runs/" + url.PathEscape(id) + "/retry"
	if err := q.call(http.MethodPost, path, nil, &again, "X-Millwright-Client", "web"); err != nil {
		return err
	}

	return q.redirect("/runs/"+again.RunID, "retried")
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

// questions returns what the agent of a run waits for.
func (q *request) questions(r state.Run) (open []question, err error) {
	if r.State != state.RunBlocked {
		return nil, nil
	}

	all, err := q.Store.Questions(q.Context(), r.ID)
	for _, asked := range all {
		if asked.Closed == nil {
			open = append(open, question{asked, readable(asked.Input)})
		}
	}

	return open, err
}

// answer answers what the agent of a run asks.
func (q *request) answer() error {
	id := strings.ToLower(q.param("run"))
	in := map[string]string{
		"question_id": q.PostForm.Get("question"),
		"choice":      q.PostForm.Get("choice"),
		"message":     strings.ReplaceAll(q.PostForm.Get("message"), "\r\n", "\n"),
	}
	if err := q.call(http.MethodPost, "/agent/runs/"+url.PathEscape(id)+"/answers", in, nil); err != nil {
		return err
	}
	return q.redirect("/runs/"+url.PathEscape(id), "answered")
}

// maxAsking is how many runs that wait for an answer the overview names.
const maxAsking = 10

// questionFindings lists the runs whose agents wait for an answer.
func (q *request) questionFindings() (all []finding, err error) {
	filter := state.RunFilter{States: []state.RunState{state.RunBlocked}}
	blocked, _, err := q.Store.Runs(q.Context(), filter, state.RunOrder{}, nil, 5*maxAsking)
	for _, r := range blocked {
		if r.Questions() == 0 || len(all) == maxAsking {
			continue
		}
		all = append(all, finding{
			Tone:   "odd",
			Text:   "Run " + line(r.Title) + " waits for an answer",
			Detail: r.StatusMessage,
			Path:   "/runs/" + r.ID,
			Action: "Answer",
		})
	}

	return all, err
}
