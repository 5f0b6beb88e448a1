"""Streams of server-sent events that go on after a dropped connection."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Generic, TypeVar

import httpx
from typing_extensions import Self

from .._errors import APIConnectionError, APIError, APIResponseValidationError, broken, timed_out
from .._request import Request
from .._response import Answer, failure
from .._sse import Decoder, ServerSentEvent, TooLongError
from ._transport import Transport

T = TypeVar("T")

SILENCE = 60.0
"""Seconds of silence, at the least, after which a stream counts as dropped. Servers break it more often."""

PATIENCE = 5
"""Reconnects in a row before the stream fails; an event resets the count."""


class EventStream(Generic[T]):
    """Events as they happen. After a lost connection the stream reconnects and resumes.

    Iterate over it, best inside of ``with``, which closes the connection when you leave early. The
    request is sent when the iteration begins.
    """

    headers: httpx.Headers | None = None
    """The headers of the answer to the newest connection; None before the first."""

    def __init__(
        self,
        transport: Transport,
        request: Request,
        read: Callable[[ServerSentEvent], T | None],
        ends: Callable[[T], bool | None],
        last_event_id: str | None = None,
    ) -> None:
        self._transport, self._request, self._read, self._ends = transport, request, read, ends
        self._decoder = Decoder(last_event_id)
        self._events = self._run()

    @property
    def last_event_id(self) -> str | None:
        """The ID from which another stream can resume."""
        return self._decoder.last_id

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        return next(self._events)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._events.close()

    def _run(self) -> Generator[T, None, None]:
        failures, complete = 0, False
        while True:
            error: APIError | None = None
            response = None
            try:
                response = self._connect()
                if response is None:
                    return
                self._decoder.reconnected()
                for chunk in response.iter_bytes():
                    for event in self._decoder.feed(chunk):
                        failures = 0
                        value = self._read(event)
                        if value is None:  # a repeat
                            continue
                        ends = self._ends(value)
                        complete = complete if ends is None else ends
                        yield value
                if complete:
                    return
                error = APIConnectionError(f"{self._request.where}: the stream ended too early")
            except APIError as e:
                error = e
            except TooLongError:
                raise APIResponseValidationError(
                    f"{self._request.where}: an event of the stream is too long"
                ) from None
            except httpx.TimeoutException:
                error = timed_out(self._request.where)
            except httpx.RequestError as e:
                error = broken(self._request.where, self._request.url, e, self._request.secrets)
            finally:
                if response is not None:
                    response.close()
            self._transport.pause(self._request, failures, error, at_least=self._decoder.retry)
            failures += 1

    def _connect(self) -> httpx.Response | None:
        """Open the stream where it stands; None when there is nothing more to come."""
        request = self._request
        headers = {**request.headers, "Accept": "text/event-stream", "Cache-Control": "no-store"}
        if self._decoder.last_id is not None:
            headers["Last-Event-ID"] = self._decoder.last_id
        response = self._transport.open(replace(request, headers=headers), _patient(request.timeout))
        self.headers = response.headers
        kind = response.headers.get("content-type", "")
        if response.status_code == 200 and kind.partition(";")[0].strip().lower() == "text/event-stream":
            return response
        try:
            content = self._transport.read(response, request, lambda: None)
        finally:
            response.close()
        if response.status_code == 204:
            return None
        answer = Answer(response.status_code, response.headers, content, 0, request.where, request.secrets)
        if 200 <= response.status_code < 300:
            raise APIResponseValidationError(
                f"{request.where}: {response.status_code} with {kind or 'no type'}: not a stream of events",
                status_code=response.status_code,
                headers=response.headers,
            )
        raise failure(answer)


def _patient(timeout: float | httpx.Timeout | None) -> httpx.Timeout:
    """A server sends signs of life on a stream, but less often than the timeout of a call may be."""
    if isinstance(timeout, httpx.Timeout):
        return timeout
    return httpx.Timeout(timeout, read=None if timeout is None else max(timeout, SILENCE))
