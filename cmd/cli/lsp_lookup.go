package cli

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"time"

	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/schema/language"
)

// lookup asks a server for the language server. Each call has a client of its own.
type lookup struct{ client Client }

// Judge shows a tree to the server.
func (l lookup) Judge(ctx context.Context, tree fs.FS) (language.Judgement, error) {
	c := &l.client
	note := &reading{FS: tree, noting: true, opened: map[string]bool{}, listed: map[string][]fs.DirEntry{}}
	loaded := schema.LoadContext(ctx, note, nil)
	if loaded.Err != nil {
		return language.Judgement{}, loaded.Err
	}

	j, err := c.judge(ctx, note, loaded, allowances{prune: true, rename: true})
	if err != nil {
		return language.Judgement{}, err
	}

	names := make(map[string]string, len(j.plan.WebhookUIDs))
	for name, uid := range j.plan.WebhookUIDs {
		names[uid] = name
	}

	said := language.Judgement{
		Known: schema.Known{UIDs: j.plan.WebhookUIDs, KnownUIDs: names, Gone: j.plan.Gone},
	}
	if err := c.webhookFacts(ctx, &said); err != nil {
		return said, err
	}
	if err := c.secretFacts(ctx, &said); err != nil {
		return said, err
	}

	return said, c.firedFacts(ctx, note, loaded, j.plan.Backtests, &said)
}

// webhookFacts adds the webhooks that the server serves.
func (c *Client) webhookFacts(ctx context.Context, said *language.Judgement) error {
	f, err := c.one(ctx)
	if err != nil {
		return err
	}

	hooks, err := c.webhooks(ctx, f, false)
	if err != nil {
		return err
	}

	said.Webhooks = map[string]language.Webhook{}
	for _, w := range hooks {
		said.Webhooks[w.UID] = language.Webhook{Name: w.Name, Factory: f.Name, URL: w.IngressURL}
	}

	return nil
}

// secretFacts adds the names of the team secrets.
func (c *Client) secretFacts(ctx context.Context, said *language.Judgement) error {
	body, _, err := c.list(ctx, "/secrets", "secrets", nil, whole)
	if err != nil {
		return err
	}

	var list struct{ Secrets []secretItem }
	if err := c.Decode(body, &list); err != nil {
		return err
	}

	said.Known.Secrets = map[string]schema.SecretFact{}
	for _, x := range list.Secrets {
		if x.Factory != "" {
			continue // a file of its tree says so
		}

		said.Known.Secrets[x.Name] = schema.SecretFact{Pending: x.Pending}
		said.Secrets = append(said.Secrets, language.Secret{Name: x.Name, Standing: x.standing()})
	}

	return nil
}

// firedFacts adds how often the triggers of the automations would have fired. A backtest is of triggers that
// change: those of the tree as it is, and, for all others, those that end when no automation is left.
func (c *Client) firedFacts(
	ctx context.Context,
	note *reading,
	loaded *schema.Result,
	changed []plan.Backtest,
	said *language.Judgement,
) error {
	files, err := note.files(loaded)
	if err != nil {
		return err
	}

	rest := slices.DeleteFunc(slices.Clone(files), func(f schema.File) bool {
		return strings.HasPrefix(f.Path, "automations/")
	})
	without, err := c.plan(ctx, map[string]any{"files": rest, "allow_prune": true, "allow_rename": true})
	if err != nil {
		return err
	}

	said.Fired = map[string]language.Fired{}
	for _, b := range without.plan.Backtests {
		said.Fired[b.Automation] = fired(b, b.Fired)
	}
	for _, b := range changed {
		said.Fired[b.Automation] = fired(b, b.Fires)
	}

	return nil
}

func fired(b plan.Backtest, count int) language.Fired {
	return language.Fired{Count: count, LookedAt: b.LookedAt, Days: plan.BacktestDays, Complete: b.Complete}
}

// Deliveries returns the newest accepted deliveries of a webhook, and what a filter would do with them.
func (l lookup) Deliveries(ctx context.Context, uid, filter string, most int) ([]language.Delivery, error) {
	c := &l.client
	f, w, err := c.webhook(ctx, uid)
	if err != nil {
		return nil, err
	}

	q := url.Values{"outcome": {"accepted"}, "limit": {fmt.Sprint(most)}}
	var list struct{ Deliveries []deliveryItem }
	if err := c.Get(ctx, webhookPath(f, w)+"/deliveries?"+q.Encode(), &list); err != nil {
		return nil, err
	}

	var all []language.Delivery
	for _, d := range list.Deliveries {
		at, _ := time.Parse(time.RFC3339, d.ReceivedAt)
		one := language.Delivery{ID: d.DeliveryID, Event: d.Event, ReceivedAt: at}

		body, err := c.call(ctx, "POST", "/factory/"+f.UID+"/filter-tests", map[string]any{
			"filter_text": filter, "delivery_id": d.DeliveryID,
		})
		if err != nil {
			return nil, err
		}

		var verdict struct {
			PayloadCheck bool `json:"payload_check"`
			Explanation  schema.Explanation
		}
		if err := c.Decode(body, &verdict); err != nil {
			return nil, err
		}

		one.Matches = verdict.PayloadCheck
		for _, leaf := range verdict.Explanation.Leaves {
			if !leaf.Passed && one.Failed == "" {
				one.Failed = strings.Join(leaf.Path, ".") + " " + leaf.Operator
			}
		}
		all = append(all, one)
	}

	return all, nil
}
