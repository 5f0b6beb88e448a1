package request

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const markerStart = "<!-- millwright:"

const maxUID = 64 // bytes

// Marker returns the hidden line that shows that an object at a forge is the output with this UID. Only who has
// the key can make it.
func Marker(key []byte, uid string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("output\x00" + uid))
	return markerStart + uid + ":" + hex.EncodeToString(mac.Sum(nil)[:16]) + " -->"
}

// Mark adds the marker of an output to a text.
func Mark(key []byte, uid, text string) string {
	return strings.TrimRight(text, "\n") + "\n\n" + Marker(key, uid)
}

// Marked reports whether a text has the marker of an output.
func Marked(key []byte, uid, text string) bool { return strings.Contains(text, Marker(key, uid)) }

// maxMarkers bounds how many markers of a text are checked.
const maxMarkers = 16

// MarkerOf returns the UID of the output whose marker a text has, the last one of several; "" for none.
func MarkerOf(key []byte, text string) string {
	for range maxMarkers {
		at := strings.LastIndex(text, markerStart)
		if at < 0 {
			break
		}

		uid, _, _ := strings.Cut(text[at+len(markerStart):], ":")
		if len(uid) <= maxUID && strings.HasPrefix(text[at:], Marker(key, uid)) {
			return uid
		}
		text = text[:at]
	}

	return ""
}
