package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Check runs the rules that need state on a loaded tree, and returns their
// problems in order. It is what Load does with known.
func (f *Factory) Check(known Known) []Problem {
	problems, _ := f.checkState(&known)
	SortProblems(problems)
	return problems
}

// Check runs the rules that need state, again if Load ran them already, also on
// a tree that has other errors. It replaces what it found before.
func (r *Result) Check(known Known) {
	r.finish(&known)
}

// checkState runs the rules that look at webhook_ids and at state, and returns
// the names of those that could not run.
func (f *Factory) checkState(known *Known) (problems []Problem, notChecked []string) {
	if known == nil {
		known = &Known{}
	}
	if f == nil {
		f = &Factory{}
	}

	skipped := map[RuleID]bool{ // see the plan
		RuleWebhookRenamed: true, RulePruneGuard: true, RuleSenderContract: true, RuleWebhookLast: true,
		RuleDeliveriesLimit: true,
	}
	if known.Secrets == nil {
		skipped[ruleSecretMissing], skipped[ruleSecretNotGranted] = true, true
		skipped[ruleSecretNotURLSafe], skipped[ruleSecretNotVisible] = true, true
	}
	if len(f.Sealed) > 0 && (known.Secrets == nil || known.Used == nil) {
		skipped[ruleSealedTaken] = true
	}
	if len(f.Sealed) > 0 && known.Sealed == nil {
		skipped[ruleSealedOpen] = true
	}
	if known.Reserved == nil {
		skipped[ruleSecretReserved] = true
	}
	if known.KnownUIDs == nil {
		skipped[RuleWebhookUnknown] = true
	}
	if known.HarnessTypes == nil {
		skipped[ruleHarnessUnknown] = true
	}
	if known.ForgeKinds == nil {
		skipped[ruleTriggerNoForge] = true
	}

	c := stateCheck{known: known, factory: f, skipped: skipped}
	c.sealedSecrets()
	for i := range f.facts {
		switch fact := &f.facts[i]; fact.kind {
		case factWebhookID:
			c.webhookID(fact)
		case factSecret:
			c.secret(fact)
		case factGrant, factReference:
			c.grant(fact)
		case factHarness:
			c.harness(fact)
		case factForge:
			c.forge(fact)
		}
	}

	for rule := range skipped {
		notChecked = append(notChecked, rule.Code())
	}

	slices.Sort(notChecked)
	return c.problems, notChecked
}

// reserved reports a secret that the server itself uses, and whether it is one.
func (c *stateCheck) reserved(f *fact) bool {
	use, ok := c.known.Reserved[f.value]
	if ok {
		c.report(f, ruleSecretReserved, fmt.Sprintf("the team secret %s is %s", quoted(f.value), use),
			"name another secret, or allow this one with sharedSecrets in the server's settings")
	}
	return ok
}

// secretNames returns the secrets that a definition may name, in order.
func (c *stateCheck) secretNames() []string {
	if c.names == nil {
		names := slices.Concat(sortedKeys(c.known.Secrets), c.factory.sealedNames)
		slices.Sort(names)
		c.names = slices.DeleteFunc(slices.Compact(names), func(name string) bool {
			_, reserved := c.known.Reserved[name]
			return reserved
		})
	}
	return c.names
}

func (c *stateCheck) secret(f *fact) {
	if c.reserved(f) || c.known.Secrets == nil {
		return
	}

	s, ok := c.secretFact(f.value)
	if !ok && f.registered {
		return
	}
	if !ok {
		near := c.suggest(f.value, c.secretNames())
		p := c.report(
			f,
			ruleSecretMissing,
			fmt.Sprintf("the team secret %s does not exist", quoted(f.value)),
			didYouMean(near, "make it first: millwright secret set "+ShellWord(f.value)+generated(f)),
		)
		if near != "" {
			p.Fix = f.fix(near)
		}

		return
	}

	if s.Pending {
		return
	}

	switch {
	case f.urlToken && s.URLSafe == nil:
		c.skipped[ruleSecretNotURLSafe] = true
	case f.urlToken && !*s.URLSafe:
		c.report(
			f,
			ruleSecretNotURLSafe,
			fmt.Sprintf("the value of the secret %s cannot be part of a URL", quoted(f.value)),
			"with authMode: url_token the value may hold only letters, digits, -, ., _ and ~",
		)

	case f.token && s.VisibleASCII == nil:
		c.skipped[ruleSecretNotVisible] = true
	case f.token && !*s.VisibleASCII:
		c.report(
			f,
			ruleSecretNotVisible,
			fmt.Sprintf(
				"the value of the secret %s holds blanks or characters beyond ASCII, "+
					"which many senders cannot put into a header",
				quoted(f.value),
			),
			"give the secret a value of visible ASCII characters",
		)
	}
}

// generated is the flag that generates a secret, for one that no provider issues.
func generated(f *fact) string {
	if f.token || f.urlToken {
		return " --generate"
	}
	return ""
}

func (c *stateCheck) grant(f *fact) {
	if c.reserved(f) || c.known.Secrets == nil {
		return
	}
	if _, ok := c.secretFact(f.value); !ok {
		near := c.suggest(f.value, c.secretNames())
		p := c.report(
			f,
			ruleSecretNotGranted,
			fmt.Sprintf("the team secret %s does not exist", quoted(f.value)),
			didYouMean(near, "make it first: millwright secret set "+ShellWord(f.value)),
		)
		if near != "" && f.kind == factGrant {
			p.Fix = f.fix(near)
		}
	}
}

func (c *stateCheck) harness(f *fact) {
	if c.known.HarnessTypes == nil || f.value == "oz" || slices.Contains(c.known.HarnessTypes, f.value) {
		return
	}
	near := c.suggest(f.value, c.known.HarnessTypes)
	c.report(f, ruleHarnessUnknown, fmt.Sprintf("the server has no harness %s", quoted(f.value)),
		didYouMean(near, "it has "+listed(c.known.HarnessTypes)))
}

func (c *stateCheck) webhookID(f *fact) {
	if ParseUID(f.value) {
		c.uid(f)
		return
	}

	if name, ok := c.factory.webhookFile(f.value); ok {
		uid := c.known.UIDs[name]
		hint := "webhook_ids takes UIDs; put it in with: millwright webhook uids --write"
		if uid != "" {
			hint = fmt.Sprintf("write %s, the UID of %s", uid, name)
		}

		p := c.report(
			f,
			ruleWebhookIDs,
			fmt.Sprintf("%s is the name of a webhook's file, not its UID", quoted(f.value)),
			hint,
		)
		if uid != "" {
			p.Fix = f.fix(uid)
		}

		return
	}

	hint := "a UID is wh_ and 26 of the characters 0-9 a-z without i, l, o, u"
	near := c.suggest(f.value, c.factory.webhookNames)
	if uid := c.known.UIDs[near]; uid != "" {
		near = uid
	}
	if strings.HasPrefix(strings.ToLower(f.value), "wh_") {
		near = c.nearUID(f.value)
	}
	if found := uidText.FindAllString(f.value, 2); len(found) == 1 {
		near = strings.ToLower(found[0])
	}

	p := c.report(
		f,
		ruleWebhookIDs,
		fmt.Sprintf("%s is not a webhook UID", quoted(f.value)),
		didYouMean(near, hint),
	)
	if ParseUID(near) {
		p.Fix = f.fix(near)
	}
}

// uidText is a UID in a longer text, such as a webhook's URL, or in capital letters.
var uidText = regexp.MustCompile(`(?i)\bwh_[0-7][0-9a-hjkmnp-tv-z]{25}\b`)

func (c *stateCheck) nearUID(uid string) string {
	if c.uids == nil {
		c.uids = sortedKeys(c.known.KnownUIDs)
	}
	return c.suggest(uid, c.uids)
}

func (c *stateCheck) uid(f *fact) {
	if c.known.KnownUIDs == nil {
		return
	}
	_, ok := c.known.KnownUIDs[f.value]
	name, gone := c.known.Gone[f.value]
	if !ok && gone {
		c.goneUID(f, name)
	} else if !ok {
		other := "list the UIDs with: millwright webhook list"
		if f.value == StandInUID {
			other = "this stands in for a UID: millwright webhook uids --write puts it in, " +
				"millwright webhook list shows it"
		}

		c.report(
			f,
			RuleWebhookUnknown,
			fmt.Sprintf("%s is not a webhook of this factory: the automation does not fire for it", f.value),
			didYouMean(c.nearUID(f.value), other),
		)
	}
}

// goneUID reports the UID of a webhook that was deleted, and the one that a webhook of its name has now.
func (c *stateCheck) goneUID(f *fact, name string) {
	hint := fmt.Sprintf("bring webhooks/%s.yaml back, or take the UID out", name)
	successor := c.known.UIDs[name]
	if successor != "" {
		hint = fmt.Sprintf("write %s, the UID of %s now, or run millwright webhook uids --write", successor, name)
	}

	p := c.report(
		f,
		RuleWebhookUnknown,
		fmt.Sprintf("%s was webhook %q, which is deleted, so the automation does not fire for it", f.value, name),
		hint,
	)
	if successor != "" {
		p.Fix = f.fix(successor)
	}
}

// webhookFile reads an entry of webhook_ids as the name of a webhook's file:
// the name alone, with its ending, or with its directory.
func (f *Factory) webhookFile(s string) (name string, ok bool) {
	name = strings.TrimPrefix(strings.TrimPrefix(s, "./"), "webhooks/")
	for _, candidate := range []string{name, strings.TrimSuffix(name, ".yaml"), strings.TrimSuffix(name, ".yml")} {
		if _, found := slices.BinarySearch(f.webhookNames, candidate); found {
			return candidate, true
		}
	}
	return "", false
}

// Refuse returns the result of a tree that is not read because of a problem.
func Refuse(p Problem) *Result {
	r := &Result{tree: &Factory{}, base: []Problem{p}}
	r.finish(nil)
	return r
}

// finish runs the rules that need state and settles what the result says.
func (r *Result) finish(known *Known) {
	state, notChecked := r.tree.checkState(known)
	r.NotChecked = notChecked
	r.Problems = append(append(make([]Problem, 0, len(r.base)+len(state)), r.base...), state...)
	SortProblems(r.Problems)
	r.Factory = nil
	if r.Valid() {
		r.Factory = r.tree
	}
}
