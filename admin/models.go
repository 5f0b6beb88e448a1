package admin

import (
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
)

// Problem is schema.Problem with descriptions for the OpenAPI document.
type Problem struct {
	Path      string          `json:"path" doc:"File, relative to the root of the tree"`
	Line      int             `json:"line" doc:"Line, from 1"`
	Column    int             `json:"column" doc:"Column, from 1, in code points"`
	EndLine   int             `json:"end_line" doc:"Line where the place ends"`
	EndColumn int             `json:"end_column" doc:"Column after the last character"`
	Severity  schema.Severity `json:"severity" enum:"error,warning,info" doc:"Only an error keeps a definition from being applied"`
	Code      string          `json:"code" doc:"Name of the rule" example:"secret-missing"`
	Message   string          `json:"message" doc:"The problem"`
	Hint      string          `json:"hint,omitempty" doc:"The next step"`
	Excerpt   string          `json:"excerpt,omitempty" doc:"The source line and a caret line below it, as validate prints them, if known"`

	Fix *schema.Fix `json:"-"`
}

// Condition is state.Condition with descriptions for the OpenAPI document.
type Condition struct {
	Type    string    `json:"type" enum:"Ready,Reconciling,Stalled" doc:"Kind of condition. Ready: the newest revision is applied, and each automation can fire. Reconciling: it is not applied yet, and the server keeps trying. Stalled: it is not applied until somebody acts"`
	Status  string    `json:"status" enum:"True,False,Unknown" doc:"Whether the condition holds"`
	Reason  string    `json:"reason" doc:"The reason, as one word"`
	Message string    `json:"message" doc:"The reason, as a sentence"`
	Since   time.Time `json:"last_transition_time" doc:"Time of the last change"`
}

// Explanation is schema.Explanation with descriptions for the OpenAPI document.
type Explanation struct {
	Matched   bool                     `json:"matched" doc:"Whether the filter matches"`
	AsksForge bool                     `json:"asks_forge,omitempty" doc:"Whether the server has to ask the forge before it decides. The delivery's flow has the decision"`
	Reason    string                   `json:"reason,omitempty" doc:"The reason, if the filter as a whole decides: it is absent or empty, or the body is not an object"`
	Leaves    []schema.LeafExplanation `json:"leaves" nullable:"false" doc:"Every operator of every field, in the order of the filter"`
}

// LeafExplanation is schema.LeafExplanation with descriptions for the OpenAPI document.
type LeafExplanation struct {
	Path     []string `json:"path" nullable:"false" doc:"The field's keys in the filter"`
	Where    string   `json:"where" doc:"Path in the body" example:"commits[2].author"`
	Operator string   `json:"operator" enum:"in,not_in,exists" doc:"The operator"`
	Expected string   `json:"expected" doc:"The operand as JSON, at most 200 bytes"`
	Present  bool     `json:"present" doc:"Whether the body has the field"`
	Found    string   `json:"found,omitempty" doc:"The value in the body as JSON, at most 200 bytes"`
	Passed   bool     `json:"passed" doc:"Whether the operator holds"`
}

// Plan is plan.Plan with descriptions for the OpenAPI document.
type Plan struct {
	WouldApply   bool              `json:"would_apply" doc:"Whether the server would accept the tree"`
	BaseRevision string            `json:"base_revision" doc:"The applied revision; empty before the first apply"`
	HeadRevision string            `json:"head_revision" doc:"The planned revision; empty for files in the request"`
	Changes      []plan.Change     `json:"changes" nullable:"false" doc:"Change of every resource, by kind and name; none if the tree has errors"`
	Secrets      []plan.Secret     `json:"secrets" nullable:"false" doc:"Secrets whose newer value would come into force, by name"`
	Problems     []schema.Problem  `json:"problems" nullable:"false" doc:"Problems of the tree, by file and place"`
	WebhookUIDs  map[string]string `json:"webhook_uids,omitempty" doc:"The present or future UID of each webhook in the tree, by name"`
	Gone         map[string]string `json:"deleted_webhook_uids,omitempty" doc:"The name of each deleted webhook that an automation of the tree selects, by UID"`
	NotChecked   []string          `json:"state_dependent_checks_not_run,omitempty" nullable:"false" doc:"Rules that were not checked"`
	Backtests    []plan.Backtest   `json:"backtest,omitempty" nullable:"false" doc:"What changed triggers would have done with the newest stored deliveries: at most 5000 of 7 days, in 2 seconds"`

	Backtester *plan.Backtester `json:"-"`
	Err        error            `json:"-"`
}

// PlanChange is plan.Change with descriptions for the OpenAPI document.
type PlanChange struct {
	Kind   string       `json:"kind" enum:"factory,webhook,automation,agent,runner,environment,skill" doc:"Kind of the resource"`
	Name   string       `json:"name" doc:"Name; agent/skill for the skill of an agent"`
	Action string       `json:"action" enum:"create,restore,update,delete,unchanged" doc:"Kind of change; restore: a webhook whose name returns within 30 days, with its UID and URL"`
	Fields []plan.Field `json:"fields" nullable:"false" doc:"For an update: the changed keys"`
	UID    string       `json:"uid,omitempty" doc:"The UID; for a new webhook, its future UID"`
	File   string       `json:"file" doc:"The file that declares it"`
	Line   int          `json:"line" doc:"Line of the resource's first key in the file, from 1"`
}

// Backtest is plan.Backtest with descriptions for the OpenAPI document.
type Backtest struct {
	Automation string        `json:"automation" doc:"Name of the automation"`
	LookedAt   int           `json:"looked_at" doc:"Number of deliveries that were judged"`
	Since      *time.Time    `json:"since,omitempty" doc:"Arrival of the oldest of them"`
	Complete   bool          `json:"complete" doc:"Whether all deliveries were judged; false when the time ran out"`
	Fired      int           `json:"fired" doc:"Number of them that the present triggers match"`
	Fires      int           `json:"fires" doc:"Number of them that the changed triggers match"`
	NewlyFires int           `json:"newly" doc:"Number of them that only the changed triggers match"`
	NoLonger   int           `json:"no_longer" doc:"Number of them that only the present triggers match"`
	RunsPerDay float64       `json:"runs_per_day" doc:"Deliveries a day that the changed triggers match"`
	Examples   plan.Examples `json:"examples" doc:"Deliveries that only one of both matches"`
	Never      *plan.Never   `json:"never,omitempty" doc:"Why the changed triggers match none of 500 or more deliveries"`
}

// BacktestExamples is plan.Examples with descriptions for the OpenAPI document.
type BacktestExamples struct {
	Newly    []string `json:"newly" nullable:"false" doc:"Deliveries that only the changed triggers match, newest first; at most 1000"`
	NoLonger []string `json:"no_longer" nullable:"false" doc:"Deliveries that only the present triggers match, newest first; at most 1000"`
}

// BacktestNever is plan.Never with descriptions for the OpenAPI document.
type BacktestNever struct {
	Key   string   `json:"key" doc:"The key of the filter that failed most often"`
	Count int      `json:"count" doc:"How often it failed"`
	Seen  []string `json:"seen" nullable:"false" doc:"Values that deliveries have there, as JSON; at most 5"`
}

// PlanField is plan.Field with descriptions for the OpenAPI document.
type PlanField struct {
	Name string `json:"name" doc:"The key"`
	Old  any    `json:"old" doc:"The old value; null for none"`
	New  any    `json:"new" doc:"The new value; null for none"`
}

// PlanSecret is plan.Secret with descriptions for the OpenAPI document.
type PlanSecret struct {
	Name     string   `json:"name" doc:"Name of the secret"`
	Version  int64    `json:"version" doc:"The new version"`
	Webhooks []string `json:"webhooks" nullable:"false" doc:"Names of the webhooks that would use it"`
}

// describe makes the OpenAPI document use the types above for values of other packages. The conversions
// compile only while both sides have the same fields.
func (s *service) describe() {
	types := s.api.Huma().OpenAPI().Components.Schemas
	describe(types, func(v schema.Problem) Problem { return Problem(v) })
	describe(types, func(v schema.Explanation) Explanation { return Explanation(v) })
	describe(types, func(v schema.LeafExplanation) LeafExplanation { return LeafExplanation(v) })
	describe(types, func(v state.Condition) Condition { return Condition(v) })
	describe(types, func(v plan.Plan) Plan { return Plan(v) })
	describe(types, func(v plan.Change) PlanChange { return PlanChange(v) })
	describe(types, func(v plan.Field) PlanField { return PlanField(v) })
	describe(types, func(v plan.Backtest) Backtest { return Backtest(v) })
	describe(types, func(v plan.Examples) BacktestExamples { return BacktestExamples(v) })
	describe(types, func(v plan.Never) BacktestNever { return BacktestNever(v) })
	describe(types, func(v plan.Secret) PlanSecret { return PlanSecret(v) })
}

// describe registers To as the description of From. The conversion is never called; it only has to compile.
func describe[From, To any](types huma.Registry, _ func(From) To) {
	types.RegisterTypeAlias(reflect.TypeFor[From](), reflect.TypeFor[To]())
}

// WithoutCredentials returns the address of a repository without parts that may be secret.
func WithoutCredentials(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil && strings.Contains(address, "://"):
		return ""
	case err != nil || u.User == nil:
		return address
	case u.Scheme == "ssh":
		u.User = url.User(u.User.Username())
	default:
		u.User = nil
	}

	return u.String()
}
