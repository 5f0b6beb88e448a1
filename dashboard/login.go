package dashboard

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"millwright/api"
	"millwright/api/identity"
	"millwright/state"
)

const (
	loginCookie  = "millwright-login"
	loginLife    = 10 * time.Minute // to sign in at the issuer
	maxLoginNext = 512              // bytes of the page to open then
	maxLoginData = 4096             // bytes of the cookie
)

const issuerAway = "The issuer cannot be reached just now. Try again, or sign in with a key."

// pendingLogin is what a browser keeps, sealed, while its user signs in at the issuer.
type pendingLogin struct {
	identity.Attempt
	Next  string
	Until time.Time
}

// loginSeal seals the cookies of pending logins.
func (d *dashboard) loginSeal() (cipher.AEAD, error) {
	block, err := aes.NewCipher(d.Store.DeriveKey("dashboard login"))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// startLogin sends the browser to the issuer. The server keeps nothing.
func (d *dashboard) startLogin(w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r, dashboard: d, w: w, began: time.Now()}
	login := d.loginIssuer()
	if login == nil {
		q.login(http.StatusNotFound, "This server signs nobody in at an issuer. Sign in with a key.")
		return
	}

	address, attempt, err := login.Begin(r.Context())
	if err != nil {
		q.login(http.StatusServiceUnavailable, issuerAway)
		return
	}

	next := ownPath(r.URL.Query().Get("next"))
	if len(next) > maxLoginNext {
		next = "/"
	}

	text, err := json.Marshal(pendingLogin{attempt, next, time.Now().Add(loginLife)})
	if err != nil {
		q.fail(err)
		return
	}
	seal, err := d.loginSeal()
	if err != nil {
		q.fail(err)
		return
	}

	value := base64.RawURLEncoding.EncodeToString(seal.Seal(nil, nil, text, nil))
	http.SetCookie(w, d.cookie(loginCookie, value, loginLife, http.SameSiteLaxMode))
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// pending returns the login that began in this browser.
func (d *dashboard) pending(r *http.Request) (p pendingLogin, ok bool) {
	c, err := r.Cookie(d.cookie(loginCookie, "x", 0, 0).Name)
	if err != nil || len(c.Value) > maxLoginData {
		return p, false
	}

	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return p, false
	}
	seal, err := d.loginSeal()
	if err != nil {
		return p, false
	}
	text, err := seal.Open(nil, nil, sealed, nil)
	if err != nil {
		return p, false
	}

	return p, json.Unmarshal(text, &p) == nil && time.Now().Before(p.Until)
}

// finishLogin begins a session for the person whom the issuer sent back.
func (d *dashboard) finishLogin(w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r, dashboard: d, w: w, began: time.Now()}
	sender := api.SenderOf(r, d.TrustedProxies).Key
	wrong := d.API.Bounds().SignIns
	if wrong.Spent(sender, time.Now()) > 0 { // others may share the address
		leave, ok := d.API.Bounds().Suspects.Enter(r.Context(), sender)
		if !ok {
			q.fail(api.Problem("resource_unavailable", "too many sign-ins at once: try again soon"))
			return
		}
		defer leave()
	}

	p, began := d.pending(r)
	http.SetCookie(w, d.cookie(loginCookie, "", 0, http.SameSiteLaxMode))
	login := d.loginIssuer()
	if !began || login == nil {
		q.refuseLogin(sender, "This sign-in is too old, or began in another browser. Try again.")
		return
	}

	given := r.URL.Query()
	person, err := login.Finish(r.Context(), p.Attempt, given.Get("state"), given.Get("code"))
	var refusal *identity.Refusal
	switch {
	case errors.As(err, &refusal):
		q.refuseLogin(sender, "You are not signed in: "+refusal.Reason+".")
		return
	case err != nil:
		q.login(http.StatusServiceUnavailable, issuerAway)
		return
	}

	if err := q.signInPerson(person, sender, p.Next); errors.Is(err, state.ErrNotFound) {
		q.refuseLogin(sender, "Your access was revoked.")
	} else if err != nil {
		q.fail(err)
	}
}

// refuseLogin shows the sign-in page, and counts the attempt like a wrong key.
func (q *request) refuseLogin(sender, message string) {
	q.API.Bounds().SignIns.Charge(sender, time.Now())
	if err := q.Store.Audit().Refused(q.Context(), sender); err != nil {
		q.Log.Error("counting refused sign-ins", "error", err)
	}
	q.login(http.StatusForbidden, message)
}

// signInPerson begins a session, whatever cookie the browser sent.
func (q *request) signInPerson(p identity.Person, sender, next string) error {
	present := state.Key{Name: p.DisplayName, Role: p.Role}
	if p.Factories != nil {
		var err error
		if present.Factories, err = q.Store.FactoryUIDs(q.Context(), p.Factories); err != nil {
			return err
		}
	}

	key, err := q.Store.SignInPerson(from(q.Context(), sender), p.Issuer, p.Subject, present)
	if err != nil {
		return err
	}

	if old := q.cookieOf(q.Request, sessionCookie); old != "" {
		if err := q.Store.EndSession(q.Context(), old); err != nil {
			return err
		}
	}

	token, err := q.Store.CreateSession(from(q.Context(), sender), key.UID, sessionLife)
	if err != nil {
		return err
	}

	http.SetCookie(q.w, q.sessionCookie(token))
	http.Redirect(q.w, q.Request, ownPath(next), http.StatusSeeOther)
	return nil
}

func (d *dashboard) showLogin(w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r, dashboard: d, w: w, began: time.Now()}
	if token := r.URL.Query().Get("once"); token != "" {
		q.signInOnce(token)
		return
	}

	q.login(http.StatusOK, "")
}
