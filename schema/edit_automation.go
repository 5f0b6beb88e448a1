package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// AutomationForm is what a form for an automation's file has. The file may say more.
type AutomationForm struct {
	Enabled  bool
	Agent    string // empty: the foreman, or none
	Model    string
	Runner   string
	Triggers []TriggerForm
	Prompt   string
}

// TriggerForm is what a form has for a trigger.
type TriggerForm struct {
	Provider, Event string   // which no edit changes
	WebhookIDs      []string // of a webhook trigger
	// Filter is the text of the payload filter of a webhook trigger, or of the filter of a provider's trigger, as
	// the file has it, with its comments.
	Filter string
	Cron   string // of a schedule
}

// errUneditable reports a file that EditAutomationFile cannot change without changing more than it should.
var errUneditable = errors.New("this cannot be put into the file without changing the rest of it: edit the file itself")

// ReadAutomationFile returns what a form for the file of an automation shows.
func ReadAutomationFile(src []byte) (AutomationForm, error) {
	d := readFront(src)
	if d.root == nil {
		return AutomationForm{}, errUneditable
	}

	f := AutomationForm{
		Enabled: d.data["enabled"] != false,
		Agent:   textOf(d.data["agent"]),
		Model:   textOf(d.data["model"]),
		Runner:  textOf(d.data["runner"]),
		Prompt:  lineFeeds(string(d.body)),
	}
	for _, n := range d.triggers() {
		t := TriggerForm{Provider: valueOf(n, "provider"), Event: valueOf(n, "event")}
		if schedule := child(n, "schedule"); schedule != nil {
			t.Cron = valueOf(schedule, "cron")
		}

		filter := child(n, "filter")
		if t.Provider == providerWebhook && filter != nil {
			if ids := child(filter, "webhook_ids"); ids != nil {
				for _, id := range ids.Content {
					t.WebhookIDs = append(t.WebhookIDs, id.Value)
				}
			}
			t.Filter = d.textUnder(filter, "payload")
		} else if filter != nil {
			t.Filter = d.textUnder(n, "filter")
		}

		f.Triggers = append(f.Triggers, t)
	}

	return f, nil
}

// EditAutomationFile returns the text of an automation's file, src, changed so that ReadAutomationFile returns
// want. Every other key, comment and byte stays as it is. Where that cannot be, it returns an error. What want says
// need not be valid: load the tree to know.
func EditAutomationFile(src []byte, want AutomationForm) ([]byte, error) {
	want.Prompt = lineFeeds(string(trimBlankLines([]byte(want.Prompt))))
	now, err := ReadAutomationFile(src)
	if err != nil || len(now.Triggers) != len(want.Triggers) {
		return nil, errUneditable
	}

	d := readFront(src)
	if d.root.Style&yaml.FlowStyle != 0 {
		return nil, errUneditable
	}

	e := edit{document: d, lineEnd: "\n"}
	if bytes.Contains(src, []byte("\r\n")) {
		e.lineEnd = "\r\n"
	}
	e.scalars(now, want)
	for i, n := range d.triggers() {
		e.trigger(n, now.Triggers[i], want.Triggers[i])
	}
	if now.Prompt != want.Prompt {
		e.prompt(want.Prompt)
	}
	if e.failed {
		return nil, errUneditable
	}

	out := ApplyFixes(src, e.fixes)
	if !e.made(out, want) {
		return nil, errUneditable
	}
	return out, nil
}

// edit collects changes of a file with front matter.
type edit struct {
	*document
	lineEnd string
	fixes   []Fix
	failed  bool
}

func (e *edit) fix(start, end int, text string) {
	text = strings.ReplaceAll(text, "\n", e.lineEnd)
	e.fixes = append(e.fixes, Fix{Start: start, End: end, Text: text})
}

// scalars changes the keys at the root.
func (e *edit) scalars(now, want AutomationForm) {
	if now.Enabled != want.Enabled {
		text := "false"
		if want.Enabled {
			text = "" // by default
		}
		if want.Enabled && child(e.root, "enabled") != nil {
			text = "true"
		}
		e.set(e.root, "enabled", text)
	}

	for _, key := range []struct{ name, now, want string }{
		{"agent", now.Agent, want.Agent}, {"model", now.Model, want.Model}, {"runner", now.Runner, want.Runner},
	} {
		if key.now != key.want {
			e.set(e.root, key.name, quotedScalar(key.want))
		}
	}
}

// trigger changes an element of triggers.
func (e *edit) trigger(n *yaml.Node, now, want TriggerForm) {
	if now.Cron != want.Cron {
		schedule := child(n, "schedule")
		if schedule == nil {
			e.failed = true
			return
		}
		e.set(schedule, "cron", quotedScalar(want.Cron))
	}

	switch filter := child(n, "filter"); {
	case want.Provider != providerWebhook:
		if now.Filter != want.Filter {
			e.set(n, "filter", want.Filter)
		}
	case filter == nil || filter.Kind != yaml.MappingNode:
		e.failed = e.failed || !reflect.DeepEqual(now, want)
	case filter.Style&yaml.FlowStyle != 0:
		if now.Filter != want.Filter || !slices.Equal(now.WebhookIDs, want.WebhookIDs) {
			e.set(n, "filter", e.webhookFilter(filter, want))
		}
	default:
		if now.Filter != want.Filter {
			e.set(filter, "payload", want.Filter)
		}
		if !slices.Equal(now.WebhookIDs, want.WebhookIDs) {
			e.webhookIDs(filter, want.WebhookIDs)
		}
	}
}

// webhookFilter writes the filter of a webhook trigger in one line.
func (e *edit) webhookFilter(now *yaml.Node, want TriggerForm) string {
	members := map[string]json.RawMessage{}
	for i := 0; i+1 < len(now.Content); i += 2 {
		members[now.Content[i].Value] = nodeJSON(now.Content[i+1])
	}
	delete(members, "payload")
	if strings.TrimSpace(want.Filter) != "" {
		payload, problems := FilterText("filter", []byte(want.Filter))
		if e.failed = e.failed || len(problems) > 0; e.failed {
			return ""
		}
		members["payload"] = payload
	}

	var err error
	members["webhook_ids"], err = json.Marshal(want.WebhookIDs)
	text, err2 := json.Marshal(members)
	if err == nil && err2 == nil {
		text, err = exactJSON(text)
	}
	e.failed = e.failed || err != nil || err2 != nil
	return string(text)
}

// webhookIDs changes the webhooks of a trigger: the lines of those that stay are left alone.
func (e *edit) webhookIDs(filter *yaml.Node, want []string) {
	list := child(filter, "webhook_ids")
	if list == nil || list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0 {
		e.set(filter, "webhook_ids", "["+strings.Join(want, ", ")+"]")
		return
	}

	var have []string
	end := 0
	for _, id := range list.Content {
		start, stop := e.wholeLines(e.extent(id))
		end = stop
		have = append(have, id.Value)
		if !slices.Contains(want, id.Value) {
			e.fix(start, stop, "")
		}
	}

	indent := strings.Repeat(" ", list.Column-1)
	for _, uid := range want {
		if !slices.Contains(have, uid) {
			e.fix(end, end, indent+"- "+uid+"\n")
		}
	}
}

// set changes the value of a key of a mapping to a text, adds it, or deletes it if the text is empty.
func (e *edit) set(in *yaml.Node, key, text string) {
	text = strings.Trim(lineFeeds(text), "\n")
	blank := strings.TrimSpace(text) == ""
	k, v := find(in, key)

	switch flow := in.Style&yaml.FlowStyle != 0; {
	case k == nil && blank:
		return
	case flow && (k == nil || blank || strings.Contains(text, "\n")) || len(in.Content) == 0:
		e.failed = true
		return
	case k == nil:
		e.insert(in, key, text)
		return
	}

	keyStart, keyEnd := e.extent(k)
	_, end := e.extent(v)
	end = max(end, keyEnd)
	if blank {
		start, stop := e.wholeLines(keyStart, end)
		e.failed = e.failed || len(bytes.TrimSpace(e.src[start:keyStart])) > 0 // behind the dash of its list
		e.fix(start, stop, "")
		return
	}

	colon := bytes.IndexByte(e.src[keyEnd:], ':') + 1
	e.failed = e.failed || colon == 0
	start := keyEnd + colon
	text = under(text, k.Column+1)
	if v.Line > k.Line { // a block: what stands behind the key stays
		block := start + lineLen(e.src[start:])
		end += lineLen(e.src[end:])
		if !strings.HasPrefix(text, "\n") {
			e.fix(start, start, text)
			text = ""
		}
		start = block
	}
	e.fix(start, end, text)
}

// insert adds a key at the end of a mapping.
func (e *edit) insert(in *yaml.Node, key, text string) {
	at := e.at + len(e.text)
	if in != e.root {
		_, end := e.extent(in)
		_, at = e.wholeLines(end, end)
	}

	column := in.Content[0].Column
	e.fix(at, at, strings.Repeat(" ", column-1)+key+":"+under(text, column+1)+"\n")
}

// under indents a value that follows a key and its colon: on the same line, or from the next on.
func under(text string, column int) string {
	lines := strings.Split(text, "\n")
	flow := strings.ContainsAny(text[:1], "[{\"'|>")
	if len(lines) == 1 && !strings.Contains(text, ": ") && !strings.HasSuffix(text, ":") {
		flow = true
	}

	for i, line := range lines {
		if line != "" && (i > 0 || !flow) {
			lines[i] = strings.Repeat(" ", column) + line
		}
	}
	if flow {
		return " " + strings.Join(lines, "\n")
	}
	return "\n" + strings.Join(lines, "\n")
}

// prompt replaces what follows the front matter.
func (e *edit) prompt(text string) {
	_, next := lineAt(e.src, e.close)
	start := next
	if len(e.body) > 0 {
		start += bytes.Index(e.src[next:], e.body)
	} else {
		text = "\n" + text + "\n"
	}
	e.fix(start, start+len(e.body), text)
}

// made reports whether out has the fields of want, and all else as it was before the edit.
func (e *edit) made(out []byte, want AutomationForm) bool {
	d := readFront(out)
	if d.root == nil || len(d.problems) > len(e.problems) {
		return false
	}

	got, err := ReadAutomationFile(out)
	if err != nil || len(got.Triggers) != len(want.Triggers) {
		return false
	}
	for i, t := range want.Triggers {
		same := func(a, b []string) bool {
			return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
		}
		if !same(got.Triggers[i].WebhookIDs, t.WebhookIDs) || !sameFilter(got.Triggers[i].Filter, t.Filter) {
			return false
		}
		got.Triggers[i].WebhookIDs, got.Triggers[i].Filter = t.WebhookIDs, t.Filter
	}

	return reflect.DeepEqual(got, want) && reflect.DeepEqual(e.rest(), (&edit{document: d}).rest())
}

func sameFilter(a, b string) bool {
	if strings.TrimSpace(a) == "" || strings.TrimSpace(b) == "" {
		return strings.TrimSpace(a) == strings.TrimSpace(b)
	}

	one, _ := FilterText("filter", []byte(a))
	other, _ := FilterText("filter", []byte(b))
	return one != nil && other != nil && reflect.DeepEqual(readJSON(one), readJSON(other))
}

func readJSON(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// rest returns what no form changes.
func (e *edit) rest() map[string]any {
	all := maps.Clone(e.data)
	for _, key := range []string{"enabled", "agent", "model", "runner"} {
		delete(all, key)
	}

	var triggers []any
	list, _ := all["triggers"].([]any)
	for _, one := range list {
		trigger := copyKeys(one)
		if filter := copyKeys(trigger["filter"]); trigger["provider"] == providerWebhook {
			delete(filter, "webhook_ids")
			delete(filter, "payload")
			trigger["filter"] = filter
		} else {
			delete(trigger, "filter")
		}

		schedule := copyKeys(trigger["schedule"])
		delete(schedule, "cron")
		trigger["schedule"] = schedule
		triggers = append(triggers, trigger)
	}

	all["triggers"] = triggers
	return all
}

func copyKeys(v any) map[string]any {
	keys, _ := v.(map[string]any)
	all := map[string]any{}
	maps.Copy(all, keys)
	return all
}

func readFront(src []byte) *document {
	d := &document{src: src}
	if d.splitFrontMatter() {
		d.parse()
	}
	return d
}

// triggers returns the triggers of an automation.
func (d *document) triggers() []*yaml.Node {
	list := child(d.root, "triggers")
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(list.Content), func(n *yaml.Node) bool { return n.Kind != yaml.MappingNode })
}

// textUnder returns the text of a key's value without its indentation.
func (d *document) textUnder(in *yaml.Node, key string) string {
	k, v := find(in, key)
	if k == nil {
		return ""
	}

	start, end := d.extent(v)
	if v.Line > k.Line { // with the comments before the value, and behind it
		_, keyEnd := d.extent(k)
		_, start = d.wholeLines(keyEnd, keyEnd)
		end += lineLen(d.src[end:])
	}

	lines := strings.Split(lineFeeds(string(d.src[start:end])), "\n")
	for i, line := range lines {
		indent := min(v.Column-1, len(line)-len(strings.TrimLeft(line, " ")))
		lines[i] = line[indent:]
	}
	return strings.Join(lines, "\n")
}

func valueOf(n *yaml.Node, key string) string {
	if v := child(n, key); v != nil {
		return v.Value
	}
	return ""
}

func textOf(v any) string {
	text, _ := v.(string)
	return text
}

func lineFeeds(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

func quotedScalar(text string) string {
	if text == "" {
		return ""
	}
	quoted, _ := scalarText(text)
	return quoted
}
