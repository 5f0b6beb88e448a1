package agentconfig_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"millwright/schema"
	"millwright/schema/agentconfig"
)

func decode(t *testing.T, text string) agentconfig.AmbientAgentConfig {
	t.Helper()
	c, err := agentconfig.Decode(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestKeptKeys holds that keys which are not listed, numbers among them, come back as they were.
func TestKeptKeys(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{"name":"n","skills":["a"],"x":9007199254740993,"y":{"z":[1e400]}}`,
		`{"harness":{"type":"h"},"mcp_servers":{"a":{"timeout":5,"url":"https://a"}},"idle_timeout_minutes":5}`,
	} {
		var want, got map[string]any
		if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "1e400", `"1e400"`)), &want); err != nil {
			t.Fatal(err)
		}
		back := encode(t, decode(t, text))
		if err := json.Unmarshal([]byte(strings.ReplaceAll(back, "1e400", `"1e400"`)), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" || strings.Contains(text, "9007199254740993") != strings.Contains(back, "9007199254740993") {
			t.Errorf("%s comes back as %s", text, back)
		}
	}
}

// TestMask holds that nothing of env and headers is left, however the keys are written, and that what is
// given back for sealing has it.
func TestMask(t *testing.T) {
	const canary = "c4nary"
	for _, part := range []string{"env", "headers", "ENV", "Headers"} {
		for _, value := range []string{canary, canary + "${secret:A}", "${secret:A}" + canary + "${secret:B}", "${secret:" + canary} {
			text := encode(t, map[string]any{"name": "n", "mcp_servers": map[string]any{"a": map[string]any{"command": "c", part: map[string]string{"K": value}}}})
			c := decode(t, text)
			shared := c
			servers, err := c.Mask()
			if err != nil {
				t.Fatal(err)
			}
			if shown := encode(t, c); strings.Contains(shown, canary) || !strings.Contains(shown, `"K":"***"`) {
				t.Errorf("%s is shown as %s", text, shown)
			}
			if !strings.Contains(string(servers), canary) || !strings.Contains(encode(t, shared), canary) {
				t.Errorf("%s: the servers to seal are %s", text, servers)
			}
			stored, err := agentconfig.Stored(json.RawMessage(text))
			if shown := encode(t, stored); err != nil || strings.Contains(shown, canary) {
				t.Errorf("%s is answered as %s, %v", text, shown, err)
			}
			member := map[string]any{"a": []any{map[string]any{strings.ToLower(part): map[string]any{"K": value, "N": 5, "R": "${secret:A}"}}}}
			if shown := encode(t, agentconfig.MaskValue(member)); strings.Contains(shown, canary) || strings.Contains(shown, "5") || !strings.Contains(shown, "${secret:A}") {
				t.Errorf("a plan shows %s", shown)
			}
			if !strings.Contains(encode(t, member), canary) {
				t.Error("MaskValue changes what it is given")
			}
		}
	}

	c := decode(t, `{"mcp_servers":{"a":{"url":"https://a"}}}`)
	if servers, err := c.Mask(); servers != nil || err != nil {
		t.Errorf("nothing is masked, and %s is sealed, %v", servers, err)
	}
}

// TestInherit holds which of two configurations each field comes from.
func TestInherit(t *testing.T) {
	def := decode(t, `{"name":"d","model_id":"dm","base_prompt":"dp","environment_id":"de","worker_host":"dw","runner_id":"dr",
		"harness":{"type":"dh","model_id":"dhm"},"mcp_servers":{"a":{"url":"https://d"},"b":{"url":"https://d"}}}`)
	for _, x := range []struct{ given, want string }{
		{`{}`, `{"name":"d","model_id":"dhm","base_prompt":"dp","environment_id":"de","worker_host":"dw","runner_id":"dr",
			"harness":{"type":"dh","model_id":"dhm"},"mcp_servers":{"a":{"url":"https://d"},"b":{"url":"https://d"}}}`},
		{`{"name":"r","model_id":"rm","mcp_servers":{"a":{"url":"https://r"}}}`, `{"name":"r","model_id":"rm","base_prompt":"dp","environment_id":"de",
			"worker_host":"dw","runner_id":"dr","harness":{"type":"dh","model_id":"dhm"},"mcp_servers":{"a":{"url":"https://r"},"b":{"url":"https://d"}}}`},
		{`{"harness":{"type":"rh","model_id":"rhm"}}`, `{"name":"d","model_id":"rhm","base_prompt":"dp","environment_id":"de","worker_host":"dw",
			"runner_id":"dr","harness":{"type":"rh","model_id":"rhm"},"mcp_servers":{"a":{"url":"https://d"},"b":{"url":"https://d"}}}`},
	} {
		c := decode(t, x.given)
		c.Inherit(def)
		var got, want any
		if err := json.Unmarshal([]byte(encode(t, c)), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(x.want), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%s", x.given, cmp.Diff(want, got))
		}
	}
}

// TestFromDefinition holds that each key of a definition's execution reaches the configuration.
func TestFromDefinition(t *testing.T) {
	exec := schema.Execution{
		Harness: &schema.Harness{Type: "h", Model: "m", ReasoningLevel: "high"}, Runner: "r", EnvironmentID: "e", WorkerHost: "w",
		MCPServers: map[string]json.RawMessage{"a": json.RawMessage(`{"command":"c","headers":{"K":"${secret:S}"},"timeout":5}`)},
	}
	c, err := agentconfig.FromDefinition(exec, "p", "n")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"n","model_id":"m","base_prompt":"p","environment_id":"e","mcp_servers":{"a":{"command":"c","headers":{"K":"${secret:S}"},"timeout":5}},` +
		`"harness":{"type":"h","model_id":"m","reasoning_level":"high"},"worker_host":"w","runner_id":"r"}`
	if got := encode(t, c); got != want {
		t.Errorf("got %s", got)
	}
	if refs := c.MCPServers["a"].References(); len(refs) != 1 || refs[0] != (agentconfig.Reference{Part: "headers", Key: "K", Secret: "S"}) {
		t.Errorf("references: %v", refs)
	}
}

// TestSameDestination holds what makes two servers one.
func TestSameDestination(t *testing.T) {
	for _, x := range []struct {
		a, b string
		same bool
	}{
		{`{"url":"https://a"}`, `{"url":"https://a","headers":{"K":"v"},"args":[],"env":null}`, true},
		{`{"url":"https://a","Headers":{"K":"v"}}`, `{"url":"https://a"}`, true},
		{`{"url":"https://a"}`, `{"url":"https://b"}`, false},
		{`{"command":"a"}`, `{"command":"a","args":["x"]}`, false},
		{`{"command":"a"}`, `{"command":"a","env":{"PATH":"/tmp"}}`, false},
		{`{"command":"a","n":1}`, `{"command":"a","n":1}`, true},
		{`{"command":"a","n":1}`, `{"command":"a","n":1.0}`, false},
	} {
		servers, err := agentconfig.DecodeServers(json.RawMessage(`{"a":` + x.a + `,"b":` + x.b + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := servers["a"].SameDestination(servers["b"]); got != x.same {
			t.Errorf("%s and %s: %v", x.a, x.b, got)
		}
	}
}
