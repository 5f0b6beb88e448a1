package signature_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"millwright/signature"
)

var update = flag.Bool("update", false, "write docs/schemes.md anew")

// docs/schemes.md has the contents of the table.
func TestDocs(t *testing.T) {
	const path = "../docs/schemes.md"
	want := page()
	if *update {
		if err := os.MkdirAll("../docs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is stale: run go test ./signature -run TestDocs -update", path)
	}
	readme, err := os.ReadFile("../README.md")
	if want := fmt.Sprintf("[%d schemes](docs/schemes.md)", len(signature.Schemes())); err != nil || !strings.Contains(string(readme), want) {
		t.Errorf("README.md does not say %q: %v", want, err)
	}
}

const head = `<!-- Generated from signature/schemes.go by go test ./signature -run TestDocs -update. Do not edit. -->

# Signature schemes

The values of ` + "`signatureScheme`" + ` in a webhook file with ` + "`authMode: signature`" + `. The scheme is always the configured one and never guessed from a request.

- Signatures are checked over the raw bytes that were received; a proxy that rewrites bodies breaks them.
- *Signs* shows the signed bytes: ` + "`{body}`, `{ts}` (the time, exactly as received), `{id}` (the delivery header), `{url}` (the server's configured public URL and the request's path and query, whatever the Host header says), `{method}`" + `.
- *Time*: how far the signed time may be from the server's clock, into the past and into the future. A dash means that the provider signs no time, so an old request can be sent again; the delivery header then tells repeats apart.
- *Delivery*: the header that names the delivery. Only where it is *signed* can nobody send a captured request under a new name.
- *Sure*: A, the provider's own text or library and a published example that was recomputed; B, the provider's text or library; C, known practice: try it before you rely on it.
- An empty or pending secret refuses every request.
`

const custom = `
## A provider that is not listed

` + "`signatureScheme: custom`" + ` with a ` + "`customScheme`" + ` in the webhook file:

` + "```yaml" + `
authMode: signature
signatureScheme: custom
secretName: ACME_SECRET
customScheme:
  alg: hmac-sha256            # hmac-sha1, hmac-sha256, hmac-sha512, ed25519, ecdsa-p256, token
  key: utf8                   # utf8 (default), base64, hex, whsec; ed25519: hex, base64, whpk, spki; ecdsa-p256: spki
  header: Acme-Signature
  parse: comma                # whole (default), or a list split by space, comma or semicolon
  prefix: v1=                 # a literal before the signature, or the key of the list's elements
  encoding: hex               # hex, base64, base64url (not padded)
  timestamp:
    header: t=                # a header, or "t=" for an element of the signature header
    unit: s                   # s (default), ms, rfc3339, http-date
    tolerance: 300            # seconds either way, 300 by default, at most 86400
  template: "{ts}.{body}"     # {body}, {ts}, {id}, {url}, {method} and literal text
  deliveryHeader: Acme-Delivery
` + "```" + `

A descriptor is refused when its template lacks ` + "`{body}`" + `, when it checks a time that the template does not sign, when ` + "`{id}`" + ` stands directly beside another placeholder or is told from ` + "`{url}`" + ` by neither a space nor a line end, or when the delivery header is one that carries a credential. ` + "`alg: token`" + ` compares the header with the secret; it signs nothing, so it has no template and no time.
`

const handshakes = `
## Set-up probes

With ` + "`handshake: true`" + ` in the webhook file, these providers' probes are answered once their signature has been verified: %s. Probes sent as GET (meta, dropbox, nylas, X, Okta) are not answered: a webhook takes POST only. The unsigned first requests of asana and notion are refused, and the token in them, which becomes the secret, is shown to the webhook's owner.
`

func page() string {
	var b strings.Builder
	b.WriteString(head)
	b.WriteString("\n| scheme | signature header | signs | algorithm | secret | time | delivery | event | sure | notes |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	var answered []string
	for _, s := range signature.Schemes() {
		if s.HasHandshake() {
			answered = append(answered, s.Name())
		}
		name := "`" + s.Name() + "`"
		if aliases := s.Aliases(); len(aliases) > 0 {
			name += " (also `" + strings.Join(aliases, "`, `") + "`)"
		}
		event := "–"
		if s.EventHeader() != "" {
			event = "`" + s.EventHeader() + "`"
		} else if s.EventField() != "" {
			event = "body `" + s.EventField() + "`"
		}
		for i, d := range s.Descriptors() {
			if i > 0 {
				name, event = "", ""
			}
			doc := ""
			if i == 0 {
				doc = s.Doc()
			}
			confidence := s.Confidence()
			if i > 0 {
				confidence = ""
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
				name, headerCell(d), signsCell(d), algCell(d), secretCell(d), timeCell(d), deliveryCell(d), event, confidence, doc)
		}
	}
	b.WriteString(custom)
	fmt.Fprintf(&b, handshakes, strings.Join(answered, ", "))
	b.WriteString("\n## Not shipped, and why\n\nThe custom schemes in this table follow the providers' descriptions. " +
		"They load, but no delivery of the provider has been verified with them: try yours with " +
		"`millwright webhook explain` before you rely on it.\n\n| provider | reason | use |\n| --- | --- | --- |\n")
	for _, u := range signature.NotShipped() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", u.Provider, u.Reason, u.Instead)
	}
	return b.String()
}

func headerCell(d signature.Descriptor) string {
	if d.Numbered > 0 {
		return fmt.Sprintf("`%s-1` to `-%d`", d.Header, d.Numbered)
	}
	cell := "`" + strings.Join(append([]string{d.Header}, d.AlsoHeaders...), "` or `") + "`"
	switch {
	case d.Parse != signature.ParseWhole:
		cell += ", " + d.Parse + " list of `" + d.Prefix + "…`"
	case d.Prefix != "":
		cell += ", `" + d.Prefix + "…`"
	}
	return cell
}

func signsCell(d signature.Descriptor) string {
	switch {
	case d.Alg == signature.AlgToken:
		return "nothing"
	case d.BodyHashInURL:
		return "`" + d.Template + "` with the body's SHA-256 in it"
	case d.HeaderNames != "":
		return "`" + d.Template + "`, headers as named by `" + d.HeaderNames + "`"
	}
	return "`" + d.Template + "`"
}

func algCell(d signature.Descriptor) string {
	if d.Encoding == "" {
		return d.Alg
	}
	return d.Alg + ", " + d.Encoding
}

func secretCell(d signature.Descriptor) string {
	cell := map[string]string{
		signature.KeyUTF8: "verbatim", signature.KeyBase64: "base64", signature.KeyHex: "hex",
		signature.KeyWhsec: "base64 of 24 to 64 bytes, with or without `whsec_`", signature.KeyWhpk: "`whpk_` and base64 of a public key", signature.KeySPKI: "public key, DER in base64",
	}[d.Key]
	if d.Key == signature.KeyHex && d.Alg == signature.AlgEd25519 {
		cell = "public key in hex"
	}
	return cell
}

func timeCell(d signature.Descriptor) string {
	if d.Timestamp == nil {
		return "–"
	}
	return fmt.Sprintf("`%s` (%s), %d s", d.Timestamp.Header, d.Timestamp.Unit, d.Timestamp.Tolerance)
}

func deliveryCell(d signature.Descriptor) string {
	if d.DeliveryHeader == "" {
		return "–"
	}
	cell := "`" + strings.Join(append([]string{d.DeliveryHeader}, d.AlsoDelivery...), "`, `") + "`"
	if strings.Contains(d.Template, "{id}") {
		cell += ", signed"
	}
	return cell
}
