package provider

// Ask is what a forge is asked for before a trigger can be judged. The zero Ask is nothing.
type Ask struct {
	Files   bool // the files that the pull request changes
	Account bool // the account of the server there
}

// Any reports whether the forge is asked for something.
func (a Ask) Any() bool { return a.Files || a.Account }

// And returns what is asked for by either.
func (a Ask) And(b Ask) Ask { return Ask{a.Files || b.Files, a.Account || b.Account} }

// Answer is what a forge has answered. What was not asked is zero.
type Answer struct {
	Ask
	Files   []string
	Account string // a login
}

// Learn adds what the forge of the delivery has answered.
func (d *Delivery) Learn(a Answer) {
	if d != nil {
		d.known, d.values = a, nil
	}
}

// asks returns what the forge is asked for because of a condition.
func (k *key) asks(b *body) Ask {
	if k == nil || !k.files || b.known.Ask.Files {
		return Ask{}
	}
	return Ask{Files: true}
}

// own returns the key that must have the account of the server, since the filter does not ask for another;
// nil for none.
func (f *Filter) own(of *form) *key {
	name := of.event.own
	if name == "" {
		return nil
	}
	for i := range f.conditions {
		if f.conditions[i].key == name && len(f.conditions[i].in) > 0 {
			return nil
		}
	}
	return of.event.key(name)
}

// ownCondition asks for the account of the server.
func (b *body) ownCondition(k *key) *condition {
	return &condition{key: k.name, in: []want{k.compare.want(b.known.Account)}}
}
