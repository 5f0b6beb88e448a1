package main

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
)

// hookCall is a call on one webhook: a change of it, or a delivery to it.
type hookCall struct {
	kind  string // create, enable, disable, rotate, delete, deliver, or served: the change with this number returned
	hook  string // the webhook's UID
	n     int    // of a change
	token string // that rotate or create gave, or that deliver sent
	event string // that is delivered more than once; empty: it is not
}

// hookAnswer is the answer to a hookCall. Status 0: none came.
type hookAnswer struct {
	status    int
	delivery  string
	duplicate bool
}

// hookFacts are what a delivery is judged by.
type hookFacts struct {
	enabled bool
	token   string
}

// hookState is a webhook in the model.
type hookState struct {
	now    hookFacts
	old    []oldFacts        // that a server may still refuse by, oldest first
	events map[string]string // event: delivery, empty while nobody knows it
}

// oldFacts are those that a change replaced.
type oldFacts struct {
	hookFacts
	by int
}

// hookModel specifies webhooks. A delivery is accepted by the present facts alone. It is refused by the present
// facts or, while a change has not returned, by those before it, unless strict.
func hookModel(strict bool) porcupine.Model {
	return porcupine.Model{
		Partition: byHook,
		Init:      func() any { return hookState{} },
		Step: func(s, call, answer any) (bool, any) {
			return s.(hookState).step(call.(hookCall), answer.(hookAnswer), strict)
		},
		Equal: func(a, b any) bool { return a.(hookState).equal(b.(hookState)) },
		DescribeOperation: func(call, answer any) string {
			return fmt.Sprintf("%+v: %+v", call, answer)
		},
	}
}

// byHook returns the histories of single webhooks.
func byHook(all []porcupine.Operation) [][]porcupine.Operation {
	hooks := map[string][]porcupine.Operation{}
	for _, op := range all {
		hook := op.Input.(hookCall).hook
		hooks[hook] = append(hooks[hook], op)
	}
	return slices.Collect(maps.Values(hooks))
}

func (s hookState) equal(o hookState) bool {
	return s.now == o.now && slices.Equal(s.old, o.old) && maps.Equal(s.events, o.events)
}

// step returns whether the webhook may answer so, and what it is afterwards.
func (s hookState) step(c hookCall, a hookAnswer, strict bool) (bool, hookState) {
	next := s.now
	switch c.kind {
	case "deliver":
		return s.deliver(c, a)
	case "served":
		i := slices.IndexFunc(s.old, func(o oldFacts) bool { return o.by == c.n })
		s.old = s.old[i+1:]
		return true, s
	case "enable", "disable":
		next.enabled = c.kind == "enable"
	case "rotate":
		next.token = c.token
	case "create":
		next = hookFacts{enabled: true, token: c.token}
	case "delete":
		next = hookFacts{}
	}

	gone := s.now.token == "" && c.kind != "create"
	if a.status == http.StatusNotFound || a.status == 0 && gone {
		return gone, s
	}

	if !strict {
		s.old = append(slices.Clip(s.old), oldFacts{s.now, c.n})
	}
	s.now = next
	return !gone, s
}

func (s hookState) deliver(c hookCall, a hookAnswer) (bool, hookState) {
	accepts := s.now.enabled && s.now.token == c.token
	switch a.status {
	case http.StatusAccepted:
		if !accepts {
			return false, s
		}
	case 0:
		if !accepts {
			return true, s
		}
	default:
		return s.refuses(c.token, a.status), s
	}
	if c.event == "" {
		return !a.duplicate, s
	}

	first, known := s.events[c.event]
	if a.status == 0 {
		if known {
			return true, s
		}
	} else if a.duplicate != known || first != "" && a.delivery != first {
		return false, s
	}
	s.events = maps.Clone(s.events)
	if s.events == nil {
		s.events = map[string]string{}
	}
	s.events[c.event] = a.delivery
	return true, s
}

// refuses reports whether a server may answer a delivery with the status.
func (s hookState) refuses(token string, status int) bool {
	by := func(f hookFacts) bool {
		if !f.enabled {
			return status == http.StatusNotFound
		}
		return status == http.StatusUnauthorized && f.token != token
	}
	return by(s.now) || slices.ContainsFunc(s.old, func(o oldFacts) bool { return by(o.hookFacts) })
}

// hookOp is an operation in a history whose times are nanoseconds. A change is two: it is made while the call
// lasts, and all servers know of it when the call returned.
func hookOp(client int, c hookCall, call, ret int64, a hookAnswer) []porcupine.Operation {
	op := porcupine.Operation{ClientId: client, Input: c, Call: 4*call + 2, Output: a, Return: 4 * ret}
	if a.status == 0 {
		op.Return = math.MaxInt64
	}
	if c.kind == "deliver" || a.status == 0 || a.status == http.StatusNotFound {
		return []porcupine.Operation{op}
	}

	served := op
	c.kind = "served"
	served.Input, served.Call, served.Return = c, op.Return+1, op.Return+1
	return []porcupine.Operation{op, served}
}

// TestLinearizableIsFound holds that the checker finds servers that are wrong: each row is a history that a
// correct server does not have, beside its correct twin.
func TestLinearizableIsFound(t *testing.T) {
	type row struct {
		call      hookCall
		from, to  int64
		is, wrong hookAnswer
	}
	deliver := func(token, event string) hookCall { return hookCall{kind: "deliver", token: token, event: event} }
	change := func(kind, token string, n int) hookCall { return hookCall{kind: kind, token: token, n: n} }
	ok, lost := hookAnswer{status: 200}, hookAnswer{}
	accepted := func(delivery string) hookAnswer { return hookAnswer{status: 202, delivery: delivery} }
	again := func(delivery string) hookAnswer { return hookAnswer{status: 202, delivery: delivery, duplicate: true} }
	refused := func(status int) hookAnswer { return hookAnswer{status: status} }
	created := row{call: change("create", "a", 1), from: 1, to: 2, is: ok}

	for name, history := range map[string][]row{
		"a server accepts by its cache after disable": {
			created,
			{call: change("disable", "", 2), from: 10, to: 20, is: ok},
			{call: deliver("a", ""), from: 21, to: 22, is: refused(404), wrong: accepted("d1")},
		},
		"a server refuses by its cache after enable": {
			created,
			{call: change("disable", "", 2), from: 10, to: 20, is: ok},
			{call: change("enable", "", 3), from: 30, to: 40, is: ok},
			{call: deliver("a", ""), from: 41, to: 42, is: accepted("d1"), wrong: refused(404)},
		},
		"a server takes the old token after rotate": {
			created,
			{call: change("rotate", "b", 2), from: 10, to: 20, is: ok},
			{call: deliver("a", ""), from: 21, to: 22, is: refused(401), wrong: accepted("d1")},
		},
		"a server refuses the new token after rotate": {
			created,
			{call: change("rotate", "b", 2), from: 10, to: 20, is: ok},
			{call: deliver("b", ""), from: 21, to: 22, is: accepted("d1"), wrong: refused(401)},
		},
		"a server accepts after delete": {
			created,
			{call: change("delete", "", 2), from: 10, to: 20, is: refused(204)},
			{call: deliver("a", ""), from: 21, to: 22, is: refused(404), wrong: accepted("d1")},
		},
		"the old token is taken after the change was seen": {
			created,
			{call: change("disable", "", 2), from: 10, to: 90, is: ok},
			{call: deliver("a", ""), from: 21, to: 22, is: accepted("d0")},
			{call: change("rotate", "b", 3), from: 30, to: 90, is: ok},
			{call: deliver("b", ""), from: 40, to: 41, is: refused(401), wrong: accepted("d1")},
			{call: deliver("a", ""), from: 50, to: 51, is: accepted("d2")},
		},
		"an event is accepted twice": {
			created,
			{call: deliver("a", "e"), from: 10, to: 20, is: accepted("d1")},
			{call: deliver("a", "e"), from: 21, to: 22, is: again("d1"), wrong: accepted("d2")},
		},
		"an event is a duplicate of nothing": {
			created,
			{call: deliver("a", "e"), from: 10, to: 20, is: accepted("d1"), wrong: again("d1")},
		},
		"an event without an answer is lost and then a duplicate of another": {
			created,
			{call: deliver("a", "e"), from: 10, to: 11, is: lost},
			{call: deliver("a", "e"), from: 20, to: 21, is: again("d1")},
			{call: deliver("a", "e"), from: 30, to: 31, is: again("d1"), wrong: again("d2")},
		},
		"a change is made to what was deleted": {
			created,
			{call: change("delete", "", 2), from: 10, to: 20, is: refused(204)},
			{call: change("enable", "", 3), from: 30, to: 40, is: refused(404), wrong: ok},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var right, wrong []porcupine.Operation
			for i, r := range history {
				right = append(right, hookOp(i, r.call, r.from, r.to, r.is)...)
				if r.wrong != (hookAnswer{}) {
					r.is = r.wrong
				}
				wrong = append(wrong, hookOp(i, r.call, r.from, r.to, r.is)...)
			}
			if !porcupine.CheckOperations(hookModel(false), right) {
				t.Error("a correct history is refused")
			}
			if porcupine.CheckOperations(hookModel(false), wrong) {
				t.Error("a wrong history is not found")
			}
		})
	}
}
