package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// Answer is what a provider wants to hear before it enables a URL.
type Answer struct {
	Status      int
	ContentType string // empty when there is no body
	Body        []byte
}

// The handshakes that a row may have.
const (
	handshakeSlack   = "slack"
	handshakeZoom    = "zoom"
	handshakeDiscord = "discord"
	handshakeTwitch  = "twitch"
)

// maxChallenge bounds the text that is sent back to the provider.
const maxChallenge = 4096

// Handshake recognises the provider's set-up probe and gives its answer. Call
// it only with a message that v has verified: the answer to zoom's probe is made
// with the secret.
func (v *Verifier) Handshake(m Message) (Answer, bool) {
	if v == nil || len(v.forms) == 0 {
		return Answer{}, false
	}
	switch v.scheme.row.handshake {
	case handshakeSlack:
		body := object(m.Body)
		if text(body["type"]) == "url_verification" {
			return echo(text(body["challenge"]))
		}
	case handshakeTwitch:
		if values := m.Header["Twitch-Eventsub-Message-Type"]; len(values) == 1 && values[0] == "webhook_callback_verification" {
			return echo(text(object(m.Body)["challenge"]))
		}
	case handshakeZoom:
		body := object(m.Body)
		plain := text(object(body["payload"])["plainToken"])
		// A token of this form would make the answer a signature of a request.
		if text(body["event"]) == "endpoint.url_validation" && plain != "" && len(plain) <= maxChallenge && !strings.HasPrefix(plain, "v0:") {
			mac := hmac.New(sha256.New, v.forms[0].key.mac)
			mac.Write([]byte(plain))
			return asJSON(map[string]string{"plainToken": plain, "encryptedToken": hex.EncodeToString(mac.Sum(nil))})
		}
	case handshakeDiscord:
		body := object(m.Body)
		if _, event := body["event"]; event { // an event is of type 1, as the ping of an interaction is
			break
		}
		switch string(body["type"]) {
		case "1":
			return asJSON(map[string]int{"type": 1})
		case "0":
			return Answer{Status: 204}, true
		}
	}
	return Answer{}, false
}

// PendingToken finds the token that a provider sends, unsigned, before it has a
// secret to sign with: asana in a header, notion in the body. It becomes the
// webhook's secret once its owner has looked at it; the request itself proves
// nothing and is refused.
func (s *Scheme) PendingToken(m Message) (string, bool) {
	token := ""
	switch s.row.name {
	case "asana":
		token, _ = single(m.Header, "X-Hook-Secret")
	case "notion":
		token = text(object(m.Body)["verification_token"])
	}
	return token, token != "" && len(token) <= maxChallenge
}

// object reads a JSON object, keys case-sensitive; nil when it is none.
func object(raw []byte) map[string]json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// text reads a JSON string; empty when it is none.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func echo(challenge string) (Answer, bool) {
	if challenge == "" || len(challenge) > maxChallenge {
		return Answer{}, false
	}
	return Answer{Status: 200, ContentType: "text/plain; charset=utf-8", Body: []byte(challenge)}, true
}

func asJSON(v any) (Answer, bool) {
	body, err := json.Marshal(v)
	return Answer{Status: 200, ContentType: "application/json", Body: body}, err == nil
}
