package dashboard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"millwright/api"
	"millwright/state"
)

// request is a request for a page by a browser that is signed in.
type request struct {
	*http.Request
	*dashboard
	w       http.ResponseWriter
	key     state.Key
	session string // the token in the browser's cookie
	began   time.Time
}

// param returns a parameter of the path, decoded.
func (q *request) param(name string) string {
	raw := chi.URLParam(q.Request, name)
	if text, err := url.PathUnescape(raw); err == nil {
		return text
	}
	return raw
}

// call makes a request of the API in the name of the browser's key.
func (q *request) call(method, path string, in, out any, header ...string) error {
	caller := api.Caller{
		Key:    q.key,
		Kind:   api.CallerSession,
		Sender: api.SenderOf(q.Request, q.TrustedProxies).Key,
	}
	return q.API.Call(q.Context(), caller, method, path, in, out, header...)
}

// page is the data of every template.
type page struct {
	Title   string
	Section string // of the main navigation
	Tab     string // of a factory's pages
	Factory *state.Factory
	Crumbs  []crumb
	Live    []string // what the page changes with, as /live takes it
	Self    string   // where a page that answers a form is to be had again; without it such a page is not live
	Data    any

	Key       state.Key
	Can       abilities
	CSRF      string
	Done      string // what the change that led here did
	Factories []factoryLink
	Path      string
	Find      string // what is searched for
	Version   string
}

// crumb is a page above this one.
type crumb struct{ Name, Path string }

// abilities are the actions that a page offers. The API refuses all others. All: the key is not limited to
// factories.
type abilities struct{ Run, Admin, All bool }

// factoryLink is a factory in the navigation.
type factoryLink struct {
	Name, UID, Level string
}

// done are the messages that a change leaves on the page it leads to.
var done = map[string]string{
	"applied":    "Applied. The new definition is in use.",
	"unchanged":  "Synced. The source has not changed.",
	"refused":    "Refused: the definition has errors. The last applied one stays in use.",
	"failed":     "The source could not be read. The last applied definition stays in use.",
	"dropped":    "Dropped. The runs that waited are cancelled.",
	"replayed":   "Replayed as this new delivery.",
	"enabled":    "Enabled. The webhook takes deliveries again.",
	"disabled":   "Disabled. Senders get 404 from now on.",
	"deleted":    "Deleted.",
	"renamed":    "Renamed. The URL is the same.",
	"saved":      "Saved and applied.",
	"secret":     "The secret has a new value. Webhooks use it after the next apply.",
	"pending":    "The secret is pending. Its webhooks refuse every request until it has a value.",
	"revoked":    "Revoked. Sessions that began with the key have ended.",
	"followup":   "Sent to the run.",
	"answered":   "Answered.",
	"started":    "Started.",
	"retried":    "Started again, as this new run.",
	"agreed":     "Agreed. The server performs the output.",
	"rejected":   "Rejected. The output is never performed.",
	"again":      "The server tries the output again.",
	"tested":     "The server sends a test event.",
	"resent":     "The server sends the events again.",
	"opened":     "The server opens a pull request from the changes.",
	"cancelled":  "Cancelled.",
	"cancel":     "The agent was asked to stop, and is killed if it does not.",
	"rolledback": "Rolled back. The factory stays at this revision until you resume it.",
	"resumed":    "Resumed. The server applies the newest revision of the source.",
}

// render answers with a page.
func (q *request) render(view string, p page) error {
	return q.renderStatus(http.StatusOK, view, p)
}

func (q *request) renderStatus(status int, view string, p page) error {
	p.Key, p.Path, p.Version = q.key, q.URL.Path, q.Version
	if q.Method != http.MethodPost {
		p.Self = ""
	} else if p.Self == "" {
		p.Live = nil
	}

	p.Can = abilities{
		Run:   q.key.Role.Allows(state.RoleRunner),
		Admin: q.key.Role.Allows(state.RoleAdmin),
		All:   !q.key.Limited(),
	}
	p.Done = done[q.URL.Query().Get("done")]
	if q.session != "" {
		p.CSRF = q.proof(q.session)
	}

	if q.key.UID != "" && p.Factories == nil {
		all, err := q.ownFactories()
		if err != nil && view != "error" {
			return err
		}

		for _, f := range all {
			if len(p.Factories) < maxLinks && !f.Detached {
				p.Factories = append(p.Factories, factoryLink{f.Name, f.UID, standingOf(f).Level})
			}
		}
	}

	templates := q.views[view]
	if templates == nil {
		return fmt.Errorf("no template %q", view)
	}

	t, err := templates()
	if err != nil {
		return fmt.Errorf("page %s: %w", view, err)
	}

	var body bytes.Buffer
	if err := t.ExecuteTemplate(&body, "layout", p); err != nil {
		return fmt.Errorf("page %s: %w", view, err)
	}

	q.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	q.w.Header().Set("Server-Timing", fmt.Sprintf("page;dur=%.1f", float64(time.Since(q.began).Microseconds())/1000))
	q.w.WriteHeader(status)
	q.w.Write(visible(body.Bytes()))
	return nil
}

// ownFactories returns the factories that the key reaches.
func (q *request) ownFactories() ([]state.Factory, error) {
	all, err := q.Store.Factories(q.Context())
	return slices.DeleteFunc(all, func(f state.Factory) bool { return !q.key.Reaches(f.UID) }), err
}

// maxLinks is how many factories the navigation lists.
const maxLinks = 12

// redirect leads to another page after a change. what is a key of done.
func (q *request) redirect(to, what string) error {
	if what != "" {
		to += "?done=" + what
	}
	http.Redirect(q.w, q.Request, to, http.StatusSeeOther)
	return nil
}

type errorView struct {
	Status          int
	Heading, Detail string
	Fields          []api.FieldError
	Back            string
}

// fail answers with an error page. It logs internal errors, and does not show them.
func (q *request) fail(err error) {
	problem := problemOf(err)
	switch {
	case problem.Status >= 500 && q.Context().Err() == nil:
		q.Log.Error("dashboard page failed", "method", q.Method, "path", q.URL.Path, "error", err)
	case q.Context().Err() != nil:
		return // nobody waits any more
	}

	for k, values := range problem.GetHeaders() {
		if k == "Retry-After" {
			q.w.Header()[k] = values
		}
	}

	view := errorView{
		Status:  problem.Status,
		Heading: heading(problem),
		Detail:  problem.Detail,
		Fields:  problem.Errors,
	}

	p := page{Title: view.Heading, Data: view}
	if problem.Status >= 500 {
		p.Factories = []factoryLink{} // the state may be out of reach
	}
	if err := q.renderStatus(problem.Status, "error", p); err != nil {
		q.Log.Error("dashboard error page failed", "error", err)
		http.Error(q.w, view.Heading, problem.Status)
	}
}

// problemOf returns the problem that err is, or stands for.
func problemOf(err error) *api.Error {
	var problem *api.Error
	switch {
	case errors.As(api.FromState(err), &problem):
		return problem
	case errors.Is(err, context.DeadlineExceeded):
		return api.Problem("resource_unavailable", "this took too long: try again")
	}
	return api.Problem("internal_error", "")
}

func heading(e *api.Error) string {
	switch e.Status {
	case http.StatusNotFound:
		return "Not found"
	case http.StatusForbidden:
		return "Not allowed"
	case http.StatusInternalServerError:
		return "Internal error"
	case http.StatusServiceUnavailable:
		return "Not available at the moment"
	}

	return e.Title
}

// form is the input of a form, and its errors.
type form struct {
	Values map[string]string
	Errors map[string]string
	Error  string // what is wrong as a whole
}

// formOf returns the input of the named fields, which must not be secrets.
func (q *request) formOf(fields ...string) form {
	f := form{Values: map[string]string{}, Errors: map[string]string{}}
	for _, name := range fields {
		f.Values[name] = q.PostForm.Get(name)
	}
	return f
}

// take puts the errors of the API beside their fields, and reports whether to show the form again. Any other
// error is for the error page.
func (f *form) take(err error) bool {
	problem := problemOf(err)
	if problem.Status >= 500 || problem.Status == http.StatusForbidden || problem.Status == http.StatusNotFound {
		return false
	}

	for _, wrong := range problem.Errors {
		name := wrong.Field
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			if _, known := f.Values[name]; !known {
				name = name[i+1:]
			}
		}

		if _, known := f.Values[name]; !known {
			f.Error = strings.TrimPrefix(f.Error+"; "+strings.TrimPrefix(wrong.Field+": "+wrong.Message, ": "), "; ")
			continue
		}

		f.Errors[name] = strings.TrimPrefix(f.Errors[name]+"; "+plainly(wrong.Message), "; ")
	}

	if len(problem.Errors) == 0 {
		f.Error = problem.Detail
		if f.Error == "" {
			f.Error = problem.Title
		}
	}

	return true
}

// plainly rewords an error of the API for the reader of a form.
func plainly(message string) string {
	return strings.NewReplacer(
		"expected string to be ", "must be ",
		"expected length >= 1", "is empty",
		"expected length <= ", "is too long: the greatest length is ",
	).Replace(message)
}
