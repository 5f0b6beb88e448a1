package preset

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"millwright/runs/wire"
)

// Out takes what an agent puts out.
type Out interface {
	// Add records a block of the conversation.
	Add(wire.Block)
	// SetSkills records what the agent says it has.
	SetSkills([]Skill)
	// Session records which session the agent works in.
	Session(id string)
	// Usage records what this execution has used so far, in place of what was told before, and what the agent
	// has counted of the whole session.
	Usage(execution, session wire.Usage)
}

// Adapter turns an agent's output into blocks of the conversation. It is made anew for each execution.
type Adapter interface {
	// Line takes one line, which is valid UTF-8. Secrets are redacted in the blocks that it becomes.
	Line(out Out, line string)
	// End is called at the end of the output. A non-empty result is the reason of a failure, whatever the
	// exit status.
	End(out Out) string
}

// Lines is the protocol of docs/contract.md, section 10: a line that is a JSON object with a known type is
// that block, any other text is the assistant's.
type Lines struct{}

// Line adds the block that a line of the output stands for to out.
func (Lines) Line(out Out, line string) {
	if strings.HasPrefix(strings.TrimLeft(line, " \t"), "{") {
		var head struct {
			Type   string `json:"type"`
			Skills []Skill
		}
		if json.Unmarshal([]byte(line), &head) == nil {
			if head.Type == "skills_advertised" {
				out.SetSkills(head.Skills)
				return
			}

			var b wire.Block
			if json.Unmarshal([]byte(line), &b) == nil && b.Valid() {
				out.Add(b)
				return
			}
		}
	}

	out.Add(wire.Text(line))
}

// End tells of no failure: the exit status does.
func (Lines) End(Out) string { return "" }

// Skill is an entry of advertised_skills (docs/contract.md, section 4).
type Skill struct {
	Name      string `json:"name"`
	Path      string `json:"skill_path,omitempty"`
	BundledID string `json:"bundled_skill_id,omitempty"`
}

// Known returns the skills that have a name, bounded.
func Known(skills []Skill) []Skill {
	all := []Skill{}
	for _, s := range skills {
		if s.Name != "" && len(s.Name) <= 200 && len(s.Path) <= 500 && len(s.BundledID) <= 200 && len(all) < 60 {
			all = append(all, s)
		}
	}
	return slices.CompactFunc(all, func(a, b Skill) bool { return a == b })
}

// cutShort is the failure of an agent that ends well though its output lacks the end.
const cutShort = "the agent's output ends before its result"

// maxPieces is how much of a message in pieces is joined, in bytes.
const maxPieces = 32 << 10

// Event is a block that tells of something.
func Event(name string, data any) wire.Block {
	return wire.Block{Type: "event", Name: name, Data: quoted(data)}
}

func asError(err error, target **json.UnmarshalTypeError) bool { return errors.As(err, target) }

// names remembers which action an ID belongs to, for the block of its result. It is bounded.
type names map[string]wire.Block

// maxNames is how many actions are remembered, and maxName how long their IDs and names may be, in bytes.
const (
	maxNames = 10_000
	maxName  = 500
)

func (n names) note(b wire.Block) wire.Block {
	if len(n) < maxNames && len(b.ID) <= maxName && len(b.Name) <= maxName {
		n[b.ID] = wire.Block{Name: b.Name, Category: b.Category}
	}
	return b
}

func (n names) result(id string, isError bool, output json.RawMessage) wire.Block {
	return wire.Block{
		Type:     "action_result",
		ActionID: id,
		Category: cmp.Or(n[id].Category, categoryIntegration),
		Name:     n[id].Name,
		State:    outcomeOf(isError),
		Output:   asObject("output", output),
	}
}

// decode reads a line of a JSON stream into v. Text that is not a JSON object becomes text of the
// assistant. Fields of unexpected types are ignored.
func decode(out Out, line string, v any) bool {
	if strings.TrimSpace(line) == "" {
		return false
	}

	err := errors.New("no object")
	if strings.HasPrefix(line, "{") {
		err = json.Unmarshal([]byte(line), v)
	}

	var kind *json.UnmarshalTypeError
	if err != nil && !asError(err, &kind) {
		out.Add(wire.Text(line))
		return false
	}

	return true
}
