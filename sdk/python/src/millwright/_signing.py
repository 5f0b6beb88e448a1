"""Authentication of senders: Standard Webhooks signatures and bearer tokens. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time

from ._errors import MillwrightError

PREFIX = "whsec_"


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
