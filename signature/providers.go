package signature

// Provider returns the name of the provider that signs as a scheme, as people write it. It knows every name
// and alias of the table.
func Provider(name string) string {
	switch name {
	case "standard_webhooks":
		return "Standard Webhooks"
	case "github":
		return "GitHub"
	case "gitlab":
		return "GitLab"
	case "pagerduty":
		return "PagerDuty"
	case "circleci":
		return "CircleCI"
	case "launchdarkly":
		return "LaunchDarkly"
	case "hubspot":
		return "HubSpot"
	case "sendgrid":
		return "SendGrid"
	case "docusign":
		return "DocuSign"
	case "workos":
		return "WorkOS"
	case "line":
		return "LINE"
	case "gocardless":
		return "GoCardless"
	case "coinbase_cdp":
		return "Coinbase Developer Platform"
	case "woocommerce":
		return "WooCommerce"
	case "lemonsqueezy":
		return "Lemon Squeezy"
	case "calcom":
		return "Cal.com"
	case "elevenlabs":
		return "ElevenLabs"
	case "quickbooks":
		return "QuickBooks"
	case "clickup":
		return "ClickUp"
	case "openai":
		return "OpenAI"
	case "incident_io":
		return "incident.io"
	case "whatsapp":
		return "WhatsApp"
	case "":
		return ""
	}

	return capitals(name)
}

// capitals writes coinbase_commerce as Coinbase Commerce.
func capitals(name string) string {
	text, first := []byte(name), true
	for i, c := range text {
		switch {
		case c == '_':
			text[i] = ' '
		case first && c >= 'a' && c <= 'z':
			text[i] = c - 'a' + 'A'
		}

		first = c == '_'
	}

	return string(text)
}
