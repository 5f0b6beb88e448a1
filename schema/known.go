package schema

import "strings"

// SealedFact is what opening the file of a sealed secret showed.
type SealedFact struct {
	SecretFact
	Problem string // why it cannot be opened; empty when it can
	Hint    string
	Gone    bool // the factory has no such secret any more, and the file is not to bring it back
}

// Known has the facts of the state that a tree is checked against. A nil
// *Known, and any nil member, means that the rules which need it do not run and
// are named in Result.NotChecked.
type Known struct {
	// Secrets are the team secrets by name.
	Secrets map[string]SecretFact
	// Reserved are the names of the secrets that the server itself uses, each with its use. A definition may
	// not name them.
	Reserved map[string]string
	// Used are the names of all secrets that the settings name, each with its use. A file of secrets/ may not have
	// one.
	Used map[string]string
	// Sealed has what opening the files of secrets/ showed, by name. Files that are as they were applied need no
	// opening.
	Sealed map[string]SealedFact
	// Own are the names of the files of secrets/ that are applied.
	Own map[string]bool
	// UIDs gives the present or planned UID of each webhook by name.
	UIDs map[string]string
	// KnownUIDs gives the webhook's name by UID, for every UID of this factory,
	// present or planned; those of deleted webhooks are left out.
	KnownUIDs map[string]string
	// Gone gives the name of deleted webhooks of this factory by UID.
	Gone map[string]string
	// HarnessTypes are the harnesses the server has.
	HarnessTypes []string
	// ForgeKinds are the kinds of forges the server has.
	ForgeKinds []string
}

// SecretFact is what is known of a secret; its value is never needed here.
type SecretFact struct {
	// URLSafe says whether the value passes URLSafe; nil when only the name is
	// known.
	URLSafe *bool
	// VisibleASCII says whether the value passes VisibleASCII; nil when only the
	// name is known.
	VisibleASCII *bool
	// Pending is set for a name whose value the provider has yet to issue. It
	// satisfies secretName.
	Pending bool
}

// FactOf returns the facts of a secret's value.
func FactOf(secret string) SecretFact {
	safe, visible := URLSafe(secret), VisibleASCII(secret)
	return SecretFact{URLSafe: &safe, VisibleASCII: &visible}
}

// URLSafe reports whether a secret can be a segment of a URL as it is: letters,
// digits, "-", ".", "_" and "~" only (the unreserved characters of RFC 3986),
// not empty, and neither "." nor "..".
func URLSafe(secret string) bool {
	if secret == "" || secret == "." || secret == ".." {
		return false
	}
	for i := range len(secret) {
		c := secret[i]
		if !isAlnum(c) && strings.IndexByte("-._~", c) < 0 {
			return false
		}
	}
	return true
}

// VisibleASCII reports whether a secret can be sent as a bearer token by any
// sender: not empty, and only characters from "!" to "~".
func VisibleASCII(secret string) bool {
	for i := range len(secret) {
		if secret[i] < '!' || secret[i] > '~' {
			return false
		}
	}
	return secret != ""
}

// StandInUID stands in definitions for the UID of a webhook that has none yet. No webhook has it.
const StandInUID = "wh_00000000000000000000000000"

// ParseUID reports whether s has the form of a webhook's UID: wh_ and 26
// characters of 0123456789abcdefghjkmnpqrstvwxyz, the first of them 0 to 7.
func ParseUID(s string) bool {
	if len(s) != 29 || s[:3] != "wh_" || s[3] < '0' || s[3] > '7' {
		return false
	}
	for i := 3; i < len(s); i++ {
		if strings.IndexByte("0123456789abcdefghjkmnpqrstvwxyz", s[i]) < 0 {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// gitLabEvents are the events of project hooks, without _events.
var gitLabEvents = []string{
	"deployment", "emoji", "issues", "job", "merge_requests", "note", "pipeline", "push", "releases", "tag_push",
	"wiki_page",
}
