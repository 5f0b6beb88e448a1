"""The client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import Any, cast

import httpx
from typing_extensions import Self, TypeVar, Unpack

from .._options import ClientOptions, RequestOptions
from .._request import build
from .._retry import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT
from .._settings import Settings, certificates, checked_retries, resolve_base_url, resolve_key
from ._caller import AsyncCaller
from ._io import raw
from ._transport import AsyncTransport
from .agent import AsyncAgent
from .audit import AsyncAudit
from .factories import AsyncFactories
from .factory_files import AsyncFactoryFiles
from .keys import AsyncKeys
from .secrets import AsyncSecrets
from .workers import AsyncWorkers

T = TypeVar("T", default=Any)

CONNECTIONS = httpx.Limits(max_connections=100, max_keepalive_connections=20)


class AsyncEndpoints:
    """Calls of any path below the base URL, for endpoints that this version does not know.

    ``to`` is the type that the answer is read as: a model, ``bytes`` for the body as it is, or anything
    that pydantic knows; by default any JSON. A body is sent as JSON, and ``bytes`` as they are.
    """

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    async def get(
        self,
        path: str,
        *,
        to: type[T] | None = None,
        query: Mapping[str, Any] | None = None,
        **options: Unpack[RequestOptions],
    ) -> T:
        """Send a GET."""
        return await self._send("GET", path, to, query, None, options)

    async def post(
        self,
        path: str,
        *,
        to: type[T] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        **options: Unpack[RequestOptions],
    ) -> T:
        """Send a POST. Its retries carry the same idempotency key."""
        return await self._send("POST", path, to, query, body, options)

    async def put(
        self,
        path: str,
        *,
        to: type[T] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        **options: Unpack[RequestOptions],
    ) -> T:
        """Send a PUT."""
        return await self._send("PUT", path, to, query, body, options)

    async def patch(
        self,
        path: str,
        *,
        to: type[T] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        **options: Unpack[RequestOptions],
    ) -> T:
        """Send a PATCH."""
        return await self._send("PATCH", path, to, query, body, options)

    async def delete(
        self,
        path: str,
        *,
        to: type[T] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        **options: Unpack[RequestOptions],
    ) -> T:
        """Send a DELETE."""
        return await self._send("DELETE", path, to, query, body, options)

    async def _send(
        self,
        method: str,
        path: str,
        to: type[T] | None,
        query: Mapping[str, Any] | None,
        body: Any,
        options: RequestOptions,
    ) -> T:
        content = body if isinstance(body, bytes) else None
        body = None if content is not None else body
        request = build(
            self._client.settings, method, path, query=query, body=body, content=content, options=options
        )
        return await self._client.send(request, cast("type[T]", Any) if to is None else to)


class AsyncEndpointsWithRawResponse:
    """Calls of any path, with whole responses."""

    def __init__(self, resource: AsyncEndpoints) -> None:
        self.get = raw(resource.get)
        self.post = raw(resource.post)
        self.put = raw(resource.put)
        self.patch = raw(resource.patch)
        self.delete = raw(resource.delete)


class AsyncMillwright(AsyncEndpoints):
    """The client of a millwright server.

    The API key and the base URL, which ends in ``/api/v1``, come from the arguments or else from the
    environment variables MILLWRIGHT_API_KEY and MILLWRIGHT_BASE_URL; without them this is a
    MillwrightError. ``timeout`` is in seconds and holds for one attempt, its answer included; None is no
    limit. ``max_retries`` is how often a call is tried again. ``http_client`` is an httpx client of your
    own, for proxies and certificates; it stays yours to close.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float | httpx.Timeout | None = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_MAX_RETRIES,
        default_headers: Mapping[str, str] | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        settings = Settings(
            base_url=resolve_base_url(base_url),
            api_key=resolve_key(api_key),
            timeout=timeout,
            max_retries=checked_retries(max_retries),
            default_headers=dict(default_headers or {}),
        )
        http = http_client or httpx.AsyncClient(limits=CONNECTIONS, verify=certificates())
        super().__init__(AsyncCaller(settings, AsyncTransport(http, owned=http_client is None)))

    @cached_property
    def agent(self) -> AsyncAgent:
        """Agents: their runs, conversations and skills."""
        return AsyncAgent(self._client)

    @cached_property
    def factories(self) -> AsyncFactories:
        """Factories, and their runs, webhooks, deliveries and definition files."""
        return AsyncFactories(self._client)

    @cached_property
    def secrets(self) -> AsyncSecrets:
        """Team secrets. The API accepts their values and never returns them."""
        return AsyncSecrets(self._client)

    @cached_property
    def keys(self) -> AsyncKeys:
        """API keys."""
        return AsyncKeys(self._client)

    @cached_property
    def audit(self) -> AsyncAudit:
        """Who changed what."""
        return AsyncAudit(self._client)

    @cached_property
    def workers(self) -> AsyncWorkers:
        """The processes that take runs."""
        return AsyncWorkers(self._client)

    @cached_property
    def factory_files(self) -> AsyncFactoryFiles:
        """Definition files, checked without a factory."""
        return AsyncFactoryFiles(self._client)

    @cached_property
    def with_raw_response(self) -> AsyncEndpointsWithRawResponse:
        """Calls of any path, answering with headers, status and body."""
        return AsyncEndpointsWithRawResponse(AsyncEndpoints(self._client))

    @property
    def base_url(self) -> str:
        """The base URL of the API."""
        return self._client.settings.base_url

    def with_options(self, **options: Unpack[ClientOptions]) -> Self:
        """Return a client with some settings changed, on the same connections."""
        changed: dict[str, Any] = dict(options)
        if "api_key" in changed:
            changed["api_key"] = resolve_key(changed["api_key"])
        if "max_retries" in changed:
            changed["max_retries"] = checked_retries(changed["max_retries"])
        if "default_headers" in changed:
            changed["default_headers"] = {
                **self._client.settings.default_headers,
                **changed["default_headers"],
            }
        twin = object.__new__(type(self))
        AsyncEndpoints.__init__(
            twin, AsyncCaller(replace(self._client.settings, **changed), self._client.transport)
        )
        return twin

    async def close(self) -> None:
        """Close the connections."""
        await self._client.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.base_url}>"
