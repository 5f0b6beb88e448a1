package schema_test

import (
	"reflect"
	"testing"

	"millwright/schema"
)

func TestEditWebhookFile(t *testing.T) {
	token := schema.Webhook{Name: "a", AuthMode: "token", SecretName: "A", Enabled: true}
	change := func(f func(w *schema.Webhook)) schema.Webhook {
		w := token
		f(&w)
		return w
	}
	off := change(func(w *schema.Webhook) { w.Enabled = false })
	for _, c := range []struct {
		name, src, want string
		w               schema.Webhook
	}{
		{"new", "", "authMode: token\nsecretName: A\n", token},
		{"new, disabled", "", "authMode: token\nenabled: false\nsecretName: A\n", off},
		{"nothing to do", "# ours\nsecretName:   'A' # the one\n", "# ours\nsecretName:   'A' # the one\n", token},
		{"defaults written out stay", "enabled: true\nhandshake: false\nsecretName: A\nauthMode: token\n", "enabled: true\nhandshake: false\nsecretName: A\nauthMode: token\n", token},
		{"off", "# ours\nsecretName: A # the one\n", "# ours\nsecretName: A # the one\nenabled: false\n", off},
		{"off, without a last line end", "secretName: A", "secretName: A\nenabled: false\n", off},
		{"off, with CRLF", "secretName: A\r\n", "secretName: A\r\nenabled: false\r\n", off},
		{"off, with a byte-order mark", "\ufeffsecretName: A\n", "\ufeffsecretName: A\nenabled: false\n", off},
		{"off, where it says on", "enabled: true # for now\nsecretName: A\n", "enabled: false # for now\nsecretName: A\n", off},
		{"on, in place", "secretName: A\nenabled: false # later\n", "secretName: A\nenabled: true # later\n", token},
		{"another secret", "secretName: \"B\" # B\n", "secretName: A # B\n", token},
		{"a key goes", "secretName: A\ndeliveryIdHeader: X-Id # theirs\n# end\n", "secretName: A\n# end\n", token},
		{
			"a scheme goes, with what belongs to it",
			"secretName: A\nauthMode: signature\nsignatureScheme: custom\ncustomScheme:\n  alg: hmac-sha256\n  header: X-Sig\n  template: \"{body}\"\n# end\n",
			"secretName: A\nauthMode: token\n# end\n", token,
		},
		{"a header to quote", "secretName: A\n", "secretName: A\ndeliveryIdHeader: \"X: #1\"\n", change(func(w *schema.Webhook) { w.DeliveryIDHeader = "X: #1" })},
		{"a header like a value", "secretName: A\n", "secretName: A\ndeliveryIdHeader: \"True\"\n", change(func(w *schema.Webhook) { w.DeliveryIDHeader = "True" })},
		{"an alias", "secretName: A\n", "secretName: A\nauthMode: signature\nsignatureScheme: svix\n", change(func(w *schema.Webhook) {
			w.AuthMode, w.SignatureScheme, w.SignatureSchemeAlias = "signature", "standard_webhooks", "svix"
		})},
		{"written in one line", "{secretName: A, enabled: true}\n", "authMode: token\nenabled: false\nsecretName: A\n", off},
		{"with a marked end", "secretName: A\n...\n", "authMode: token\nenabled: false\nsecretName: A\n", off},
		{"a folded value", "secretName: >-\n  B\nenabled: true\n", "authMode: token\nsecretName: A\n", token},
		{"an empty value", "secretName:\n", "authMode: token\nsecretName: A\n", token},
		{"what YAML may not have", "", "authMode: token\ndeliveryIdHeader: \"X\\x7F\\uFFFE\"\nsecretName: A\n", change(func(w *schema.Webhook) { w.DeliveryIDHeader = "X\x7f\ufffe" })},
		{"not YAML", "secretName: [\n", "authMode: token\nsecretName: A\n", token},
	} {
		var src []byte
		if c.src != "" {
			src = []byte(c.src)
		}
		got, err := schema.EditWebhookFile(src, c.w)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %q\nwant %q", c.name, err, got, c.want)
		}
	}
}

// TestEditWebhookFileLoads edits valid files to valid webhooks and loads what comes out.
func TestEditWebhookFileLoads(t *testing.T) {
	sources := []string{"", "secretName: A\n", "# c\n\nauthMode: url_token\nsecretName: \"A\"\n\n# d\n", "enabled: false\nsecretName: A\nauthMode: signature\nsignatureScheme: github\ndeliveryIdHeader: X-Id\n"}
	for _, src := range sources {
		for _, w := range []schema.Webhook{
			{AuthMode: "token", SecretName: "A", Enabled: true},
			{AuthMode: "url_token", SecretName: "_b2", DeliveryIDHeader: "X-Event!1", Enabled: false},
			{AuthMode: "signature", SignatureScheme: "slack", SecretName: "C", Enabled: true, Handshake: true},
		} {
			w.Name, w.Path = "a", "webhooks/a.yaml"
			text, err := schema.EditWebhookFile([]byte(src), w)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := schema.FilesFS([]schema.File{{Path: w.Path, Content: string(text)}})
			if err != nil {
				t.Fatal(err)
			}
			r := schema.Load(tree, nil)
			if r.Valid() && len(r.Factory.Webhooks) == 1 {
				w.Line = r.Factory.Webhooks[0].Line // where is not what
			}
			if !r.Valid() || len(r.Factory.Webhooks) != 1 || !reflect.DeepEqual(r.Factory.Webhooks[0], w) {
				t.Errorf("from %q:\n%s: %v %+v", src, text, r.Problems, w)
			}
		}
	}
}

// FuzzEditWebhookFile edits any text: the result has the wanted keys.
func FuzzEditWebhookFile(f *testing.F) {
	for _, seed := range []string{"", "secretName: A\n", "# c\r\nsecretName: 'A' # d\r\nenabled: true", "{secretName: A}", "secretName: >-\n  A\n  B\nauthMode:\n", "? secretName\n: A\n", "\ufeffdeliveryIdHeader: \"x\\ny\"\n---\n"} {
		f.Add(seed, false, "X-Id")
	}
	f.Fuzz(func(t *testing.T, src string, enabled bool, header string) {
		w := schema.Webhook{Name: "a", Path: "webhooks/a.yaml", AuthMode: "token", SecretName: "A", Enabled: enabled}
		if header == "X-Id" {
			w.DeliveryIDHeader = header
		}
		text, err := schema.EditWebhookFile([]byte(src), w)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := schema.FilesFS([]schema.File{{Path: w.Path, Content: string(text)}})
		if err != nil {
			t.Fatal(err)
		}
		r := schema.Load(tree, nil)
		if r.Valid() && len(r.Factory.Webhooks) == 1 {
			w.Line = r.Factory.Webhooks[0].Line
		}
		if len(text) < schema.MaxFileBytes && (!r.Valid() || !reflect.DeepEqual(r.Factory.Webhooks, []schema.Webhook{w})) {
			t.Fatalf("from %q:\n%q: %v", src, text, r.Problems)
		}
	})
}
