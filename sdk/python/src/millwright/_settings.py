"""The settings of a client, from arguments and the environment."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import urlsplit

import httpx

from ._errors import MillwrightError
from ._retry import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT

API_KEY = "MILLWRIGHT_API_KEY"
BASE_URL = "MILLWRIGHT_BASE_URL"
SERVER = "MILLWRIGHT_SERVER"
API = "/api/v1"


@dataclass(frozen=True)
class Settings:
    """The settings of a client. The repr omits the key and the headers."""

    base_url: str
    api_key: str = field(repr=False)
    timeout: float | httpx.Timeout | None = DEFAULT_TIMEOUT
    max_retries: int = DEFAULT_MAX_RETRIES
    default_headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@cache
def certificates() -> ssl.SSLContext:
    """Return the TLS context. Loading it is slow, so it is loaded once."""
    return httpx.create_ssl_context()


def resolve_key(api_key: str | None) -> str:
    """Return the key given, or that of the environment."""
    key = (os.environ.get(API_KEY, "") if api_key is None else api_key).strip()
    if not key:
        raise MillwrightError(f"no API key: set the environment variable {API_KEY}, or pass api_key")
    if not all("!" <= c <= "~" for c in key):
        raise MillwrightError(
            f"the API key has characters that no key has: check api_key, or the environment variable {API_KEY}"
        )
    return key


def environment_base_url() -> str:
    """Return the base URL of the environment. MILLWRIGHT_SERVER, which the program reads, may lack the path."""
    server = os.environ.get(SERVER, "").strip().rstrip("/")
    if server and not server.endswith(API):
        server += API
    return os.environ.get(BASE_URL, "") or server


def resolve_base_url(base_url: str | None) -> str:
    """Return the base URL given, or that of the environment, without a slash at its end."""
    text = (environment_base_url() if base_url is None else base_url).strip()
    hint = f"set the environment variable {BASE_URL}, or give base_url, such as https://millwright.example.com/api/v1"
    if not text:
        raise MillwrightError(f"no base URL: {hint}")
    try:
        urlsplit(text)
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):
        raise MillwrightError(f"the base URL cannot be read: {hint}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise MillwrightError(f"the base URL is not an http or https URL: {hint}")
    if url.userinfo or url.query or url.fragment:
        raise MillwrightError(f"the base URL must not have credentials, a query or a fragment: {hint}")
    base = str(url).rstrip("/")
    if not url.path.rstrip("/").endswith(API):
        raise MillwrightError(f"the base URL must end in {API}: {base}{API} in place of {base}")
    return base


def checked_retries(max_retries: int) -> int:
    """Return the number of retries, or raise MillwrightError."""
    if type(max_retries) is not int or max_retries < 0:
        raise MillwrightError(f"max_retries must be 0 or more, not {max_retries!r}")
    return max_retries
