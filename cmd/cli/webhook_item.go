package cli

import (
	"fmt"
	"strings"
)

// webhookRef is what commands need to know of a webhook.
type webhookRef struct {
	UID             string  `json:"uid"`
	Name            string  `json:"name"`
	AuthMode        string  `json:"auth_mode"`
	SignatureScheme string  `json:"signature_scheme"`
	IngressURL      string  `json:"ingress_url"`
	DeletedAt       *string `json:"deleted_at"`
}

// webhookItem is what the program shows of a webhook.
type webhookItem struct {
	webhookRef
	SecretName       string `json:"secret_name"`
	SecretVersion    int64  `json:"secret_version"`
	SecretStale      bool   `json:"secret_stale"`
	SecretPending    bool   `json:"secret_pending"`
	DeliveryIDHeader string `json:"delivery_id_header"`
	Enabled          bool
	CreatedAt        string  `json:"created_at"`
	DeletedAt        *string `json:"deleted_at"`
	File             string
	Counts           map[string]int64
	Registration     *registrationItem
}

func (w webhookItem) mode() string {
	if w.SignatureScheme != "" {
		return w.SignatureScheme
	}
	return w.AuthMode
}

func (w webhookItem) standing() string {
	switch {
	case w.DeletedAt != nil:
		return "deleted"
	case !w.Enabled:
		return "disabled"
	case w.SecretStale:
		return "enabled, secret waits for the next apply"
	}
	return "enabled"
}

// registrationItem is what the program shows of a webhook at a forge.
type registrationItem struct {
	Repository, State, Reason string
	Events                    []string
}

// String returns one line; empty for nil.
func (r *registrationItem) String() string {
	if r == nil {
		return ""
	}

	text := fmt.Sprintf("%s at %s: %s", r.State, r.Repository, strings.Join(r.Events, ", "))
	if r.Reason != "" {
		text += " (" + r.Reason + ")"
	}
	return text
}
