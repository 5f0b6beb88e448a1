package dashboard

import (
	"context"
	"crypto/hmac"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"millwright/api"
	"millwright/api/identity"
	"millwright/bounds"
	"millwright/state"
	"millwright/state/audit"
)

const (
	sessionLife = 12 * time.Hour // docs/contract.md, section 2
	signInLife  = time.Hour      // of the page that asks for a key
)

// cookie returns a cookie. Over https its name keeps other hosts, and pages over http, from setting it.
func (d *dashboard) cookie(name, value string, life time.Duration, site http.SameSite) *http.Cookie {
	c := &http.Cookie{
		Name:     name,
		Value:    value,
		Path:     "/",
		HttpOnly: true,
		SameSite: site,
		Secure:   d.secure,
		MaxAge:   int(life / time.Second),
	}
	if d.secure {
		c.Name = "__Host-" + name
	}
	if value == "" {
		c.MaxAge = -1
	}

	return c
}

const (
	sessionCookie = "millwright"
	signInCookie  = "millwright-sign-in"
)

func (d *dashboard) sessionCookie(value string) *http.Cookie {
	return d.cookie(sessionCookie, value, sessionLife, http.SameSiteLaxMode)
}

// cookieOf returns the value of a cookie that this server set, or "".
func (d *dashboard) cookieOf(r *http.Request, name string) string {
	c, err := r.Cookie(d.cookie(name, "x", 0, 0).Name)
	if err != nil || len(c.Value) > 256 {
		return ""
	}
	return c.Value
}

// sameSite refuses a change that another site's page asks for: by what the browser says of the request's
// origin, and by the form's token, which belongs to the browser's cookie.
func (d *dashboard) sameSite(r *http.Request, cookie string) error {
	// With the referrer policy of these pages a browser that does not send Sec-Fetch-Site (plain http off
	// loopback) says "Origin: null"; then the token decides alone.
	unknown := r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "null"
	if err := d.origins.Check(r); err != nil && !unknown {
		return api.Problem("not_authorized", "this request came from another site")
	}

	err := r.ParseForm()
	if err == nil && strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		err = r.ParseMultipartForm(bounds.MaxForm) // what is more goes to files, which end with the request
	}

	if err != nil {
		var large *http.MaxBytesError
		switch {
		case errors.Is(err, bounds.ErrNoRoom):
			return api.Problem("resource_unavailable", "too many forms are being sent: try again soon")
		case errors.As(err, &large):
			return api.Problem("payload_too_large", "a form may have %s at most", byteCount(large.Limit))
		}

		return api.Problem("invalid_request", "the form cannot be read")
	}

	if cookie == "" || !hmac.Equal([]byte(r.PostForm.Get("csrf")), []byte(d.proof(cookie))) {
		return api.Problem(
			"not_authorized",
			"this form is too old, or did not come from this site: open the page again",
		)
	}

	return nil
}

// signedIn lets a request through when its browser is signed in and, if it changes something, when the
// page that it comes from is ours. Otherwise the browser is asked to sign in.
func (d *dashboard) signedIn(f func(*request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := &request{Request: r, dashboard: d, w: w, began: time.Now()}
		q.session = d.cookieOf(r, sessionCookie)
		if q.session != "" {
			var err error
			if q.key, err = d.Store.SessionKey(r.Context(), q.session); err != nil &&
				!errors.Is(err, state.ErrNotFound) {
				q.fail(err)
				return
			}
		}

		if !q.key.Role.Allows(state.RoleViewer) {
			q.askToSignIn()
			return
		}

		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			form := d.API.Bounds().Keyed.Hold(q.key.UID)
			defer form.Release()

			q.takeForm(&form)
			err := d.sameSite(r, q.session)
			if r.MultipartForm != nil {
				defer r.MultipartForm.RemoveAll()
			}
			if err != nil {
				q.fail(err)
				return
			}
		}

		err := q.reach()
		if err == nil {
			err = f(q)
		}
		if err != nil {
			q.fail(err)
		}
	}
}

// from returns a context with a remote address for the audit log.
func from(ctx context.Context, sender string) context.Context {
	return audit.WithActor(ctx, audit.Actor{Source: sender})
}

// takeForm makes the whole form of a signed-in sender readable.
func (q *request) takeForm(hold *bounds.Hold) {
	limit := int64(bounds.MaxForm)
	if strings.HasSuffix(q.URL.Path, "/files/import") {
		limit = bounds.MaxImport
	}
	body, _ := q.Context().Value(whole{}).(io.ReadCloser)
	q.Body = hold.Reader(http.MaxBytesReader(q.w, body, limit))
}

func (q *request) askToSignIn() {
	if q.session != "" {
		http.SetCookie(q.w, q.sessionCookie(""))
	}

	to := "/login"
	if q.Method == http.MethodGet && q.URL.Path != "/" && q.URL.Path != "/live" {
		to += "?next=" + url.QueryEscape(q.URL.RequestURI())
	}
	if q.URL.Path == "/live" {
		http.Error(q.w, "signed out", http.StatusUnauthorized)
		return
	}

	http.Redirect(q.w, q.Request, to, http.StatusSeeOther)
}

// ownPath returns next when it is a path of this site, and "/" otherwise.
func ownPath(next string) string {
	if len(next) > 2048 || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") ||
		strings.ContainsAny(next, "\\\x00\r\n\t") {
		return "/"
	}
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(u.Path, "//") {
		return "/"
	}
	return u.RequestURI()
}

type loginView struct{ Next, Error, Issuer string }

// login shows the page that asks for a key.
func (q *request) login(status int, message string) {
	nonce := q.cookieOf(q.Request, signInCookie)
	if nonce == "" {
		nonce = state.NewToken("")
		http.SetCookie(q.w, q.cookie(signInCookie, nonce, signInLife, http.SameSiteStrictMode))
	}
	q.session = nonce // what the form's token belongs to
	v := loginView{ownPath(q.FormValue("next")), message, q.loginHost()}
	if err := q.renderStatus(status, "login", page{Title: "Sign in", Data: v}); err != nil {
		q.fail(err)
	}
}

// signIn begins a new session, whatever cookie the browser sent.
func (d *dashboard) signIn(w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r, dashboard: d, w: w, began: time.Now()}
	sender := api.SenderOf(r, d.TrustedProxies).Key
	nonce := d.cookieOf(r, signInCookie)
	if err := d.sameSite(r, nonce); err != nil {
		var problem *api.Error
		if errors.As(err, &problem) && problem.Code == "not_authorized" && nonce == "" {
			q.login(
				http.StatusForbidden,
				"Your browser did not send the cookie of this page. Allow cookies for this site, then try again.",
			)
			return
		}

		q.fail(err)
		return
	}

	key, problem := d.API.Identify(
		r.Context(),
		d.API.Bounds().SignIns,
		sender,
		strings.TrimSpace(r.PostForm.Get("key")),
	)

	switch {
	case problem != nil && problem.Status == http.StatusUnauthorized:
		q.login(http.StatusUnauthorized, "This key is unknown, revoked or expired.")
		return
	case problem != nil:
		q.fail(problem)
		return
	case !key.Role.Allows(state.RoleViewer):
		message := "This key has role " + string(key.Role) + ". Sign in with a key of role viewer, runner or admin."
		q.login(http.StatusForbidden, message)
		return
	}

	if old := d.cookieOf(r, sessionCookie); old != "" {
		if err := d.Store.EndSession(r.Context(), old); err != nil {
			q.fail(err)
			return
		}
	}

	token, err := d.Store.CreateSession(from(r.Context(), sender), key.UID, sessionLife)
	if err != nil {
		q.fail(err)
		return
	}

	http.SetCookie(w, d.sessionCookie(token))
	http.SetCookie(w, d.cookie(signInCookie, "", 0, http.SameSiteStrictMode))
	http.Redirect(w, r, ownPath(r.PostForm.Get("next")), http.StatusSeeOther)
}

// signOut ends the session.
func (q *request) signOut() error {
	if err := q.Store.EndSession(q.Context(), q.session); err != nil {
		return err
	}
	http.SetCookie(q.w, q.sessionCookie(""))
	q.w.Header().Set("Clear-Site-Data", `"cache"`)
	http.Redirect(q.w, q.Request, "/login", http.StatusSeeOther)
	return nil
}

// loginIssuer returns the sign-in at an issuer; nil if there is none.
func (d *dashboard) loginIssuer() *identity.Login {
	if d.Login == nil {
		return nil
	}
	return d.Login()
}

// loginHost names the issuer for people; "" if there is none.
func (d *dashboard) loginHost() string {
	login := d.loginIssuer()
	if login == nil {
		return ""
	}
	u, err := url.Parse(login.Issuer)
	if err != nil {
		return ""
	}
	return u.Host
}
