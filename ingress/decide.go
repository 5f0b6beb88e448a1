package ingress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"millwright/schema"
	"millwright/schema/provider"
	"millwright/state"
)

const (
	decideEvery   = 2 * time.Second
	decideAtOnce  = 100              // automations
	decideHold    = time.Minute      // other replicas keep off a decision
	decideRound   = 30 * time.Second // a factory begins no decision later in a round, which the others wait for
	askTime       = 20 * time.Second // the forge may take to answer
	firstAskPause = 10 * time.Second
	maxAskPause   = 5 * time.Minute
	maxAwayPause  = time.Hour // that a forge may ask for
	maxAsks       = 20        // in more than an hour
)

// Away is the error of a forge that may answer later. After is the time to wait that it asks for, or 0.
type Away struct {
	Err   error
	After time.Duration
}

// Error returns the reason.
func (e *Away) Error() string { return e.Err.Error() }

// Unwrap returns the forge's error.
func (e *Away) Unwrap() error { return e.Err }

// decideAll decides, until ctx ends, which automations deliveries start whose forge is asked.
func (in *Ingress) decideAll(ctx context.Context) {
	tick := time.NewTicker(decideEvery)
	defer tick.Stop()

	for {
		if err := in.decideDue(ctx); err != nil && ctx.Err() == nil {
			in.log.Warn("deciding on deliveries whose forge is asked", "error", err)
		}

		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-in.asking:
		}
	}
}

// decideDue decides what is due: of one factory in the order of the deliveries, of several side by side.
func (in *Ingress) decideDue(ctx context.Context) error {
	due, err := in.store.Undecided(ctx, decideAtOnce)
	if err != nil || len(due) == 0 {
		return err
	}

	// Another replica may have accepted the deliveries, by a definition that is not loaded here yet.
	limited, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := in.reload(limited); err != nil {
		return err
	}

	factories := map[string][]state.Undecided{}
	for _, u := range due {
		factories[u.FactoryUID] = append(factories[u.FactoryUID], u)
	}

	var wg sync.WaitGroup
	failed := make(chan error, len(factories))
	until := time.Now().Add(decideRound)
	for _, all := range factories {
		wg.Go(func() { failed <- in.decideOf(ctx, all, until) })
	}
	wg.Wait()
	close(failed)

	for one := range failed {
		err = errors.Join(err, one)
	}
	return err
}

// decideOf decides on the deliveries of a factory, and begins none after a time. When its forge is away, the others
// wait too.
func (in *Ingress) decideOf(ctx context.Context, due []state.Undecided, until time.Time) error {
	for len(due) > 0 && time.Now().Before(until) {
		same := func(u state.Undecided) bool { return u.DeliveryUID != due[0].DeliveryUID }
		n := slices.IndexFunc(due, same)
		if n < 0 {
			n = len(due)
		}

		away, err := in.decide(ctx, due[:n])
		if err != nil || away {
			return err
		}
		due = due[n:]
	}

	return nil
}

// decide decides which automations a delivery starts, after asking its forge. away reports that the forge did
// not answer, and is asked again later.
func (in *Ingress) decide(ctx context.Context, due []state.Undecided) (away bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("deciding on delivery %q of webhook %q: panic: %v",
				due[0].DeliveryUID, due[0].WebhookUID, r)
		}
	}()

	c := decision{in: in}
	for _, u := range due {
		held, err := in.store.HoldUndecided(ctx, &u, time.Now().Add(decideHold))
		if err != nil {
			return false, err
		}
		if held {
			c.all = append(c.all, u)
		}
	}
	if len(c.all) == 0 {
		return false, nil
	}
	if err := c.load(ctx); err != nil {
		return false, err
	}

	for range maxJudged {
		ask, err := c.judge(in.current.Load())
		if err != nil {
			return false, err
		}
		if ask.Any() && c.why == "" {
			if err := c.askForge(ctx, ask); err != nil {
				return true, c.postpone(ctx, err)
			}
			continue
		}

		err = c.settle(ctx)
		if !errors.Is(err, state.ErrMoved) {
			return false, err
		}
		if err := in.reload(ctx); err != nil {
			return false, err
		}
	}

	return false, nil
}

// decision is a delivery whose forge is asked, with the automations that its answer decides on.
type decision struct {
	in            *Ingress
	all           []state.Undecided
	row           state.Delivery
	headers, body []byte
	scheme        string
	target        provider.Target
	answer        provider.Answer
	why           string          // the forge never answers
	runs          []*state.NewRun // by automation; nil: instead
	instead       []state.FlowDecision
	generation    int64
}

// load reads the delivery. One that has expired is not decided on any more.
func (c *decision) load(ctx context.Context) (err error) {
	u := c.all[0]
	c.row, err = c.in.store.Delivery(ctx, u.FactoryUID, u.WebhookUID, u.DeliveryUID)
	if err == nil {
		c.headers, c.body, err = c.in.store.Request(ctx, u.FactoryUID, u.DeliveryUID)
	}
	if errors.Is(err, state.ErrNotFound) {
		c.why = "the payload is no longer stored"
		return nil
	}
	return err
}

// judge decides by what is known, and returns what the forge is to be asked for.
func (c *decision) judge(s *snapshot) (ask provider.Ask, err error) {
	c.runs, c.instead = make([]*state.NewRun, len(c.all)), make([]state.FlowDecision, len(c.all))
	w := s.webhooks[c.all[0].WebhookUID]
	if w != nil && w.unreadable && c.body != nil {
		return ask, fmt.Errorf("webhook %q cannot be read as it is stored", w.uid)
	}
	if w == nil || c.body == nil {
		for i := range c.all {
			c.instead[i] = state.FlowDecision{
				Decision: state.SkippedForge, Detail: cmp.Or(c.why, "the webhook no longer exists"),
			}
		}
		return ask, nil
	}

	payload, err := w.parse(c.body)
	if err != nil {
		return ask, err
	}

	d := w.delivered(c.row.Event, schema.StoredHeader(c.headers), c.body, payload)
	d.OfProvider().Learn(c.answer)
	c.scheme, c.target, c.generation = d.Scheme, d.OfProvider().Target(), w.factory.generation
	for i, u := range c.all {
		ask = ask.And(c.judgeOne(i, w, w.automation(u.AutomationUID), d))
	}

	return ask, nil
}

// judgeOne decides on one automation, which may be gone.
func (c *decision) judgeOne(i int, w *webhook, auto *automation, d *schema.Delivered) provider.Ask {
	if auto == nil {
		c.instead[i] = state.FlowDecision{
			Decision: state.SkippedTrigger, Detail: "the automation no longer starts on this webhook",
		}
		return provider.Ask{}
	}

	v := auto.judge(d)
	switch {
	case v.matched:
		k := kind{}
		if w.scheme != nil {
			k.event = w.scheme.KnownEvent(c.row.Event)
		}
		run := w.run(auto, c.row.UID, d.Payload, k, time.Now())
		run.Source, run.CheckoutHead = v.source, v.head
		c.runs[i] = &run
	case v.ask.Any():
		c.instead[i] = state.FlowDecision{Decision: state.SkippedForge, Detail: c.why}
	default:
		c.instead[i] = state.FlowDecision{Decision: state.SkippedTrigger, Detail: c.answered()}
	}

	return v.ask
}

// answered describes an answer of the forge that no trigger matches.
func (c *decision) answered() string {
	var all []string
	if c.answer.Ask.Files {
		all = append(all,
			fmt.Sprintf("the pull request changes %d files, and none that a trigger asks for", len(c.answer.Files)))
	}
	if c.answer.Ask.Account {
		all = append(all, "the text does not mention "+c.answer.Account)
	}
	return strings.Join(all, "; ")
}

// askForge asks the forge. An error is one that may pass.
func (c *decision) askForge(ctx context.Context, ask provider.Ask) error {
	if c.in.cfg.Ask == nil {
		c.why = "the server has no forges"
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()

	answer, why, err := c.in.cfg.Ask(ctx, Question{c.all[0].FactoryUID, c.scheme, c.target, ask.And(c.answer.Ask)})
	switch {
	case err != nil && c.all[0].Attempts < maxAsks:
		return err
	case err != nil:
		c.why = err.Error()
	case why != "":
		c.why = why
	default:
		c.answer = answer
	}

	return nil
}

// postpone has the forge asked again later, each time after a longer pause, and not before it wants to be.
func (c *decision) postpone(ctx context.Context, why error) error {
	var asked time.Duration
	reason := why.Error()
	if away := (*Away)(nil); errors.As(why, &away) && away.After > 0 {
		asked = min(away.After, maxAwayPause)
		reason += "; it asks to wait for " + asked.String()
	}

	var failed error
	for _, u := range c.all {
		pause := max(asked, min(firstAskPause<<min(max(u.Attempts-1, 0), 10), maxAskPause))
		failed = errors.Join(failed, c.in.store.Postpone(ctx, u, time.Now().Add(pause), reason))
	}

	c.in.log.Warn("a forge does not answer for a delivery", "delivery_id", c.all[0].DeliveryUID, "error", why)
	return failed
}

// settle stores what was decided.
func (c *decision) settle(ctx context.Context) error {
	for i, u := range c.all {
		decided, made, err := c.in.store.Decide(ctx, u, c.generation, c.runs[i], c.instead[i])
		if err != nil {
			return err
		}
		if !decided {
			continue
		}

		c.in.metrics.decided([]state.FlowDecision{made})
		run := made.RunID
		if c.runs[i] != nil && made.Decision == "" {
			run = c.runs[i].ID
		}
		c.in.log.Info("delivery decided", "webhook", u.WebhookUID, "delivery_id", u.DeliveryUID,
			"automation", u.AutomationUID, "flow", made.Decision, "reason", made.Detail, "run_id", run)
	}

	return nil
}
