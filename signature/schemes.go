package signature

// rows is the table of the providers' schemes.
//
// Most providers sign the body alone: ofBody(algorithm, signature header, prefix, encoding, delivery
// headers…). The others have a full Descriptor. A row that was added without the provider's own text has
// confidence C.
func rows() []row {
	return []row{
		{
			name: "standard_webhooks", confidence: "A", eventField: "type",
			aliases:    []string{"openai", "resend", "clerk", "replicate", "render", "polar", "incident_io", "brex", "fathom", "folk"},
			descriptor: standardWebhooks("webhook-", "v1,"),
			others:     []Descriptor{standardWebhooks("svix-", "v1,"), standardWebhooks("webhook-", "v1a,"), standardWebhooks("svix-", "v1a,")},
			doc:        "The Standard Webhooks specification. The svix-* headers are read when no webhook-* header is there. A secret that begins with whpk_ is a public key and verifies v1a signatures.",
		},

		{
			name: "svix", confidence: "A", eventField: "type",
			descriptor: standardWebhooks("svix-", "v1,"),
			others:     []Descriptor{standardWebhooks("svix-", "v1a,")},
			doc:        "Standard Webhooks under Svix's own header names.",
		},

		{
			name: "github", confidence: "A", event: "X-GitHub-Event",
			descriptor: ofBody(AlgHMACSHA256, "X-Hub-Signature-256", "sha256=", EncodingHex, "X-GitHub-Delivery"),
			doc:        "The delivery header is not signed, and stays the same when GitHub delivers again. SHA-1 in X-Hub-Signature is never accepted.",
		},

		{
			name: "gitlab", confidence: "A", event: "X-Gitlab-Event",
			descriptor: Descriptor{Alg: AlgToken, Header: "X-Gitlab-Token", DeliveryHeader: "webhook-id", AlsoDelivery: []string{"Idempotency-Key", "X-Gitlab-Event-UUID"}},
			others:     []Descriptor{gitlabSigned()},
			doc:        "A secret that begins with whsec_ is a signing token (GitLab 19.0 and later) and means Standard Webhooks. Any other is the secret token of X-Gitlab-Token, which proves the sender and not the payload. X-Gitlab-Event-UUID is shared by all hooks of one event.",
		},

		{
			name: "bitbucket", confidence: "A", event: "X-Event-Key",
			descriptor: ofBody(AlgHMACSHA256, "X-Hub-Signature", "sha256=", EncodingHex, "X-Request-UUID", "X-Request-Id"),
			doc:        "Cloud sends X-Request-UUID, Data Center X-Request-Id.",
		},

		{
			name: "jira", confidence: "A", eventField: "webhookEvent",
			descriptor: ofBody(AlgHMACSHA256, "X-Hub-Signature", "sha256=", EncodingHex, "X-Atlassian-Webhook-Identifier"),
			doc:        "The identifier stays the same when Jira tries again.",
		},

		{
			name: "gitea", aliases: []string{"forgejo", "gogs"}, confidence: "B", event: "X-Gitea-Event", alsoEvents: []string{"X-Forgejo-Event", "X-Gogs-Event"},
			descriptor: Descriptor{
				Alg: AlgHMACSHA256, Header: "X-Gitea-Signature", AlsoHeaders: []string{"X-Forgejo-Signature", "X-Gogs-Signature"}, Encoding: EncodingHex, Template: "{body}",
				DeliveryHeader: "X-Gitea-Delivery", AlsoDelivery: []string{"X-Forgejo-Delivery", "X-Gogs-Delivery"},
			},
			doc: "Bare hex: the value has no sha256= before it. Any of the three headers will do.",
		},

		{
			name: "stripe", confidence: "B", eventField: "type",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "Stripe-Signature", Parse: ParseComma, Prefix: "v1=", Encoding: EncodingHex, Timestamp: at("t=", UnitSeconds, 300), Template: "{ts}.{body}"},
			doc:        "The secret is used verbatim, whsec_ included. v0 elements are ignored. Stripe names the delivery only in the body (id).",
		},

		{
			name: "slack", confidence: "A", eventField: "event.type", handshake: handshakeSlack,
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "X-Slack-Signature", Prefix: "v0=", Encoding: EncodingHex, Timestamp: at("X-Slack-Request-Timestamp", UnitSeconds, 300), Template: "v0:{ts}:{body}"},
			doc:        "X-Slack-Retry-Num tells retries; the delivery's name is in the body (event_id). Slash commands and interactions are forms, not JSON, and are answered 400.",
		},

		{
			name: "linear", confidence: "B", event: "Linear-Event",
			descriptor: ofBody(AlgHMACSHA256, "Linear-Signature", "", EncodingHex, "Linear-Delivery"),
			doc:        "The time in the body is not checked.",
		},

		{
			name: "sentry", confidence: "B", event: "Sentry-Hook-Resource",
			descriptor: ofBody(AlgHMACSHA256, "Sentry-Hook-Signature", "", EncodingHex, "Request-ID"),
			doc:        "The secret is the integration's client secret. Sentry-Hook-Timestamp is not signed and not looked at.",
		},

		{
			name: "pagerduty", confidence: "A", eventField: "event.event_type",
			descriptor: listed(ofBody(AlgHMACSHA256, "X-PagerDuty-Signature", "v1=", EncodingHex, "X-Webhook-Id"), ParseComma),
			doc:        "Several v1 signatures are sent while a secret is being changed; one has to match.",
		},

		{
			name: "shopify", confidence: "A", event: "X-Shopify-Topic",
			descriptor: ofBody(AlgHMACSHA256, "X-Shopify-Hmac-Sha256", "", EncodingBase64, "X-Shopify-Webhook-Id"),
			doc:        "The webhook ID stays the same when Shopify tries again.",
		},

		{
			name: "zendesk", confidence: "B", eventField: "type",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "X-Zendesk-Webhook-Signature", Encoding: EncodingBase64, Timestamp: at("X-Zendesk-Webhook-Signature-Timestamp", UnitRFC3339, 300), Template: "{ts}{body}", DeliveryHeader: "X-Zendesk-Webhook-Invocation-Id"},
			doc:        "The secret looks like base64 and is used verbatim.",
		},

		{
			name: "intercom", confidence: "B", eventField: "topic",
			descriptor: ofBody(AlgHMACSHA1, "X-Hub-Signature", "sha1=", EncodingHex),
			doc:        "The secret is the app's client secret. SHA-1 is all that Intercom offers.",
		},

		{
			name: "typeform", confidence: "B", eventField: "event_type",
			descriptor: ofBody(AlgHMACSHA256, "Typeform-Signature", "sha256=", EncodingBase64),
			doc:        "Base64 after sha256=, where others write hex.",
		},

		{
			name: "square", confidence: "A", eventField: "type",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "x-square-hmacsha256-signature", Encoding: EncodingBase64, Template: "{url}{body}"},
			doc:        "Signs the notification URL, so the server's public URL must be exactly what Square was given.",
		},

		{
			name: "circleci", confidence: "A", event: "circleci-event-type",
			descriptor: listed(ofBody(AlgHMACSHA256, "circleci-signature", "v1=", EncodingHex), ParseComma),
			doc:        "Only v1 elements count.",
		},

		{
			name: "buildkite", confidence: "B", event: "X-Buildkite-Event",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "X-Buildkite-Signature", Parse: ParseComma, Prefix: "signature=", Encoding: EncodingHex, Timestamp: at("timestamp=", UnitSeconds, 300), Template: "{ts}.{body}"},
			others:     []Descriptor{{Alg: AlgToken, Header: "X-Buildkite-Token"}},
			doc:        "X-Buildkite-Token is accepted where no signature is sent: whoever knows the token could also sign. Choose the signature in Buildkite, which covers the payload and its time.",
		},

		{
			name: "vercel", confidence: "B", eventField: "type",
			descriptor: ofBody(AlgHMACSHA1, "x-vercel-signature", "", EncodingHex),
			doc:        "SHA-1 is all that Vercel offers.",
		},

		{
			name: "notion", confidence: "A", eventField: "type",
			descriptor: ofBody(AlgHMACSHA256, "X-Notion-Signature", "sha256=", EncodingHex),
			doc:        "The secret is the verification_token that Notion posts, unsigned, when the URL is first entered: that request is refused, and its token shown to the owner.",
		},

		{
			name: "launchdarkly", confidence: "B", eventField: "kind",
			descriptor: ofBody(AlgHMACSHA256, "X-LD-Signature", "", EncodingHex),
			doc:        "LaunchDarkly names the delivery only in the body (_id).",
		},

		{
			name: "grafana", confidence: "B",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "X-Grafana-Alerting-Signature", Encoding: EncodingHex, Timestamp: at("X-Grafana-Alerting-Timestamp", UnitSeconds, 300), Template: "{ts}:{body}"},
			others:     []Descriptor{ofBody(AlgHMACSHA256, "X-Grafana-Alerting-Signature", "", EncodingHex)},
			doc:        "The contact point's HMAC settings. Set its timestamp header to X-Grafana-Alerting-Timestamp to have the time signed and checked; without that header the body alone is signed.",
		},

		{
			name: "hubspot", confidence: "A", eventField: "subscriptionType",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "X-HubSpot-Signature-v3", Encoding: EncodingBase64, Timestamp: at("X-HubSpot-Request-Timestamp", UnitMillis, 300), Template: "{method}{url}{body}{ts}"},
			doc:        "Version 3 only. Signs the URL, so the server's public URL must be exactly what HubSpot was given.",
		},

		{
			name: "zoom", confidence: "B", eventField: "event", handshake: handshakeZoom,
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "x-zm-signature", Prefix: "v0=", Encoding: EncodingHex, Timestamp: at("x-zm-request-timestamp", UnitSeconds, 300), Template: "v0:{ts}:{body}"},
			doc:        "The secret is the app's secret token.",
		},

		{
			name: "discord", confidence: "B", eventField: "type", handshake: handshakeDiscord,
			descriptor: Descriptor{Alg: AlgEd25519, Key: KeyHex, Header: "X-Signature-Ed25519", Encoding: EncodingHex, Timestamp: at("X-Signature-Timestamp", UnitSeconds, 300), Template: "{ts}{body}"},
			doc:        "The secret is the application's public key in hex.",
		},

		{
			name: "paddle", confidence: "A", eventField: "event_type",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "Paddle-Signature", Parse: ParseSemicolon, Prefix: "h1=", Encoding: EncodingHex, Timestamp: at("ts=", UnitSeconds, 300), Template: "{ts}:{body}"},
			doc:        "Paddle's own libraries accept a few seconds only; 300 forgive a slow network.",
		},

		{
			name: "sendgrid", confidence: "A", eventField: "event",
			descriptor: Descriptor{Alg: AlgECDSAP256, Key: KeySPKI, Header: "X-Twilio-Email-Event-Webhook-Signature", Encoding: EncodingBase64, Timestamp: at("X-Twilio-Email-Event-Webhook-Timestamp", UnitSeconds, 300), Template: "{ts}{body}"},
			doc:        "The secret is the verification key as SendGrid shows it.",
		},

		{
			name: "box", confidence: "A", eventField: "trigger",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "BOX-SIGNATURE-PRIMARY", AlsoHeaders: []string{"BOX-SIGNATURE-SECONDARY"}, Encoding: EncodingBase64, Timestamp: at("BOX-DELIVERY-TIMESTAMP", UnitRFC3339, 600), Template: "{body}{ts}", DeliveryHeader: "BOX-DELIVERY-ID"},
			doc:        "The secret is the primary or the secondary key.",
		},

		{
			name: "docusign", confidence: "B", eventField: "event",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "X-DocuSign-Signature", Numbered: 100, Encoding: EncodingBase64, Template: "{body}"},
			doc:        "One numbered header for each key of the account; any may match.",
		},

		{
			name: "dropbox", confidence: "B",
			descriptor: ofBody(AlgHMACSHA256, "X-Dropbox-Signature", "", EncodingHex),
			doc:        "The set-up challenge is a GET and cannot be answered here: the URL has to be enabled through another receiver. A notification names accounts only: later ones with the same body count as duplicates of the first.",
		},

		{
			name: "twilio", confidence: "A",
			descriptor: Descriptor{Alg: AlgHMACSHA1, Header: "X-Twilio-Signature", Encoding: EncodingBase64, Template: "{url}", BodyHashInURL: true, DeliveryHeader: "I-Twilio-Idempotency-Token"},
			doc:        "Signs the URL, in which bodySHA256 stands for a JSON body. Twilio's usual form posts are not JSON and are answered 400.",
		},

		{
			name: "meta", aliases: []string{"whatsapp", "facebook", "instagram"}, confidence: "B", eventField: "object",
			descriptor: ofBody(AlgHMACSHA256, "X-Hub-Signature-256", "sha256=", EncodingHex),
			doc:        "The secret is the App Secret. The set-up challenge is a GET and cannot be answered here.",
		},

		{
			name: "twitch", confidence: "B", event: "Twitch-Eventsub-Subscription-Type", handshake: handshakeTwitch,
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "Twitch-Eventsub-Message-Signature", Prefix: "sha256=", Encoding: EncodingHex, Timestamp: at("Twitch-Eventsub-Message-Timestamp", UnitRFC3339, 600), Template: "{id}{ts}{body}", DeliveryHeader: "Twitch-Eventsub-Message-Id"},
			doc:        "EventSub over webhooks.",
		},

		{
			name: "asana", confidence: "C",
			descriptor: ofBody(AlgHMACSHA256, "X-Hook-Signature", "", EncodingHex),
			doc:        "The secret arrives in X-Hook-Secret of the first, unsigned request, which must be echoed: that request is refused, and its secret shown to the owner.",
		},

		{
			name: "calendly", confidence: "B", eventField: "event",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "Calendly-Webhook-Signature", Parse: ParseComma, Prefix: "v1=", Encoding: EncodingHex, Timestamp: at("t=", UnitSeconds, 180), Template: "{ts}.{body}"},
			doc:        "Three minutes, as Calendly recommends.",
		},

		{
			name: "workos", confidence: "B", eventField: "event",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "WorkOS-Signature", Parse: ParseComma, Prefix: "v1=", Encoding: EncodingHex, Timestamp: at("t=", UnitMillis, 180), Template: "{ts}.{body}"},
			doc:        "The time is in milliseconds.",
		},

		{
			name: "mux", confidence: "A", eventField: "type",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "Mux-Signature", Parse: ParseComma, Prefix: "v1=", Encoding: EncodingHex, Timestamp: at("t=", UnitSeconds, 300), Template: "{ts}.{body}"},
		},

		{name: "line", confidence: "A", descriptor: ofBody(AlgHMACSHA256, "x-line-signature", "", EncodingBase64), doc: "The secret is the channel secret."},
		{name: "razorpay", confidence: "A", eventField: "event", descriptor: ofBody(AlgHMACSHA256, "X-Razorpay-Signature", "", EncodingHex, "x-razorpay-event-id")},
		{name: "gocardless", confidence: "A", descriptor: ofBody(AlgHMACSHA256, "Webhook-Signature", "", EncodingHex), doc: "The body ends in a line end, which is signed."},
		{name: "coinbase_commerce", confidence: "A", eventField: "event.type", descriptor: ofBody(AlgHMACSHA256, "X-CC-Webhook-Signature", "", EncodingHex)},

		{
			name: "coinbase_cdp", aliases: []string{"hook0"}, confidence: "B",
			descriptor: hook0("v1=", "h=", "{ts}.{headers}.{body}"),
			others:     []Descriptor{hook0("v0=", "", "{ts}.{body}")},
			doc:        "A v1 signature also covers the headers that its h element names; v0 counts only where there is no v1.",
		},

		{
			name: "sanity", confidence: "A",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "sanity-webhook-signature", Parse: ParseComma, Prefix: "v1=", Encoding: EncodingBase64URL, Timestamp: at("t=", UnitMillis, 300), Template: "{ts}.{body}"},
			doc:        "Base64 in the URL alphabet, without padding.",
		},

		{
			name: "cloudflare_stream", confidence: "B",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "Webhook-Signature", Parse: ParseComma, Prefix: "sig1=", Encoding: EncodingHex, Timestamp: at("time=", UnitSeconds, 300), Template: "{ts}.{body}"},
		},

		{
			name: "adyen", confidence: "B",
			descriptor: keyed(ofBody(AlgHMACSHA256, "HmacSignature", "", EncodingBase64), KeyHex),
			doc:        "For the products that sign in a header. Standard payment notifications carry their signature inside the body and are not covered.",
		},

		{name: "woocommerce", confidence: "B", event: "X-WC-Webhook-Topic", descriptor: ofBody(AlgHMACSHA256, "X-WC-Webhook-Signature", "", EncodingBase64, "X-WC-Webhook-Delivery-ID")},

		{
			name: "airtable", confidence: "B",
			descriptor: keyed(ofBody(AlgHMACSHA256, "X-Airtable-Content-MAC", "hmac-sha256=", EncodingHex), KeyBase64),
			doc:        "The secret is the webhook's macSecretBase64.",
		},

		{name: "lemonsqueezy", confidence: "B", event: "X-Event-Name", descriptor: ofBody(AlgHMACSHA256, "X-Signature", "", EncodingHex)},
		{name: "paystack", confidence: "B", eventField: "event", descriptor: ofBody(AlgHMACSHA512, "x-paystack-signature", "", EncodingHex), doc: "The secret is the account's secret key."},
		{name: "xero", confidence: "B", descriptor: ofBody(AlgHMACSHA256, "x-xero-signature", "", EncodingBase64), doc: "Xero's set-up sends requests with a wrong signature and wants them refused, as they are."},
		{name: "calcom", confidence: "B", eventField: "triggerEvent", descriptor: ofBody(AlgHMACSHA256, "X-Cal-Signature-256", "", EncodingHex)},

		{
			name: "elevenlabs", confidence: "B", eventField: "type",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "ElevenLabs-Signature", Parse: ParseComma, Prefix: "v0=", Encoding: EncodingHex, Timestamp: at("t=", UnitSeconds, 1800), Template: "{ts}.{body}"},
			doc:        "Half an hour, as ElevenLabs recommends.",
		},

		{
			name: "webflow", confidence: "B", eventField: "triggerType",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "x-webflow-signature", Encoding: EncodingHex, Timestamp: at("x-webflow-timestamp", UnitMillis, 300), Template: "{ts}:{body}"},
		},

		{
			name: "klaviyo", confidence: "B",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "Klaviyo-Signature", Encoding: EncodingHex, Timestamp: at("Klaviyo-Timestamp", UnitHTTPDate, 300), Template: "{body}{ts}"},
		},

		{name: "nylas", confidence: "B", eventField: "type", descriptor: ofBody(AlgHMACSHA256, "X-Nylas-Signature", "", EncodingHex), doc: "The set-up challenge is a GET and cannot be answered here."},
		{name: "pusher", confidence: "B", descriptor: ofBody(AlgHMACSHA256, "X-Pusher-Signature", "", EncodingHex)},

		{
			name: "attio", confidence: "B",
			descriptor: Descriptor{Alg: AlgHMACSHA256, Header: "X-Attio-Signature", AlsoHeaders: []string{"Attio-Signature"}, Encoding: EncodingHex, Template: "{body}", DeliveryHeader: "Idempotency-Key"},
			doc:        "Attio sends both headers, with one value. A body names records only, so changes of one record have the same; the key, equal when Attio tries again, tells them apart.",
		},

		{name: "checkr", confidence: "B", eventField: "type", descriptor: ofBody(AlgHMACSHA256, "X-Checkr-Signature", "", EncodingHex)},
		{name: "chargify", confidence: "B", descriptor: ofBody(AlgHMACSHA256, "X-Chargify-Webhook-Signature-Hmac-Sha-256", "", EncodingHex), doc: "Form posts are not JSON and are answered 400."},
		{name: "modern_treasury", confidence: "B", eventField: "event", descriptor: ofBody(AlgHMACSHA256, "X-Signature", "", EncodingHex, "X-Webhook-ID")},
		{name: "tally", confidence: "B", eventField: "eventType", descriptor: ofBody(AlgHMACSHA256, "Tally-Signature", "", EncodingBase64)},
		{name: "jobber", confidence: "B", descriptor: ofBody(AlgHMACSHA256, "X-Jobber-Hmac-SHA256", "", EncodingBase64)},
		{name: "quickbooks", confidence: "B", descriptor: ofBody(AlgHMACSHA256, "intuit-signature", "", EncodingBase64), doc: "The secret is the verifier token."},
		{name: "cursor", confidence: "B", descriptor: ofBody(AlgHMACSHA256, "X-Webhook-Signature", "sha256=", EncodingHex)},
		{name: "terraform_cloud", confidence: "C", descriptor: ofBody(AlgHMACSHA512, "X-TFE-Notification-Signature", "", EncodingHex)},
		{name: "snyk", confidence: "C", event: "X-Snyk-Event", descriptor: ofBody(AlgHMACSHA256, "X-Hub-Signature", "sha256=", EncodingHex)},
		{name: "heroku", confidence: "C", descriptor: ofBody(AlgHMACSHA256, "Heroku-Webhook-Hmac-SHA256", "", EncodingBase64)},

		{
			name: "trello", confidence: "C", eventField: "action.type",
			descriptor: Descriptor{Alg: AlgHMACSHA1, Header: "X-Trello-Webhook", Encoding: EncodingBase64, Template: "{body}{url}"},
			doc:        "Signs the callback URL, so the server's public URL must be exactly what Trello was given. The set-up probe is a HEAD and cannot be answered here.",
		},

		{name: "segment", confidence: "C", eventField: "type", descriptor: ofBody(AlgHMACSHA1, "X-Signature", "", EncodingHex)},
		{name: "shortcut", confidence: "C", descriptor: ofBody(AlgHMACSHA256, "Payload-Signature", "", EncodingHex)},
		{name: "clickup", confidence: "C", eventField: "event", descriptor: ofBody(AlgHMACSHA256, "X-Signature", "", EncodingHex)},
	}
}

// ofBody describes an authentication code of the body alone in a header of its
// own. The delivery headers are in order of preference.
func ofBody(alg, header, prefix, encoding string, delivery ...string) Descriptor {
	d := Descriptor{Alg: alg, Header: header, Prefix: prefix, Encoding: encoding, Template: "{body}"}
	if len(delivery) > 0 {
		d.DeliveryHeader, d.AlsoDelivery = delivery[0], delivery[1:]
	}
	return d
}

// at is a signed time that is checked both ways.
func at(header, unit string, seconds int) *Timestamp {
	return &Timestamp{Header: header, Unit: unit, Tolerance: seconds}
}

func listed(d Descriptor, parse string) Descriptor { d.Parse = parse; return d }

func keyed(d Descriptor, key string) Descriptor { d.Key = key; return d }

// standardWebhooks is one header trio and one version of the signature.
func standardWebhooks(trio, version string) Descriptor {
	d := Descriptor{
		Alg: AlgHMACSHA256, Key: KeyWhsec,
		Header: trio + "signature", Parse: ParseSpace, Prefix: version, Encoding: EncodingBase64,
		Timestamp:      at(trio+"timestamp", UnitSeconds, 300),
		Template:       "{id}.{ts}.{body}",
		DeliveryHeader: trio + "id",
	}
	if version == "v1a," {
		d.Alg, d.Key, d.SecretPrefixes = AlgEd25519, KeyWhpk, []string{whpk, whsk}
	}
	return d
}

// gitlabSigned is Standard Webhooks, for secrets with its prefix.
func gitlabSigned() Descriptor {
	d := standardWebhooks("webhook-", "v1,")
	d.SecretPrefixes = []string{whsec}
	return d
}

func hook0(version, names, template string) Descriptor {
	return Descriptor{
		Alg: AlgHMACSHA256, Header: "X-Hook0-Signature", Parse: ParseComma, Prefix: version, Encoding: EncodingHex,
		Timestamp: at("t=", UnitSeconds, 300), Template: template, HeaderNames: names,
	}
}
