"""Lists that come in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

import httpx
from typing_extensions import Self

from .. import types
from .._errors import MillwrightError
from .._request import Request
from .._response import Answer, parse

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ._transport import AsyncTransport

T = TypeVar("T")
R = TypeVar("R", bound="BaseModel")


class AsyncPage(Generic[T, R]):
    """One page of a list. Iterating over it continues through all later pages."""

    model: ClassVar[str]
    """The name of the answer's model."""
    member: ClassVar[str]
    """The member of the answer that is the list."""

    response: R
    """The answer behind this page."""

    def __init__(self, response: R, request: Request, transport: AsyncTransport) -> None:
        self.response, self._request, self._transport = response, request, transport

    @classmethod
    def read(cls, answer: Answer, request: Request, transport: AsyncTransport) -> Self:
        """Make a page of an answer."""
        return cls(parse(answer, getattr(types, cls.model)), request, transport)

    @property
    def items(self) -> list[T]:
        """The items of this page."""
        return cast("list[T]", getattr(self.response, self.member) or [])

    @property
    def page_info(self) -> types.PageInfo:
        """Whether there is a next page, and its cursor."""
        return cast("types.PageInfo", getattr(self.response, "page_info"))  # noqa: B009

    def has_next_page(self) -> bool:
        """Say whether there is a page after this one."""
        info = cast("types.PageInfo | None", self.page_info)
        return info is not None and bool(info.has_next_page and info.next_cursor)

    async def get_next_page(self) -> Self:
        """Fetch the page after this one. There must be one: see has_next_page."""
        if not self.has_next_page():
            raise MillwrightError("this is the last page: call has_next_page first")
        cursor, url = self.page_info.next_cursor, httpx.URL(self._request.url)
        if url.params.get("cursor") == cursor:
            raise MillwrightError(
                f"{self._request.where}: the server gave the same cursor twice, so that the list would never end"
            )
        request = replace(self._request, url=str(url.copy_set_param("cursor", cursor)))
        return self.read(await self._transport.send(request), request, self._transport)

    async def iter_pages(self) -> AsyncIterator[Self]:
        """Iterate over this page and all after it."""
        page = self
        yield page
        while page.has_next_page():
            page = await page.get_next_page()
            yield page

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.iter_pages():
            for item in page.items:
                yield item

    def __len__(self) -> int:
        """How many items this page has."""
        return len(self.items)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)}, has_next_page={self.has_next_page()}>"
