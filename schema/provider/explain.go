package provider

import "fmt"

// Explanation explains why a trigger's filter matches a delivery or not.
type Explanation struct {
	Matched bool
	// Reason is set when the event decides: the delivery is another one, or the filter asks for nothing.
	Reason string
	Ask    Ask // what the forge is asked for, since its answer decides
	Keys   []KeyExplanation
}

// KeyExplanation is one operator of a key.
type KeyExplanation struct {
	Key      string
	Operator string // in or not_in
	Wanted   []string
	Found    []string // the first values of the payload, cut
	Passed   bool
	Note     string // why the payload has no value, where none has
}

// Bounds of what an explanation shows of a payload.
const (
	maxFound      = 10
	maxFoundBytes = 200
)

// Explain evaluates as Match does and says how.
func (f *Filter) Explain(d *Delivery) Explanation {
	of := f.form(d.table)
	if of == nil {
		return Explanation{Reason: d.table.title + " sends no " + f.event}
	}
	if of.event.never != "" {
		return Explanation{Reason: of.event.never}
	}
	if !d.is(of.event) {
		return Explanation{Reason: fmt.Sprintf("the delivery is %s, not %s", d.Describe(), f.event)}
	}

	e := Explanation{Reason: "the delivery is " + f.event + ", and the trigger has no filter"}
	for i := range f.conditions {
		c, k := &f.conditions[i], of.keys[i]
		e.Reason = ""
		e.explain(&d.body, &condition{key: c.key, in: c.in}, k, "in", c.in)
		e.explain(&d.body, &condition{key: c.key, notIn: c.notIn}, k, "not_in", c.notIn)
	}

	e.own(f, of, d)
	e.Matched, e.Ask = f.Judge(d)
	return e
}

// own adds that the account of the server must be mentioned, if so.
func (e *Explanation) own(f *Filter, of *form, d *Delivery) {
	k := f.own(of)
	if k == nil {
		return
	}

	e.Reason = ""
	c := d.ownCondition(k)
	e.explain(&d.body, c, k, "in", c.in)
	if last := &e.Keys[len(e.Keys)-1]; !d.known.Ask.Account {
		last.Passed, last.Wanted = false, []string{}
		last.Note = "the account of the server is asked of the forge"
	}
}

// explain adds an operator of a key, unless it asks for nothing.
func (e *Explanation) explain(b *body, c *condition, k *key, operator string, wanted []want) {
	if len(wanted) == 0 {
		return
	}

	out := KeyExplanation{Key: c.key, Operator: operator, Passed: c.holds(b, k)}
	for _, w := range wanted {
		out.Wanted = append(out.Wanted, w.written)
	}

	switch {
	case k == nil:
		out.Note = "the sender has no such value"
	case k.read == nil:
		out.Note = k.unread
	case k.asks(b).Any():
		out.Passed, out.Note = false, "the files of the pull request are asked of the forge"
	default:
		k.read(b, func(have string) bool {
			out.Found = append(out.Found, cut(have, maxFoundBytes))
			return len(out.Found) < maxFound
		})
	}

	e.Keys = append(e.Keys, out)
}
