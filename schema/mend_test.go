package schema_test

import (
	"testing"

	"millwright/schema"
)

// TestFixesKeepFilesWhole holds what --fix and webhook uids --write make of values that stand on several lines.
func TestFixesKeepFilesWhole(t *testing.T) {
	for _, x := range []struct{ path, text, want string }{
		{"webhooks/x.yaml", "authMode: |-\n  tokn\nsecretName: A\n", ""},
		{"webhooks/x.yaml", "authMode: >-\n  tokn\nsecretName: A\n", ""},
		{"webhooks/x.yaml", "authMode: tok\n  n\nsecretName: A\n", ""},
		{"webhooks/x.yaml", "authMode: \"tok\\\n  n\"\nsecretName: A\n", ""},
		{"webhooks/x.yaml", "secretNme: A\nsecretNam: B\n", ""},
		{"webhooks/x.yaml", "? secret\n  Nme\n: A\n", ""},
		{"webhooks/x.yaml", "authMode:\n  tokn\nsecretName: A\n", "authMode:\n  token\nsecretName: A\n"},
		{"webhooks/x.yaml", "authMode: 'tokn' # soon\nsecretNme: A\n", "authMode: 'token' # soon\nsecretName: A\n"},
		{"webhooks/x.yaml", "authMode: tokn\nsecretNme: A\nsecretNam: B\n", "authMode: token\nsecretNme: A\nsecretNam: B\n"},
	} {
		if x.want == "" {
			x.want = x.text
		}
		r := load(t, nil, x.path, x.text)
		got, _ := schema.Mend(x.path, []byte(x.text), r.Problems)
		if string(got) != x.want {
			t.Errorf("%q becomes %q", x.text, got)
		}
	}

	const uid = "wh_01h2xcejqtf2nbrexx3vqjhp41"
	for _, item := range []string{"|-\n          ci", ">-\n          ci", "c\n          i"} {
		text := "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids:\n        - " + item + "\n---\nGo.\n"
		got, err := schema.RewriteWebhookIDs([]byte(text), "automations/a/automation.md", map[string]string{"ci": uid, "c i": uid})
		if err == nil || string(got) != text {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	}
}
