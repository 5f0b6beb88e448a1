package runs

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millwright/api"
	"millwright/state"
)

// listInput has the parameters of GET /agent/runs. Unknown parameters are ignored.
type listInput struct {
	Limit             int      `query:"limit" minimum:"1" maximum:"500" default:"20" doc:"Maximum number of items"`
	Cursor            string   `query:"cursor" maxLength:"4096" doc:"next_cursor of the previous page; absent for the first page"`
	SortBy            string   `query:"sort_by" enum:"updated_at,created_at,title,agent" default:"updated_at" doc:"Sort key"`
	SortOrder         string   `query:"sort_order" enum:"desc,asc" default:"desc" doc:"Sort direction"`
	State             []string `query:"state,explode" enum:"QUEUED,PENDING,CLAIMED,INPROGRESS,SUCCEEDED,FAILED,ERROR,BLOCKED,CANCELLED" maxItems:"50" doc:"Only runs in one of these states"`
	TaskStatus        []string `query:"task_status,explode" enum:"running,failed,blocked,cancelled,complete" maxItems:"50" doc:"Only runs whose state is one of these kinds"`
	Source            []string `query:"source,explode" maxItems:"50" doc:"Only runs of one of these sources (RunSourceType), in any case"`
	Name              string   `query:"name" maxLength:"200" doc:"Only runs with this config name"`
	ModelID           string   `query:"model_id" maxLength:"200" doc:"Only runs of this language model"`
	Creator           string   `query:"creator" maxLength:"200" doc:"Only runs created by the holder of this UID"`
	Executor          string   `query:"executor" maxLength:"200" doc:"Only runs that the worker of this UID executes or executed"`
	EnvironmentID     string   `query:"environment_id" maxLength:"200" doc:"Only runs of this environment"`
	Skill             string   `query:"skill" maxLength:"500" doc:"Only runs of this skill"`
	SkillSpec         string   `query:"skill_spec" maxLength:"500" doc:"The same as skill"`
	CreatedAfter      string   `query:"created_after" maxLength:"100" doc:"Only runs created after this time (RFC 3339; UTC without a zone)"`
	CreatedBefore     string   `query:"created_before" maxLength:"100" doc:"Only runs created before this time (RFC 3339; UTC without a zone)"`
	UpdatedAfter      string   `query:"updated_after" maxLength:"100" doc:"Only runs changed after this time (RFC 3339; UTC without a zone)"`
	UpdatedBefore     string   `query:"updated_before" maxLength:"100" doc:"Only runs changed before this time (RFC 3339; UTC without a zone)"`
	FactoryUID        []string `query:"factory_uid,explode" maxItems:"100" doc:"Only runs of one of these factories"`
	FactoryOnly       bool     `query:"factory_only" doc:"Only runs of factories"`
	AutomationID      string   `query:"automation_id" maxLength:"200" doc:"Only runs of this automation"`
	WebhookID         string   `query:"webhook_id" maxLength:"200" doc:"Only runs that a delivery to this webhook started"`
	DeliveryID        string   `query:"delivery_id" maxLength:"200" doc:"Only runs that this delivery started"`
	AncestorRunID     string   `query:"ancestor_run_id" maxLength:"200" doc:"Only descendants of this run"`
	Query             string   `query:"q" maxLength:"200" doc:"Only runs with this text in their title or prompt, in any case, or with this ID"`
	Waiting           bool     `query:"waiting" doc:"Only queued runs that no worker may take yet: they wait for others of their automation, for the end of a burst of deliveries, or for their next attempt"`
	ExecutionLocation string   `query:"execution_location" enum:"LOCAL,REMOTE" doc:"LOCAL matches no run, REMOTE every run"`
	ScheduleID        string   `query:"schedule_id" maxLength:"200" doc:"Only runs that this schedule started. Schedules without a name share those of their automation"`
	ArtifactType      string   `query:"artifact_type" enum:"FILE,SCREENSHOT,PLAN,PULL_REQUEST,EXTERNAL_REFERENCE" doc:"Only runs that left an artifact of this type"`

	metadata map[string]string
}

// Resolve reads the parameters metadata[key]=value. It refuses text that no database can store.
func (in *listInput) Resolve(ctx huma.Context) []error {
	in.metadata = map[string]string{}
	u := ctx.URL()
	var errs []error
	known := func(name string) bool {
		return slices.ContainsFunc(
			ctx.Operation().Parameters,
			func(p *huma.Param) bool { return p.Name == name || strings.HasPrefix(name, "metadata[") },
		)
	}

	for name, values := range u.Query() {
		for _, v := range values {
			if !clean(v) && known(name) {
				errs = append(
					errs,
					&huma.ErrorDetail{Location: "query." + name, Message: "holds a NUL character or invalid UTF-8"},
				)
			}
		}

		key, ok := strings.CutPrefix(name, "metadata[")
		if !ok {
			continue
		}

		if key, ok = strings.CutSuffix(key, "]"); !ok || !metadataKey.MatchString(key) || len(values) != 1 {
			errs = append(
				errs,
				&huma.ErrorDetail{Location: "query." + name, Message: "want metadata[key]=value, once for each key"},
			)
			continue
		}

		in.metadata[key] = values[0]
	}

	if len(in.metadata) > maxMetadata {
		errs = append(
			errs,
			&huma.ErrorDetail{Location: "query.metadata", Message: fmt.Sprintf("at most %d keys", maxMetadata)},
		)
	}

	return errs
}

var _ huma.Resolver = (*listInput)(nil)

// cursor is the end of a page, with the order of the list.
type cursor struct {
	By       state.RunSort     `json:"b"`
	Up       bool              `json:"u,omitempty"`
	Position state.RunPosition `json:"p"`
}

func (s *service) registerRead() {
	list := api.Explained(
		api.Filtered(api.Operation(http.MethodGet, "/agent/runs", "listRuns", state.RoleViewer, "List runs")),
		"Conditions on different fields must all hold; the values of a repeated parameter are "+
			"alternatives. metadata[key]=value selects runs by their metadata. "+
			"Runs that are added meanwhile cause no run to appear twice or be skipped. The server "+
			"examines a bounded number of runs for a page. A page may have fewer runs than limit, or "+
			"none; the list continues while has_next_page is true.",
	)
	list.Parameters = append(list.Parameters, metadataParam())
	api.Handle(s.api, list, s.list)
	s.describeTimes(list.Path)
	api.Handle(
		s.api,
		api.Explained(
			api.Operation(http.MethodGet, "/agent/runs/{runId}", "getRun", state.RoleViewer, "Show a run"),
			"Returns the full run, with the prompt that the agent got.",
		),
		s.get,
	)

	s.registerAttachment()
}

// metadataParam describes the parameters metadata[key]=value.
func metadataParam() *huma.Param {
	return &huma.Param{
		Name: "metadata", In: "query", Style: "deepObject", Explode: ptr(true),
		Description: "Only runs with these values in their metadata: metadata[key]=value",
		Schema:      &huma.Schema{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeString}},
	}
}

func (s *service) get(ctx context.Context, in *RunPath) (RunItem, error) {
	r, err := s.run(ctx, *in)
	if err != nil {
		return RunItem{}, err
	}

	files, err := s.Store.Attachments(ctx, r)
	if err != nil {
		return RunItem{}, err
	}

	left, err := s.Store.Artifacts(ctx, r.ID)
	if err != nil {
		return RunItem{}, err
	}

	if s.Looked != nil {
		s.Looked(left[r.ID])
	}

	item := s.item(r, files, left[r.ID])
	if item.Questions, err = s.openQuestions(ctx, r); err != nil {
		return RunItem{}, err
	}
	if item.SubmittedPrompt, err = s.Store.SubmittedPrompt(ctx, r); err != nil {
		return RunItem{}, err
	}

	item.DeliveryIDs, err = s.deliveries(ctx, r)
	return item, err
}

// maxDeliveryIDs is how many deliveries of a run are named, the newest.
const maxDeliveryIDs = 1000

// deliveries returns the deliveries of a run that stands for several or had follow-ups, oldest first; nil for any
// other.
func (s *service) deliveries(ctx context.Context, r state.Run) (ids []string, err error) {
	if r.Flow == nil || r.DeliveryUID == "" {
		return nil, nil
	}

	all, err := s.Store.FlowDecisions(ctx, r.AutomationUID, r.ID, maxDeliveryIDs)
	if err != nil || len(all) == 0 {
		return nil, err
	}

	for _, d := range slices.Backward(all) {
		ids = append(ids, d.DeliveryUID)
	}
	if !slices.Contains(ids, r.DeliveryUID) { // the first of a conversation
		ids = append([]string{r.DeliveryUID}, ids...)
	}
	return ids, nil
}

func (s *service) list(ctx context.Context, in *listInput) (ListRunsResponse, error) {
	order := state.RunOrder{By: state.RunSort(in.SortBy), Ascending: in.SortOrder == "asc"}
	var after *state.RunPosition
	if in.Cursor != "" {
		var c cursor
		if err := api.DecodeCursor(in.Cursor, &c); err != nil {
			return ListRunsResponse{}, err
		}

		if c.By != order.By || c.Up != order.Ascending || c.Position.ID == "" || !clean(c.Position.ID) ||
			!clean(c.Position.Text) {
			return ListRunsResponse{}, api.InvalidField(
				"cursor",
				"not a cursor of this list: take next_cursor of the page before, with the same sort_by "+
					"and sort_order",
			)
		}

		after = &c.Position
	}

	filter, some, err := s.filter(ctx, in)
	if err != nil {
		return ListRunsResponse{}, err
	}

	page := ListRunsResponse{Runs: []RunItem{}}
	if !some {
		return page, nil
	}

	found, next, err := s.Store.Runs(ctx, filter, order, after, in.Limit)
	if err != nil {
		return ListRunsResponse{}, err
	}

	files, err := s.Store.AttachmentsOf(ctx, found)
	if err != nil {
		return ListRunsResponse{}, err
	}

	var ids []string
	for _, r := range found {
		ids = append(ids, r.ID)
	}
	left, err := s.Store.Artifacts(ctx, ids...)
	if err != nil {
		return ListRunsResponse{}, err
	}

	for _, r := range found {
		page.Runs = append(page.Runs, s.item(r, files[r.ID], left[r.ID]))
	}

	if next != nil {
		page.PageInfo = api.PageInfo{
			HasNextPage: true,
			NextCursor:  api.EncodeCursor(cursor{order.By, order.Ascending, *next}),
		}
	}

	return page, nil
}

// filter returns the filter for the parameters. some is false if they can match no run.
func (s *service) filter(ctx context.Context, in *listInput) (f state.RunFilter, some bool, err error) {
	f = state.RunFilter{
		Factories:     in.FactoryUID,
		Name:          in.Name,
		ModelID:       in.ModelID,
		EnvironmentID: in.EnvironmentID,
		Skill:         in.Skill,
		Creator:       in.Creator,
		Executor:      in.Executor,
		AutomationUID: in.AutomationID,
		WebhookUID:    in.WebhookID,
		DeliveryUID:   in.DeliveryID,
		Ancestor:      in.AncestorRunID,
		Query:         in.Query,
		FactoryOnly:   in.FactoryOnly,
		Waiting:       in.Waiting,
		ArtifactType:  in.ArtifactType,
		Metadata:      in.metadata,
	}
	some = in.ExecutionLocation != "LOCAL"
	if key := api.KeyOf(ctx); key.Limited() {
		f.Factories = reached(key, in.FactoryUID)
		some = some && len(f.Factories) > 0
	}

	if f.Sources, err = sources(in.Source); err != nil {
		return f, false, err
	}

	for name, t := range map[string]struct {
		to   **time.Time
		text string
	}{
		"created_after":  {&f.CreatedAfter, in.CreatedAfter},
		"created_before": {&f.CreatedBefore, in.CreatedBefore},
		"updated_after":  {&f.UpdatedAfter, in.UpdatedAfter},
		"updated_before": {&f.UpdatedBefore, in.UpdatedBefore},
	} {
		if *t.to, err = timeOf(name, t.text); err != nil {
			return f, false, err
		}
	}

	if in.AncestorRunID != "" {
		id, ok := runID(in.AncestorRunID)
		if !ok {
			return f, false, api.InvalidField("ancestor_run_id", "not a run ID")
		}

		f.Ancestor = id
	}

	both := func(to *string, v string) { // two parameters of the same meaning
		if *to != "" && *to != v {
			some = false
		}
		*to = v
	}
	if in.SkillSpec != "" {
		both(&f.Skill, in.SkillSpec)
	}

	if in.ScheduleID != "" {
		found, err := s.bySchedule(ctx, in.ScheduleID, &f, both)
		if err != nil {
			return f, false, err
		}

		some = some && found
	}

	known := map[string]*string{
		metaAutomation: &f.AutomationUID, metaWebhook: &f.WebhookUID, metaDelivery: &f.DeliveryUID,
	}
	for key, to := range known {
		if v, ok := f.Metadata[key]; ok {
			both(to, v)
			delete(f.Metadata, key)
		}
	}

	for _, st := range in.State {
		f.States = append(f.States, state.RunState(st))
	}

	if len(in.TaskStatus) > 0 {
		kinds := statesOf(in.TaskStatus)
		if len(f.States) > 0 {
			kinds = slices.DeleteFunc(kinds, func(st state.RunState) bool { return !slices.Contains(f.States, st) })
		}

		f.States = kinds
		some = some && len(kinds) > 0
	}

	if in.Waiting && len(f.States) > 0 {
		some = some && slices.Contains(f.States, state.RunQueued)
	}

	return f, some, nil
}

// bySchedule narrows a filter to the runs of a schedule. found is false when there are none.
func (s *service) bySchedule(
	ctx context.Context,
	id string,
	f *state.RunFilter,
	both func(*string, string),
) (found bool, err error) {
	routing, err := s.Store.Routing(ctx)
	if err != nil {
		return false, err
	}

	for _, factory := range routing.Factories {
		for _, e := range scheduled(factory) {
			if e.id() != id {
				continue
			}

			both(&f.AutomationUID, e.automation.UID)
			if e.name != "" {
				f.Metadata[metaSchedule] = e.name
			}

			found = len(f.Sources) == 0 || slices.Contains(f.Sources, sourceSchedule)
			f.Sources = []string{sourceSchedule}
			return found, nil
		}
	}

	return false, nil
}

// statesOf returns the states of the given kinds.
func statesOf(kinds []string) []state.RunState {
	all := map[string][]state.RunState{
		"running":   {state.RunQueued, state.RunClaimed, state.RunInProgress},
		"failed":    {state.RunFailed, state.RunError},
		"blocked":   {state.RunBlocked},
		"cancelled": {state.RunCancelled},
		"complete":  {state.RunSucceeded},
	}

	set := map[state.RunState]bool{}
	for _, kind := range kinds {
		for _, st := range all[kind] {
			set[st] = true
		}
	}

	return slices.Sorted(maps.Keys(set))
}
