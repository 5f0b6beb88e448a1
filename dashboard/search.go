package dashboard

import (
	"cmp"
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"millwright/api"
	"millwright/state"
	"millwright/state/search"
)

// Bounds of a search.
const (
	maxFound   = 10 // of each kind
	maxScans   = 2  // through payloads, at the same time
	scanTime   = 2 * time.Second
	maxMembers = 16 // of the path to a field
)

// searchView is what a search found.
type searchView struct {
	Query       string
	Factories   []state.Factory
	Webhooks    []search.Named
	Automations []search.Named
	Runs        []state.Run
	Deliveries  []foundDelivery
	Names       map[string]string // of factories, by UID

	Full     bool   // of factories, webhooks or automations there may be more
	MoreRuns string // the address of the list of runs, if more may match
	Field    bool   // payloads were searched
	Read     int    // of them
	Since    time.Time
	Older    string // the address that goes on
	Busy     bool
}

// foundDelivery is a delivery, with the value that was searched for.
type foundDelivery struct {
	deliveryRow
	Value string
}

// None reports whether nothing was found.
func (v searchView) None() bool {
	return len(v.Factories)+len(v.Webhooks)+len(v.Automations)+len(v.Runs)+len(v.Deliveries) == 0
}

// search shows what matches a text: factories, webhooks, automations and runs by name or ID, and deliveries by
// ID or by a field of their payload.
func (q *request) search() error {
	v := searchView{Query: typed(200, q.URL.Query().Get("q")), Names: map[string]string{}}
	all, err := q.ownFactories()
	if err != nil {
		return err
	}
	for _, f := range all {
		v.Names[f.UID] = f.Name
	}

	if v.Query != "" {
		for _, f := range []func(*searchView) error{q.findRuns, q.findNames, q.findDelivery, q.findPayloads} {
			if err := f(&v); err != nil {
				return err
			}
		}
		v.addFactories(all)
	}

	p := page{Title: "Search", Section: "search", Find: v.Query, Data: v}
	return q.render("search", p)
}

// within returns the factories of a search: nil for all.
func (q *request) within() []string {
	if !q.key.Limited() {
		return nil
	}
	return append([]string{}, q.key.Factories...)
}

// named reports whether a text is the UID of something, or is in its name.
func (v *searchView) named(uid, name string) bool {
	return v.Query == uid || strings.Contains(strings.ToLower(name), strings.ToLower(v.Query))
}

func (v *searchView) addFactories(all []state.Factory) {
	for _, f := range all {
		switch {
		case !v.named(f.UID, f.Name):
		case len(v.Factories) == maxFound:
			v.Full = true
		default:
			v.Factories = append(v.Factories, f)
		}
	}
}

func (q *request) findNames(v *searchView) error {
	into := func(found *[]search.Named) func(search.Named) {
		return func(one search.Named) {
			switch {
			case !v.named(one.UID, one.Name):
			case len(*found) == maxFound:
				v.Full = true
			default:
				*found = append(*found, one)
			}
		}
	}

	cut, err := q.Store.Search().Webhooks(q.Context(), q.within(), into(&v.Webhooks))
	if err != nil {
		return err
	}
	also, err := q.Store.Search().Automations(q.Context(), q.within(), into(&v.Automations))
	v.Full = v.Full || cut || also
	return err
}

func (q *request) findRuns(v *searchView) error {
	f := state.RunFilter{Query: v.Query}
	q.narrow(&f)
	runs, next, err := q.Store.Runs(q.Context(), f, state.RunOrder{}, nil, maxFound)
	if v.Runs = runs; next != nil {
		v.MoreRuns = "/runs?" + url.Values{"q": {v.Query}}.Encode()
	}
	return err
}

// findDelivery finds a delivery of any outcome by its ID.
func (q *request) findDelivery(v *searchView) error {
	if !state.ValidID(state.PrefixDelivery, v.Query) {
		return nil
	}
	of, found, err := q.Store.Search().WebhookOf(q.Context(), v.Query)
	if err != nil || !found || !q.key.Reaches(of.FactoryUID) {
		return err
	}
	return q.addDeliveries(v, of.FactoryUID, map[string]string{v.Query: ""})
}

// addDeliveries adds deliveries of a factory with the values that were found in them, the newest first.
func (q *request) addDeliveries(v *searchView, factoryUID string, values map[string]string) error {
	uids := make([]string, 0, len(values))
	for uid := range values {
		uids = append(uids, uid)
	}

	rows, err := q.selectedRows(state.Factory{UID: factoryUID}, uids)
	if api.IsNotFound(err) {
		return nil // they have expired meanwhile
	}
	for i := len(rows) - 1; i >= 0; i-- {
		v.Deliveries = append(v.Deliveries, foundDelivery{rows[i], values[rows[i].UID]})
	}
	return err
}

// fieldQuery is a search for a field of payloads.
type fieldQuery struct {
	path  []string
	exact bool
	value string
}

// fieldPattern is the path to a field, = or :, and a value.
var fieldPattern = regexp.MustCompile(`^([\pL\pN_$@/-]+(?:\.[\pL\pN_$@/-]+)*)([=:])(\S.*)$`)

// fieldOf reads a search for a field. ok is false for any other.
func fieldOf(text string) (f fieldQuery, ok bool) {
	m := fieldPattern.FindStringSubmatch(text)
	if m == nil {
		return f, false
	}

	f = fieldQuery{path: strings.Split(m[1], "."), exact: m[2] == "=", value: m[3]}
	return f, len(f.path) <= maxMembers
}

// in returns the value of the field if it is what is searched for. It looks no deeper than maxDepth.
func (f fieldQuery) in(value gjson.Result, path []string, depth int) (found string, ok bool) {
	switch {
	case depth > maxDepth:
		return "", false
	case value.IsArray() && (len(path) == 0 || strings.Trim(path[0], "0123456789") != ""):
		value.ForEach(func(_, one gjson.Result) bool {
			found, ok = f.in(one, path, depth+1)
			return !ok
		})
		return found, ok
	case len(path) > 0 && (value.IsArray() || value.IsObject()):
		return f.in(value.Get(gjson.Escape(path[0])), path[1:], depth+1)
	case len(path) > 0 || !value.Exists() || value.IsObject():
		return "", false
	}

	text := value.Raw
	if value.Type == gjson.String {
		text = value.Str
	}
	if f.exact || value.Type != gjson.String {
		return text, text == f.value
	}
	return text, strings.Contains(strings.ToLower(text), strings.ToLower(f.value))
}

// findPayloads finds the newest deliveries whose payload has a field.
func (q *request) findPayloads(v *searchView) error {
	field, ok := fieldOf(v.Query)
	if !ok {
		return nil
	}
	before := q.URL.Query().Get("before")
	if before != "" && !state.ValidID(state.PrefixDelivery, before) {
		return api.InvalidField("before", "is not a delivery")
	}

	ctx, cancel := context.WithTimeout(q.Context(), scanTime)
	defer cancel()
	select {
	case q.scans <- struct{}{}:
		defer func() { <-q.scans }()
	case <-ctx.Done():
		v.Busy = true
		return nil
	}

	var found []search.Payload
	values := map[string]map[string]string{}
	reach, err := q.Store.Search().Payloads(ctx, q.within(), before, func(p search.Payload) bool {
		value, ok := field.in(gjson.ParseBytes(p.Body), field.path, 0)
		if !ok {
			return true
		}

		found = append(found, search.Payload{DeliveryUID: p.DeliveryUID, FactoryUID: p.FactoryUID})
		if values[p.FactoryUID] == nil {
			values[p.FactoryUID] = map[string]string{}
		}
		values[p.FactoryUID][p.DeliveryUID] = clip(maxLine, strings.Clone(value))
		return len(found) < maxFound
	})
	if err != nil {
		return err
	}

	v.Field, v.Read = true, reach.Read
	if reach.More {
		v.Since = state.DeliveryTime(reach.Last)
		v.Older = "/search?" + url.Values{"q": {v.Query}, "before": {reach.Last}}.Encode()
	}
	for factory, all := range values {
		if err := q.addDeliveries(v, factory, all); err != nil {
			return err
		}
	}

	slices.SortFunc(v.Deliveries, func(a, b foundDelivery) int { return cmp.Compare(b.UID, a.UID) })
	return nil
}
