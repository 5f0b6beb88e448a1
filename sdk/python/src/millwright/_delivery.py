"""What senders of deliveries share."""

from __future__ import annotations

import logging
import re
from urllib.parse import urlsplit

import httpx
from typing_extensions import TypedDict

from ._errors import MillwrightError
from ._model import Model

# In the URL of a url_token webhook the token is the credential.
_TOKEN = re.compile(r"(/webhooks/w/[^/?#\s]+/)[^?#\s\"']+")


class DeliveryReceipt(Model):
    """The server's answer to an accepted delivery."""

    delivery_id: str
    """ID of the delivery; for a duplicate, that of the first."""
    duplicate: bool = False
    """Whether the server had accepted a delivery of the same identity before. A duplicate starts nothing."""


class SenderOptions(TypedDict, total=False):
    """Options of one delivery; they override those of the sender."""

    timeout: float | httpx.Timeout | None
    max_retries: int


def resolve_url(url: str) -> tuple[str, str, str]:
    """Check a webhook's URL. Return it, its name for errors, and its token, if any."""
    hint = "give the ingress URL of a webhook, such as https://hooks.example.com/webhooks/w/wh_…"
    try:
        urlsplit(url)
        parsed = httpx.URL(url.strip())
    except (httpx.InvalidURL, ValueError):
        raise MillwrightError(f"the webhook's URL cannot be read: {hint}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
        raise MillwrightError(
            f"the webhook's URL is not an http or https URL without credentials before the host: {hint}"
        )
    if "{token}" in url or "%7Btoken%7D" in str(parsed):
        raise MillwrightError("the webhook's URL has {token} in it: put the webhook's secret there")
    found = _TOKEN.search(parsed.raw_path.decode())
    token = found.group(0)[len(found.group(1)) :] if found else ""
    path = _TOKEN.sub(r"\1***", parsed.path)
    where = f"POST {parsed.scheme}://{parsed.netloc.decode()}{path}"
    return str(parsed), where, token


class _TokenFilter(logging.Filter):
    """Takes URL tokens out of the request lines that httpx logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        hidden = _TOKEN.sub(r"\1***", text)
        if hidden != text:
            record.msg, record.args = hidden, ()
        return True


_FILTER = _TokenFilter()


def hide_tokens() -> None:
    """Keep URL tokens out of the log of httpx, which writes every URL."""
    logging.getLogger("httpx").addFilter(_FILTER)
