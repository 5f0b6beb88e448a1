package request

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"millwright/schema"
)

// Repository is a repository that a run was given, at its forge.
type Repository struct {
	Forge string `json:"forge,omitempty"` // empty: the default one
	Owner string `json:"owner"`
	Name  string `json:"name"`
}

// String returns owner/name.
func (r Repository) String() string { return r.Owner + "/" + r.Name }

// Checkout is a repository of a run and the commit that its changes begin at.
type Checkout struct {
	Repository
	BaseCommit, BaseBranch string
	Untrusted              bool // the commit is a fork's
}

// Change is what a run changed in a repository.
type Change struct {
	Repository Repository
	Bundle     string // UID of the artifact
	Head       string // commit
}

// Target is what the delivery of a run is about. Fields are empty where a delivery does not say.
type Target struct {
	Repository string // owner/name
	Number     int    // of an issue or pull request
	Pull       bool   // Number is a pull request's
	Commit     string
	Branch     string     // that Commit is on, by the delivery
	At         Repository // the repository of the factory that Repository is, if it is one
}

// Act is an output to perform: what the outbox stores.
type Act struct {
	Repository Repository `json:"repository,omitzero"`
	Number     int        `json:"number,omitempty"`
	Pull       bool       `json:"pull,omitempty"`

	Title    string        `json:"title,omitempty"`
	Body     string        `json:"body,omitempty"`
	Add      []string      `json:"add,omitempty"`
	Remove   []string      `json:"remove,omitempty"`
	Event    string        `json:"event,omitempty"`
	Comments []LineComment `json:"comments,omitempty"`
	URL      string        `json:"url,omitempty"`

	Base       string   `json:"base,omitempty"`
	BaseCommit string   `json:"base_commit,omitempty"`
	Branch     string   `json:"branch,omitempty"`
	Head       string   `json:"head,omitempty"`
	Bundle     string   `json:"bundle,omitempty"`
	Draft      bool     `json:"draft,omitempty"`
	Labels     []string `json:"labels,omitempty"`

	Person bool `json:"person,omitempty"` // a person asked for it, not the agent
}

// Verdict is what becomes of a request.
type Verdict struct {
	Line   int    // from 1; 0: the server made it
	Type   string // empty: the line could not be read
	Act    Act
	Staged string // why a person has to agree; empty: nobody has to
	Refuse string // why it is refused; empty: it is not
}

// Work is what an execution left.
type Work struct {
	Run          string
	Title        string // of the run
	Automation   string // its name
	Allowed      schema.Outputs
	Ended        string // the state, when the execution did not succeed
	Lines        []json.RawMessage
	Numbers      []int // of Lines in the agent's file; without one for each they are counted from 1
	Target       Target
	Repositories []Checkout
	Changes      []Change
	Continues    []Repository // that have a pull request of this run already
	Secrets      Secrets
}

// Judge decides about the requests of an execution, in their order.
func Judge(w Work) []Verdict {
	var all []Verdict
	counts := map[string]int{}
	for i, line := range w.Lines {
		number := i + 1
		if len(w.Numbers) == len(w.Lines) {
			number = w.Numbers[i]
		}
		if i == MaxLines {
			all = append(all, Verdict{Line: number, Refuse: fmt.Sprintf(
				"there are %d requests: at most %d are read", len(w.Lines), MaxLines)})
			break
		}

		r, err := parse(line)
		if err == nil {
			err = r.check()
		}
		if err != nil {
			all = append(all, Verdict{Line: number, Type: known(r.Type), Refuse: err.Error()})
			continue
		}

		for _, v := range w.judge(r, counts) {
			v.Line, v.Type = number, r.Type
			all = append(all, v)
		}
	}

	return append(all, w.followUp(all, counts)...)
}

func known(kind string) string {
	if slices.Contains([]string{PullRequest, Comment, Label, Review, Reference}, kind) {
		return kind
	}
	return ""
}

// judge decides about one request. A pull request may be several, one in each changed repository.
func (w *Work) judge(r Request, counts map[string]int) []Verdict {
	refuse := func(format string, args ...any) []Verdict {
		return []Verdict{{Refuse: fmt.Sprintf(format, args...)}}
	}

	switch {
	case w.Ended != "" && r.Type != Reference:
		return refuse("the run ended as %s: only runs that succeed have outputs", w.Ended)
	case w.Secrets.In(r.texts()...):
		return refuse("its text has the value of a secret")
	}
	if err := longer("body", r.Body, maxBody); err != nil {
		return refuse("%s", err)
	}
	if n := mentions(r.texts()); n > maxMentions {
		return refuse("it mentions %d people: at most %d are allowed", n, maxMentions)
	}

	r = r.neutral()
	if r.Type == PullRequest {
		return w.pulls(r, counts)
	}

	act := Act{
		Title: r.Title, Body: r.Body, Add: r.Add, Remove: r.Remove, Event: r.Event, Comments: r.Comments, URL: r.URL,
	}
	if r.Type != Reference {
		repo, reason := w.target(r)
		if reason != "" {
			return refuse("%s", reason)
		}
		act.Repository, act.Number, act.Pull = repo.Repository, w.Target.Number, w.Target.Pull
	}

	counts[r.Type] += weight(r.Type, act)
	if reason := allows(w.Allowed, r.Type, act, counts[r.Type]); reason != "" {
		return refuse("%s", reason)
	}

	return []Verdict{{Act: act, Staged: w.staged(r.Type)}}
}

// weight is how much of its kind's maximum an act uses.
func weight(kind string, a Act) int {
	if kind == Label {
		return len(a.Add) + len(a.Remove)
	}
	return 1
}

// target returns the repository of the issue or pull request that the delivery names.
func (w *Work) target(r Request) (Checkout, string) {
	t := w.Target
	if t.Repository == "" || t.Number == 0 {
		return Checkout{}, "the delivery names no issue or pull request"
	}
	if r.Type == Review && !t.Pull {
		return Checkout{}, "the delivery names no pull request"
	}
	if r.Repository != "" && !strings.EqualFold(r.Repository, t.Repository) {
		return Checkout{}, fmt.Sprintf("the delivery is about %s, and not about %s",
			Printable(t.Repository), Printable(r.Repository))
	}

	i := slices.IndexFunc(w.Repositories, func(c Checkout) bool { return c.Repository == t.At })
	if i < 0 {
		return Checkout{}, fmt.Sprintf("the factory does not have the repository %s", Printable(t.Repository))
	}
	return w.Repositories[i], ""
}

func (w *Work) repository(name string) (Checkout, bool) {
	i := slices.IndexFunc(w.Repositories, func(c Checkout) bool { return strings.EqualFold(c.String(), name) })
	if i < 0 {
		return Checkout{}, false
	}
	return w.Repositories[i], true
}

// OfFork is why a person has to agree to what a run leaves that a fork's commit started.
const OfFork = "the run started from the commit of a fork"

// staged returns why a person has to agree.
func (w *Work) staged(kind string) string {
	switch {
	case kind == Reference:
		return ""
	case w.Allowed.Approval == schema.ApprovalRequired:
		return "the automation requires approval"
	case slices.ContainsFunc(w.Repositories, func(c Checkout) bool { return c.Untrusted }):
		return OfFork
	}
	return ""
}

// pulls returns the pull requests that r asks for.
func (w *Work) pulls(r Request, counts map[string]int) (all []Verdict) {
	if w.Allowed.PullRequest == nil {
		return []Verdict{{Refuse: notAllowed(PullRequest)}}
	}
	if r.Repository != "" {
		if _, ok := w.repository(r.Repository); !ok {
			return []Verdict{{Refuse: fmt.Sprintf("the factory does not have the repository %s",
				Printable(r.Repository))}}
		}
	}

	for _, c := range w.Changes {
		if r.Repository != "" && !strings.EqualFold(r.Repository, c.Repository.String()) {
			continue
		}

		key := PullRequest + " " + c.Repository.String()
		if counts[key]++; counts[key] > 1 {
			all = append(all, Verdict{Refuse: "an execution has one pull request in each repository"})
			continue
		}
		all = append(all, w.pull(r, c))
	}

	if len(all) == 0 {
		return []Verdict{{Refuse: "the run changed nothing that a pull request could have"}}
	}
	return all
}

// pull returns the pull request of a change.
func (w *Work) pull(r Request, c Change) Verdict {
	base, ok := w.repository(c.Repository.String())
	if !ok {
		return Verdict{Refuse: fmt.Sprintf("the factory does not have the repository %s", c.Repository)}
	}

	allowed := w.Allowed.PullRequest
	act := Act{
		Repository: base.Repository,
		Title:      r.Title,
		Body:       r.Body,
		Base:       allowed.Base,
		BaseCommit: base.BaseCommit,
		Branch:     allowed.BranchOf(w.Automation, w.Run),
		Head:       c.Head,
		Bundle:     c.Bundle,
		Draft:      allowed.Draft,
		Labels:     allowed.Labels,
	}
	if act.Base == "" {
		act.Base = base.BaseBranch
	}
	if act.Title == "" {
		act.Title = Neutralise(oneLine(w.Title))
	}
	if t := []rune(act.Title); len(t) > maxTitle {
		act.Title = string(t[:maxTitle-1]) + "…"
	}

	return Verdict{Act: act, Staged: w.staged(PullRequest)}
}

// followUp returns the pull requests of earlier executions that get the further commits of this one.
func (w *Work) followUp(asked []Verdict, counts map[string]int) (all []Verdict) {
	if w.Ended != "" || w.Allowed.PullRequest == nil {
		return nil
	}
	for _, c := range w.Changes {
		if counts[PullRequest+" "+c.Repository.String()] == 0 && slices.Contains(w.Continues, c.Repository) {
			v := w.pull(Request{}, c)
			v.Type = PullRequest
			all = append(all, v)
		}
	}
	return all
}

// Pull returns the pull request of a change that a person asks for, where the definition may allow none.
func (w *Work) Pull(r Request, c Change) Act {
	if w.Allowed.PullRequest == nil {
		w.Allowed.PullRequest = &schema.PullRequestOutput{Branch: schema.DefaultBranch, Draft: true}
	}

	act := w.pull(r.neutral(), c).Act
	act.Person = true
	return act
}

func notAllowed(kind string) string {
	return "the outputs of the automation do not allow " + map[string]string{
		PullRequest: "pull requests", Comment: "comments", Label: "labels", Review: "reviews",
	}[kind]
}

// allows returns why outputs does not allow an act, which makes the used of its kind so many.
func allows(o schema.Outputs, kind string, a Act, used int) string {
	most := 0
	switch {
	case kind == Reference:
		most = maxReferences
	case kind == Comment && o.Comment != nil:
		most = o.Comment.Max
	case kind == Review && o.Review != nil:
		if most = o.Review.Max; !slices.Contains(o.Review.Events, a.Event) {
			return fmt.Sprintf("a review of this automation may be %s, and not %q",
				strings.Join(o.Review.Events, " or "), Printable(a.Event))
		}
	case kind == Label && o.Labels != nil:
		most = o.Labels.Max
		for _, l := range slices.Concat(a.Add, a.Remove) {
			if !slices.Contains(o.Labels.Allow, l) {
				return fmt.Sprintf("the label %q is not among those allowed", Printable(l))
			}
		}
	case kind == PullRequest && o.PullRequest != nil:
		return ""
	default:
		return notAllowed(kind)
	}

	if used > most {
		return fmt.Sprintf("an execution may have %d of this kind", most)
	}
	return ""
}

// Recheck returns why an act that was allowed is not any more. used is how much of its kind's maximum the
// execution uses up to this act; see [Used].
func Recheck(o schema.Outputs, automation, run, kind string, a Act, used int, secrets Secrets) string {
	if secrets.In(Request{Title: a.Title, Body: a.Body, URL: a.URL, Comments: a.Comments, Add: a.Add}.texts()...) {
		return "its text has the value of a secret"
	}
	if reason := allows(o, kind, a, used); reason != "" {
		return reason
	}
	if kind != PullRequest {
		return ""
	}

	if branch := o.PullRequest.BranchOf(automation, run); branch != a.Branch {
		return fmt.Sprintf("the branch of this automation is now %s", Printable(branch))
	}
	if base := o.PullRequest.Base; base != "" && base != a.Base {
		return fmt.Sprintf("the base of this automation is now %s", Printable(base))
	}
	return ""
}

// Narrowed returns a pull request with no more than a definition allows: only labels that it names, and a
// draft if it demands one.
func Narrowed(o schema.PullRequestOutput, a Act) Act {
	a.Draft = a.Draft || o.Draft
	a.Labels = slices.DeleteFunc(slices.Clone(a.Labels), func(l string) bool { return !slices.Contains(o.Labels, l) })
	return a
}

// Used returns how much of its kind's maximum an act uses.
func Used(kind string, a Act) int { return weight(kind, a) }
