package signature

// Unshipped is a provider without a scheme.
type Unshipped struct {
	Provider string
	Reason   string
	Instead  string // what to use
}

// NotShipped are the providers that are omitted on purpose.
func NotShipped() []Unshipped {
	return []Unshipped{
		{
			"PayPal",
			"RSA over id, time, webhook ID and CRC-32, with a certificate fetched from a URL in the " +
				"request: the request would choose whom the server connects to and trusts.",
			"Nothing yet; later with a pinned certificate.",
		},

		{"AWS SNS, eBay, Alipay", "The key has to be fetched from a URL.", "Nothing yet."},
		{"Plaid, Monday, FusionAuth", "JSON Web Tokens and key sets.", "Nothing yet."},
		{"Netlify", "JSON Web Signature.", "Nothing yet."},

		{
			"Mailgun",
			"The signature is inside the JSON body and covers a time and a token, not the payload: the " +
				"payload would be unauthenticated.",
			"`url_token`",
		},

		{"Figma", "A passcode inside the body, and no signature.", "`url_token`"},
		{"Postmark, Chargebee", "Basic authentication or credentials in the URL only.", "`url_token`"},

		{
			"Datadog, Auth0 log streams, Alertmanager, Okta hooks, Harbor",
			"A custom header or a bearer token, and no signature.",
			"`token`, or a custom scheme with `alg: token`",
		},

		{"Docker Hub, many uptime tools", "No authentication at all.", "`url_token`"},

		{
			"GitHub SHA-1 (X-Hub-Signature), HubSpot v1 and v2, Stripe v0",
			"Superseded and weaker.",
			"`github`, `hubspot`, `stripe`",
		},

		{
			"SonarQube",
			"Signs the body with HMAC-SHA256.",
			"`customScheme: {alg: hmac-sha256, header: X-Sonar-Webhook-HMAC-SHA256, encoding: hex, template: \"{body}\"}`",
		},

		{
			"Todoist",
			"Signs the body with HMAC-SHA256 and the client secret.",
			"`customScheme: {alg: hmac-sha256, header: X-Todoist-Hmac-SHA256, encoding: base64, template: \"{body}\"}`",
		},

		{
			"Checkly",
			"Signs the body with HMAC-SHA256.",
			"`customScheme: {alg: hmac-sha256, header: X-Checkly-Signature, encoding: hex, template: \"{body}\"}`",
		},

		{
			"Alchemy",
			"Signs the body with HMAC-SHA256.",
			"`customScheme: {alg: hmac-sha256, header: X-Alchemy-Signature, encoding: hex, template: \"{body}\"}`",
		},

		{
			"Checkout.com",
			"Signs the body with HMAC-SHA256.",
			"`customScheme: {alg: hmac-sha256, header: Cko-Signature, encoding: hex, template: \"{body}\"}`",
		},

		{
			"Semaphore",
			"Signs the body with HMAC-SHA256.",
			"`customScheme: {alg: hmac-sha256, header: X-Semaphore-Signature-256, encoding: hex, prefix: \"sha256=\", template: \"{body}\"}`",
		},

		{
			"Fivetran",
			"Signs the body with HMAC-SHA256.",
			"`customScheme: {alg: hmac-sha256, header: X-Fivetran-Signature-256, encoding: hex, template: \"{body}\"}`",
		},

		{
			"EasyPost",
			"Signs the body with HMAC-SHA256.",
			"`customScheme: {alg: hmac-sha256, header: X-Hmac-Signature, encoding: hex, prefix: \"hmac-sha256-hex=\", template: \"{body}\"}`",
		},

		{
			"dbt Cloud",
			"Signs the body with HMAC-SHA256, in the header of bearer tokens.",
			"`customScheme: {alg: hmac-sha256, header: Authorization, encoding: hex, template: \"{body}\"}`",
		},

		{
			"Expo",
			"Signs the body with HMAC-SHA1.",
			"`customScheme: {alg: hmac-sha1, header: expo-signature, encoding: hex, prefix: \"sha1=\", template: \"{body}\"}`",
		},

		{
			"Storyblok",
			"Signs the body with HMAC-SHA1.",
			"`customScheme: {alg: hmac-sha1, header: webhook-signature, encoding: hex, template: \"{body}\"}`",
		},

		{
			"Help Scout",
			"Signs the body with HMAC-SHA1.",
			"`customScheme: {alg: hmac-sha1, header: X-HelpScout-Signature, encoding: base64, template: \"{body}\"}`",
		},

		{
			"MongoDB Atlas",
			"Signs the body with HMAC-SHA1.",
			"`customScheme: {alg: hmac-sha1, header: X-MMS-Signature, encoding: base64, template: \"{body}\"}`",
		},

		{
			"Telegram, JFrog",
			"A secret in a header, and no signature unless it is asked for.",
			"`customScheme: {alg: token, header: X-Telegram-Bot-Api-Secret-Token}`, for JFrog `X-JFrog-Event-Auth`",
		},

		{
			"Customer.io",
			"Signs a version, the time and the body.",
			"`customScheme: {alg: hmac-sha256, header: X-CIO-Signature, encoding: hex, template: \"v0:{ts}:{body}\", " +
				"timestamp: {header: X-CIO-Timestamp}}`",
		},

		{
			"Statsig",
			"Signs a version, the time and the body.",
			"`customScheme: {alg: hmac-sha256, header: X-Statsig-Signature, encoding: hex, prefix: \"v0=\", " +
				"template: \"v0:{ts}:{body}\", timestamp: {header: X-Statsig-Request-Timestamp, unit: ms}}`",
		},

		{
			"Telnyx",
			"Signs the time and the body with Ed25519.",
			"`customScheme: {alg: ed25519, key: base64, header: telnyx-signature-ed25519, encoding: base64, " +
				"template: \"{ts}|{body}\", timestamp: {header: telnyx-timestamp}}`",
		},

		{"Google Pub/Sub, Google Chat", "JSON Web Tokens, whose keys have to be fetched.", "`url_token`"},
		{"Microsoft Graph", "A secret inside the body, and a set-up request with an unsigned query.", "Nothing yet."},
		{"Wise", "RSA signatures.", "Nothing yet."},
		{"Contentful, Plivo", "Sign a canonical form of the request.", "`url_token`"},
		{"Mercado Pago", "Signs parts of the query and not the body.", "`url_token`"},
		{
			"Recurly",
			"A list of signatures without names after its time, which `customScheme` cannot express.",
			"`url_token`",
		},
		{"X", "Needs an answer to a GET request, which the ingress refuses.", "Nothing yet."},

		{
			"Microsoft Teams, Front, Ghost, Mollie, FireHydrant, Rootly",
			"Not tried.",
			"`url_token`, or a custom scheme after a test delivery",
		},
	}
}
