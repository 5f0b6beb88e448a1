package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Answer is the answer that a provider expects before it enables a URL.
type Answer struct {
	Status      int
	ContentType string // empty without a body
	Body        []byte
}

// maxChallenge bounds the text that is sent back to the provider.
const maxChallenge = 4096

// Handshake recognises the provider's set-up probe and returns its answer. Call it only with a message that
// v has verified: the answer to zoom's probe is made with the secret.
func (v *Verifier) Handshake(m Message) (Answer, bool) {
	if v == nil || len(v.forms) == 0 {
		return Answer{}, false
	}

	switch v.scheme.row.handshake {
	case handshakeSlack:
		found := members(m.Body, "type", "challenge")
		if text(found[0]) == "url_verification" {
			return echo(text(found[1]))
		}
	case handshakeTwitch:
		if values := m.Header["Twitch-Eventsub-Message-Type"]; len(values) == 1 &&
			values[0] == "webhook_callback_verification" {
			return echo(text(members(m.Body, "challenge")[0]))
		}
	case handshakeZoom:
		found := members(m.Body, "event", "payload")
		plain := text(members([]byte(found[1]), "plainToken")[0])

		// A token of this form would make the answer a signature of a request.
		if text(found[0]) == "endpoint.url_validation" && plain != "" && len(plain) <= maxChallenge &&
			!strings.HasPrefix(plain, "v0:") {
			mac := hmac.New(sha256.New, v.forms[0].key.mac)
			mac.Write([]byte(plain))
			return asJSON(map[string]string{"plainToken": plain, "encryptedToken": hex.EncodeToString(mac.Sum(nil))})
		}

	case handshakeDiscord:
		found := members(m.Body, "type", "event")
		if found[1] != "" { // an event is of type 1, as the ping of an interaction is
			break
		}

		switch found[0] {
		case "1":
			return asJSON(map[string]int{"type": 1})
		case "0":
			return Answer{Status: 204}, true
		}
	}

	return Answer{}, false
}

// PendingToken returns the token that a provider sends, unsigned, before it has a secret to sign with:
// asana in a header, notion in the body. The webhook's owner may make it the secret; the request itself is
// unauthenticated and refused.
func (s *Scheme) PendingToken(m Message) (string, bool) {
	token := ""
	switch s.row.name {
	case "notion":
		token = text(members(m.Body, "verification_token")[0])
	case "asana":
		token, _ = single(m.Header, "X-Hook-Secret")
	}
	return token, token != "" && len(token) <= maxChallenge
}

// members returns the values of a JSON object's members with these keys as the object writes them: of a
// repeated key the last, and an empty text where there is none. Keys are case-sensitive.
func members(object []byte, keys ...string) []string {
	found := make([]string, len(keys))
	if !json.Valid(object) {
		return found
	}

	parsed := gjson.ParseBytes(object)
	if !parsed.IsObject() {
		return found
	}

	parsed.ForEach(func(key, value gjson.Result) bool {
		if i := slices.Index(keys, key.Str); i >= 0 {
			found[i] = value.Raw
		}
		return true
	})

	return found
}

// text reads a JSON string; empty when it is none, or longer than any challenge.
func text(raw string) string {
	var s string
	if len(raw) > 6*maxChallenge+2 || json.Unmarshal([]byte(raw), &s) != nil {
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
