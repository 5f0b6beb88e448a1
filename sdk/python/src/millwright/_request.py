"""A request, from a method, a path and arguments. Pure."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from urllib.parse import quote, urlencode

import httpx
from pydantic import BaseModel

from ._options import RequestOptions
from ._settings import Settings, checked_retries
from ._version import __version__

USER_AGENT = f"millwright-python/{__version__}"


@dataclass(frozen=True)
class Request:
    """A request, for all of its attempts. The repr omits the headers, which contain the key."""

    method: str
    url: str
    where: str
    """The method and path, without query, for errors."""
    headers: Mapping[str, str] = field(repr=False)
    content: bytes | None = field(default=None, repr=False)
    timeout: float | httpx.Timeout | None = None
    max_retries: int = 0
    secrets: tuple[str, ...] = field(default=(), repr=False)
    sign: Callable[[], Mapping[str, str]] | None = field(default=None, repr=False)
    """Makes the headers that differ between attempts."""


def build(
    settings: Settings,
    method: str,
    path: str,
    *,
    query: Mapping[str, Any] | None = None,
    body: Any = None,
    content: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    options: RequestOptions | None = None,
) -> Request:
    """Make a request to a path below the base URL."""
    options = options or {}
    if not path.startswith("/"):
        raise ValueError(f"a path begins with a slash and lies below the base URL, unlike {path!r}")
    query = {**(query or {}), **options.get("extra_query", {})}
    url = settings.base_url + path
    if encoded := encode_query(query):
        url += ("&" if "?" in path else "?") + encoded
    if extra := options.get("extra_body"):
        body = {**(body or {}), **extra}
    send = {
        "Accept": "application/json",
        "Authorization": f"Bearer {settings.api_key}",
        "User-Agent": USER_AGENT,
        **settings.default_headers,
    }
    if content is None and body is not None:
        content = encode_json(body)
        send["Content-Type"] = "application/json"
    if method == "POST":
        send["Idempotency-Key"] = options.get("idempotency_key") or str(uuid.uuid4())
    send.update(headers or {})
    send.update(options.get("extra_headers", {}))
    return Request(
        method=method,
        url=url,
        where=f"{method} {path.partition('?')[0]}",
        headers=send,
        content=content,
        timeout=options.get("timeout", settings.timeout),
        max_retries=checked_retries(options.get("max_retries", settings.max_retries)),
        secrets=(settings.api_key,),
    )


def segment(name: str, value: str) -> str:
    """Return a path segment. Refuses text that would lead to another endpoint."""
    if type(value) is not str or value in ("", ".", ".."):
        raise ValueError(f"{name} must be a non-empty identifier, not {value!r}")
    return quote(value, safe="")


def segments(name: str, value: str) -> str:
    """Return a path of several segments, such as that of a definition file."""
    return "/".join(segment(name, part) for part in value.split("/"))


def encode_query(query: Mapping[str, Any]) -> str:
    """Write query parameters: a list repeats its name, a mapping is ``name[key]``, None is left out."""
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        if isinstance(value, Mapping):
            pairs.extend((f"{name}[{key}]", _query_value(v)) for key, v in value.items() if v is not None)
        elif isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
            pairs.extend((name, _query_value(v)) for v in value if v is not None)
        elif value is not None:
            pairs.append((name, _query_value(value)))
    return urlencode(pairs)


def _query_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return _time(value)
    return str(value)


def encode_json(value: Any) -> bytes:
    """Write a value as JSON. Models are written as they were set, bytes in base64, times in RFC 3339."""
    return json.dumps(
        value, default=_default, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    ).encode()


def _default(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")


def _time(value: datetime) -> str:
    """Write a time in RFC 3339; one without a zone is local time, as everywhere in Python."""
    return (value if value.tzinfo else value.astimezone()).isoformat()
