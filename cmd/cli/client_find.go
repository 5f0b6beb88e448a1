package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// factoryRef is what commands need to know of a factory.
type factoryRef struct {
	UID       string `json:"uid"`
	Name      string `json:"name"`
	Recipient string `json:"recipient"`
}

func (c *Client) factories(ctx context.Context) ([]factoryRef, error) {
	body, _, err := c.list(ctx, "/factory", "factories", nil, whole)
	if err != nil {
		return nil, err
	}

	var list struct {
		Factories []factoryRef `json:"factories"`
	}
	err = c.Decode(body, &list)
	return list.Factories, err
}

// chosen returns the factories that --factory names, or all.
func (c *Client) chosen(ctx context.Context) ([]factoryRef, error) {
	all, err := c.factories(ctx)
	if err != nil || c.factory == "" {
		return all, err
	}

	var names []string
	for _, f := range all {
		if f.UID == c.factory || f.Name == c.factory {
			return []factoryRef{f}, nil
		}
		names = append(names, f.Name)
	}

	return nil, &Exit{
		ExitProblem,
		fmt.Errorf("no factory %q: there is %s", clean(c.factory), cmp.Or(strings.Join(names, ", "), "none")),
	}
}

// one returns the factory that --factory names, or the only one.
func (c *Client) one(ctx context.Context) (factoryRef, error) {
	all, err := c.chosen(ctx)
	if err != nil {
		return factoryRef{}, err
	}
	if len(all) == 1 {
		return all[0], nil
	}
	if len(all) == 0 {
		return factoryRef{}, &Exit{ExitProblem, errors.New("the server has no factory")}
	}

	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}

	return factoryRef{}, &Exit{
		ExitUnreachable,
		fmt.Errorf("there are %d factories: choose one with --factory %s", len(all), strings.Join(names, "|")),
	}
}

// webhook finds a webhook by UID, or by a name that only one has, in the factories that --factory names.
func (c *Client) webhook(ctx context.Context, ref string) (factoryRef, webhookRef, error) {
	factories, err := c.chosen(ctx)
	if err != nil {
		return factoryRef{}, webhookRef{}, err
	}

	var known, in []string // in: the factories that have one of this name
	var factory factoryRef
	var found webhookRef
	for _, f := range factories {
		hooks, err := c.webhooks(ctx, f, strings.HasPrefix(ref, "wh_"))
		if err != nil {
			return factoryRef{}, webhookRef{}, err
		}

		for _, w := range hooks {
			if w.UID == ref {
				return f, w.webhookRef, nil
			}
			if w.Name == ref && w.DeletedAt == nil {
				factory, found, in = f, w.webhookRef, append(in, f.Name)
			}

			known = append(known, w.Name)
		}
	}

	switch len(in) {
	case 0:
		return factoryRef{}, webhookRef{}, &Exit{
			ExitProblem,
			fmt.Errorf("no webhook %q: there is %s", clean(ref), cmp.Or(strings.Join(known, ", "), "none")),
		}
	case 1:
		return factory, found, nil
	}

	return factoryRef{}, webhookRef{}, Usagef(
		"%d factories have a webhook %q: choose one with --factory %s, or give its UID",
		len(in),
		clean(ref),
		strings.Join(in, "|"),
	)
}

// webhooks returns the webhooks of a factory.
func (c *Client) webhooks(ctx context.Context, f factoryRef, deleted bool) ([]webhookItem, error) {
	body, err := c.webhookList(ctx, f, deleted)
	if err != nil {
		return nil, err
	}

	var list struct{ Webhooks []webhookItem }
	err = c.Decode(body, &list)
	return list.Webhooks, err
}

// webhookList returns the webhooks of a factory, as the API answers.
func (c *Client) webhookList(ctx context.Context, f factoryRef, deleted bool) ([]byte, error) {
	q := url.Values{"include_deleted": {fmt.Sprint(deleted)}}
	body, _, err := c.list(ctx, "/factory/"+f.UID+"/webhooks", "webhooks", q, whole)
	return body, err
}

// webhookPath is where the API has a webhook.
func webhookPath(f factoryRef, w webhookRef) string {
	return "/factory/" + f.UID + "/webhooks/" + w.UID
}

func runPath(id string) string { return "/agent/runs/" + url.PathEscape(id) }
