"""Workers."""

from __future__ import annotations

from functools import cached_property

from typing_extensions import Unpack

from .. import types
from ._caller import AsyncCaller
from ._io import AsyncPageRequest, raw
from .pagination import AsyncPage


class AsyncWorkersPage(AsyncPage["types.Worker", "types.ListWorkersResponse"]):
    """A page of workers."""

    model, member = "ListWorkersResponse", "workers"

    @property
    def workers(self) -> list[types.Worker]:
        """The workers of this page."""
        return self.items


class AsyncWorkers:
    """The processes that take runs."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncWorkersWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return AsyncWorkersWithRawResponse(self)

    def list(
        self, **params: Unpack[types.ListWorkersParams]
    ) -> AsyncPageRequest[AsyncWorkersPage, types.Worker]:
        """List the workers that were seen within a day."""
        return self._client.pages("/workers", params, AsyncWorkersPage, types.ListWorkersParams)


class AsyncWorkersWithRawResponse:
    """The processes that take runs, with whole responses."""

    def __init__(self, resource: AsyncWorkers) -> None:
        self.list = raw(resource.list)
