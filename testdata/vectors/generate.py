#!/usr/bin/env python3
"""Writes generated-vectors.json: two vectors for every scheme without a published one.

It shares no code with the verifier, on purpose: each line below was written from the
provider's description. Needs the `cryptography` package for Ed25519.
"""
import base64
import hashlib
import hmac
import json
import pathlib

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

CLOCK = 1700000000  # 2023-11-14T22:13:20Z
URL = "https://hooks.example.com/webhooks/w/wh_01h2xcejqtf2nbrexx3vqjhp41"
CASES = [
    ("correct horse battery staple", '{"event":"created","n":1}'),
    ("It's a Secret – naïve", '{\n  "text": "Grüße, 世界",\r\n  "list": [1, 2.50, 1e400]\n}\n'),
]


def mac(alg, secret, *parts):
    key = secret.encode() if isinstance(secret, str) else secret
    message = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
    return hmac.new(key, message, alg).digest()


def b64(raw):
    return base64.b64encode(raw).decode()


out = []


def add(scheme, secret, headers, body, url=None, **more):
    out.append({"scheme": scheme, "source": "generate.py", "secret": secret, "headers": headers, "body": body, "url": url,
                "at": CLOCK, "expect": "accept", **more})


def plain(scheme, header, alg="sha256", prefix="", enc="hex", delivery=None):
    for secret, body in CASES:
        digest = mac(alg, secret, body)
        headers = {header: prefix + (digest.hex() if enc == "hex" else b64(digest))}
        if delivery:
            headers[delivery] = "delivery-1"
        add(scheme, secret, headers, body, delivery="delivery-1" if delivery else "")


plain("bitbucket", "X-Hub-Signature", prefix="sha256=", delivery="X-Request-UUID")
plain("jira", "X-Hub-Signature", prefix="sha256=", delivery="X-Atlassian-Webhook-Identifier")
plain("gitea", "X-Gitea-Signature", delivery="X-Gitea-Delivery")
plain("forgejo", "X-Forgejo-Signature", delivery="X-Forgejo-Delivery")
plain("gogs", "X-Gogs-Signature", delivery="X-Gogs-Delivery")
plain("linear", "Linear-Signature", delivery="Linear-Delivery")
plain("sentry", "Sentry-Hook-Signature", delivery="Request-ID")
plain("pagerduty", "X-PagerDuty-Signature", prefix="v1=", delivery="X-Webhook-Id")
plain("shopify", "X-Shopify-Hmac-Sha256", enc="base64", delivery="X-Shopify-Webhook-Id")
plain("intercom", "X-Hub-Signature", alg="sha1", prefix="sha1=")
plain("typeform", "Typeform-Signature", prefix="sha256=", enc="base64")
plain("vercel", "x-vercel-signature", alg="sha1")
plain("launchdarkly", "X-LD-Signature")
plain("docusign", "X-DocuSign-Signature-1", enc="base64")
plain("docusign", "X-DocuSign-Signature-7", enc="base64")
plain("dropbox", "X-Dropbox-Signature")
plain("meta", "X-Hub-Signature-256", prefix="sha256=")
plain("whatsapp", "X-Hub-Signature-256", prefix="sha256=")
plain("asana", "X-Hook-Signature")
plain("razorpay", "X-Razorpay-Signature", delivery="x-razorpay-event-id")
plain("woocommerce", "X-WC-Webhook-Signature", enc="base64", delivery="X-WC-Webhook-Delivery-ID")
plain("lemonsqueezy", "X-Signature")
plain("paystack", "x-paystack-signature", alg="sha512")
plain("xero", "x-xero-signature", enc="base64")
plain("calcom", "X-Cal-Signature-256")
plain("nylas", "X-Nylas-Signature")
plain("pusher", "X-Pusher-Signature")
plain("attio", "X-Attio-Signature")
plain("checkr", "X-Checkr-Signature")
plain("chargify", "X-Chargify-Webhook-Signature-Hmac-Sha-256")
plain("modern_treasury", "X-Signature")
plain("tally", "Tally-Signature", enc="base64")
plain("jobber", "X-Jobber-Hmac-SHA256", enc="base64")
plain("quickbooks", "intuit-signature", enc="base64")
plain("cursor", "X-Webhook-Signature", prefix="sha256=")
plain("terraform_cloud", "X-TFE-Notification-Signature", alg="sha512")
plain("snyk", "X-Hub-Signature", prefix="sha256=")
plain("heroku", "Heroku-Webhook-Hmac-SHA256", enc="base64")
plain("segment", "X-Signature", alg="sha1")
plain("shortcut", "Payload-Signature")
plain("clickup", "X-Signature")
plain("grafana", "X-Grafana-Alerting-Signature")

SECONDS, MILLIS = str(CLOCK), str(CLOCK * 1000 + 123)
ISO, IMF = "2023-11-14T22:13:20Z", "Tue, 14 Nov 2023 22:13:20 GMT"

for secret, body in CASES:
    def hexmac(*parts):
        return mac("sha256", secret, *parts).hex()

    add("stripe", secret, {"Stripe-Signature": f"t={SECONDS},v1={'0' * 64},v1={hexmac(SECONDS, '.', body)},v0={'1' * 64}"}, body)
    add("stripe", secret, {"Stripe-Signature": f"t={SECONDS},v1={hexmac(SECONDS, '.', body)}"}, body)
    add("buildkite", secret, {"X-Buildkite-Signature": f"timestamp={SECONDS},signature={hexmac(SECONDS, '.', body)}"}, body)
    add("zendesk", secret, {"X-Zendesk-Webhook-Signature": b64(mac("sha256", secret, ISO, body)),
                            "X-Zendesk-Webhook-Signature-Timestamp": ISO, "X-Zendesk-Webhook-Invocation-Id": "delivery-1"}, body, delivery="delivery-1")
    add("grafana", secret, {"X-Grafana-Alerting-Signature": hexmac(SECONDS, ":", body), "X-Grafana-Alerting-Timestamp": SECONDS}, body)
    add("zoom", secret, {"x-zm-signature": "v0=" + hexmac("v0:", SECONDS, ":", body), "x-zm-request-timestamp": SECONDS}, body)
    add("hubspot", secret, {"X-HubSpot-Signature-v3": b64(mac("sha256", secret, "POST", URL, body, MILLIS)), "X-HubSpot-Request-Timestamp": MILLIS}, body, URL)
    add("square", secret, {"x-square-hmacsha256-signature": b64(mac("sha256", secret, URL, body))}, body, URL)
    add("trello", secret, {"X-Trello-Webhook": b64(mac("sha1", secret, body, URL))}, body, URL)
    add("paddle", secret, {"Paddle-Signature": f"ts={SECONDS};h1={'0' * 64};h1={hexmac(SECONDS, ':', body)}"}, body)
    add("box", secret, {"BOX-SIGNATURE-SECONDARY": b64(mac("sha256", secret, body, "2023-11-14T14:13:20-08:00")),
                        "BOX-DELIVERY-TIMESTAMP": "2023-11-14T14:13:20-08:00", "BOX-DELIVERY-ID": "delivery-1"}, body, delivery="delivery-1")
    add("box", secret, {"BOX-SIGNATURE-PRIMARY": b64(mac("sha256", secret, body, ISO)), "BOX-DELIVERY-TIMESTAMP": ISO}, body, delivery="")
    hashed = URL + "?bodySHA256=" + hashlib.sha256(body.encode()).hexdigest()
    add("twilio", secret, {"X-Twilio-Signature": b64(mac("sha1", secret, hashed)), "I-Twilio-Idempotency-Token": "delivery-1"}, body, hashed, delivery="delivery-1")
    add("twilio", secret, {"X-Twilio-Signature": b64(mac("sha1", secret, hashed.replace(".com/", ".com:443/")))}, body, hashed)
    for time in (ISO, "2023-11-14T22:13:20.123456789Z"):
        add("twitch", secret, {"Twitch-Eventsub-Message-Id": "delivery-1", "Twitch-Eventsub-Message-Timestamp": time,
                               "Twitch-Eventsub-Message-Signature": "sha256=" + hexmac("delivery-1", time, body)}, body, delivery="delivery-1")
    add("calendly", secret, {"Calendly-Webhook-Signature": f"t={SECONDS},v1={hexmac(SECONDS, '.', body)}"}, body)
    add("workos", secret, {"WorkOS-Signature": f"t={SECONDS}000,v1={hexmac(SECONDS + '000.', body)}"}, body)
    add("workos", secret, {"WorkOS-Signature": f"t={MILLIS}, v1={hexmac(MILLIS, '.', body)}"}, body)
    add("elevenlabs", secret, {"ElevenLabs-Signature": f"t={SECONDS},v0={hexmac(SECONDS, '.', body)}"}, body)
    add("cloudflare_stream", secret, {"Webhook-Signature": f"time={SECONDS},sig1={hexmac(SECONDS, '.', body)}"}, body)
    add("webflow", secret, {"x-webflow-signature": hexmac(MILLIS, ":", body), "x-webflow-timestamp": MILLIS}, body)
    add("klaviyo", secret, {"Klaviyo-Signature": hexmac(body, IMF), "Klaviyo-Timestamp": IMF}, body)
    add("coinbase_cdp", secret, {"X-Hook0-Signature": f"t={SECONDS},v0={hexmac(SECONDS, '.', body)}"}, body)
    add("coinbase_cdp", secret, {"Content-Type": "application/json", "X-Hook0-Signature":
                                 f"t={SECONDS},h=content-type,v1={hexmac(SECONDS, '.content-type.application/json.', body)}"}, body)
    names = "content-type x-event-id"
    add("hook0", secret, {"Content-Type": "application/json", "X-Event-Id": "e1",
                          "X-Hook0-Signature": f"t={SECONDS},h={names},v1={hexmac(SECONDS, '.', names, '.application/json.e1.', body)}"}, body)
    sanity = base64.urlsafe_b64encode(mac("sha256", secret, MILLIS, ".", body)).decode().rstrip("=")
    add("sanity", secret, {"sanity-webhook-signature": f"t={MILLIS},v1={sanity}"}, body)

    key = hashlib.sha256(secret.encode()).digest()
    add("adyen", key.hex().upper(), {"HmacSignature": b64(mac("sha256", key, body))}, body)
    add("airtable", b64(key), {"X-Airtable-Content-MAC": "hmac-sha256=" + mac("sha256", key, body).hex()}, body)
    standard = {"webhook-id": "delivery-1", "webhook-timestamp": SECONDS,
                "webhook-signature": "v1," + b64(mac("sha256", key, "delivery-1.", SECONDS, ".", body))}
    for text in ("whsec_" + b64(key), b64(key), b64(key).rstrip("=")):
        add("standard_webhooks", text, standard, body, delivery="delivery-1")
    add("gitlab", "whsec_" + b64(key), standard, body, delivery="delivery-1")
    add("gitlab", "legacy-token", {"X-Gitlab-Token": "legacy-token", "X-Gitlab-Event-UUID": "delivery-1"}, body, delivery="delivery-1")
    add("gitlab", "legacy-token", {"X-Gitlab-Token": "legacy-token", "Idempotency-Key": "delivery-1", "X-Gitlab-Event-UUID": "other"}, body, delivery="delivery-1")
    add("buildkite", "legacy-token", {"X-Buildkite-Token": "legacy-token"}, body)

    private = ed25519.Ed25519PrivateKey.from_private_bytes(key)
    public = private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    add("discord", public.hex(), {"X-Signature-Ed25519": private.sign((SECONDS + body).encode()).hex(), "X-Signature-Timestamp": SECONDS}, body)
    add("svix", "whpk_" + b64(public), {"svix-id": "delivery-1", "svix-timestamp": SECONDS,
                                        "svix-signature": "v1a," + b64(private.sign(f"delivery-1.{SECONDS}.{body}".encode()))}, body, delivery="delivery-1")

out.append({"scheme": "hook0", "source": "hook0-client tests (published)", "secret": "secret", "at": 1636936200, "expect": "accept", "url": None,
            "headers": {"X-Hook0-Signature": "t=1636936200,v0=1b3d69df55f1e52f05224ba94a5162abeb17ef52cd7f4948c390f810d6a87e98"}, "body": "hello !"})

path = pathlib.Path(__file__).with_name("generated-vectors.json")
path.write_text(json.dumps({"vectors": out}, indent=1, ensure_ascii=False) + "\n")
print(len(out), "vectors,", len({v["scheme"] for v in out}), "schemes")
