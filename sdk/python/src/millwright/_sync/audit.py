"""The audit log."""

from __future__ import annotations

from functools import cached_property

from typing_extensions import Unpack

from .. import types
from ._caller import Caller
from ._io import raw
from .pagination import Page


class AuditPage(Page["types.AuditEntry", "types.ListAuditResponse"]):
    """A page of the audit log."""

    model, member = "ListAuditResponse", "entries"

    @property
    def entries(self) -> list[types.AuditEntry]:
        """The changes of this page."""
        return self.items


class Audit:
    """Who changed what."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AuditWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return AuditWithRawResponse(self)

    def list(self, **params: Unpack[types.ListAuditParams]) -> AuditPage:
        """List the changes, newest first; needs the role admin."""
        return self._client.pages("/audit", params, AuditPage, types.ListAuditParams)


class AuditWithRawResponse:
    """Who changed what, with whole responses."""

    def __init__(self, resource: Audit) -> None:
        self.list = raw(resource.list)
