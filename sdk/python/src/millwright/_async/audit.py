"""The audit log."""

from __future__ import annotations

from functools import cached_property

from typing_extensions import Unpack

from .. import types
from ._caller import AsyncCaller
from ._io import AsyncPageRequest, raw
from .pagination import AsyncPage


class AsyncAuditPage(AsyncPage["types.AuditEntry", "types.ListAuditResponse"]):
    """A page of the audit log."""

    model, member = "ListAuditResponse", "entries"

    @property
    def entries(self) -> list[types.AuditEntry]:
        """The changes of this page."""
        return self.items


class AsyncAudit:
    """Who changed what."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncAuditWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return AsyncAuditWithRawResponse(self)

    def list(
        self, **params: Unpack[types.ListAuditParams]
    ) -> AsyncPageRequest[AsyncAuditPage, types.AuditEntry]:
        """List the changes, newest first; needs the role admin."""
        return self._client.pages("/audit", params, AsyncAuditPage, types.ListAuditParams)


class AsyncAuditWithRawResponse:
    """Who changed what, with whole responses."""

    def __init__(self, resource: AsyncAudit) -> None:
        self.list = raw(resource.list)
