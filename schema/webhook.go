package schema

import (
	"strconv"
	"time"

	"millwright/signature"
)

// MaxWebhooks is how many webhooks a factory may have.
const MaxWebhooks = 20

// AuthMode is how a webhook's sender shows who it is.
type AuthMode string

// The authentication modes.
const (
	AuthToken     AuthMode = "token"     // Authorization: Bearer <secret>
	AuthURLToken  AuthMode = "url_token" // the secret is a segment of the URL
	AuthSignature AuthMode = "signature" // each request is signed by a scheme
)

// Webhook is webhooks/<name>.yaml, defaults filled in. It survives a round trip
// through JSON, whose keys are those of the file.
type Webhook struct {
	Name     string   `json:"name"`
	Path     string   `json:"path"`
	Line     int      `json:"line,omitempty"` // of the first key in the file, from 1
	AuthMode AuthMode `json:"authMode"`
	// SignatureScheme is the scheme's own key, "custom" with CustomScheme, and
	// empty unless AuthMode is signature.
	SignatureScheme string `json:"signatureScheme,omitempty"`
	// SignatureSchemeAlias is the key as the file writes it, when that is an
	// alias of SignatureScheme.
	SignatureSchemeAlias string                `json:"signatureSchemeAlias,omitempty"`
	SecretName           string                `json:"secretName"`
	DeliveryIDHeader     string                `json:"deliveryIdHeader,omitempty"`
	Enabled              bool                  `json:"enabled"`
	Handshake            bool                  `json:"handshake"`
	CustomScheme         *signature.Descriptor `json:"customScheme,omitempty"`
	// DuplicateWindow is how long a hash of the body counts as an identity, as the
	// file writes it: 10m, 24h, 30d; empty: for ever.
	DuplicateWindow string `json:"duplicateWindow,omitempty"`
	// DeliveriesPerMinute is the delivery budget of each sender; 0: the server's.
	DeliveriesPerMinute int `json:"deliveriesPerMinute,omitempty"`
	// Register is the webhook that the server makes at a forge; nil: none.
	Register *Register `json:"register,omitempty"`
}

// Register is a webhook of a repository that the server makes at a forge, and removes with its file.
type Register struct {
	Forge      string   `json:"forge"` // the kind: github, gitlab or gitea
	Repository string   `json:"repository"`
	Events     []string `json:"events"` // in the forge's words, sorted
}

// Window returns DuplicateWindow as a duration; 0: for ever.
func (w Webhook) Window() time.Duration {
	if w.DuplicateWindow == "" {
		return 0
	}

	units := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	last := len(w.DuplicateWindow) - 1
	n, err := strconv.Atoi(w.DuplicateWindow[:last])
	if err != nil {
		return 0 // not of a definition that was checked
	}
	return time.Duration(n) * units[w.DuplicateWindow[last]]
}
