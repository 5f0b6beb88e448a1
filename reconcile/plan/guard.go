package plan

import (
	"fmt"
	"reflect"

	"millwright/schema"
	"millwright/state"
)

// guard adds the problems of the change as a whole (definitions.md, section 7): a renamed webhook, the
// deletion of too many, and a webhook whose sender must do something else from now on.
func (p *Plan) guard(cur state.Current, tree *schema.Factory, opts Options) {
	live := liveByName(cur)
	var added []schema.Webhook
	for _, w := range tree.Webhooks {
		old, exists := live[w.Name]
		if !exists {
			added = append(added, w)
			continue
		}

		delete(live, w.Name)
		if old.Spec.AuthMode != w.AuthMode || old.Spec.SignatureScheme != w.SignatureScheme ||
			!reflect.DeepEqual(old.Spec.CustomScheme, w.CustomScheme) {
			how := fmt.Sprintf("from %s to %s", contract(old.Spec), contract(w))
			if contract(old.Spec) == contract(w) {
				how = "by another customScheme"
			}

			p.Problems = append(p.Problems, schema.FileProblem(w.Path, schema.RuleSenderContract,
				fmt.Sprintf("webhook %q changes how its sender authenticates, %s", w.Name, how),
				"change the sender at the same time: deliveries made the old way will be answered 401"))
		}
	}

	if !opts.AllowRename {
		p.guardRenames(cur, live, added)
	}

	if deleted, total := len(live), len(cur.Webhooks); !opts.AllowPrune && prunes(deleted, total) {
		p.Problems = append(p.Problems, schema.FileProblem(
			"webhooks",
			schema.RulePruneGuard,
			fmt.Sprintf(
				"this would delete %d of %d webhooks, and their URLs would answer 404 from then on",
				deleted,
				total,
			),
			"if it is meant, run millwright sync --allow-prune, or set allowPrune: true beside the source in the settings; if not, look at the branch and path of the source",
		))
	}
}

// prunes reports whether deleting so many webhooks of so many needs leave: all of two or more, or more
// than half of four or more.
func prunes(deleted, total int) bool {
	return total >= 2 && deleted == total || total >= 4 && 2*deleted > total
}

// guardRenames adds an error for each added webhook with the content of one that is removed. Each removed
// webhook explains one added one, in the order of names.
func (p *Plan) guardRenames(cur state.Current, removed map[string]state.Webhook, added []schema.Webhook) {
	used := map[string]bool{}
	for _, w := range added {
		for _, old := range cur.Webhooks {
			name := old.Spec.Name
			if _, gone := removed[name]; !gone || used[name] || !sameContent(old.Spec, w) {
				continue
			}

			used[name] = true
			p.Problems = append(p.Problems, schema.FileProblem(
				w.Path,
				schema.RuleWebhookRenamed,
				fmt.Sprintf(
					"webhook %q is webhook %q under another name: renaming is not supported, since the URL that its sender has (UID %s) would stop working",
					w.Name,
					name,
					old.UID,
				),
				fmt.Sprintf(
					"keep webhooks/%s.yaml, or apply the new file first and delete the old one in a later revision, or, if it is meant, run millwright sync --allow-rename or set allowRename: true beside the source in the settings",
					name,
				),
			))

			break
		}
	}
}

func sameContent(a, b schema.Webhook) bool {
	a.Name, a.Path, a.Line = "", "", 0
	b.Name, b.Path, b.Line = "", "", 0
	return reflect.DeepEqual(members(a), members(b))
}

func contract(w schema.Webhook) string {
	if w.SignatureScheme != "" {
		return fmt.Sprintf("%s (%s)", w.AuthMode, w.SignatureScheme)
	}
	return string(w.AuthMode)
}
