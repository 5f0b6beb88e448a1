"""Client of the millwright API: runs of agents, factories, webhooks, secrets and definition files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import attach
from ._version import __version__

if TYPE_CHECKING:
    from . import types, webhooks
    from ._async._io import AsyncPageRequest
    from ._async._stream import AsyncEventStream
    from ._async.client import AsyncMillwright
    from ._async.pagination import AsyncPage
    from ._errors import (
        APIConnectionError,
        APIError,
        APIResponseValidationError,
        APIStatusError,
        APITimeoutError,
        AuthenticationError,
        BadRequestError,
        ConflictError,
        InternalServerError,
        MillwrightError,
        NotFoundError,
        PayloadTooLargeError,
        PermissionDeniedError,
        RateLimitError,
        RunWaitTimeoutError,
        UnprocessableEntityError,
    )
    from ._events import DeliveryEvent, RunEvent
    from ._options import ClientOptions, RequestOptions
    from ._response import APIResponse
    from ._retry import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT
    from ._run import ENDED_STATES
    from ._sse import ServerSentEvent
    from ._sync._stream import EventStream
    from ._sync.client import Millwright
    from ._sync.pagination import Page
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            "._async._io": ["AsyncPageRequest"],
            "._async._stream": ["AsyncEventStream"],
            "._async.client": ["AsyncMillwright"],
            "._async.pagination": ["AsyncPage"],
            "._errors": [
                "APIConnectionError", "APIError", "APIResponseValidationError", "APIStatusError", "APITimeoutError",
                "AuthenticationError", "BadRequestError", "ConflictError", "InternalServerError", "MillwrightError",
                "NotFoundError", "PayloadTooLargeError", "PermissionDeniedError", "RateLimitError",
                "RunWaitTimeoutError", "UnprocessableEntityError",
            ],
            "._events": ["DeliveryEvent", "RunEvent"],
            "._options": ["ClientOptions", "RequestOptions"],
            "._response": ["APIResponse"],
            "._retry": ["DEFAULT_MAX_RETRIES", "DEFAULT_TIMEOUT"],
            "._run": ["ENDED_STATES"],
            "._sse": ["ServerSentEvent"],
            "._sync._stream": ["EventStream"],
            "._sync.client": ["Millwright"],
            "._sync.pagination": ["Page"],
        },
    )  # fmt: skip

__all__ = [
    "DEFAULT_MAX_RETRIES",
    "DEFAULT_TIMEOUT",
    "ENDED_STATES",
    "APIConnectionError",
    "APIError",
    "APIResponse",
    "APIResponseValidationError",
    "APIStatusError",
    "APITimeoutError",
    "AsyncEventStream",
    "AsyncMillwright",
    "AsyncPage",
    "AsyncPageRequest",
    "AuthenticationError",
    "BadRequestError",
    "ClientOptions",
    "ConflictError",
    "DeliveryEvent",
    "EventStream",
    "InternalServerError",
    "Millwright",
    "MillwrightError",
    "NotFoundError",
    "Page",
    "PayloadTooLargeError",
    "PermissionDeniedError",
    "RateLimitError",
    "RequestOptions",
    "RunEvent",
    "RunWaitTimeoutError",
    "ServerSentEvent",
    "UnprocessableEntityError",
    "__version__",
    "types",
    "webhooks",
]
