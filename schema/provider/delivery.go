package provider

import (
	"fmt"
	"slices"
	"strconv"
	"unsafe"
)

// Delivery is a delivery of a provider, as triggers see it. It is for one goroutine.
type Delivery struct {
	table *table
	body
}

// Read reads a delivery to a webhook with a signature scheme. event is the value of the header that
// EventHeader names; it may be anything. The payload must not change while the Delivery is in use. Read
// returns nil for a scheme of no provider.
func Read(scheme, event string, payload []byte) *Delivery {
	t := tableOf(scheme)
	if t == nil {
		return nil
	}
	text := unsafe.String(unsafe.SliceData(payload), len(payload)) // no copy: payload does not change
	return &Delivery{t, body{event: event, text: text}}
}

// Provider returns the provider that the delivery is from.
func (d *Delivery) Provider() string {
	if d == nil {
		return ""
	}
	return d.table.provider
}

// named returns the sender's name of the event.
func (d *Delivery) named() string {
	if d.table.field != "" {
		return d.string(d.table.field)
	}
	return d.event
}

// is reports whether the delivery is the event.
func (d *Delivery) is(e *event) bool {
	if !slices.Contains(e.on, d.named()) {
		return false
	}
	for _, known := range d.judged {
		if known.event == e {
			return known.is
		}
	}

	is := e.is(&d.body)
	d.judged = append(d.judged, judged{e, is})
	return is
}

// Events returns the events that the delivery is, by the names of triggers. It may be several, or none.
func (d *Delivery) Events() (names []string) {
	if d == nil {
		return nil
	}
	for i := range d.table.events {
		if e := &d.table.events[i]; d.is(e) {
			names = append(names, e.name)
		}
	}
	return names
}

// Describe says in a few words what the delivery is.
func (d *Delivery) Describe() string {
	names := d.Events()
	switch {
	case len(names) > 0:
		return d.table.provider + "/" + joined(names, " and ")
	case d.named() == "" && d.table.header != "":
		return "a request without an event in " + d.table.header
	case d.named() == "":
		return "a payload without an event in " + d.table.field
	}

	named := strconv.QuoteToASCII(cut(d.named(), 64))
	if action := d.string("action"); action != "" {
		named += " with the action " + strconv.QuoteToASCII(cut(action, 64))
	}

	return fmt.Sprintf("%s of %s, which is no event that triggers name", named, d.table.title)
}

func joined(names []string, last string) string {
	text := names[0]
	for i, name := range names[1:] {
		if i == len(names)-2 {
			text += last + name
		} else {
			text += ", " + name
		}
	}
	return text
}

// Learn adds what the forge of the delivery has answered.
func (d *Delivery) Learn(a Answer) {
	if d != nil {
		d.known, d.values = a, nil
	}
}
