package ingress

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"millwright/signature"
	"millwright/state"
)

// identify returns the delivery's identity from the first source that has one, and whether the provider's
// signature covers it.
func identify(w *webhook, h http.Header, body []byte, proof signature.Proof) (id state.Identity, signed bool) {
	if w.idHeader != "" {
		if value := joined(h[w.idHeader]); value != "" {
			return state.IdentityOf(
					state.IdentityHeader,
					value,
				), proof.DeliveryIDSigned &&
					w.idHeader == proof.DeliveryHeader
		}
	}

	if proof.DeliveryID != "" {
		return state.IdentityOf(state.IdentityProvider, proof.DeliveryID), proof.DeliveryIDSigned
	}
	if value := joined(h[serviceHeader]); value != "" {
		return state.IdentityOf(state.IdentityServiceHeader, value), false
	}

	sum := sha256.Sum256(body)
	return state.IdentityOf(state.IdentityBodyHash, "sha256:"+hex.EncodeToString(sum[:])), true
}

// joined joins the values of a header; the result is empty if all of them are.
func joined(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	for _, v := range values {
		if v != "" {
			return strings.Join(values, ", ")
		}
	}
	return ""
}
