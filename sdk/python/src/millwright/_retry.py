"""Decides whether and when to retry. Pure except for the jitter."""

from __future__ import annotations

import math
import random
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

import httpx

DEFAULT_MAX_RETRIES = 2
DEFAULT_TIMEOUT = 60.0

FIRST_DELAY = 0.5
LONGEST_DELAY = 8.0
LONGEST_RETRY_AFTER = 60.0
"""If a server asks for a longer wait, the error is raised at once."""


def is_worth_retrying(status_code: int, headers: httpx.Headers) -> bool:
    """Report whether a retry may succeed, by ``X-Should-Retry`` or the status."""
    asked: str = headers.get("x-should-retry", "").strip().lower()
    if asked in ("true", "false"):
        return asked == "true"
    return status_code in (408, 409, 429) or status_code >= 500


def retry_after(headers: httpx.Headers, now: datetime | None = None) -> float | None:
    """Read ``Retry-After``, in seconds or as a date. None if absent or invalid."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            when = parsedate_to_datetime(text)
        except (ValueError, TypeError, OverflowError):
            return None
        if when.tzinfo is None:
            when = when.replace(tzinfo=timezone.utc)
        seconds = max(0.0, (when - (now or datetime.now(timezone.utc))).total_seconds())
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def delay(attempt: int, asked: float | None = None) -> float | None:
    """Return the seconds to wait after the attempt of this number, from 0; None to give up.

    What the server asked for is never cut short; a little is added, so that many clients that were told
    the same do not come back at the same instant.
    """
    if asked is not None:
        return asked * (1 + random.uniform(0, 0.1)) if asked <= LONGEST_RETRY_AFTER else None
    return min(FIRST_DELAY * 2.0 ** min(attempt, 16), LONGEST_DELAY) * random.uniform(0.75, 1)
