package dashboard

import (
	"encoding/json"
	"html/template"
	"strconv"
	"strings"
	"time"

	"millwright/state"
)

// Bounds of the conversation on one page.
const (
	runEntries  = 300     // at a time
	maxRunBytes = 1 << 20 // of text
	maxBlocks   = 100     // of a message
)

// turn is what one side of a conversation said until the other spoke.
type turn struct {
	Role      state.MessageRole
	Execution int
	GivenUp   bool // another attempt began after it
	Waiting   bool // a follow-up that the next execution takes
	At        time.Time
	Parts     []*part
}

// part is a piece of a turn, ready to be shown.
type part struct {
	state.Block
	Key     string // tells it apart from the others of the run
	Skill   *skill // a skill that is loaded
	Text    string
	Rich    template.HTML // the text, when it is Markdown
	Log     bool          // the text is lines of output
	Command string        // what an action does, in a line
	Detail  string        // input, output or data, pretty-printed
	Result  string        // output of an action, pretty-printed
	Ended   bool          // there is a result
	Failed  bool
	texts   int // how many texts became this one
}

// skill is a skill of an agent (docs/contract.md, section 4).
type skill struct {
	Name      string `json:"name"`
	Path      string `json:"skill_path"`
	BundledID string `json:"bundled_skill_id"`
}

// conversation makes turns of entries.
type conversation struct {
	*dashboard
	prompts []state.Message // one for each execution
	Turns   []turn
	actions map[string]*part // by ID, those that have no result yet
	begun   int              // the latest execution that was seen
	broken  bool             // the next message begins a turn
	shown   int              // bytes of text
}

// usageEvent is the name of the events with the tokens that an agent used since the one before.
const usageEvent = "usage"

// add takes the next entry.
func (c *conversation) add(e state.Entry) {
	if e.Message == nil {
		c.change(e)
		return
	}

	last := len(c.Turns) - 1
	if c.broken || last < 0 || c.Turns[last].Role != e.Message.Role {
		c.Turns = append(c.Turns, turn{Role: e.Message.Role, Execution: e.Execution, At: e.At})
		c.actions, c.broken = map[string]*part{}, false
		last++
	}

	for i, b := range e.Message.Content[:min(len(e.Message.Content), maxBlocks)] {
		if b.Type != "event" || b.Name != usageEvent { // the waterfall has it
			c.block(&c.Turns[last], partKey(e.Seq, i), b)
		}
	}
}

// partKey tells a block apart from the others of a run.
func partKey(seq int64, i int) string { return strconv.FormatInt(seq, 10) + "." + strconv.Itoa(i) }

// change takes a change of the run's state: it ends a turn, gives up on what was said, or begins an execution
// with the messages that asked for it.
func (c *conversation) change(e state.Entry) {
	c.broken = true
	if e.Change.State != state.RunQueued {
		return
	}

	for i := range c.Turns {
		t := &c.Turns[i]
		t.GivenUp = t.GivenUp || t.Role == state.RoleAssistant && t.Execution == e.Change.Execution
	}

	n := e.Change.Execution
	if n > 1 && n > c.begun && n <= len(c.prompts) {
		c.ask(c.prompts[n-1], n, false)
	}
	c.begun = max(c.begun, n)
}

// ask adds a turn of the user.
func (c *conversation) ask(m state.Message, execution int, waiting bool) {
	t := turn{Role: state.RoleUser, Execution: execution, Waiting: waiting, At: m.At}
	for i, b := range m.Content {
		key := "user" + strconv.Itoa(execution) + "." + strconv.Itoa(i)
		t.Parts = append(t.Parts, &part{Block: b, Key: key, Text: prose(b.Text)})
		c.shown += len(b.Text)
	}

	c.Turns = append(c.Turns, t)
	c.broken = true
}

// block adds a block to a turn: to the part before it, if both are lines of output, or if it is the result of
// an action there.
func (c *conversation) block(t *turn, key string, b state.Block) {
	p := newPart(key, b)
	c.shown += len(p.Text) + len(p.Detail)

	if done := c.actions[b.ActionID]; b.Type == "action_result" && done != nil {
		done.Result, done.Ended, done.Failed = p.Detail, true, p.Failed
		delete(c.actions, b.ActionID)
		return
	}

	if b.Type == "action" && b.ID != "" && p.Skill == nil {
		c.actions[b.ID] = p
	}

	if b.Type == "text" {
		rich, structured := c.markdown(p.Text)
		p.Rich, p.texts = rich, 1

		if last := len(t.Parts) - 1; !structured && last >= 0 && t.Parts[last].plain() {
			t.Parts[last].append(p.Text)
			return
		}
		p.Log = !structured && isOutput(p.Text)
	}

	t.Parts = append(t.Parts, p)
}

// plain reports whether the part is text without Markdown.
func (p *part) plain() bool { return p.Type == "text" && p.Rich == "" }

// append adds a text to one of lines.
func (p *part) append(text string) {
	p.Text += "\n" + text
	p.texts++
	p.Log = true
}

// isOutput reports whether a text without Markdown is lines of output: people and models part paragraphs by
// blank lines.
func isOutput(text string) bool {
	text = strings.TrimSpace(text)
	return strings.Contains(text, "\n") && !strings.Contains(text, "\n\n")
}

func newPart(key string, b state.Block) *part {
	p := &part{
		Block:   b,
		Key:     key,
		Text:    prose(b.Text),
		Command: commandOf(b.Input),
		Failed:  failedState(b.State),
	}
	if p.Command == b.Name {
		p.Command = ""
	}

	for _, raw := range []json.RawMessage{b.Input, b.Output, b.Data} {
		if len(raw) > 0 && string(raw) != "null" {
			p.Detail = readable(raw)
		}
	}

	if b.Type == "action" && b.Name == "read_skill" {
		p.Skill = &skill{}
		if json.Unmarshal(b.Input, p.Skill) != nil {
			p.Skill = &skill{}
		}
	}

	return p
}

// failedState reports whether an action with a result of this state failed.
func failedState(state string) bool {
	return state == "failed" || state == "error" || state == "denied"
}

// readable returns a JSON value for people: a text as it is, all else with a line for each member.
func readable(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return prose(text)
	}
	return prose(pretty(raw))
}

// commandOf returns what an action does in a line: its command, file, pattern or address, by the names that
// agents have for these.
func commandOf(input json.RawMessage) string {
	if len(input) > maxText {
		return ""
	}

	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return ""
	}

	names := [...]string{
		"command", "cmd", "file_path", "filePath", "absolute_path", "path", "pattern", "query", "url",
		"description",
	}
	for _, name := range names {
		var one string
		var words []string
		switch raw := members[name]; {
		case raw == nil:
		case json.Unmarshal(raw, &one) == nil && one != "":
			return line(one)
		case json.Unmarshal(raw, &words) == nil && len(words) > 0:
			return line(strings.Join(words, " "))
		}
	}

	return ""
}
