package cli

import (
	"encoding/json"
	"fmt"
	"strings"
)

// doctor collects what its checks find. It prints a table while it goes on.
type doctor struct {
	Streams
	*Client
	out    output
	checks []diagnosis
}

// diagnosis is the result of a check.
type diagnosis struct {
	Check   string `json:"check"`
	State   string `json:"state"` // ok, warn or bad
	Message string `json:"message"`
	Todo    string `json:"todo,omitempty"`
}

func (d *doctor) note(one diagnosis) {
	one.Message, one.Todo = oneLine(one.Message), oneLine(one.Todo)
	d.checks = append(d.checks, one)
	if d.out != "table" {
		return
	}

	fmt.Fprintf(d.Out, "%-4s %s\n", one.State, one.Message)
	if one.Todo != "" {
		fmt.Fprintf(d.Out, "     %s\n", one.Todo)
	}
}

// oneLine is clean for text whose lines are joined: errors of PostgreSQL have several.
func oneLine(s string) string { return clean(strings.Join(strings.Fields(s), " ")) }

func (d *doctor) ok(check, format string, args ...any) {
	d.note(diagnosis{Check: check, State: "ok", Message: fmt.Sprintf(format, args...)})
}

func (d *doctor) warn(check, todo, format string, args ...any) {
	d.note(diagnosis{check, "warn", fmt.Sprintf(format, args...), todo})
}

func (d *doctor) bad(check, todo, format string, args ...any) {
	d.note(diagnosis{check, "bad", fmt.Sprintf(format, args...), todo})
}

// end prints the report where no table was printed, and decides the exit status.
func (d *doctor) end() error {
	found := 0
	for _, one := range d.checks {
		if one.State == "bad" {
			found++
		}
	}

	if d.out != "table" {
		body, err := json.Marshal(map[string]any{"checks": d.checks, "bad": found})
		if err != nil {
			return err
		}
		if err := d.out.print(d.Out, body, nil); err != nil {
			return err
		}
	}

	if found > 0 {
		return &Exit{ExitProblem, nil}
	}
	return nil
}
