package signature

// rows is the table: how does provider X sign?
func rows() []row {
	return []row{
		{
			name: "standard_webhooks", confidence: "A", eventField: "type",
			aliases:    []string{"openai", "resend", "clerk", "replicate", "render", "polar", "incident_io", "brex", "fathom", "folk"},
			descriptor: standardWebhooks("webhook-", "v1,"),
			others: []Descriptor{
				standardWebhooks("svix-", "v1,"),
				standardWebhooks("webhook-", "v1a,"),
				standardWebhooks("svix-", "v1a,"),
			},
			doc: "The Standard Webhooks specification. The svix-* headers are read when no webhook-* header is there. A secret that begins with whpk_ is a public key and verifies v1a signatures.",
		},
		{
			name: "svix", confidence: "A", eventField: "type",
			descriptor: standardWebhooks("svix-", "v1,"),
			others:     []Descriptor{standardWebhooks("svix-", "v1a,")},
			doc:        "Standard Webhooks under Svix's own header names.",
		},
		{
			name: "github", confidence: "A", event: "X-GitHub-Event",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "X-Hub-Signature-256", Prefix: "sha256=", Encoding: EncodingHex, Template: "{body}", DeliveryHeader: "X-GitHub-Delivery"},
			doc:        "The delivery header is not signed, and stays the same when GitHub delivers again. SHA-1 in X-Hub-Signature is never accepted.",
		},
		{
			name: "stripe", confidence: "B", eventField: "type",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "Stripe-Signature", Parse: ParseComma, Prefix: "v1=", Encoding: EncodingHex, Timestamp: &Timestamp{Header: "t="}, Template: "{ts}.{body}"},
			doc:        "The secret is used verbatim, whsec_ included. v0 elements are ignored.",
		},
		{
			name: "slack", confidence: "A", eventField: "event.type", handshake: handshakeSlack,
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "X-Slack-Signature", Prefix: "v0=", Encoding: EncodingHex, Timestamp: &Timestamp{Header: "X-Slack-Request-Timestamp"}, Template: "v0:{ts}:{body}"},
			doc:        "X-Slack-Retry-Num tells retries. Slash commands and interactions are forms, not JSON, and are answered 400.",
		},
	}
}

// standardWebhooks is the descriptor of one header trio and signature version.
func standardWebhooks(trio, version string) Descriptor {
	d := Descriptor{
		Alg: AlgHMACSHA256, Key: KeyWhsec,
		Header: trio + "signature", Parse: ParseSpace, Prefix: version, Encoding: EncodingBase64,
		Timestamp:      &Timestamp{Header: trio + "timestamp"},
		Template:       "{id}.{ts}.{body}",
		DeliveryHeader: trio + "id",
	}
	if version == "v1a," {
		d.Alg, d.Key, d.SecretPrefixes = AlgEd25519, KeyWhpk, []string{whpk, whsk}
	}
	return d
}
