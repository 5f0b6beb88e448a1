package worker_test

import (
	"strings"
	"testing"

	"millwright/runs/worker"
	"millwright/state"
)

// TestVariablesAreRedacted has a harness put out the values of its variables in every place: they do not
// reach the run, and a short value breaks no line of JSON.
func TestVariablesAreRedacted(t *testing.T) {
	t.Setenv("AGENT_KEY", "key-of/the agent")
	t.Setenv("AGENT_PIN", "12345678")
	t.Setenv("SHORT", "text")
	t.Setenv("BRACE", `{"type"`)
	b := newBench(t, 0)
	script := `echo "plain $AGENT_KEY"
echo "{\"type\":\"text\",\"text\":\"in JSON: $AGENT_KEY and key-of\\/the\\u0020agent\"}"
echo "{\"type\":\"event\",\"name\":\"n $AGENT_KEY\",\"data\":{\"$AGENT_KEY\":[\"\\u006bey-of\\/the agent\",$AGENT_PIN,12.5,true],\"kept\":1.50}}"
echo "{\"type\":\"action\",\"id\":\"1\",\"name\":\"x\",\"input\":{\"a\" : 1.0}}"
echo "{\"type\":\"skills_advertised\",\"skills\":[{\"name\":\"s $AGENT_KEY\"}]}"
echo "because of $AGENT_KEY" >&2; exit 3`
	lines := sh(script)
	claude := sh(`echo "{\"type\":\"result\",\"subtype\":\"error\",\"is_error\":true,\"result\":\"no: $AGENT_KEY\"}"`)
	claude.Adapter = "claude"
	lines.Env = []string{"AGENT_KEY", "AGENT_PIN", "SHORT", "BRACE", "ABSENT"}
	claude.Env = lines.Env
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"lines": lines, "claude": claude}, Default: "lines"})

	r := b.end(b.create(nil))
	if r.State != state.RunFailed || !strings.Contains(r.StatusMessage, "because of ***") {
		t.Errorf("%s %s", r.State, r.StatusMessage)
	}
	if got := b.said(r); got != "plain ***\nin JSON: *** and ***\n" {
		t.Errorf("said %q", got)
	}
	blocks := b.blocks(r)
	if n := len(blocks); n != 3 || string(blocks[1].Data) != `{"***":["***","***",12.5,true],"kept":1.50}` || blocks[1].Name != "n ***" || string(blocks[2].Input) != `{"a" : 1.0}` && string(blocks[2].Input) != `{"a":1.0}` {
		t.Errorf("%d blocks: %s", n, blocks)
	}
	if string(r.Skills) != `[{"name":"s ***"}]` {
		t.Errorf("skills %s", r.Skills)
	}

	r = b.end(b.create(func(n *state.NewRun) { n.Config = []byte(`{"harness":{"type":"claude"}}`) }))
	if r.State != state.RunFailed || strings.Contains(r.StatusMessage, "agent") || !strings.Contains(r.StatusMessage, "***") {
		t.Errorf("%s %s", r.State, r.StatusMessage)
	}
}
