package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"millwright/api"
	"millwright/bounds"
	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/state"
)

// PlanRequest plans a tree.
type PlanRequest struct {
	Files *[]DefinitionFile `json:"files,omitempty" maxItems:"2000" doc:"The whole tree; absent: the head of the factory's source, which needs the role runner"`

	AllowPrune  bool `json:"allow_prune,omitempty" doc:"As if the apply were allowed to delete all webhooks, or more than half of them"`
	AllowRename bool `json:"allow_rename,omitempty" doc:"As if the apply were allowed to replace a webhook by one of the same content under another name"`
}

// ValidateFilesRequest validates a tree.
type ValidateFilesRequest struct {
	Files []DefinitionFile `json:"files" maxItems:"2000" nullable:"false" doc:"The whole tree"`
}

// ValidateFilesResponse has the problems of a tree.
type ValidateFilesResponse struct {
	SchemaVersion             string               `json:"schema_version" doc:"The version of the rules"`
	Valid                     bool                 `json:"valid" doc:"Whether the tree has no errors"`
	Diagnostics               []schema.Problem     `json:"diagnostics" nullable:"false" doc:"Errors and warnings, by file and place"`
	DiagnosticsOmitted        int                  `json:"diagnostics_omitted,omitempty" doc:"Number of omitted diagnostics"`
	Infos                     []schema.Problem     `json:"infos" nullable:"false" doc:"Notes, which do not make a tree invalid, by file and place"`
	StateDependentChecksNoRun []string             `json:"state_dependent_checks_not_run" nullable:"false" doc:"Rules that were not checked because they need a server"`
	DeferredResolutions       []DeferredResolution `json:"deferred_resolutions" nullable:"false" doc:"Always empty: no name in a tree is resolved later"`
	ValidationScope           ValidationScope      `json:"validation_scope" doc:"The checks that ran"`
}

// DeferredResolution is a name in a file that is resolved when the tree is applied.
type DeferredResolution struct {
	Path  string `json:"path" doc:"File"`
	Field string `json:"field" doc:"Key"`
	Kind  string `json:"kind" doc:"Kind of the named resource"`
}

// ValidationScope lists the checks that ran.
type ValidationScope struct {
	Parser           string `json:"parser" enum:"checked,not_run" doc:"Parsing of the files"`
	StateIndependent string `json:"state_independent" enum:"checked,not_run" doc:"Rules that need no server"`
	StateDependent   string `json:"state_dependent" enum:"not_checked" doc:"Rules that need a server"`
}

const (
	validationTime = 2 * time.Second
	// maxDiagnostics bounds the answer of a validation.
	maxDiagnostics = 5000
)

func (s *service) registerPlans() {
	op := api.Explained(
		api.Also(api.Operation(http.MethodPost, "/factory/{uid}/plan", "planFactory", state.RolePlanner,
			"Plan the changes that a tree would make to a factory"),
			http.StatusConflict, http.StatusUnprocessableEntity),
		"Without files, plans the head of the factory's source, which needs a key of role runner. A plan "+
			"reveals whether a team secret of a name exists.",
	)

	api.Handle(s.api, op, s.plan)

	op = api.Explained(api.Also(api.Operation(http.MethodPost, "/factory-files/validate", "validateFactoryFiles", "",
		"Validate a definition tree"), http.StatusTooManyRequests),
		"Never reads the state. Needs no key; without a key the limits are 2 MiB, and 30 requests a "+
			"minute from a sender.")
	limits := s.api.Bounds()
	op = api.WithBounds(
		op,
		api.Bounded{Keyless: bounds.MaxKeyless, Keyed: limits.Plans, Strangers: limits.Validations},
	)
	op.Middlewares = append(op.Middlewares, s.perSender(limits.Validating, true))
	api.Handle(s.api, op, s.validate)
}

func (s *service) plan(ctx context.Context, in *struct {
	FactoryUID
	Body *PlanRequest
},
) (plan.Plan, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return plan.Plan{}, err
	}
	if in.Body == nil || in.Body.Files == nil {
		var allow plan.Allowed
		if in.Body != nil {
			allow = plan.Allowed{Prune: in.Body.AllowPrune, Rename: in.Body.AllowRename}
		}

		return s.planHead(ctx, f, allow)
	}

	leave, err := s.enterPlans(ctx)
	if err != nil {
		return plan.Plan{}, err
	}
	defer leave()

	tree, err := newTree(*in.Body.Files)
	if err != nil {
		return plan.Plan{}, err
	}

	cur, err := s.Store.Current(ctx, f.UID)
	if err != nil {
		return plan.Plan{}, err
	}

	opts := s.planOptions(f.UID, in.Body.AllowPrune, in.Body.AllowRename)

	p, app := plan.Make(cur, tree, opts)
	if p.Err == nil && p.WouldApply {
		p.Backtests = s.backtest(ctx, plan.NewBacktester(cur, app))
	}

	return masked(p), p.Err
}

// enterPlans takes one of the places for plans, until leave is called.
func (s *service) enterPlans(ctx context.Context) (leave func(), err error) {
	leave, ok := s.api.Bounds().Plans.Enter(ctx, api.KeyOf(ctx).UID)
	if !ok {
		return nil, api.Problem("resource_unavailable", "too many trees are being planned: try again soon").
			WithRetryAfter(2)
	}
	return leave, nil
}

// backtest judges the newest stored deliveries by the triggers before and after a change. What cannot be read
// in time is left out.
func (s *service) backtest(ctx context.Context, b *plan.Backtester) []plan.Backtest {
	ctx, cancel := context.WithTimeout(ctx, plan.BacktestTime)
	defer cancel()

	since := time.Now().AddDate(0, 0, -plan.BacktestDays)
	err := s.Store.NewestAccepted(ctx, b.FactoryUID, b.Sources(), since, plan.BacktestDeliveries, b.Add)
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("looking at stored deliveries for a plan", "factory_uid", b.FactoryUID, "error", err)
	}

	return b.Results(time.Now(), err == nil)
}

// masked returns p without the values of env and headers of MCP servers, since a definition may contain
// plain secrets there.
func masked(p plan.Plan) plan.Plan {
	for i := range p.Changes {
		for j := range p.Changes[i].Fields {
			f := &p.Changes[i].Fields[j]
			f.Old, f.New = agentconfig.MaskValue(f.Old), agentconfig.MaskValue(f.New)
		}
	}
	return p
}

func (s *service) planHead(ctx context.Context, f state.Factory, allow plan.Allowed) (plan.Plan, error) {
	if key := api.KeyOf(ctx); !key.Role.Allows(state.RoleRunner) {
		return plan.Plan{}, api.Problem(
			"not_authorized",
			"planning the source's head needs role runner; the key %q has role %s",
			key.Name,
			key.Role,
		)
	}

	switch {
	case f.Detached:
		return plan.Plan{}, detached(f)
	case s.PlanHead == nil:
		return plan.Plan{}, api.Problem("operation_not_supported", "this server reads no sources")
	}

	leave, err := s.enterPlans(ctx)
	if err != nil {
		return plan.Plan{}, err
	}
	defer leave()

	p, err := s.PlanHead(ctx, f.UID, allow)
	if err == nil && p.Backtester != nil {
		p.Backtests = s.backtest(ctx, p.Backtester)
	}

	var known *api.Error
	if err == nil || errors.As(api.FromState(err), &known) {
		return masked(p), err
	}

	s.Log.Warn("planning a source's head", "factory", f.Name, "error", err)
	return p, api.Problem("resource_unavailable", "the source cannot be read just now: %s", err)
}

func (s *service) validate(
	ctx context.Context,
	in *struct{ Body ValidateFilesRequest },
) (ValidateFilesResponse, error) {
	tree, err := newTree(in.Body.Files)
	if err != nil {
		return ValidateFilesResponse{}, err
	}

	ctx, cancel := context.WithTimeout(ctx, validationTime)
	defer cancel()

	if r := schema.LoadContext(ctx, tree, nil); r.Err == nil {
		return newValidation(r), nil
	}

	return ValidateFilesResponse{}, api.Problem(
		"resource_unavailable",
		"validating this tree takes longer than %s: run millwright validate instead",
		validationTime,
	)
}

func newValidation(r *schema.Result) ValidateFilesResponse {
	found, infos := []schema.Problem{}, []schema.Problem{}
	for _, p := range r.Problems {
		if p.Severity == schema.SeverityInfo {
			infos = append(infos, p)
		} else {
			found = append(found, p)
		}
	}

	omitted := max(0, len(found)-maxDiagnostics)
	return ValidateFilesResponse{
		SchemaVersion:             schema.SchemaVersion,
		Valid:                     r.Valid(),
		Diagnostics:               found[:len(found)-omitted],
		DiagnosticsOmitted:        omitted,
		Infos:                     infos[:min(len(infos), maxDiagnostics)],
		StateDependentChecksNoRun: append([]string{}, r.NotChecked...),
		DeferredResolutions:       []DeferredResolution{},
		ValidationScope:           ValidationScope{"checked", "checked", "not_checked"},
	}
}
