// Package plan compares a definition tree with the state. It returns the changes of an apply, or the
// reasons of a refusal. It is pure: it reads a tree and a view of the state, and changes nothing.
package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"millwright/schema"
	"millwright/state"
)

// Actions of a Change.
const (
	ActionCreate    = "create"
	ActionRestore   = "restore" // a webhook whose name returns: same UID, URL and history
	ActionUpdate    = "update"
	ActionDelete    = "delete"
	ActionUnchanged = "unchanged"
)

// Kinds of a Change. All but those of the factory and of secrets are also kinds of [state.ResourceKey].
const (
	KindFactory     = "factory" // factory.yaml
	KindWebhook     = "webhook"
	KindAutomation  = "automation"
	KindAgent       = "agent"
	KindRunner      = "runner"
	KindEnvironment = "environment"
	KindSkill       = "skill"

	KindNotification = "notification"
	KindSecret       = "secret" // of secrets/
)

// Plan has the changes that an apply of a tree would make to a factory (docs/contract.md, section 5). Its
// lists are never nil.
type Plan struct {
	WouldApply   bool             `json:"would_apply"`
	BaseRevision string           `json:"base_revision"` // applied now; empty before the first apply
	HeadRevision string           `json:"head_revision"` // of the tree
	Changes      []Change         `json:"changes"`       // every resource of either side, by kind and name; none if the tree has errors
	Secrets      []Secret         `json:"secrets"`       // secrets whose newer version would come into force, by name
	Problems     []schema.Problem `json:"problems"`
	// WebhookUIDs has the present or future UID of each webhook of the tree, by name, also if the tree has
	// errors. webhook_ids takes these.
	WebhookUIDs map[string]string `json:"webhook_uids,omitempty"`
	// Gone gives the name of each deleted webhook that an automation of the tree still selects, by UID.
	Gone map[string]string `json:"deleted_webhook_uids,omitempty"`
	// NotChecked names the rules that need unavailable facts.
	NotChecked []string `json:"state_dependent_checks_not_run,omitempty"`
	// Backtests have what the changed triggers would have done; only for holders of keys.
	Backtests []Backtest `json:"backtest,omitempty"`
	// Backtester makes Backtests; nil unless the plan is of a source's head that would apply.
	Backtester *Backtester `json:"-"`
	// Err is set if the tree could not be read completely. Try again.
	Err error `json:"-"`
}

// Change is the change of one resource.
type Change struct {
	Kind   string  `json:"kind"`
	Name   string  `json:"name"` // a skill of one agent: "agent/skill"
	Action string  `json:"action"`
	Fields []Field `json:"fields"`        // of an update, by name
	UID    string  `json:"uid,omitempty"` // present or, for a webhook, future UID; empty for other new resources
	File   string  `json:"file"`          // file that declares or declared the resource
	Line   int     `json:"line"`
}

// Field is a key whose value changes; nil stands for absent.
type Field struct {
	Name string `json:"name"`
	Old  any    `json:"old"`
	New  any    `json:"new"`
}

// Secret is a secret whose newer version existing webhooks would use.
type Secret struct {
	Name     string   `json:"name"`
	Version  int64    `json:"version"`
	Webhooks []string `json:"webhooks"` // their names
}

// Allowed are the destructive changes that a plan takes for allowed.
type Allowed struct{ Prune, Rename bool }

// Options allow destructive changes, and supply facts. The zero value allows none.
type Options struct {
	AllowPrune    bool              // delete all webhooks, or more than half
	AllowRename   bool              // replace a webhook by one of the same content
	Renamed       map[string]string // webhooks that keep their UID under a new name: the old name by the new one
	HarnessTypes  []string          // that the server has; nil: not known
	ForgeKinds    []string          // kinds of the server's forges; nil: not known
	Reserved      map[string]string // secrets that the server itself uses, with their use; nil: unknown
	Used          map[string]string // secrets that the settings name, with their use; nil: unknown
	OpenSecrets   bool              // decrypt the files of secrets/; without it the change set cannot be applied
	KeepSecrets   bool              // leave the secrets of secrets/ as they are: for an earlier revision
	MaxDeliveries int               // deliveriesPerMinute of a webhook is at most this; 0: any
	// Public leaves out all that only holders of keys may learn: rules that need facts of the server, UIDs,
	// secrets, and which webhooks existed or are used.
	Public   bool
	Revision state.Revision
	Now      time.Time // start of the attempt
}

// withhold removes what the plan has of secrets and UIDs.
func (p *Plan) withhold() {
	p.Secrets = []Secret{}
	for i := range p.Changes {
		p.Changes[i].UID = ""
	}
}

// maxRecord bounds the changes that are kept of an application, in bytes.
const maxRecord = 128 << 10

// record writes changes for later readers of the history. Where there is no room for the values of a
// change, its fields are left out, and where there is none for the change, it is.
func record(changes []Change) json.RawMessage {
	kept := [][]byte{}
	size := 2
	for _, c := range changes {
		if c.Action == ActionUnchanged {
			continue
		}

		text, err := json.Marshal(c)
		if err == nil && size+len(text) > maxRecord*3/4 {
			c.Fields = nil
			text, err = json.Marshal(c)
		}
		if err != nil || size+len(text) > maxRecord {
			continue
		}

		kept = append(kept, text)
		size += len(text) + 1
	}

	return slices.Concat([]byte("["), bytes.Join(kept, []byte(",")), []byte("]"))
}

// Known returns the facts for the rules that need state, for a tree with webhooks of these names: their
// present or future UIDs, and the team's secrets. It omits webhooks that the tree removes, so that
// automations that select them are reported.
func Known(cur state.Current, names []string, opts Options) *schema.Known {
	k := &schema.Known{
		Secrets: make(map[string]schema.SecretFact, len(cur.Secrets)),
		UIDs:    make(map[string]string, len(names)), KnownUIDs: make(map[string]string, len(names)),
		HarnessTypes: opts.HarnessTypes, ForgeKinds: opts.ForgeKinds, Reserved: opts.Reserved, Used: opts.Used,
		Gone: maps.Clone(cur.Gone),
	}
	for name, info := range cur.Secrets {
		k.Secrets[name] = info.Fact()
	}

	live := liveByName(cur, opts)
	for _, name := range names {
		uid := plannedUID(cur, live, name)
		k.UIDs[name], k.KnownUIDs[uid] = uid, name
		delete(live, name)
	}

	if k.Gone == nil {
		k.Gone = map[string]string{}
	}
	for name, w := range live { // which this apply would delete
		k.Gone[w.UID] = name
	}

	return k
}

// plannedUID returns the UID of the live webhook of that name, else that of one that comes back, else the one
// that a new webhook of it gets.
func plannedUID(cur state.Current, live map[string]state.Webhook, name string) string {
	if w, ok := live[name]; ok {
		return w.UID
	}
	if w, ok := cur.Restorable[name]; ok {
		return w.UID
	}
	return state.WebhookUID(cur.Key, name, cur.Ordinals[name])
}

// liveByName returns the live webhooks, those that get a new name by that one.
func liveByName(cur state.Current, opts Options) map[string]state.Webhook {
	live := make(map[string]state.Webhook, len(cur.Webhooks))
	for _, w := range cur.Webhooks {
		live[w.Spec.Name] = w
	}

	for name, old := range opts.Renamed {
		if w, ok := live[old]; ok {
			delete(live, old)
			live[name] = w
		}
	}

	return live
}

func count(c *state.Counts, action string) {
	switch action {
	case ActionCreate, ActionRestore:
		c.Created++
	case ActionUpdate:
		c.Updated++
	case ActionDelete:
		c.Deleted++
	case ActionUnchanged:
		c.Unchanged++
	}
}

var kindOrder = []string{
	KindFactory, KindWebhook, KindAutomation, KindAgent, KindRunner, KindSkill, KindNotification, KindSecret,
}

// add appends changes in their order, which it also gives to the argument.
func (p *Plan) add(changes []Change) {
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(
			slices.Index(kindOrder, a.Kind)-slices.Index(kindOrder, b.Kind),
			strings.Compare(a.Name, b.Name),
		)
	})
	p.Changes = append(p.Changes, changes...)
}

// update sets the action and the fields of a change between two specs of a resource. It reports whether the
// resource begins at another line, which is stored but not a change.
func (c *Change) update(old, new any) (moved bool) {
	if reflect.DeepEqual(old, new) { // the usual case: equal specs have equal text
		c.Action = ActionUnchanged
		return false
	}

	before, after := members(old), members(new)
	moved = before["line"] != after["line"]
	delete(before, "line")
	delete(after, "line")
	for name, value := range after {
		if !reflect.DeepEqual(before[name], value) {
			c.Fields = append(c.Fields, Field{Name: name, Old: before[name], New: value})
		}
	}

	for name, value := range before {
		if _, kept := after[name]; !kept {
			c.Fields = append(c.Fields, Field{Name: name, Old: value})
		}
	}

	slices.SortFunc(c.Fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	c.Action = ActionUnchanged
	if len(c.Fields) > 0 {
		c.Action = ActionUpdate
	}

	return moved
}

// members returns the members of a spec's JSON object, with numbers as written.
func members(spec any) map[string]any {
	text, err := json.Marshal(spec)
	var m map[string]any
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		err = d.Decode(&m)
	}

	if err != nil { // not for specs that came from a loaded tree or from the state; it shows as a change
		return map[string]any{"error": err.Error()}
	}

	return m
}
