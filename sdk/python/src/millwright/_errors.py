"""Errors that calls raise."""

from __future__ import annotations

import json
from typing import Any, cast

import httpx

from ._retry import retry_after

__all__ = [
    "APIConnectionError",
    "APIError",
    "APIResponseValidationError",
    "APIStatusError",
    "APITimeoutError",
    "AuthenticationError",
    "BadRequestError",
    "ConflictError",
    "InternalServerError",
    "MillwrightError",
    "NotFoundError",
    "PayloadTooLargeError",
    "PermissionDeniedError",
    "RateLimitError",
    "RunWaitTimeoutError",
    "UnprocessableEntityError",
    "WebhookVerificationError",
]


class MillwrightError(Exception):
    """The base of every error of this package."""


class WebhookVerificationError(MillwrightError):
    """An event is not signed by the secret, or is too old."""


class APIError(MillwrightError):
    """A call failed. No error holds the API key, in its text or elsewhere."""

    message: str
    """The problem, in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class APIConnectionError(APIError):
    """The server could not be reached, or the connection broke before the answer was complete."""


class APITimeoutError(APIConnectionError, TimeoutError):
    """The answer did not arrive in time."""


class RunWaitTimeoutError(MillwrightError, TimeoutError):
    """A run did not end within the ``max_wait`` of ``wait``."""

    run: Any = None
    """The run as it was last seen, a ``RunItem``."""


class _AnswerError(APIError):
    status_code: int = 0
    """The HTTP status."""
    headers: httpx.Headers
    """The headers of the answer."""
    text: str = ""
    """The body of the answer as it came."""
    request_id: str | None = None
    """The server's ID of the request, as in its log: ``trace_id``, or the header ``X-Request-Id``."""

    def __init__(
        self, message: str, *, status_code: int = 0, headers: httpx.Headers | None = None, text: str = ""
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.headers = httpx.Headers() if headers is None else headers
        self.text = text
        self.request_id = self.headers.get("x-request-id")


class APIResponseValidationError(_AnswerError):
    """The status is a success, but the body is unexpected."""


class APIStatusError(_AnswerError):
    """The server answered with a status that is not a success."""

    code: str | None = None
    """Kind of error, such as ``"resource_not_found"``; None when the answer was not the API's own."""
    title: str | None = None
    """Short text for the code."""
    detail: str | None = None
    """The exact problem."""
    retryable: bool = False
    """Whether the same request may succeed later."""
    errors: list[dict[str, str]]
    """The fields that were wrong, each with ``field`` and ``message``."""
    body: Any = None
    """The body as a JSON value; None when it is not JSON."""
    retry_after: float | None = None
    """The seconds after which the server asked to try again."""

    def __init__(
        self, message: str, *, status_code: int = 0, headers: httpx.Headers | None = None, text: str = ""
    ) -> None:
        super().__init__(message, status_code=status_code, headers=headers, text=text)
        self.errors = []


class BadRequestError(APIStatusError):
    """400: the request is wrong; ``errors`` names the fields."""


class AuthenticationError(APIStatusError):
    """401: the API key is missing, unknown, revoked or expired."""


class PermissionDeniedError(APIStatusError):
    """403: the role of the API key is too low."""


class NotFoundError(APIStatusError):
    """404: the resource does not exist."""


class ConflictError(APIStatusError):
    """409: the request contradicts the state."""


class PayloadTooLargeError(APIStatusError):
    """413: the request is too large."""


class UnprocessableEntityError(APIStatusError):
    """422: the resource does not support the operation."""


class RateLimitError(APIStatusError):
    """429: too many requests; wait for ``retry_after``."""


class InternalServerError(APIStatusError):
    """500 and above: the server failed."""


_CLASSES: dict[int, type[APIStatusError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    413: PayloadTooLargeError,
    422: UnprocessableEntityError,
    429: RateLimitError,
}


def status_error(
    status_code: int, headers: httpx.Headers, content: bytes, *, where: str, secrets: tuple[str, ...]
) -> APIStatusError:
    """Make the error for an error status. Never fails, whatever the body.

    ``where`` names the call. Values of ``secrets`` that the server echoed are removed.
    """
    text = without(content.decode("utf-8", "replace"), secrets)
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    problem = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    title, detail = _string(problem, "title"), _string(problem, "detail")
    said = _string(problem, "error") or title
    if said is None:
        said = f"an answer of type {headers.get('content-type', 'unknown')}, which is not the API's own"
        if 300 <= status_code < 400:
            said = "a redirect, which is not followed: check the base URL"
    kind = _CLASSES.get(status_code, InternalServerError if status_code >= 500 else APIStatusError)
    e = kind(
        without(f"{where}: {status_code}: {said}", secrets),
        status_code=status_code,
        headers=without_in(headers, secrets),
        text=text,
    )
    e.body, e.title, e.detail, e.code = body, title, detail, _string(problem, "code")
    e.retry_after = retry_after(headers)
    e.request_id = _string(problem, "trace_id") or e.request_id
    retryable = problem.get("retryable")
    e.retryable = (
        retryable if isinstance(retryable, bool) else status_code in (408, 429) or status_code >= 500
    )
    fields = problem.get("errors")
    for wrong in fields if isinstance(fields, list) else []:
        if isinstance(wrong, dict):
            e.errors.append({name: str(wrong.get(name, "")) for name in ("field", "message")})
    return e


def timed_out(where: str) -> APITimeoutError:
    """Make the error for a late answer."""
    return APITimeoutError(f"{where}: no complete answer in time")


def broken(where: str, url: str, cause: Exception, secrets: tuple[str, ...]) -> APIConnectionError:
    """Make the error for a failed or broken connection."""
    target = httpx.URL(url)
    said = (
        f"cannot reach {target.scheme}://{target.netloc.decode()}"
        if isinstance(cause, httpx.ConnectError)
        else "the connection broke"
    )
    return APIConnectionError(without(f"{where}: {said}: {str(cause) or type(cause).__name__}", secrets))


def without(text: str, secrets: tuple[str, ...]) -> str:
    """Return the text with every secret in it replaced by ``***``."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return text


def without_in(headers: httpx.Headers, secrets: tuple[str, ...]) -> httpx.Headers:
    """Return headers without secrets, since errors show them."""
    return httpx.Headers([(name, without(value, secrets)) for name, value in headers.multi_items()])


def _string(problem: dict[str, Any], name: str) -> str | None:
    value = problem.get(name)
    return value if isinstance(value, str) and value else None
