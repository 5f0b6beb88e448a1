"""The connection of a resource to the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar, cast

from .._options import RequestOptions, split
from .._request import Request, build
from .._response import Answer, APIResponse, parse
from .._settings import Settings
from .._sse import ServerSentEvent
from ._io import AsyncPageRequest
from ._stream import PATIENCE, AsyncEventStream
from ._transport import AsyncTransport
from .pagination import AsyncPage

T = TypeVar("T")
PageT = TypeVar("PageT", bound=AsyncPage[Any, Any])


class AsyncCaller:
    """Makes requests of what a method was given, and values of the answers."""

    def __init__(self, settings: Settings, transport: AsyncTransport, *, whole: bool = False) -> None:
        self.settings: Settings = settings
        self.transport: AsyncTransport = transport
        self._whole = whole

    @cached_property
    def raw(self) -> AsyncCaller:
        """A caller whose answers are whole responses: what it returns is an APIResponse in truth."""
        return AsyncCaller(self.settings, self.transport, whole=True)

    def request(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any],
        takes: type[Any] | None = None,
        *,
        query: type[Any] | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> Request:
        """Make the request of a method that takes the members of a typed dictionary, and options.

        Its own parameters are the query of a GET or DELETE. Else they are the members of the body, but for
        those that ``query`` has.
        """
        own, options = split(params, takes, f"{method} {path}")
        asked = own if query is None and method in ("GET", "DELETE") else {}
        if query is not None:
            asked = {name: value for name, value in own.items() if name in query.__annotations__}
        body = {name: value for name, value in own.items() if name not in asked} or None
        return build(
            self.settings,
            method,
            path,
            query=asked,
            body=body,
            content=content,
            headers=headers,
            options=options,
        )

    async def send(self, request: Request, to: type[T]) -> T:
        """Send a request and return its answer as a value of a type, or whole."""
        return self._result(await self.transport.send(request), lambda answer: parse(answer, to))

    async def call(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any],
        to: type[T],
        takes: type[Any] | None = None,
        query: type[Any] | None = None,
    ) -> T:
        """Make a request, send it, and return its answer as a value of a type, or whole."""
        return await self.send(self.request(method, path, params, takes, query=query), to)

    def pages(
        self, path: str, params: Mapping[str, Any], page: type[PageT], takes: type[Any]
    ) -> AsyncPageRequest[PageT, Any]:
        """Ask for a list. Its answer is the first page, which fetches the ones after it."""
        request = self.request("GET", path, params, takes)

        def read(answer: Answer) -> PageT:
            return page.read(answer, request, self.transport)

        async def fetch() -> PageT:
            return self._result(await self.transport.send(request), read)

        return AsyncPageRequest(fetch)

    def events(
        self,
        path: str,
        options: RequestOptions,
        read: Callable[[ServerSentEvent], T | None],
        ends: Callable[[T], bool | None],
        last_event_id: str | None,
    ) -> AsyncEventStream[T]:
        """Ask for a stream, which is more patient than a call unless it is told how often to try."""
        request = self.request("GET", path, options)
        if "max_retries" not in options:
            request = replace(request, max_retries=max(request.max_retries, PATIENCE))
        return AsyncEventStream(self.transport, request, read, ends, last_event_id)

    def _result(self, answer: Answer, read: Callable[[Answer], T]) -> T:
        return cast("T", APIResponse(answer, read)) if self._whole else read(answer)
