package schema_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"millwright/schema"
	"millwright/schema/provider"
)

// BenchmarkTriggers judges a delivery of GitHub by one custom trigger, and by ten of its events of which one
// matches.
func BenchmarkTriggers(b *testing.B) {
	named, body, _ := provider.Example("github", "pull_request_opened")
	compile := func(t schema.Trigger) *schema.Matcher {
		m, err := schema.CompileTrigger(t)
		if err != nil {
			b.Fatal(err)
		}
		return m
	}

	judge := func(b *testing.B, parse func([]byte) (schema.Payload, error), all []*schema.Matcher) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			payload, err := parse(body)
			if err != nil {
				b.Fatal(err)
			}

			matched := 0
			d := &schema.Delivered{Scheme: "github", Event: named, Body: body, Payload: payload}
			for _, m := range all {
				if m.Match(d) {
					matched++
				}
			}
			if matched != 1 {
				b.Fatalf("%d match", matched)
			}
		}
	}

	custom := compile(schema.Trigger{
		Provider: "webhook", Event: "received",
		Payload: json.RawMessage(
			`{"action":["opened"],"repository":{"full_name":["acme/shop"]},"pull_request":{"base":{"ref":["main"]}}}`),
	})
	b.Run("custom", func(b *testing.B) { judge(b, schema.ParsePayload, []*schema.Matcher{custom}) })

	var events []*schema.Matcher
	for i := range 10 {
		filter := `{"repos":["acme/shop"],"base_branches":["main"]}`
		if i > 0 {
			filter = fmt.Sprintf(`{"repos":["acme/other"],"labels":["other%d"]}`, i)
		}
		events = append(events, compile(schema.Trigger{
			Provider: "github", Event: "pull_request_opened", Filter: json.RawMessage(filter),
		}))
	}
	valid := func(body []byte) (schema.Payload, error) { return schema.Payload{}, schema.ValidJSON(body) }
	b.Run("events", func(b *testing.B) { judge(b, valid, events) })
}
