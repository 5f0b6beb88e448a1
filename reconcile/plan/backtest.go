package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"millwright/schema"
	"millwright/state"
)

// Backtest is what a change of an automation's triggers would have done with the stored deliveries of its
// sources.
type Backtest struct {
	Automation string     `json:"automation"`
	LookedAt   int        `json:"looked_at"`       // deliveries
	Since      *time.Time `json:"since,omitempty"` // when the oldest of them arrived
	Complete   bool       `json:"complete"`        // false: the time was up before all were looked at
	Fired      int        `json:"fired"`           // by the present triggers
	Fires      int        `json:"fires"`           // by the changed ones
	NewlyFires int        `json:"newly"`           // of Fires
	NoLonger   int        `json:"no_longer"`       // of Fired
	RunsPerDay float64    `json:"runs_per_day"`    // by the changed triggers
	Examples   Examples   `json:"examples"`        // of NewlyFires and NoLonger
	Never      *Never     `json:"never,omitempty"` // the triggers matched none of many deliveries
}

// Examples are deliveries by what a change would have done with them, newest first.
type Examples struct {
	Newly    []string `json:"newly"`
	NoLonger []string `json:"no_longer"`
}

// Summary says in one line what the change would have done. It has counts alone.
func (b Backtest) Summary() string {
	if b.LookedAt == 0 {
		return fmt.Sprintf("its webhooks had no delivery within %d days", BacktestDays)
	}

	digits := 0
	if b.RunsPerDay < 10 {
		digits = 1
	}
	text := fmt.Sprintf("newly fires for %d, no longer for %d, about %.*f runs a day (looked at %d deliveries",
		b.NewlyFires, b.NoLonger, digits, b.RunsPerDay, b.LookedAt)
	if !b.Complete {
		text += " before the time was up"
	}
	return text + ")"
}

// Never is the reason why triggers matched nothing.
type Never struct {
	Key   string   `json:"key"`   // that failed most often
	Count int      `json:"count"` // how often
	Seen  []string `json:"seen"`  // values that deliveries have there, for holders of keys alone
}

// Bounds of a backtest.
const (
	BacktestDeliveries = 5000
	BacktestDays       = 7
	BacktestTime       = 2 * time.Second

	maxBacktestIDs = 1000
	neverAfter     = 500 // deliveries of which none matched, from which on that is a warning
	maxSeen        = 5
)

// Backtester judges stored deliveries by the triggers before and after a change.
type Backtester struct {
	FactoryUID string
	hooks      map[string]schema.Webhook // by UID
	all        []*tested
}

// tested is an automation whose triggers change.
type tested struct {
	Backtest
	old, new []judge
	failed   map[string]int      // how often a leaf failed, by its place
	seen     map[string][]string // values there
}

// judge is a compiled trigger of deliveries.
type judge struct {
	trigger schema.Trigger
	matcher *schema.Matcher
}

// NewBacktester returns the backtest of the automations whose triggers a change set creates, changes or deletes.
func NewBacktester(cur state.Current, app *state.ChangeSet) *Backtester {
	b := &Backtester{FactoryUID: cur.Factory.UID, hooks: map[string]schema.Webhook{}}
	if app == nil {
		return b
	}

	for _, w := range cur.Webhooks {
		if w.Deleted == nil {
			b.hooks[w.UID] = w.Spec
		}
	}

	before := map[string]schema.Automation{}
	for _, a := range cur.Tree.Automations {
		before[a.Name] = a
	}

	for _, c := range app.Resources {
		after, ok := c.Spec.(schema.Automation)
		if !ok || c.Kind != "automation" {
			continue
		}

		was := before[after.Name]
		if was.Enabled == after.Enabled && reflect.DeepEqual(was.Triggers, after.Triggers) {
			continue
		}
		b.add(after.Name, judges(was), judges(after))
	}

	for name, was := range before {
		if slices.Contains(app.DeleteResources, cur.UIDs[state.ResourceKey("automation", name)]) {
			b.add(name, judges(was), nil)
		}
	}

	slices.SortFunc(b.all, func(x, y *tested) int { return cmp.Compare(x.Automation, y.Automation) })
	return b
}

func (b *Backtester) add(name string, old, new []judge) {
	if len(old)+len(new) == 0 {
		return
	}
	b.all = append(b.all, &tested{
		Backtest: Backtest{Automation: name, Examples: Examples{Newly: []string{}, NoLonger: []string{}}},
		old:      old,
		new:      new,
		failed:   map[string]int{},
		seen:     map[string][]string{},
	})
}

// judges compiles the triggers of an automation that deliveries fire; none when it is disabled.
func judges(a schema.Automation) (all []judge) {
	if !a.Enabled {
		return nil
	}
	for _, t := range a.Triggers {
		if t.Schedule != nil || !t.Fires() {
			continue
		}
		if m, err := schema.CompileTrigger(t); err == nil {
			all = append(all, judge{t, m})
		}
	}
	return all
}

// Sources returns the UIDs of the webhooks whose deliveries are to be judged, sorted.
func (b *Backtester) Sources() (uids []string) {
	for uid, w := range b.hooks {
		if slices.ContainsFunc(b.all, func(t *tested) bool {
			return slices.ContainsFunc(slices.Concat(t.old, t.new), func(j judge) bool {
				return j.trigger.Selects(uid, w.Source())
			})
		}) {
			uids = append(uids, uid)
		}
	}

	slices.Sort(uids)
	return uids
}

// Add judges a delivery, unless its body is no JSON. Deliveries come newest first.
func (b *Backtester) Add(stored state.StoredDelivery) {
	payload, err := schema.ParsePayload(stored.Body)
	if err != nil {
		return
	}

	w := b.hooks[stored.WebhookUID]
	d := delivered{uid: stored.UID, received: stored.Received, source: w.Source(), Delivered: &schema.Delivered{
		WebhookUID: stored.WebhookUID, Scheme: w.SignatureScheme, Event: stored.Event,
		Header: schema.StoredHeader(stored.Headers), Body: stored.Body, Payload: payload,
	}}
	for _, t := range b.all {
		t.add(d)
	}
}

// delivered is a stored delivery as triggers see it.
type delivered struct {
	*schema.Delivered
	uid      string
	received time.Time
	source   string // the provider whose events its webhook receives, or empty
}

func (t *tested) add(d delivered) {
	was, selected := matches(t.old, d)
	is, selects := matches(t.new, d)
	if !selected && !selects {
		return
	}

	t.LookedAt++
	t.Since = &d.received

	if was {
		t.Fired++
	}
	if is {
		t.Fires++
	}

	switch {
	case is && !was:
		t.NewlyFires++
		t.Examples.Newly = remember(t.Examples.Newly, d.uid)
	case was && !is:
		t.NoLonger++
		t.Examples.NoLonger = remember(t.Examples.NoLonger, d.uid)
	}

	if selects && t.Fires == 0 && t.LookedAt <= neverAfter {
		t.explain(d)
	}
}

func remember(ids []string, uid string) []string {
	if len(ids) < maxBacktestIDs {
		ids = append(ids, uid)
	}
	return ids
}

// matches reports whether one of the triggers matches, as the ingress would find, or may match by an answer
// of the forge, and whether one selects the webhook at all.
func matches(all []judge, d delivered) (matched, selected bool) {
	for _, j := range all {
		if j.trigger.Selects(d.WebhookUID, d.source) {
			selected = true
			is, ask := j.matcher.Judge(d.Delivered)
			matched = matched || is || ask.Any()
		}
	}
	return matched, selected
}

// explain counts the keys that kept the triggers from matching.
func (t *tested) explain(d delivered) {
	for _, j := range t.new {
		if !j.trigger.Selects(d.WebhookUID, d.source) {
			continue
		}

		for _, leaf := range j.matcher.Explain(d.Delivered).Leaves {
			if leaf.Passed {
				continue
			}

			t.failed[leaf.Where]++
			if seen := t.seen[leaf.Where]; leaf.Present && len(seen) < maxSeen && !slices.Contains(seen, leaf.Found) {
				t.seen[leaf.Where] = append(seen, leaf.Found)
			}
		}
	}
}

// Results returns a backtest for each automation, by name. complete says that all deliveries were judged.
func (b *Backtester) Results(now time.Time, complete bool) []Backtest {
	var all []Backtest
	for _, t := range b.all {
		t.Complete = complete
		if t.LookedAt > 0 {
			days := max(now.Sub(*t.Since).Hours()/24, 1.0/24)
			t.RunsPerDay = float64(t.Fires) / days
		}
		if len(t.new) > 0 && t.Fires == 0 && t.LookedAt >= neverAfter {
			t.Never = t.never()
		}

		all = append(all, t.Backtest)
	}
	return all
}

func (t *tested) never() *Never {
	n := &Never{Seen: []string{}}
	for key, count := range t.failed {
		if count > n.Count || count == n.Count && key < n.Key {
			n.Key, n.Count = key, count
		}
	}
	n.Seen = append(n.Seen, t.seen[n.Key]...)
	return n
}
