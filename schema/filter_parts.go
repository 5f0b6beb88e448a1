package schema

import "encoding/json"

// FilterPart is a filter of a webhook trigger, in its parts. Webhooks is nil where only the payload filter is
// given.
type FilterPart struct {
	Webhooks []string
	Headers  json.RawMessage
	Payload  json.RawMessage
}

// FilterParts takes a filter apart as it stands in an automation's file: all of a trigger's filter, with its
// webhook_ids, or the payload filter alone, which is then returned as it is.
func FilterParts(raw json.RawMessage) FilterPart {
	var outer struct{ Filter json.RawMessage }
	var members map[string]json.RawMessage
	whole := FilterPart{Payload: raw}
	if json.Unmarshal(raw, &members) != nil {
		return whole
	}
	if len(members) == 1 && json.Unmarshal(raw, &outer) == nil && outer.Filter != nil {
		if inner := FilterParts(outer.Filter); inner.Webhooks != nil {
			return inner
		}
		return whole
	}

	for key := range members {
		if key != "webhook_ids" && key != "headers" && key != "payload" {
			return whole
		}
	}

	var ids []string
	if json.Unmarshal(members["webhook_ids"], &ids) != nil || ids == nil {
		return whole
	}

	return FilterPart{ids, members["headers"], members["payload"]}
}
