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
from ._stream import PATIENCE, EventStream
from ._transport import Transport
from .pagination import Page

T = TypeVar("T")
PageT = TypeVar("PageT", bound=Page[Any, Any])


class Caller:
    """Makes requests of what a method was given, and values of the answers."""

    def __init__(self, settings: Settings, transport: Transport, *, whole: bool = False) -> None:
        self.settings: Settings = settings
        self.transport: Transport = transport
        self._whole = whole

    @cached_property
    def raw(self) -> Caller:
        """A caller whose answers are whole responses: what it returns is an APIResponse in truth."""
        return Caller(self.settings, self.transport, whole=True)

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

    def send(self, request: Request, to: type[T]) -> T:
        """Send a request and return its answer as a value of a type, or whole."""
        return self._result(self.transport.send(request), lambda answer: parse(answer, to))

    def call(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any],
        to: type[T],
        takes: type[Any] | None = None,
        query: type[Any] | None = None,
    ) -> T:
        """Make a request, send it, and return its answer as a value of a type, or whole."""
        return self.send(self.request(method, path, params, takes, query=query), to)

    def pages(self, path: str, params: Mapping[str, Any], page: type[PageT], takes: type[Any]) -> PageT:
        """Ask for a list. Its answer is the first page, which fetches the ones after it."""
        request = self.request("GET", path, params, takes)

        def read(answer: Answer) -> PageT:
            return page.read(answer, request, self.transport)

        def fetch() -> PageT:
            return self._result(self.transport.send(request), read)

        return fetch()

    def events(
        self,
        path: str,
        options: RequestOptions,
        read: Callable[[ServerSentEvent], T | None],
        ends: Callable[[T], bool | None],
        last_event_id: str | None,
    ) -> EventStream[T]:
        """Ask for a stream, which is more patient than a call unless it is told how often to try."""
        request = self.request("GET", path, options)
        if "max_retries" not in options:
            request = replace(request, max_retries=max(request.max_retries, PATIENCE))
        return EventStream(self.transport, request, read, ends, last_event_id)

    def _result(self, answer: Answer, read: Callable[[Answer], T]) -> T:
        return cast("T", APIResponse(answer, read)) if self._whole else read(answer)
