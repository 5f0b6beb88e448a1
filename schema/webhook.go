package schema

import (
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
}
