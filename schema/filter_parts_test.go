package schema_test

import (
	"encoding/json"
	"slices"
	"testing"

	"millwright/schema"
)

func TestFilterParts(t *testing.T) {
	for raw, want := range map[string]struct {
		payload  string
		webhooks []string
	}{
		`{"status": ["failed"]}`: {`{"status": ["failed"]}`, nil},
		`{"webhook_ids": ["wh_1"], "payload": {"status": ["failed"]}}`:         {`{"status": ["failed"]}`, []string{"wh_1"}},
		`{"filter": {"webhook_ids": ["wh_1"], "payload": {"status": ["x"]}}}`:  {`{"status": ["x"]}`, []string{"wh_1"}},
		`{"webhook_ids": ["wh_1", "wh_2"]}`:                                    {``, []string{"wh_1", "wh_2"}},
		`{"payload": {"status": ["failed"]}}`:                                  {`{"payload": {"status": ["failed"]}}`, nil},
		`{"filter": ["x"]}`:                                                    {`{"filter": ["x"]}`, nil},
		`{"filter": {"payload": ["x"]}}`:                                       {`{"filter": {"payload": ["x"]}}`, nil},
		`{"webhook_ids": {"in": ["x"]}}`:                                       {`{"webhook_ids": {"in": ["x"]}}`, nil},
		`{"webhook_ids": ["wh_1"], "payload": {"a": [1]}, "action": ["open"]}`: {`{"webhook_ids": ["wh_1"], "payload": {"a": [1]}, "action": ["open"]}`, nil},
		`null`: {`null`, nil},
		`[]`:   {`[]`, nil},
	} {
		got := schema.FilterParts(json.RawMessage(raw))
		if string(got.Payload) != want.payload || !slices.Equal(got.Webhooks, want.webhooks) {
			t.Errorf("%s: %s %v, want %s %v", raw, got.Payload, got.Webhooks, want.payload, want.webhooks)
		}
	}

	got := schema.FilterParts(json.RawMessage(`{"webhook_ids": ["wh_1"], "headers": {"X-Kind": ["push"]}}`))
	if string(got.Headers) != `{"X-Kind": ["push"]}` || got.Payload != nil || len(got.Webhooks) != 1 {
		t.Errorf("with headers: %+v", got)
	}
}
