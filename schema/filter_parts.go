package schema

import "encoding/json"

// FilterParts takes a filter apart as it stands in an automation's file: all of a trigger's filter, with its
// webhook_ids, or the payload filter alone, which is then returned as it is, without webhooks.
func FilterParts(raw json.RawMessage) (payload json.RawMessage, webhooks []string) {
	var outer struct{ Filter json.RawMessage }
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return raw, nil
	}
	if len(members) == 1 && json.Unmarshal(raw, &outer) == nil && outer.Filter != nil {
		if payload, webhooks := FilterParts(outer.Filter); webhooks != nil {
			return payload, webhooks
		}
		return raw, nil
	}

	ids, has := members["webhook_ids"]
	if _, payload := members["payload"]; !has || len(members) > 2 || len(members) == 2 && !payload {
		return raw, nil
	}
	if json.Unmarshal(ids, &webhooks) != nil || webhooks == nil {
		return raw, nil
	}

	return members["payload"], webhooks
}
