package dashboard

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"millwright/admin"
	"millwright/schema"
	"millwright/signature"
	"millwright/state"
)

// maxArgument is the longest body in a command line, in bytes. A longer one is read from a file.
const maxArgument = 16 << 10

const (
	serviceHeader = "X-Service-Delivery-Id"
	jsonType      = "application/json"
)

// resend has commands that send the body of a delivery again. They contain no credential.
type resend struct {
	Curl      string
	Variables []string // which the curl command reads
	Send      string   // empty: the program cannot sign as the webhook's file describes it
	File      bool     // they read the body from a file
}

// resendOf writes the commands for a body. header has the headers that are known of its request.
func resendOf(publicURL string, w state.Webhook, header map[string]string, body []byte) resend {
	r := resender{w.Spec, signed(w.Spec)[0], admin.IngressURL(publicURL, w), header, body}
	out := resend{File: !r.inline()}
	out.Curl, out.Variables = r.curl()
	if w.Spec.CustomScheme == nil {
		out.Send = r.send()
	}
	return out
}

// resender writes commands that send a body to a webhook.
type resender struct {
	schema.Webhook
	signature.Descriptor
	address string
	header  map[string]string
	body    []byte
}

// signed describes how requests of a webhook are signed, the usual way first. Without signatures it is a zero
// Descriptor.
func signed(w schema.Webhook) []signature.Descriptor {
	if w.AuthMode == schema.AuthSignature && w.CustomScheme != nil {
		return []signature.Descriptor{*w.CustomScheme}
	}
	if s, ok := signature.Lookup(w.SignatureScheme); ok && w.AuthMode == schema.AuthSignature {
		return s.Descriptors()
	}
	return []signature.Descriptor{{}}
}

// idHeaders names the headers that identify a delivery to a webhook. The first that a request has counts.
func idHeaders(w schema.Webhook) []string {
	all := []string{w.DeliveryIDHeader}
	for _, d := range signed(w) {
		all = append(append(all, d.DeliveryHeader), d.AlsoDelivery...)
	}

	var once []string
	for _, name := range append(all, serviceHeader) {
		same := func(other string) bool { return strings.EqualFold(name, other) }
		if name != "" && !slices.ContainsFunc(once, same) {
			once = append(once, name)
		}
	}
	return once
}

// inline reports whether the body can stand in a command line, and be copied from a page unchanged.
func (r resender) inline() bool {
	return len(r.body) <= maxArgument && utf8.Valid(r.body) && bytes.Equal(visible(r.body), r.body)
}

// idHeader names the header that gives the copy an identity of its own: without one it may be a duplicate.
func (r resender) idHeader() string {
	return cmp.Or(r.DeliveryIDHeader, r.DeliveryHeader, serviceHeader)
}

// named returns the headers that tell what the body is: its type, and the event's header if there is one.
func (r resender) named() [][2]string {
	all := [][2]string{{"Content-Type", cmp.Or(r.known("Content-Type"), jsonType)}}
	scheme, ok := signature.Lookup(r.SignatureScheme)
	if r.AuthMode != schema.AuthSignature || !ok {
		return all
	}

	for _, name := range scheme.EventHeaders() {
		if value := r.known(name); value != "" {
			all = append(all, [2]string{name, value})
		}
	}
	return all
}

// known returns a header of the request, unless it is stored shortened or escaped.
func (r resender) known(name string) string {
	value := r.header[name]
	if strings.ContainsRune(value, '\\') || strings.HasSuffix(value, "...") {
		return ""
	}
	return value
}

// curl writes a curl command, and names the variables in it. They hold what the page does not know.
func (r resender) curl() (command string, variables []string) {
	variable := func(name string) string {
		variables = append(variables, name)
		return `"$` + name + `"`
	}
	option := func(name, value string) string { return "-H " + schema.ShellWord(name+": ") + value }

	id := `"$(date +%s%N)"`
	lines := []string{"curl -i " + schema.ShellWord(r.address)}
	switch {
	case r.AuthMode == schema.AuthURLToken:
		lines[0] = "curl -i " + schema.ShellWord(strings.TrimSuffix(r.address, "{token}")) + variable(r.SecretName)
	case r.AuthMode == schema.AuthToken:
		lines = append(lines, "-H 'Authorization: Bearer '"+variable(r.SecretName))
	case r.Alg == signature.AlgToken:
		lines = append(lines, option(r.Header, variable(r.SecretName)))
	default:
		lines = append(lines, option(r.signatureHeader(), variable("SIGNATURE")))
		if t := r.Timestamp; t != nil && !strings.HasSuffix(t.Header, "=") {
			lines = append(lines, option(t.Header, variable("TIMESTAMP")))
		}
		id = variable("DELIVERY_ID")
	}

	for _, h := range r.named() {
		lines = append(lines, "-H "+schema.ShellWord(h[0]+": "+h[1]))
	}
	lines = append(lines, option(r.idHeader(), id), "--data-binary "+r.data())
	return strings.Join(lines, " \\\n  "), variables
}

// signatureHeader names the header that carries the signature.
func (r resender) signatureHeader() string {
	if r.Numbered > 0 {
		return r.Header + "-1"
	}
	return r.Header
}

// data returns the body as curl takes it. A body that began with @ would be a file's name, but no JSON does.
func (r resender) data() string {
	if !r.inline() {
		return "@" + state.PayloadName
	}
	return schema.ShellWord(string(r.body))
}

// send writes a command of this program, which signs the body as the provider does.
func (r resender) send() string {
	scheme := string(r.AuthMode)
	if r.AuthMode == schema.AuthSignature {
		scheme = r.SignatureScheme
	}

	lines := []string{"millwright webhook send --scheme " + schema.ShellWord(scheme) + " --secret-file SECRET"}
	if r.DeliveryIDHeader != "" || r.DeliveryHeader == "" {
		lines = append(lines, "--id-header "+schema.ShellWord(r.idHeader()))
	}
	for _, h := range r.named() {
		if h[0] != "Content-Type" {
			lines = append(lines, "--header "+schema.ShellWord(h[0]+": "+h[1]))
		} else if h[1] != jsonType {
			lines = append(lines, "--content-type "+schema.ShellWord(h[1]))
		}
	}

	if !r.inline() {
		lines = append(lines, state.PayloadName+" "+schema.ShellWord(r.address))
		return strings.Join(lines, " \\\n  ")
	}

	lines = append(lines, "- "+schema.ShellWord(r.address))
	return "printf %s " + schema.ShellWord(string(r.body)) + " |\n  " + strings.Join(lines, " \\\n  ")
}
