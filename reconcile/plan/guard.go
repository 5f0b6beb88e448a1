package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"millwright/schema"
	"millwright/state"
)

// guard adds the problems of the change as a whole (docs/checks.md): a renamed webhook, the deletion of
// too many or of the only one, and a webhook whose sender must do something else from now on.
func (p *Plan) guard(cur state.Current, tree *schema.Factory, opts Options) {
	live := liveByName(cur, opts)
	var added []schema.Webhook
	for _, w := range tree.Webhooks {
		p.guardDeliveries(w, opts)
		old, exists := live[w.Name]
		if !exists {
			added = append(added, w)
			old, exists = cur.Restorable[w.Name]
		}

		delete(live, w.Name)
		if exists {
			p.guardContract(old.Spec, w)
		}
	}

	removed := slices.SortedFunc(maps.Values(live), func(a, b state.Webhook) int {
		return strings.Compare(a.Spec.Name, b.Spec.Name)
	})
	renamed := 0
	if !opts.AllowRename {
		renamed = p.guardRenames(cur, tree, removed, added, opts)
	}

	total := len(cur.Webhooks)
	switch {
	case opts.AllowPrune || renamed > 0 && total == 1:
	case prunes(len(removed), total):
		p.Problems = append(p.Problems, schema.FileProblem(
			"webhooks",
			schema.RulePruneGuard,
			fmt.Sprintf(
				"this would delete %d of %d webhooks, and their URLs would answer 404 from then on",
				len(removed),
				total,
			),
			fmt.Sprintf(
				"if it is meant, run millwright sync --allow-prune%s, or set allowPrune: true beside the "+
					"source "+
					"in the settings; if not, look at the branch and path of the source",
				ofRevision(opts),
			),
		))

	case total == 1 && len(removed) == 1 && cur.LastInUse:
		name := removed[0].Spec.Name
		p.Problems = append(p.Problems, schema.FileProblem(
			removed[0].Spec.Path,
			schema.RuleWebhookLast,
			fmt.Sprintf(
				"this deletes %q, the factory's only webhook, which accepted deliveries within the last "+
					"7 days: "+
					"its URL answers 404 from then on",
				name,
			),
			fmt.Sprintf(
				"if the file only moved, move it back to webhooks/%s.yaml: within 30 days it gets the "+
					"same URL",
				name,
			),
		))
	}
}

// ofRevision is the flag that binds a permission to the revision of a plan, where that has a name.
func ofRevision(opts Options) string {
	if opts.Revision.ID == "" {
		return ""
	}
	return " --revision " + schema.ShellWord(opts.Revision.ID)
}

// guardDeliveries refuses a budget of more than the server allows.
func (p *Plan) guardDeliveries(w schema.Webhook, opts Options) {
	if opts.MaxDeliveries == 0 || w.DeliveriesPerMinute <= opts.MaxDeliveries {
		return
	}

	p.Problems = append(p.Problems, schema.FileProblem(
		w.Path,
		schema.RuleDeliveriesLimit,
		fmt.Sprintf(
			"deliveriesPerMinute of webhook %q is %d, and the server allows at most %d",
			w.Name,
			w.DeliveriesPerMinute,
			opts.MaxDeliveries,
		),
		"lower it, or raise limits.maxDeliveriesPerMinute in the server's settings",
	))
}

// guardContract warns when the sender of a webhook must authenticate in another way.
func (p *Plan) guardContract(old, w schema.Webhook) {
	if old.AuthMode == w.AuthMode && old.SignatureScheme == w.SignatureScheme &&
		reflect.DeepEqual(old.CustomScheme, w.CustomScheme) {
		return
	}

	how := fmt.Sprintf("from %s to %s", contract(old), contract(w))
	if contract(old) == contract(w) {
		how = "by another customScheme"
	}

	p.Problems = append(p.Problems, schema.FileProblem(
		w.Path,
		schema.RuleSenderContract,
		fmt.Sprintf("webhook %q changes how its sender authenticates, %s", w.Name, how),
		"change the sender at the same time: deliveries made the old way will be answered 401",
	))
}

// prunes reports whether the deletion needs a confirmation: all of two or more webhooks, or more than half
// of four or more.
func prunes(deleted, total int) bool {
	return total >= 2 && deleted == total || total >= 4 && 2*deleted > total
}

// guardRenames adds an error for each added webhook that is a removed one under another name, and returns how
// many there are. Each removed webhook explains one added one: first those of the same content, then those
// that alone use a secret.
func (p *Plan) guardRenames(
	cur state.Current,
	tree *schema.Factory,
	removed []state.Webhook,
	added []schema.Webhook,
	opts Options,
) int {
	explained, used := map[string]bool{}, map[string]bool{}
	pair := func(same func(old, w schema.Webhook) bool) {
		for _, w := range added {
			i := slices.IndexFunc(removed, func(old state.Webhook) bool {
				return !used[old.UID] && !replaces(cur, w, old) && same(old.Spec, w)
			})
			if i < 0 || explained[w.Name] {
				continue
			}

			explained[w.Name], used[removed[i].UID] = true, true
			p.renamed(w, removed[i], ofRevision(opts), opts.Public)
		}
	}

	pair(sameContent)
	before, after := users(cur.Tree.Webhooks), users(tree.Webhooks)
	pair(func(old, w schema.Webhook) bool {
		return old.SecretName == w.SecretName && before[w.SecretName] == 1 && after[w.SecretName] == 1
	})

	return len(explained)
}

// replaces reports whether w comes back, and old took its place when it went: the inverse of a rename.
func replaces(cur state.Current, w schema.Webhook, old state.Webhook) bool {
	back, returns := cur.Restorable[w.Name]
	return returns && !old.Created.Before(*back.Deleted)
}

// users counts the webhooks that use each secret.
func users(webhooks []schema.Webhook) map[string]int {
	n := map[string]int{}
	for _, w := range webhooks {
		n[w.SecretName]++
	}
	return n
}

// renamed reports a webhook under another name. A plan that anybody may read leaves out its UID.
func (p *Plan) renamed(w schema.Webhook, old state.Webhook, flag string, public bool) {
	which := " (UID " + old.UID + ")"
	if public {
		which = ""
	}

	p.Problems = append(p.Problems, schema.FileProblem(
		w.Path,
		schema.RuleWebhookRenamed,
		fmt.Sprintf(
			"webhook %q is webhook %q under another name: renaming is not supported, since the URL that its "+
				"sender has%s would stop working",
			w.Name,
			old.Spec.Name,
			which,
		),
		fmt.Sprintf(
			"keep webhooks/%s.yaml, or apply the new file first and delete the old one in a later "+
				"revision, or, "+
				"if it is meant, run millwright sync --allow-rename%s or set allowRename: true beside "+
				"the source in "+
				"the settings",
			old.Spec.Name,
			flag,
		),
	))
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
