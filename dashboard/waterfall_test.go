package dashboard_test

import (
	"testing"

	"millwright/state"
)

// TestWaterfall: the page of a run has the time and the tokens of each step, of actions beside each other, and
// of what goes on; events that no agent would send change nothing else.
func TestWaterfall(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleViewer)
		r := w.run("Find it.")
		c := w.claimed(r.ID)
		used := func(data string) state.Block { return told("usage", data) }
		act := func(id, name, command string) state.Block {
			input := []byte(`{"command":"` + command + `"}`)
			return state.Block{Type: "action", ID: id, Category: "shell", Name: name, Input: input}
		}
		result := func(id, as string) state.Block {
			return state.Block{Type: "action_result", ActionID: id, State: as}
		}
		for i, m := range []state.Message{
			said(state.Text("I look."), act("1", "sh", "make <test>"), act("2", "sh", "ls"),
				used(`{"input_tokens":1200,"output_tokens":30}`)),
			said(result("2", "completed")),
			said(result("1", "failed"), result("9", "failed")),
			said(used(`{"input_tokens":-5,"output_tokens":1}`), used(`"none"`), used(`{"input_tokens":1e99}`)),
			said(state.Text("It is broken."), used(`{"input_tokens":8,"output_tokens":2}`), act("3", "sh", "sleep 1")),
		} {
			if err := w.store.AppendEntries(t.Context(), c, i, []state.Message{m}); err != nil {
				t.Fatal(err)
			}
		}

		page := b.page("/runs/" + r.ID)
		says(t, page, "Time and tokens of each step", "1208 in, 32 out", "1200 in, 30 out", "8 in, 2 out",
			"Preparation", "goes on", `<tr><td class="main"><a href="#act-`, "make &lt;test&gt;")
		inOrder(t, page, "Preparation", "make <test>", "sh ls", "8 in, 2 out", "sleep 1")
		saysNot(t, page, "1e99", `<span class="tag">event</span> usage`)
	})
}
