package schema

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// outputs reads what may leave the runs of an automation.
func (d *document) outputs() *Outputs {
	key, n := find(d.root, "outputs")
	m, ok := d.data["outputs"].(map[string]any)
	if !ok || d.bad[n] {
		return nil
	}

	o := &Outputs{Approval: text(m, "approval"), Protect: texts(m, "protect")}
	if pull, ok := m["pullRequest"].(map[string]any); ok {
		o.PullRequest = d.pullRequest(child(n, "pullRequest"), pull)
	}
	if comment, ok := m["comment"].(map[string]any); ok {
		o.Comment = &CommentOutput{Max: count(comment, "max", 1)}
	}
	if labels, ok := m["labels"].(map[string]any); ok {
		o.Labels = &LabelsOutput{Allow: texts(labels, "allow"), Max: count(labels, "max", defaultLabels)}
	}
	if status, ok := m["status"].(map[string]any); ok {
		o.Status = &StatusOutput{Context: cmp.Or(text(status, "context"), DefaultStatusContext)}
		d.placeholders(child(child(n, "status"), "context"), placeholderAutomation)
	}
	if review, ok := m["review"].(map[string]any); ok {
		o.Review = &ReviewOutput{Max: count(review, "max", 1), Events: texts(review, "events")}
		if o.Review.Events == nil {
			o.Review.Events = []string{"COMMENT"}
		}
	}

	for _, p := range items(child(n, "protect")) {
		d.protected(p)
	}

	if d.anyBad(n) {
		return o
	}
	if o.PullRequest == nil && o.Comment == nil && o.Labels == nil && o.Status == nil && o.Review == nil {
		d.errorAt(key, ruleOutputs, "outputs names no kind of output",
			"add one of pullRequest, comment, labels, status and review, or delete this key")
	} else if at, _ := find(n, "protect"); at != nil && o.PullRequest == nil {
		d.errorAt(at, ruleOutputs, "protect belongs to outputs with pullRequest",
			"only a pull request changes files: add pullRequest, or delete this key")
	}

	return o
}

func (d *document) pullRequest(n *yaml.Node, m map[string]any) *PullRequestOutput {
	p := &PullRequestOutput{
		Base:   text(m, "base"),
		Branch: cmp.Or(text(m, "branch"), DefaultBranch),
		Draft:  boolean(m, "draft", true),
		Labels: texts(m, "labels"),
	}

	if base := child(n, "base"); base != nil && !d.bad[base] && !ValidRef(p.Base) {
		d.errorAt(base, ruleOutputs, fmt.Sprintf("%s cannot be the name of a branch", quoted(p.Base)),
			"write the name alone, for example: main")
	}

	branch := child(n, "branch")
	if branch == nil || d.bad[branch] || !d.placeholders(branch, placeholderAutomation, placeholderRun) {
		return p
	}

	folder, _, nested := strings.Cut(p.Branch, "/")
	switch {
	case !strings.Contains(p.Branch, placeholderRun):
		d.errorAt(branch, ruleOutputs, "the branch has no {run}",
			"each run needs a branch of its own, for example: "+DefaultBranch)
	case !nested || strings.Contains(folder, "{"):
		d.errorAt(branch, ruleOutputs, "the branch does not begin with a folder of its own",
			"begin with a folder that only agents push to, for example: "+DefaultBranch)
	case !ValidRef(p.BranchOf("a", "r")):
		d.errorAt(branch, ruleOutputs, fmt.Sprintf("%s cannot be the name of a branch", quoted(p.Branch)),
			"use letters, digits, dots, dashes and slashes, for example: "+DefaultBranch)
	}

	return p
}

// placeholders reports the placeholders of a text that are not among those known, and whether there are none.
func (d *document) placeholders(n *yaml.Node, known ...string) bool {
	if n == nil || d.bad[n] {
		return false
	}

	rest := n.Value
	for _, k := range known {
		rest = strings.ReplaceAll(rest, k, "")
	}
	if !strings.ContainsAny(rest, "{}") {
		return true
	}

	d.errorAt(n, ruleOutputs, fmt.Sprintf("%s has an unknown placeholder", quoted(n.Value)),
		"known: "+strings.Join(known, ", "))
	return false
}

// protected checks a path of protect.
func (d *document) protected(n *yaml.Node) {
	if d.bad[n] || n.Kind != yaml.ScalarNode {
		return
	}

	p := strings.TrimSuffix(n.Value, "/")
	switch {
	case strings.ContainsAny(p, "*?[\\"):
		d.errorAt(n, ruleOutputs, fmt.Sprintf("%s has a pattern", quoted(n.Value)),
			"name a file, or a folder: everything below it is protected too")
	case strings.HasPrefix(p, "/"), p == "", p != path.Clean(p), slices.Contains(strings.Split(p, "/"), ".."), p == ".":
		d.errorAt(n, ruleOutputs, fmt.Sprintf("%s is not a path in a repository", quoted(n.Value)),
			"write it relative to the root of the repository, for example: deploy/")
	}
}

func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// count reads a whole number that the structure check bounds.
func count(m map[string]any, key string, absent int) int {
	if n := int(number(m, key)); n > 0 {
		return n
	}
	return absent
}
