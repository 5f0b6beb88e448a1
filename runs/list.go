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
	Limit             int       `query:"limit" minimum:"1" maximum:"500" default:"20" doc:"Maximum number of items"`
	Cursor            string    `query:"cursor" maxLength:"4096" doc:"next_cursor of the previous page; absent for the first page"`
	SortBy            string    `query:"sort_by" enum:"updated_at,created_at,title,agent" default:"updated_at" doc:"Sort key"`
	SortOrder         string    `query:"sort_order" enum:"desc,asc" default:"desc" doc:"Sort direction"`
	State             []string  `query:"state,explode" enum:"QUEUED,PENDING,CLAIMED,INPROGRESS,SUCCEEDED,FAILED,ERROR,BLOCKED,CANCELLED" maxItems:"50" doc:"Only runs in one of these states"`
	TaskStatus        []string  `query:"task_status,explode" enum:"running,failed,blocked,cancelled,complete" maxItems:"50" doc:"Only runs whose state is one of these kinds"`
	Source            []string  `query:"source,explode" maxItems:"50" doc:"Only runs of one of these sources: RunSourceType"`
	Name              string    `query:"name" maxLength:"200" doc:"Only runs with this config name"`
	ModelID           string    `query:"model_id" maxLength:"200" doc:"Only runs of this language model"`
	Creator           string    `query:"creator" maxLength:"200" doc:"Only runs created by the holder of this UID"`
	Executor          string    `query:"executor" maxLength:"200" doc:"Only runs that the worker of this UID executes or executed"`
	EnvironmentID     string    `query:"environment_id" maxLength:"200" doc:"Only runs of this environment"`
	Skill             string    `query:"skill" maxLength:"500" doc:"Only runs of this skill"`
	SkillSpec         string    `query:"skill_spec" maxLength:"500" doc:"The same as skill"`
	CreatedAfter      time.Time `query:"created_after" doc:"Only runs created after this time (RFC 3339)"`
	CreatedBefore     time.Time `query:"created_before" doc:"Only runs created before this time (RFC 3339)"`
	UpdatedAfter      time.Time `query:"updated_after" doc:"Only runs changed after this time (RFC 3339)"`
	FactoryUID        []string  `query:"factory_uid,explode" maxItems:"100" doc:"Only runs of one of these factories"`
	FactoryOnly       bool      `query:"factory_only" doc:"Only runs of factories"`
	AutomationID      string    `query:"automation_id" maxLength:"200" doc:"Only runs of this automation"`
	WebhookID         string    `query:"webhook_id" maxLength:"200" doc:"Only runs that a delivery to this webhook started"`
	DeliveryID        string    `query:"delivery_id" maxLength:"200" doc:"Only runs that this delivery started"`
	AncestorRunID     string    `query:"ancestor_run_id" maxLength:"200" doc:"Only descendants of this run"`
	Query             string    `query:"q" maxLength:"200" doc:"Only runs with this text in their title or prompt, in any case, or with this ID"`
	ExecutionLocation string    `query:"execution_location" enum:"LOCAL,REMOTE" doc:"LOCAL matches no run, REMOTE every run"`
	ScheduleID        string    `query:"schedule_id" maxLength:"200" doc:"Matches no run"`
	ArtifactType      string    `query:"artifact_type" maxLength:"200" doc:"Matches no run"`

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
		api.Operation(http.MethodGet, "/agent/runs", "listRuns", state.RoleViewer, "List runs"),
		"Conditions on different fields must all hold; the values of a repeated parameter are "+
			"alternatives. metadata[key]=value selects runs by their metadata. "+
			"Runs that are added meanwhile cause no run to appear twice or be skipped. The server "+
			"examines a bounded number of runs for a page. A page may have fewer runs than limit, or "+
			"none; the list continues while has_next_page is true.",
	)
	list.Parameters = append(list.Parameters, &huma.Param{
		Name:        "metadata",
		In:          "query",
		Style:       "deepObject",
		Explode:     ptr(true),
		Description: "Only runs with these values in their metadata: metadata[key]=value",
		Schema:      &huma.Schema{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeString}},
	})
	api.Handle(s.api, list, s.list)
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

func ptr[T any](v T) *T { return &v }

func (s *service) get(ctx context.Context, in *RunPath) (RunItem, error) {
	r, err := s.run(ctx, *in)
	if err != nil {
		return RunItem{}, err
	}

	files, err := s.Store.Attachments(ctx, r)
	if err != nil {
		return RunItem{}, err
	}

	item := s.item(r, files)
	item.SubmittedPrompt, err = s.Store.SubmittedPrompt(ctx, r)
	return item, err
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

	filter, some, err := in.filter()
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

	for _, r := range found {
		page.Runs = append(page.Runs, s.item(r, files[r.ID]))
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
func (in *listInput) filter() (f state.RunFilter, some bool, err error) {
	f = state.RunFilter{
		Sources:       in.Source,
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
		Metadata:      in.metadata,
	}
	some = in.ExecutionLocation != "LOCAL" && in.ScheduleID == "" && in.ArtifactType == ""
	for to, from := range map[**time.Time]time.Time{&f.CreatedAfter: in.CreatedAfter, &f.CreatedBefore: in.CreatedBefore, &f.UpdatedAfter: in.UpdatedAfter} {
		if !from.IsZero() {
			*to = &from
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

	for key, to := range map[string]*string{metaAutomation: &f.AutomationUID, metaWebhook: &f.WebhookUID, metaDelivery: &f.DeliveryUID} {
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

	return f, some, nil
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
