package admin

import (
	"net/url"
	"reflect"
	"strings"
	"time"

	"millwright/schema"
	"millwright/state"
)

// Problem is schema.Problem as the document describes it.
type Problem struct {
	Path      string          `json:"path" doc:"File, relative to the root of the tree"`
	Line      int             `json:"line" doc:"Line, from 1"`
	Column    int             `json:"column" doc:"Column, from 1, in code points"`
	EndLine   int             `json:"end_line" doc:"Line where the place ends"`
	EndColumn int             `json:"end_column" doc:"Column after the last character"`
	Severity  schema.Severity `json:"severity" enum:"error,warning,info" doc:"Only an error keeps a definition from being applied"`
	Code      string          `json:"code" doc:"Name of the rule" example:"secret-missing"`
	Message   string          `json:"message" doc:"What is wrong"`
	Hint      string          `json:"hint,omitempty" doc:"What to do"`

	Fix *schema.Fix `json:"-"`
}

// Condition is state.Condition as the document describes it.
type Condition struct {
	Type    string    `json:"type" enum:"Ready,Reconciling,Stalled" doc:"What is said"`
	Status  string    `json:"status" enum:"True,False,Unknown" doc:"Whether it holds"`
	Reason  string    `json:"reason" doc:"Why, in one word"`
	Message string    `json:"message" doc:"Why, in a sentence"`
	Since   time.Time `json:"last_transition_time" doc:"Since when"`
}

// Explanation is schema.Explanation as the document describes it.
type Explanation struct {
	Matched bool                     `json:"matched" doc:"Whether the filter matches"`
	Reason  string                   `json:"reason,omitempty" doc:"Why, where the filter as a whole decides: there is none, it is empty, or the body is no object"`
	Leaves  []schema.LeafExplanation `json:"leaves" nullable:"false" doc:"Every operator of every field, in the order of the filter"`
}

// LeafExplanation is schema.LeafExplanation as the document describes it.
type LeafExplanation struct {
	Path     []string `json:"path" nullable:"false" doc:"The field's keys in the filter"`
	Where    string   `json:"where" doc:"The place looked at in the body" example:"commits[2].author"`
	Operator string   `json:"operator" enum:"in,not_in,exists" doc:"The operator"`
	Expected string   `json:"expected" doc:"The operator's value as JSON, at most 200 bytes"`
	Present  bool     `json:"present" doc:"Whether the field is there"`
	Found    string   `json:"found,omitempty" doc:"The value found as JSON, at most 200 bytes"`
	Passed   bool     `json:"passed" doc:"Whether the operator holds"`
}

// describe makes the document speak of values of other packages in the words of the types above. The
// conversions hold only while both sides have the same fields.
func (s *service) describe() {
	_, _, _, _ = Problem(schema.Problem{}), Condition(state.Condition{}), Explanation(schema.Explanation{}), LeafExplanation(schema.LeafExplanation{})
	types := s.api.Huma().OpenAPI().Components.Schemas
	types.RegisterTypeAlias(reflect.TypeFor[schema.Problem](), reflect.TypeFor[Problem]())
	types.RegisterTypeAlias(reflect.TypeFor[state.Condition](), reflect.TypeFor[Condition]())
	types.RegisterTypeAlias(reflect.TypeFor[schema.Explanation](), reflect.TypeFor[Explanation]())
	types.RegisterTypeAlias(reflect.TypeFor[schema.LeafExplanation](), reflect.TypeFor[LeafExplanation]())
}

// withoutCredentials returns the address of a repository without what may be a secret in it.
func withoutCredentials(address string) string {
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
