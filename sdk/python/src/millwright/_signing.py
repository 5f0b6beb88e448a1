"""Authentication of senders, and verification of events: Standard Webhooks signatures and bearer tokens. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from ._errors import MillwrightError, WebhookVerificationError

PREFIX = "whsec_"
MAX_SIGNATURES = 10


def sign(body: bytes, *, secret: str, delivery_id: str, timestamp: int | None = None) -> dict[str, str]:
    """Return the headers that sign a delivery by Standard Webhooks 1.0.

    ``secret`` is the webhook's, ``whsec_`` and base64. ``delivery_id`` names the event: a receiver takes
    a second delivery of the same ID for a repeat. ``timestamp`` is in seconds since 1970, now by default;
    receivers refuse what is more than five minutes off. The body must be sent byte for byte.
    """
    if "." in checked_id(delivery_id):
        raise MillwrightError("a signed delivery ID must not contain dots, which separate the signed values")
    at = str(int(time.time()) if timestamp is None else timestamp)
    signed = delivery_id.encode() + b"." + at.encode() + b"." + body
    digest = hmac.new(signing_key(secret), signed, hashlib.sha256).digest()
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": at,
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }


def verify(
    body: bytes | str,
    headers: Mapping[str, str],
    secret: str,
    *,
    tolerance: int = 300,
    now: int | None = None,
) -> Any:
    """Return what an event holds, once its signature by Standard Webhooks 1.0 is found right.

    ``body`` is the raw body, byte for byte, and ``headers`` are those of the request, in any case. A timestamp
    more than ``tolerance`` seconds from ``now``, the present by default, is refused. Raises WebhookVerificationError.
    """
    raw = body.encode() if isinstance(body, str) else body
    values = {name.lower(): value for name, value in headers.items()}
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        if not values.get(name):
            raise WebhookVerificationError(f"the header {name} is missing")

    at = values["webhook-timestamp"]
    if not (at.isascii() and at.isdigit() and len(at) <= 12):
        raise WebhookVerificationError("the header webhook-timestamp is not a number of seconds since 1970")
    age = (int(time.time()) if now is None else now) - int(at)
    if abs(age) > tolerance:
        side = "old" if age > 0 else "far in the future"
        raise WebhookVerificationError(f"the timestamp is too {side}: by {abs(age)} seconds")

    signed = f"{values['webhook-id']}.{at}.".encode() + raw
    want = hmac.new(signing_key(secret), signed, hashlib.sha256).digest()
    matches = False
    for part in values["webhook-signature"].split(" ")[:MAX_SIGNATURES]:
        version, _, text = part.partition(",")
        if version == "v1":
            matches |= hmac.compare_digest(_decoded(text), want)
    if not matches:
        raise WebhookVerificationError("no signature is right for the body and the secret")

    try:
        return json.loads(raw)
    except ValueError:
        raise WebhookVerificationError("the body is not JSON") from None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def signing_key(secret: str) -> bytes:
    """Read a signing secret. Errors do not contain it."""
    text = secret.strip().removeprefix(PREFIX).rstrip("=")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not 24 <= len(key) <= 64:
        raise MillwrightError(f"the signing secret is not {PREFIX} and the base64 form of 24 to 64 bytes")
    return key


def checked_id(delivery_id: str) -> str:
    """Return a delivery ID that fits into a header, or raise MillwrightError."""
    if not delivery_id or not all("!" <= c <= "~" for c in delivery_id):
        raise MillwrightError("a delivery ID is printable ASCII without spaces")
    return delivery_id
