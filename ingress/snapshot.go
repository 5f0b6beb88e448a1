package ingress

import (
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"millwright/schema"
	"millwright/schema/provider"
	"millwright/signature"
	"millwright/state"
)

// snapshot has the immutable facts by which requests are judged.
type snapshot struct {
	generation int64
	webhooks   map[string]*webhook // by UID, of all factories
	factories  map[string]*factory // by UID
}

// factory is one factory's part of a snapshot, tagged with the generation of its definition.
type factory struct {
	uid        string
	generation int64
	webhooks   []*webhook
}

// webhook is a webhook in the form that requests are judged by. It has only the hash of a token.
type webhook struct {
	id          int64
	uid, name   string
	factory     *factory
	enabled     bool
	unreadable  bool // unreadable: every request is answered 503
	mode        schema.AuthMode
	hasSecret   bool              // false: the secret is empty or pending, and every request is refused
	tokenHash   [sha256.Size]byte // of the modes token and url_token
	verifier    *signature.Verifier
	scheme      *signature.Scheme
	source      string // the provider whose events it receives, or empty
	handshake   bool
	window      time.Duration // of identities that are hashes of bodies; 0: for ever
	perMinute   int           // deliveries of a sender; 0: as the server has it
	idHeader    string        // canonical name from deliveryIdHeader, or empty
	shown       []string      // canonical names of the headers that the log shows, sorted
	signatures  []string      // of those that carry signatures
	secrets     []string      // of those that carry the secret
	automations []*automation
	filtered    bool // an automation has a payload filter
	headers     bool // an automation has a filter of headers
	redelivers  bool // the server asks its forge for deliveries again
	envelope    envelope
}

// automation is an enabled automation that selects the webhook.
type automation struct {
	state.RoutedAutomation
	title    string
	matchers []matcher // triggers for this webhook; one must match
}

// matcher is a trigger.
type matcher struct {
	*schema.Matcher
	source string // of its runs
	head   bool   // its runs start in the commits of forks
}

// newSnapshot builds a snapshot of the routing facts. It reuses factories of old that did not change.
func newSnapshot(r state.Routing, old *snapshot, log *slog.Logger) *snapshot {
	s := &snapshot{generation: r.Generation, webhooks: map[string]*webhook{}, factories: map[string]*factory{}}
	for _, rf := range r.Factories {
		var f *factory
		if old != nil {
			f = old.factories[rf.UID]
		}
		if f == nil || f.generation != rf.Generation {
			f = newFactory(rf, log)
		}

		s.factories[f.uid] = f
		for _, w := range f.webhooks {
			s.webhooks[w.uid] = w
		}
	}

	return s
}

func newFactory(rf state.RoutedFactory, log *slog.Logger) *factory {
	f := &factory{uid: rf.UID, generation: rf.Generation}
	for _, rw := range rf.Webhooks {
		w := newWebhook(f, rw, log)
		for _, ra := range rf.Automations {
			w.subscribe(ra, log)
		}
		f.webhooks = append(f.webhooks, w)
	}
	return f
}

func newWebhook(f *factory, rw state.RoutedWebhook, log *slog.Logger) *webhook {
	if rw.Err != nil {
		return &webhook{id: rw.ID, uid: rw.UID, factory: f, unreadable: true}
	}

	w := &webhook{
		id:      rw.ID,
		uid:     rw.UID,
		name:    rw.Spec.Name,
		factory: f,
		enabled: rw.Spec.Enabled,
		mode:    rw.Spec.AuthMode,
		hasSecret: !rw.Pending &&
			len(rw.Secret) > 0, handshake: rw.Spec.Handshake, envelope: newEnvelope(rw.Spec.Name, rw.UID),
	}
	w.source = rw.Spec.Source()
	w.redelivers = rw.Spec.Register != nil && rw.Spec.Register.Forge == "github"
	w.perMinute, w.window = rw.Spec.DeliveriesPerMinute, rw.Spec.Window()
	if name := rw.Spec.DeliveryIDHeader; name != "" {
		w.idHeader = textproto.CanonicalMIMEHeaderKey(name)
	}
	if w.mode == schema.AuthSignature {
		w.readScheme(rw, log)
	} else {
		w.tokenHash = sha256.Sum256(rw.Secret)
	}

	w.nameHeaders()
	return w
}

// serviceHeader identifies a delivery of senders without a scheme of their own.
const serviceHeader = "X-Service-Delivery-Id"

// nameHeaders sets the names of the headers that the log shows, and of those that prove something.
func (w *webhook) nameHeaders() {
	w.shown = []string{"Content-Type", "User-Agent", serviceHeader}
	if w.idHeader != "" {
		w.shown = append(w.shown, w.idHeader)
	}
	if w.scheme != nil {
		w.shown = append(w.shown, w.scheme.EventHeaders()...)
		w.shown = append(w.shown, w.scheme.DeliveryHeaders()...)
		w.signatures, w.secrets = w.scheme.SignatureHeaders(), w.scheme.SecretHeaders()
	}

	slices.Sort(w.shown)
	w.shown = slices.Compact(w.shown)
}

// readScheme sets how signatures are verified.
func (w *webhook) readScheme(rw state.RoutedWebhook, log *slog.Logger) {
	var err error
	if w.scheme, err = schemeOf(rw.Spec); err == nil && w.hasSecret {
		w.verifier, err = w.scheme.Verifier(rw.Secret)
	}

	if err != nil { // it stays without a verifier, and so refuses every request
		log.Error(
			"webhook cannot verify signatures: every request to it is refused",
			"webhook",
			w.uid,
			"name",
			w.name,
			"error",
			err,
		)
	}
}

var errUnknownScheme = errors.New("its signatureScheme is not one that this millwright knows")

func schemeOf(spec schema.Webhook) (*signature.Scheme, error) {
	if spec.SignatureScheme == signature.CustomName {
		if spec.CustomScheme == nil {
			return nil, errUnknownScheme
		}
		return signature.Custom(*spec.CustomScheme)
	}
	if s, ok := signature.Lookup(spec.SignatureScheme); ok {
		return s, nil
	}
	return nil, errUnknownScheme
}

// subscribe lists the automation under the webhook if it is enabled and one of its triggers selects the
// webhook. An invalid filter never matches.
func (w *webhook) subscribe(ra state.RoutedAutomation, log *slog.Logger) {
	if !ra.Spec.Enabled {
		return
	}

	a := &automation{RoutedAutomation: ra, title: title(ra.Spec.Name, w.name)}
	for _, t := range ra.Spec.Triggers {
		if !t.Selects(w.uid, w.source) {
			continue
		}

		m, err := schema.CompileTrigger(t)
		if err != nil {
			log.Error(
				"filter cannot be read: the automation does not fire by it",
				"webhook",
				w.uid,
				"automation",
				ra.UID,
				"problem",
				err,
			)
			continue
		}

		a.matchers = append(a.matchers, matcher{m, runSource(t.Provider), t.Checkout == schema.CheckoutHead})
		w.filtered = w.filtered || m.ReadsPayload() || ra.Spec.Keyed()
		w.headers = w.headers || m.ReadsHeaders()
	}

	if len(a.matchers) > 0 {
		w.automations = append(w.automations, a)
	}
}

// runSource returns the source of the runs that a trigger of a provider starts.
func runSource(name string) string {
	switch name {
	case provider.GitHub:
		return "GITHUB_WEBHOOK"
	case provider.GitLab:
		return "GITLAB_WEBHOOK"
	case provider.Linear, provider.Jira, provider.Slack:
		return strings.ToUpper(name)
	}
	return "CUSTOM_WEBHOOK"
}

// automation returns an enabled automation that selects the webhook, or nil.
func (w *webhook) automation(uid string) *automation {
	for _, a := range w.automations {
		if a.UID == uid {
			return a
		}
	}
	return nil
}

// titleLength is the maximum length of a run's title, in characters (docs/contract.md, section 4).
const titleLength = 120

func title(automation, webhook string) string {
	t := automation + " from " + webhook
	return t[:min(len(t), titleLength)] // names are ASCII
}
