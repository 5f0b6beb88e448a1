"""Options that every call accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import httpx
from typing_extensions import TypedDict


class RequestOptions(TypedDict, total=False):
    """Options of one call; they override those of the client."""

    timeout: float | httpx.Timeout | None
    """Seconds for one attempt, its answer included; None for no limit."""
    max_retries: int
    """Number of retries after the first attempt."""
    idempotency_key: str
    """Makes a repeated create return the first answer. Generated for every POST without one."""
    extra_headers: Mapping[str, str]
    """Additional headers; they replace defaults of the same name."""
    extra_query: Mapping[str, Any]
    """Query parameters that this version does not know."""
    extra_body: Mapping[str, Any]
    """Members of the body that this version does not know."""


class ClientOptions(TypedDict, total=False):
    """Settings of a client that can be changed for some of its calls."""

    api_key: str
    timeout: float | httpx.Timeout | None
    max_retries: int
    default_headers: Mapping[str, str]
    """Additional headers of every request."""


OPTION_NAMES = frozenset(RequestOptions.__annotations__)


def split(
    params: Mapping[str, Any], takes: type[Any] | None, where: str
) -> tuple[dict[str, Any], RequestOptions]:
    """Split the arguments of a call into API parameters, named by a typed dictionary, and options.

    A name that is neither is a TypeError, as for any function: the server would ignore it in silence.
    """
    known: Mapping[str, Any] = {} if takes is None else takes.__annotations__
    own: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for name, value in params.items():
        if name in OPTION_NAMES:
            options[name] = value
        elif name in known:
            own[name] = value
        else:
            hint = "extra_query and extra_body take what this version does not know"
            raise TypeError(f"{where} takes no argument {name!r} ({hint})")
    return own, cast("RequestOptions", options)
