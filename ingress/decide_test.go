package ingress_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/ingress"
	"millwright/schema"
	"millwright/schema/provider"
	"millwright/state"
	"millwright/state/statetest"
)

// host answers as the forge of a delivery.
type host struct {
	mu     sync.Mutex
	asked  []ingress.Question
	answer func(q ingress.Question) (provider.Answer, string, error)
}

func (h *host) ask(_ context.Context, q ingress.Question) (provider.Answer, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, q)
	a, why, err := h.answer(q)
	a.Ask = q.Ask
	return a, why, err
}

// says sets what the forge answers from now on, and forgets what it was asked.
func (h *host) says(answer func(q ingress.Question) (provider.Answer, string, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer, h.asked = answer, nil
}

func (h *host) questions() []ingress.Question {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]ingress.Question(nil), h.asked...)
}

// files answers with the files of a pull request.
func files(paths ...string) func(ingress.Question) (provider.Answer, string, error) {
	return func(ingress.Question) (provider.Answer, string, error) {
		return provider.Answer{Files: paths}, "", nil
	}
}

// decisions returns what was decided on a delivery, as automation: decision, in the order of the row.
func (w *world) decisions(hook, delivery string) string {
	w.t.Helper()
	d, err := w.store.Delivery(context.Background(), w.factory, w.uids[hook], delivery)
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, made := range d.Flow {
		all = append(all, made.Decision+" ("+made.Detail+")")
	}
	return strings.Join(all, ", ")
}

// decided waits until nothing of a delivery is undecided, and returns the decisions.
func (w *world) decided(hook, delivery string) string {
	w.t.Helper()
	statetest.Until(w.t, "the decisions on "+delivery, func() bool {
		return !strings.Contains(w.decisions(hook, delivery), "waits: forge")
	})
	return w.decisions(hook, delivery)
}

// TestPaths holds that a trigger on the paths of a pull request starts its run, once, when the forge has
// listed the files, with the reason if it does not.
func TestPaths(t *testing.T) {
	forge := &host{}
	each(t, ingress.Config{DeliveriesPerMinute: -1, Ask: forge.ask}, func(t *testing.T, w *world) {
		forge.says(files("docs/intro.md", "basket/item.go"))
		w.secret("GH", "gh-secret")
		w.hook(signed("github", "github", "GH"))
		w.triggered("basket", "github/pull_request_opened", `{"paths":["basket/**"]}`)
		w.triggered("docs", "github/pull_request_opened", `{"repos":["acme/shop"],"paths":["docs/*"]}`)
		w.triggered("shop", "github/pull_request_opened", `{"paths":["shop/**"]}`)
		w.triggered("other", "github/pull_request_opened", `{"repos":["acme/other"],"paths":["**"]}`)
		w.triggered("either", "github/pull_request_opened", `{"paths":["shop/**"]}`, "github/pull_request_opened", "")

		r := w.send("github", "github", "gh-secret", "pull_request_opened")
		made := w.decided("github", r.deliveryID())
		if made != "skipped: trigger (the pull request changes 2 files, and none that a trigger asks for)" {
			t.Errorf("decided: %s", made)
		}
		if got := w.started(r); got != "basket from github, docs from github, either from github" {
			t.Errorf("started %q", got)
		}

		all := forge.questions()
		if len(all) != 1 || !all[0].Files || all[0].Account || all[0].Scheme != "github" ||
			all[0].FactoryUID != w.factory || all[0].Target.Repository != "acme/shop" || all[0].Target.Number != 12 {
			t.Errorf("the forge was asked %+v", all)
		}

		for _, event := range []string{"pull_request_closed", "push", "issue_created"} {
			w.send("github", "github", "gh-secret", event)
		}
		if n := len(forge.questions()); n != 1 {
			t.Errorf("the forge was asked %d times", n)
		}
	})
}

// TestUndecided holds what becomes of a delivery whose forge gives no answer, or gives it late.
func TestUndecided(t *testing.T) {
	forge := &host{}
	each(t, ingress.Config{DeliveriesPerMinute: -1, Ask: forge.ask}, func(t *testing.T, w *world) {
		w.secret("GH", "gh-secret")
		w.hook(signed("github", "github", "GH"))
		w.triggered("basket", "github/pull_request_opened", `{"paths":["basket/**"]}`)
		automation := w.automationUID("basket")
		send := func() reply { return w.send("github", "github", "gh-secret", "pull_request_opened") }

		forge.says(func(ingress.Question) (provider.Answer, string, error) {
			return provider.Answer{}, "the settings have no such forge", nil
		})
		r := send()
		if made := w.decided("github", r.deliveryID()); made != "skipped: forge (the settings have no such forge)" || w.started(r) != "" {
			t.Errorf("without a forge: %s", made)
		}
		skips, err := w.store.FlowDecisions(context.Background(), automation, "", 10)
		if err != nil || len(skips) != 1 || skips[0].DeliveryUID != r.deliveryID() {
			t.Errorf("the automation has skipped %v: %v", skips, err)
		}

		forge.says(func(ingress.Question) (provider.Answer, string, error) {
			return provider.Answer{}, "", errors.New("the forge is away")
		})
		r = send()
		statetest.Until(t, "a note of the forge's failure", func() bool {
			return w.decisions("github", r.deliveryID()) == "waits: forge (the forge is away)"
		})
		if got := w.started(r); got != "" {
			t.Errorf("before the answer: %q", got)
		}
		now := state.Undecided{
			AutomationUID: automation, DeliveryUID: r.deliveryID(), FactoryUID: w.factory, WebhookUID: w.uids["github"],
		}
		ask := func() {
			t.Helper()
			if err := w.store.Postpone(context.Background(), now, time.Now(), ""); err != nil {
				t.Fatal(err)
			}
		}

		forge.says(func(ingress.Question) (provider.Answer, string, error) { panic("a fault of the server") })
		ask()
		statetest.Until(t, "the question that panics", func() bool { return len(forge.questions()) > 0 })
		forge.says(func(ingress.Question) (provider.Answer, string, error) {
			return provider.Answer{}, "", &ingress.Away{Err: errors.New("slow down"), After: 48 * time.Hour}
		})
		ask()
		statetest.Until(t, "a note of the time to wait", func() bool {
			return w.decisions("github", r.deliveryID()) == "waits: forge (slow down; it asks to wait for 1h0m0s)"
		})

		forge.says(files("basket/item.go"))
		ask()
		if made := w.decided("github", r.deliveryID()); made != "" || w.started(r) != "basket from github" {
			t.Errorf("with a late answer: %s", made)
		}
		if err := w.store.Postpone(context.Background(), now, time.Now(), "too late"); err != nil {
			t.Fatal(err)
		}
		if made := w.decisions("github", r.deliveryID()); made != "" {
			t.Errorf("postponed after the decision: %s", made)
		}

		forge.says(func(ingress.Question) (provider.Answer, string, error) {
			w.apply(state.ChangeSet{DeleteResources: []string{automation}})
			return provider.Answer{Files: []string{"basket/item.go"}}, "", nil
		})
		r = send()
		made := w.decided("github", r.deliveryID())
		if !strings.HasPrefix(made, "skipped: trigger (") || w.started(r) != "" {
			t.Errorf("of an automation that was deleted meanwhile: %s", made)
		}
	})
}

// automationUID returns the UID of an automation.
func (w *world) automationUID(name string) string {
	w.t.Helper()
	cur, err := w.store.Current(context.Background(), w.factory)
	if err != nil {
		w.t.Fatal(err)
	}
	return cur.UIDs[state.ResourceKey("automation", name)]
}

// TestBotMentioned holds that bot_mentioned is a mention of the server's own account, unless the filter names
// another.
func TestBotMentioned(t *testing.T) {
	forge := &host{}
	each(t, ingress.Config{DeliveriesPerMinute: -1, Ask: forge.ask}, func(t *testing.T, w *world) {
		w.secret("GL", "gl-secret")
		w.hook(signed("lab", "gitlab", "GL"))
		w.triggered("bot", "gitlab/bot_mentioned", "")
		w.triggered("named", "gitlab/bot_mentioned", `{"mentioned":["acme-bot"]}`)
		w.triggered("not", "gitlab/bot_mentioned", `{"mentioned":{"not_in":["bob"]}}`)

		for account, want := range map[string]string{
			"Acme-Bot": "bot from lab, named from lab, not from lab", "another": "named from lab",
		} {
			forge.says(func(ingress.Question) (provider.Answer, string, error) {
				return provider.Answer{Account: account}, "", nil
			})
			r := w.send("lab", "gitlab", "gl-secret", "bot_mentioned")
			made := w.decided("lab", r.deliveryID())
			if got := w.started(r); got != want {
				t.Errorf("with the account %s: started %q, decided %q", account, got, made)
			}
			if account == "another" && strings.Count(made, "the text does not mention another") != 2 {
				t.Errorf("decided %q", made)
			}
		}
	})
}

// TestUndecidedLate holds that a delivery which is decided on after a newer one extends its window, and does not replace
// the newer payload.
func TestUndecidedLate(t *testing.T) {
	forge := &host{}
	each(t, ingress.Config{DeliveriesPerMinute: -1, Ask: forge.ask}, func(t *testing.T, w *world) {
		forge.says(func(ingress.Question) (provider.Answer, string, error) {
			return provider.Answer{}, "", errors.New("the forge is away")
		})
		w.secret("GH", "gh-secret")
		w.hook(signed("github", "github", "GH"))
		w.automationOf(schema.Automation{
			Name: "basket", Enabled: true, Prompt: "x",
			Triggers: []schema.Trigger{
				{Provider: "github", Event: "pull_request_opened", Filter: []byte(`{"paths":["basket/*"]}`)},
				{Provider: "github", Event: "pull_request_closed"},
			},
			Flow: schema.Flow{Debounce: &schema.Debounce{Key: []string{"repository.full_name"}, Wait: "10m"}},
		})

		old := w.send("github", "github", "gh-secret", "pull_request_opened").deliveryID()
		statetest.Until(t, "a note of the forge's failure", func() bool {
			return strings.HasPrefix(w.decisions("github", old), "waits: forge (the")
		})
		newest := w.send("github", "github", "gh-secret", "pull_request_closed").deliveryID()

		forge.says(files("basket/item.go"))
		late := state.Undecided{
			AutomationUID: w.automationUID("basket"), DeliveryUID: old, FactoryUID: w.factory,
			WebhookUID: w.uids["github"],
		}
		if err := w.store.Postpone(context.Background(), late, time.Now(), ""); err != nil {
			t.Fatal(err)
		}
		if made := w.decided("github", old); !strings.HasPrefix(made, "debounced") {
			t.Errorf("decided: %s", made)
		}

		d, err := w.store.Delivery(context.Background(), w.factory, w.uids["github"], old)
		if err != nil || len(d.Flow) != 1 {
			t.Fatalf("the delivery is %+v: %v", d, err)
		}
		run, err := w.store.Run(context.Background(), d.Flow[0].RunID)
		if err != nil || run.DeliveryUID != newest || !strings.Contains(run.Envelope, newest) {
			t.Errorf("the run has the payload of %s, want %s: %v", run.DeliveryUID, newest, err)
		}
	})
}

// TestUndecidedOnce holds that several servers decide on a delivery once, and in what flow says.
func TestUndecidedOnce(t *testing.T) {
	forge := &host{}
	each(t, ingress.Config{DeliveriesPerMinute: -1, Ask: forge.ask}, func(t *testing.T, w *world) {
		if w.store.Shared() {
			second, err := ingress.New(context.Background(), ingress.Config{
				Store: w.store, DeliveriesPerMinute: -1, Ask: forge.ask,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = second.Close(context.Background()) })
		}

		forge.says(files("basket/item.go"))
		w.secret("GH", "gh-secret")
		w.hook(signed("github", "github", "GH"))
		w.automationOf(schema.Automation{
			Name: "basket", Enabled: true, Prompt: "x",
			Triggers: []schema.Trigger{{Provider: "github", Event: "pull_request_opened", Filter: []byte(`{"paths":["basket/*"]}`)}},
			Flow:     schema.Flow{Concurrency: &schema.Concurrency{Key: []string{"repository.id"}, Limit: 1, WhenBusy: schema.BusySkip}},
		})

		const n = 12
		started, skipped := 0, 0
		for i := range n {
			r := w.send("github", "github", "gh-secret", "pull_request_opened")
			made := w.decided("github", r.deliveryID())
			switch got := w.started(r); {
			case got == "basket from github" && made == "":
				started++
			case got == "" && strings.HasPrefix(made, "skipped: concurrency"):
				skipped++
			default:
				t.Errorf("delivery %d started %q, decided %q", i, got, made)
			}
		}
		if started != 1 || skipped != n-1 {
			t.Errorf("%d started, %d skipped", started, skipped)
		}
		if questions := len(forge.questions()); questions != n {
			t.Errorf("the forge was asked %d times for %d deliveries", questions, n)
		}
	})
}
