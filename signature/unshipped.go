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
	}
}
