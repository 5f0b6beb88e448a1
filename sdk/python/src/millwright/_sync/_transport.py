"""Sending a request until it is answered, or not worth another attempt."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from .. import _retry
from .._errors import (
    APIConnectionError,
    APIError,
    APIResponseValidationError,
    APIStatusError,
    broken,
    timed_out,
)
from .._request import Request
from .._response import Answer, failure
from ._io import deadline, sleep

LONGEST_BODY = 64 << 20
"""How many bytes of an answer are read."""


class Transport:
    """Sends requests over an httpx client."""

    def __init__(self, http: httpx.Client, *, owned: bool) -> None:
        self._http, self._owned = http, owned

    def close(self) -> None:
        """Close the connections, unless they belong to somebody else's httpx client."""
        if self._owned:
            self._http.close()

    def send(self, request: Request) -> Answer:
        """Return the answer when it is a success, after as many attempts as are allowed."""
        attempt = 0
        while True:
            error: APIError
            try:
                answer = self._attempt(request, attempt)
            except APIConnectionError as e:
                error = e
            else:
                if 200 <= answer.status_code < 300:
                    return answer
                error = failure(answer)
            self.pause(request, attempt, error)
            attempt += 1

    def pause(self, request: Request, attempt: int, error: APIError, at_least: float | None = None) -> None:
        """Wait until the next attempt makes sense, or raise the error when none does."""
        asked = at_least
        if isinstance(error, APIStatusError):
            asked = at_least if error.retry_after is None else error.retry_after
            if not _retry.is_worth_retrying(error.status_code, error.headers):
                raise error
        elif not isinstance(error, APIConnectionError):
            raise error
        wait = _retry.delay(attempt, asked)
        if attempt >= request.max_retries or wait is None:
            raise error
        sleep(wait)

    def _attempt(self, request: Request, attempt: int) -> Answer:
        seconds = request.timeout if isinstance(request.timeout, (int, float)) else None
        error: APIError
        try:
            with deadline(seconds) as check:
                response = self._send(request, request.timeout)
                try:
                    content = self.read(response, request, check)
                finally:
                    response.close()
            return Answer(
                response.status_code, response.headers, content, attempt, request.where, request.secrets
            )
        except (httpx.TimeoutException, TimeoutError):
            error = timed_out(request.where)
        except httpx.RequestError as e:
            error = broken(request.where, request.url, e, request.secrets)
        raise error  # outside of the handlers: what httpx raised holds the request, and with it the key

    def read(self, response: httpx.Response, request: Request, check: Callable[[], None]) -> bytes:
        """Read the body of a response, at most so much of it as makes sense."""
        chunks: list[bytes] = []
        size = 0
        for chunk in response.iter_bytes():
            check()
            size += len(chunk)
            if size > LONGEST_BODY:
                raise APIResponseValidationError(
                    f"{request.where}: {response.status_code}: the body is longer than {LONGEST_BODY} bytes",
                    status_code=response.status_code,
                    headers=response.headers,
                )
            chunks.append(chunk)
        return b"".join(chunks)

    def open(self, request: Request, timeout: httpx.Timeout) -> httpx.Response:
        """Return a response whose body is still to come, after one attempt. The caller closes it."""
        error: APIError
        try:
            return self._send(request, timeout)
        except httpx.TimeoutException:
            error = timed_out(request.where)
        except httpx.RequestError as e:
            error = broken(request.where, request.url, e, request.secrets)
        raise error

    def _send(self, request: Request, timeout: float | httpx.Timeout | None) -> httpx.Response:
        headers = dict(request.headers)
        if request.sign is not None:
            headers.update(request.sign())
        built = self._http.build_request(
            request.method, request.url, content=request.content, headers=headers, timeout=timeout
        )
        return self._http.send(built, stream=True, auth=None, follow_redirects=False)
