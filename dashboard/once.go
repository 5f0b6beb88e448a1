package dashboard

import (
	"errors"
	"net/http"
	"time"

	"millwright/api"
	"millwright/state"
)

// LinkLife is how long a sign-in link works.
const LinkLife = 10 * time.Minute

// signInOnce begins a session by the token of a link. A browser that only prefetches the page gets the form.
func (q *request) signInOnce(token string) {
	if q.Method != http.MethodGet || q.Header.Get("Sec-Purpose") != "" || q.Header.Get("Purpose") != "" {
		q.login(http.StatusOK, "")
		return
	}

	const gone = "This link has been used, or is too old. Sign in with a key."
	if q.Links == nil {
		q.login(http.StatusUnauthorized, gone)
		return
	}

	keyUID, ok := q.Links.take(token)
	if !ok {
		q.login(http.StatusUnauthorized, gone)
		return
	}

	sender := api.SenderOf(q.Request, q.TrustedProxies).Key
	session, err := q.Store.CreateSession(from(q.Context(), sender), keyUID, sessionLife)
	if errors.Is(err, state.ErrNotFound) {
		q.login(http.StatusUnauthorized, gone)
		return
	}
	if err != nil {
		q.fail(err)
		return
	}

	http.SetCookie(q.w, q.sessionCookie(session))
	http.Redirect(q.w, q.Request, "/", http.StatusSeeOther)
}
