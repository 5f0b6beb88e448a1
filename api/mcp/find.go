package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"millwright/state"
)

// get reads a resource of the API.
func (c *caller) get(ctx context.Context, path string, query url.Values) (map[string]any, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.ask(ctx, http.MethodGet, path, nil)
}

// ask calls the API for an object. Numbers in it stay as they are.
func (c *caller) ask(
	ctx context.Context,
	method, path string,
	in any,
	header ...string,
) (map[string]any, error) {
	body, err := c.Call(ctx, method, path, in, header...)
	if err != nil {
		return nil, err
	}

	out := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return nil, errors.New("the server answered with something that is not the API's")
	}
	return out, nil
}

// query returns the parameters of a page.
func (p Paging) query() url.Values {
	q := url.Values{}
	set(q, "cursor", p.Cursor)
	if p.Limit > 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	return q
}

// set adds a parameter that has a value.
func set(q url.Values, name string, values ...string) {
	for _, v := range values {
		if v != "" {
			q.Add(name, v)
		}
	}
}

// text returns a member of an object that is a string, or "".
func text(from map[string]any, name string) string {
	v, _ := from[name].(string)
	return v
}

// list returns a member of an object that is a list of objects.
func list(from map[string]any, name string) []map[string]any {
	items, _ := from[name].([]any)
	var out []map[string]any
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// mostPages bounds what is read to find something by its name.
const mostPages = 20

// each calls f with the items of all pages of a list, until it returns false.
func (c *caller) each(
	ctx context.Context,
	path, plural string,
	q url.Values,
	f func(map[string]any) bool,
) error {
	q.Set("limit", "500")
	for range mostPages {
		page, err := c.get(ctx, path, q)
		if err != nil {
			return err
		}

		for _, item := range list(page, plural) {
			if !f(item) {
				return nil
			}
		}

		info, _ := page["page_info"].(map[string]any)
		if q.Set("cursor", text(info, "next_cursor")); q.Get("cursor") == "" {
			return nil
		}
	}
	return nil
}

// factories returns the factories that the caller is limited to, by name.
func (c *caller) factories(ctx context.Context) ([]map[string]any, error) {
	var all []map[string]any
	err := c.each(ctx, "/factory", "factories", url.Values{}, func(f map[string]any) bool {
		if c.Factory == "" || c.Factory == text(f, "uid") || c.Factory == text(f, "name") {
			all = append(all, f)
		}
		return true
	})
	if err == nil && len(all) == 0 && c.Factory != "" {
		return nil, fmt.Errorf("no factory %q", c.Factory)
	}
	return all, err
}

// factory returns the UID of the factory that ref names; without ref, that of the only one.
func (c *caller) factory(ctx context.Context, ref string) (string, error) {
	if c.Factory == "" && state.ValidID(state.PrefixFactory, ref) {
		return ref, nil
	}

	all, err := c.factories(ctx)
	if err != nil {
		return "", err
	}

	var names []string
	for _, f := range all {
		if ref != "" && (text(f, "uid") == ref || text(f, "name") == ref) || ref == "" && len(all) == 1 {
			return text(f, "uid"), nil
		}
		names = append(names, text(f, "name"))
	}

	switch {
	case len(names) == 0:
		return "", errors.New("the server has no factory")
	case ref == "":
		return "", fmt.Errorf("there are several factories: name one in factory: %s", strings.Join(names, ", "))
	}
	return "", fmt.Errorf("no factory %q: there is %s", ref, strings.Join(names, ", "))
}

// limits adds the factory of a list of runs: the one that ref names, or that the caller is limited to.
func (c *caller) limits(ctx context.Context, q url.Values, ref string) error {
	if ref == "" && c.Factory == "" {
		return nil
	}

	uid, err := c.factory(ctx, ref)
	set(q, "factory_uid", uid)
	return err
}

// run returns a run of the factory that the caller is limited to.
func (c *caller) run(ctx context.Context, id string) (map[string]any, error) {
	r, err := c.get(ctx, runPath(id), nil)
	if err != nil || c.Factory == "" {
		return r, err
	}

	uid, err := c.factory(ctx, "")
	if err == nil && text(r, "factory_uid") != uid {
		err = fmt.Errorf("resource_not_found: the factory %q has no run %q", c.Factory, id)
	}
	return r, err
}

func runPath(id string) string { return "/agent/runs/" + url.PathEscape(id) }

func factoryPath(uid string) string { return "/factory/" + url.PathEscape(uid) }

// webhook returns the path of the webhook that ref names, by UID or name; without ref, that of the only one.
func (c *caller) webhook(ctx context.Context, factoryUID, ref string) (string, error) {
	path := factoryPath(factoryUID) + "/webhooks"
	if state.ValidID(state.PrefixWebhook, ref) {
		return path + "/" + ref, nil
	}

	var uids, names []string
	err := c.each(ctx, path, "webhooks", url.Values{}, func(w map[string]any) bool {
		if ref == "" || ref == text(w, "name") {
			uids = append(uids, text(w, "uid"))
		}
		names = append(names, text(w, "name"))
		return true
	})

	switch {
	case err != nil:
		return "", err
	case len(uids) == 1:
		return path + "/" + uids[0], nil
	case len(names) == 0:
		return "", errors.New("the factory has no webhook")
	case ref == "":
		return "", fmt.Errorf("there are several webhooks: name one in webhook: %s", strings.Join(names, ", "))
	}
	return "", fmt.Errorf("no webhook %q: there is %s", ref, strings.Join(names, ", "))
}
