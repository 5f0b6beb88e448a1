package schema

import (
	"fmt"
	"slices"
	"strings"
)

// webhookRegister reads what the server is to make at a forge, and ties it to the rest of the file.
func (d *document) webhookRegister(w *Webhook) {
	key, n := find(d.root, "register")
	m, ok := d.data["register"].(map[string]any)
	if key == nil || !ok {
		return
	}

	r := &Register{
		Forge:      text(m, "forge"),
		Repository: text(m, "repository"),
		Events:     slices.Compact(slices.Sorted(slices.Values(texts(m, "events")))),
	}
	w.Register = r
	forgeKey, forge := find(n, "forge")
	if forgeKey == nil || d.bad[forge] || !slices.Contains([]string{"github", "gitlab", "gitea"}, r.Forge) {
		return // the schema has said so
	}

	_, scheme := find(d.root, "signatureScheme")
	switch {
	case scheme == nil && w.AuthMode != AuthSignature:
		d.errorAt(key, ruleRegister, "register needs authMode: signature",
			"write authMode: signature and signatureScheme: "+r.Forge)
	case scheme != nil && w.AuthMode == AuthSignature && w.SignatureScheme != "" && w.SignatureScheme != r.Forge:
		d.errorAt(scheme, ruleRegister,
			fmt.Sprintf("a webhook that is registered at %s is signed as %s signs", r.Forge, r.Forge),
			"write signatureScheme: "+r.Forge)
	}

	if _, repository := find(n, "repository"); r.Forge != "gitlab" && strings.Count(r.Repository, "/") > 1 &&
		!d.bad[repository] {
		d.errorAt(repository, ruleRegister, "only repositories of GitLab have more than one slash", "write owner/name")
	}

	_, events := find(n, "events")
	if r.Forge != "gitlab" || events == nil {
		return
	}

	for _, item := range events.Content {
		if !slices.Contains(gitLabEvents, item.Value) && !d.bad[item] {
			d.errorAt(item, ruleRegister, "GitLab has no event "+quoted(item.Value)+" for webhooks",
				didYouMean(Nearest(item.Value, gitLabEvents), "there are "+listed(gitLabEvents)))
		}
	}
}
