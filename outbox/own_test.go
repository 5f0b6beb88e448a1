package outbox_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"millwright/forge/forgetest"
	"millwright/ingress"
	"millwright/schema"
	"millwright/schema/provider"
	"millwright/state"
	"millwright/state/outputs"
	"millwright/state/statetest"
)

// watch serves an ingress to which the Gitea sends all events, for an automation that starts on each.
func (w *world) watch() {
	w.t.Helper()
	ctx := w.t.Context()
	cur, err := w.store.Current(ctx, w.factory)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.store.Apply(ctx, state.ChangeSet{
		FactoryUID: w.factory, Base: cur.Factory.Generation, BaseRevision: cur.Factory.Applied.ID, Started: time.Now(),
		Revision: state.Revision{ID: state.NewID("rev")},
		Resources: []state.ResourceChange{{
			UID: state.NewID(state.PrefixAutomation), Kind: "automation", Name: "watch",
			Spec: schema.Automation{Name: "watch", Enabled: true, Prompt: "Look.", Triggers: []schema.Trigger{
				{Provider: "webhook", Event: "received", WebhookIDs: []string{w.hook.UID}},
				{Provider: "github", Event: "pull_request_opened"},
			}},
		}},
	}); err != nil {
		w.t.Fatal(err)
	}

	in, err := ingress.New(ctx, ingress.Config{Store: w.store, DeliveriesPerMinute: -1, Own: w.out.Own})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = in.Close(context.Background()) })
	s := httptest.NewServer(in)
	w.t.Cleanup(s.Close)
	w.gitea.Webhook("acme", "shop", s.URL+"/webhooks/w/"+w.hook.UID, "h00k-s3cret",
		"create", "push", "issues", "issue_comment", "pull_request", "status")
}

// heard returns the log of the webhook, as "event: reason", and how many runs its deliveries started.
func (w *world) heard() (log []string, started int) {
	w.t.Helper()
	all, err := w.store.Deliveries(context.Background(), w.factory, w.hook.UID, state.DeliveryFilter{}, "", 500)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range all {
		runs, err := w.store.RunsOfDeliveries(context.Background(), d.UID)
		if err != nil {
			w.t.Fatal(err)
		}
		own := slices.ContainsFunc(runs[d.UID], func(r state.DeliveryRun) bool { return r.Title == title })
		if !own { // not a delivery that the test stored
			log = append(log, d.Event+": "+d.Reason)
			started += len(runs[d.UID])
		}
	}
	return log, started
}

// TestAcceptanceOwnEvents holds that no event of what outputs do at a forge starts a run, also one that arrives before the
// forge's answer, and that all other events of the same account and of others do.
func TestAcceptanceOwnEvents(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		w := worldOf(t, s, everything())
		w.watch()
		var lost atomic.Int64
		lose := func(r *http.Request) bool { // the first answer about a comment and a pull request
			made := strings.HasSuffix(r.URL.Path, "/comments") || strings.HasSuffix(r.URL.Path, "/pulls")
			return r.Method == http.MethodPost && made && lost.Add(1) <= 2
		}
		w.lose.Store(&lose)

		run := w.deliver(opened(1))
		w.execute(map[string]string{"test.sh": "exit 0\n"}, askPull, askComment, `{"type":"label","add":["triaged"]}`)
		w.settled(run)
		if _, _, err := w.store.Followup(t.Context(), run, "Also the README", state.Idempotency{}); err != nil {
			t.Fatal(err)
		}
		w.execute(map[string]string{"README.md": "The shop\n"})
		all := w.settled(run)
		if got := states(all); strings.Count(got, " done") != 5 || lost.Load() < 2 {
			t.Fatalf("%s\n%d answers were lost", got, lost.Load())
		}

		pull := w.pulls()[0]
		review := w.deliver(fmt.Sprintf(`{"action":"opened","number":%d,"pull_request":{"number":%[1]d,"head":{"sha":%q,"ref":%q,`+
			`"repo":{"full_name":"acme/shop"}},"base":{"ref":"main"}},"repository":{"full_name":"acme/shop"}}`,
			pull.Index, pull.Head.Sha, pull.Head.Ref))
		w.execute(nil, `{"type":"review","event":"COMMENT","body":"Right.","comments":[{"path":"test.sh","line":1,"body":"Here."}]}`)
		if got := states(w.settled(review)); got != "status done\nreview done" {
			t.Fatal(got)
		}

		defer func() { log, _ := w.heard(); t.Logf("the log:\n%s", strings.Join(log, "\n")) }()
		statetest.Until(t, "the events of all outputs", func() bool {
			log, _ := w.heard()
			text := strings.Join(log, "\n")
			for _, event := range []string{"create", "push", "pull_request", "issues", "issue_comment", "status", "pull_request_comment"} {
				if !strings.Contains(text, event) {
					return false
				}
			}
			return true
		})
		log, started := w.heard()
		for _, line := range log {
			if !strings.Contains(line, ": starts nothing: the server did this itself as "+w.gitea.Admin) {
				t.Errorf("an event of an output is %q", line)
			}
		}
		if started != 0 {
			t.Errorf("they started %d runs", started)
		}

		w.othersStart(run, pull, all)
		w.origins(run, pull, all)
	})
}

// othersStart does by hand what starts runs.
func (w *world) othersStart(run string, pull *gitea.PullRequest, all []outputs.Output) {
	t, api := w.t, w.gitea.API()
	mallory := w.gitea.APIOf(w.gitea.User("mallory"))
	for _, c := range []struct {
		name string
		n    int // runs
		do   func() error
	}{
		{"our account's person comments", 1, func() error {
			_, _, err := api.CreateIssueComment("acme", "shop", 1, gitea.CreateIssueCommentOption{Body: "And now?"})
			return err
		}},
		{"somebody copies our comment with its marker", 1, func() error {
			_, _, err := mallory.CreateIssueComment("acme", "shop", 1, gitea.CreateIssueCommentOption{Body: w.comments()[0].Body})
			return err
		}},
		{"our account's person forges a marker", 1, func() error {
			body := "<!-- millwright:" + all[len(all)-1].UID + ":" + strings.Repeat("0", 32) + " -->"
			_, _, err := api.CreateIssueComment("acme", "shop", 1, gitea.CreateIssueCommentOption{Body: body})
			return err
		}},
		{"our account's person opens an issue", 1, func() error {
			_, _, err := api.CreateIssue("acme", "shop", gitea.CreateIssueOption{Title: "Another"})
			return err
		}},
		{"our account's person pushes to the branch of the run", 2, func() error { // the push and the pull request
			forgetest.Git(t, w.dir, "commit", "--quiet", "--allow-empty", "--message", "By hand")
			forgetest.Git(t, w.dir, "push", "--quiet", "origin", "HEAD:"+pull.Head.Ref)
			return nil
		}},
		{"our account's person creates another branch of the run's name", 2, func() error { // the branch and the push
			forgetest.Git(t, w.dir, "push", "--quiet", "origin", "HEAD~1:refs/heads/mine/"+run)
			return nil
		}},
		{"our account's person closes the pull request", 1, func() error {
			closed := gitea.StateClosed
			_, _, err := api.EditPullRequest("acme", "shop", pull.Index, gitea.EditPullRequestOption{State: &closed})
			return err
		}},
	} {
		_, before := w.heard()
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		statetest.Until(t, fmt.Sprintf("%d runs, since %s", c.n, c.name), func() bool {
			_, now := w.heard()
			return now >= before+c.n
		})
	}
}

// origins compares the origins of deliveries of other forges with the outputs of a run.
func (w *world) origins(run string, pull *gitea.PullRequest, all []outputs.Output) {
	t := w.t
	head := provider.Target{Repository: "Acme/shop", Branch: pull.Head.Ref, Commit: pull.Head.Sha}
	moved, main, issue := head, head, provider.Target{Repository: "acme/shop", Number: 1}
	moved.Commit, main.Branch = w.base, "main"
	elsewhere := issue
	elsewhere.Repository = "acme/other"
	page := "https://mill.example.com/runs/" + run

	for name, tt := range map[string]struct {
		origin provider.Origin
		own    bool
	}{
		"push":                {provider.Origin{Object: "push", Target: head}, true},
		"push of another":     {provider.Origin{Object: "push", Target: head, Sender: "mallory"}, false},
		"other commit":        {provider.Origin{Object: "push", Target: moved}, false},
		"to main":             {provider.Origin{Object: "push", Target: main}, false},
		"synchronize":         {provider.Origin{Object: "pull_request", Action: "synchronize", Target: head}, true},
		"synchronize by hand": {provider.Origin{Object: "pull_request", Action: "synchronize", Target: moved}, false},
		"synchronize, marked": {provider.Origin{Object: "pull_request", Action: "synchronize", Target: moved, Text: pull.Body}, false},
		"opened":              {provider.Origin{Object: "pull_request", Action: "opened", Text: pull.Body}, true},
		"merged":              {provider.Origin{Object: "pull_request", Action: "closed", Text: pull.Body}, false},
		"without a marker":    {provider.Origin{Object: "pull_request", Action: "opened", Target: head}, false},
		"without a sender":    {provider.Origin{Object: "pull_request", Action: "opened", Text: pull.Body, Sender: "-"}, false},
		"our label":           {provider.Origin{Object: "issue", Action: "labeled", Labels: true, Label: "Triaged", Target: issue}, true},
		"a label by hand":     {provider.Origin{Object: "issue", Action: "labeled", Labels: true, Label: "bug", Target: issue}, false},
		"a label elsewhere":   {provider.Origin{Object: "issue", Action: "labeled", Labels: true, Label: "triaged", Target: elsewhere}, false},
		"label of the pull":   {provider.Origin{Object: "pull_request", Labels: true, Label: "agent", Target: head, Text: pull.Body}, true},
		"status":              {provider.Origin{Object: "status", Context: "agent/triage", URL: page}, true},
		"status of CI":        {provider.Origin{Object: "status", Context: "ci", URL: page}, false},
		"status, no page":     {provider.Origin{Object: "status", Context: "agent/triage"}, false},
		"check":               {provider.Origin{Target: head}, false},
	} {
		o := tt.origin
		switch o.Sender {
		case "":
			o.Sender = strings.ToUpper(w.gitea.Admin)
		case "-":
			o.Sender = ""
		}
		why, err := w.out.Own(t.Context(), o)
		if err != nil || (why != "") != tt.own || tt.own && !strings.Contains(why, run) {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}

	ended, end := context.WithCancel(t.Context())
	end()
	if why, err := w.out.Own(ended, provider.Origin{Sender: w.gitea.Admin, Object: "push", Target: head}); err == nil {
		t.Errorf("a state that does not answer: %q", why)
	}
	if len(all) == 0 || all[0].Account != w.gitea.Admin {
		t.Errorf("the outputs %+v have no account", all)
	}
}
