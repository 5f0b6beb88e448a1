package schema

// Rule is one thing that Load checks. Its code never changes once it has
// shipped.
type Rule struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"` // the greatest its problems have
	Title    string   `json:"title"`    // what is wrong, in a few words
	// NeedsState is set for rules that run only with what is Known.
	NeedsState bool   `json:"needs_state"`
	Doc        string `json:"doc"` // why it is a rule, and how to mend it
}

// RuleID names a rule to the code that checks it. The zero value names none.
type RuleID uint8
