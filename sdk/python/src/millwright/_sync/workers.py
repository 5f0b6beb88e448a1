"""Workers."""

from __future__ import annotations

from functools import cached_property

from typing_extensions import Unpack

from .. import types
from ._caller import Caller
from ._io import raw
from .pagination import Page


class WorkersPage(Page["types.Worker", "types.ListWorkersResponse"]):
    """A page of workers."""

    model, member = "ListWorkersResponse", "workers"

    @property
    def workers(self) -> list[types.Worker]:
        """The workers of this page."""
        return self.items


class Workers:
    """The processes that take runs."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> WorkersWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return WorkersWithRawResponse(self)

    def list(self, **params: Unpack[types.ListWorkersParams]) -> WorkersPage:
        """List the workers that were seen within a day."""
        return self._client.pages("/workers", params, WorkersPage, types.ListWorkersParams)


class WorkersWithRawResponse:
    """The processes that take runs, with whole responses."""

    def __init__(self, resource: Workers) -> None:
        self.list = raw(resource.list)
