package dashboard

import (
	"cmp"
	"encoding/json"
	"errors"
	"html/template"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"millwright/admin"
	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
)

// functions returns the functions of the templates.
func (d *dashboard) functions() template.FuncMap {
	return template.FuncMap{
		"asset":      func(name string) string { return "/assets/" + name + "?v=" + d.assets[name].version },
		"ago":        func(t any) template.HTML { return ago(time.Now, t) },
		"stamp":      func(t time.Time) string { return t.UTC().Format(stampFormat) },
		"examples":   func(ids []string) []string { return ids[:min(3, len(ids))] },
		"line":       func(v any) string { return line(text(v)) },
		"prose":      func(v any) string { return prose(text(v)) },
		"shell":      schema.ShellWord,
		"pretty":     func(b []byte) string { return pretty(b) },
		"editable":   editable,
		"bytes":      byteCount,
		"size":       size,
		"short":      short,
		"commitPage": commitPage,
		"pathEscape": url.PathEscape,
		"join":       strings.Join,
		"has":        func(list []string, s string) bool { return slices.Contains(list, s) },
		"tone":       tone,
		"standing":   standingOf,
		"eventTone":  func(state string) string { return eventTones[state] },
		"problem":    func(p schema.Problem) string { return schema.Text(p, nil) },
		"worstFirst": worstFirst,
		"tier":       tier,
		"tierShort":  tierShort,
		"dict":       dict,
		"list":       func(all ...string) []string { return all },
		"int64":      func(n int) int64 { return int64(n) },
		"difference": difference,
		"deref":      func(f *state.Factory) state.Factory { return *f },
		"repository": admin.WithoutCredentials,
		"took":       func(from, to time.Time) string { return spell(max(to.Sub(from), 0)) },
		"value":      value,
		"webAddress": webAddress,
		"fieldDiff":  fieldDifference,
		"choose": func(list []string, some, none string) string {
			if len(list) > 0 {
				return some
			}
			return none
		},
	}
}

// text returns a value of any text type as a string.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case interface{ Label() string }:
		return v.Label()
	case state.RunState:
		return string(v)
	case schema.AuthMode:
		return string(v)
	case error:
		return v.Error()
	}

	return ""
}

// dict makes the data of a part of a page from names and values in turn.
func dict(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, errors.New("dict: a name is not a text")
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// diffLine is a line of a difference.
type diffLine struct{ Class, Text string }

// difference splits a unified difference into lines, bounded.
func difference(text string) (lines []diffLine) {
	for l := range strings.SplitSeq(strings.TrimSuffix(prose(text), "\n"), "\n") {
		class := "same"
		switch {
		case strings.HasPrefix(l, "+++"), strings.HasPrefix(l, "---"), strings.HasPrefix(l, "@@"):
			class = "place"
		case strings.HasPrefix(l, "+"):
			class = "added"
		case strings.HasPrefix(l, "-"):
			class = "removed"
		}

		lines = append(lines, diffLine{class, l})
	}

	return lines
}

// fieldDifference returns how a long value of a plan changes, in lines; nil for a value that fits into one.
func fieldDifference(f plan.Field) []diffLine {
	was, now := lines(f.Old), lines(f.New)
	if strings.Count(was, "\n") < 2 && strings.Count(now, "\n") < 2 && len(was)+len(now) <= 2*maxShortValue {
		return nil
	}

	text := string(diff.Diff("a", []byte(was), "b", []byte(now)))
	if _, hunks, found := strings.Cut(text, "\n@@"); found {
		return difference("@@" + hunks)
	}
	return nil
}

// maxShortValue is how long a value is, in bytes, that a plan shows in a line.
const maxShortValue = 100

// lines writes a value of a plan as text of whole lines: text as it is, lists and objects as JSON.
func lines(v any) string {
	text, isText := v.(string)
	if !isText && v != nil {
		body, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		text = pretty(body)
	}

	if text == "" {
		return ""
	}
	return strings.TrimSuffix(clip(maxText, text), "\n") + "\n"
}

// value writes a value of a plan, as JSON.
func value(v any) string {
	if v == nil {
		return "none"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return clip(maxLine*4, string(b))
}

// commitPage returns the page of a commit at the hosts whose addresses are known, and "" for others.
func commitPage(s state.Source, revision string) string {
	address := admin.WithoutCredentials(s.URL)
	if rest, ok := strings.CutPrefix(address, "git@"); ok && !strings.Contains(address, "://") { // git@host:path
		address = "ssh://git@" + strings.Replace(rest, ":", "/", 1)
	}

	u, err := url.Parse(address)
	if s.Kind != "git" || err != nil || u.Scheme != "https" && u.Scheme != "ssh" {
		return ""
	}

	paths := map[string]string{
		"github.com": "commit", "gitlab.com": "-/commit", "bitbucket.org": "commits", "codeberg.org": "commit",
	}
	of := paths[u.Hostname()]
	if of == "" {
		return ""
	}

	page := url.URL{
		Scheme: "https",
		Host:   u.Hostname(),
		Path:   strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), ".git"),
	}
	return page.JoinPath(of, revision).String()
}

// tone returns the class that gives a state its colour: good, busy, odd, bad or quiet.
func tone(v any) string {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	case state.DeliveryOutcome:
		s = string(v)
	case state.RunState:
		s = string(v)
	case state.Outcome:
		s = string(v)
	case schema.Severity:
		s = string(v)
	}

	switch s {
	case "accepted", "SUCCEEDED", "applied", "enabled", "matched", "create", "restore", "ok":
		return "good"
	case "INPROGRESS", "CLAIMED", "QUEUED", "info", "handshake", "update":
		return "busy"
	case "duplicate", "BLOCKED", "warning", "disabled", "warn", "pending", "suspended":
		return "odd"
	case "rejected_auth",
		"rejected_invalid_json",
		"rejected_too_large",
		"FAILED",
		"ERROR",
		"refused",
		"failed",
		"error",
		"deleted",
		"unknown",
		"delete",
		"bad":
		return "bad"
	}

	return "quiet"
}

// tier names the origin of a delivery's identity.
func tier(s state.IdentitySource) string {
	switch s {
	case state.IdentityHeader:
		return "the webhook's header"
	case state.IdentityProvider:
		return "the provider's header"
	case state.IdentityServiceHeader:
		return "X-Service-Delivery-Id"
	case state.IdentityBodyHash:
		return "hash of the body"
	}

	return ""
}

// tierShort is tier in a word.
func tierShort(s state.IdentitySource) string {
	switch s {
	case state.IdentityHeader:
		return "header"
	case state.IdentityProvider:
		return "provider"
	case state.IdentityServiceHeader:
		return "service header"
	}
	return "body"
}

// worstFirst puts errors before warnings, and infos last; each keep the order of their places.
func worstFirst(list []schema.Problem) []schema.Problem {
	rank := []schema.Severity{schema.SeverityError, schema.SeverityWarning, schema.SeverityInfo}
	return slices.SortedStableFunc(slices.Values(list), func(a, b schema.Problem) int {
		return cmp.Compare(slices.Index(rank, a.Severity), slices.Index(rank, b.Severity))
	})
}

// prepareViews returns what makes the set of each page: the layout, the parts, and the page's own file. A set is made
// once, when its page is first shown: all of them together are a third of what a server's start costs.
func (d *dashboard) prepareViews() (map[string]func() (*template.Template, error), error) {
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return nil, err
	}

	base := sync.OnceValues(func() (*template.Template, error) {
		return template.New("base").
			Funcs(d.functions()).
			ParseFS(files, "templates/layout.html", "templates/parts.html")
	})

	views := map[string]func() (*template.Template, error){}
	for _, name := range names {
		view := strings.TrimSuffix(path.Base(name), ".html")
		if view == "layout" || view == "parts" {
			continue
		}

		views[view] = sync.OnceValues(func() (*template.Template, error) {
			parts, err := base()
			if err != nil {
				return nil, err
			}

			set, err := parts.Clone()
			if err != nil {
				return nil, err
			}
			return set.ParseFS(files, name)
		})
	}

	return views, nil
}
