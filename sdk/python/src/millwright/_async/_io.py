"""Where the asynchronous half differs from the synchronous one in more than words."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

import anyio

from .._response import APIResponse

if TYPE_CHECKING:
    from .pagination import AsyncPage

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")
PageT = TypeVar("PageT", bound="AsyncPage[Any, Any]")

sleep = anyio.sleep
clock = time.monotonic


@contextmanager
def deadline(seconds: float | None) -> Generator[Callable[[], None], None, None]:
    """Raise TimeoutError if the block takes longer. Call the yielded value between reads."""
    with anyio.fail_after(seconds):
        yield lambda: None


class AsyncPageRequest(Generic[PageT, T]):
    """A list: ``await`` it for its first page, or iterate over the items of all pages."""

    def __init__(self, fetch: Callable[[], Awaitable[PageT]]) -> None:
        self._fetch = fetch

    def __await__(self) -> Generator[Any, None, PageT]:
        return self._fetch().__await__()

    async def __aiter__(self) -> AsyncIterator[T]:
        async for item in await self._fetch():
            yield item


def raw(method: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[APIResponse[R]]]:
    """Return the method of a resource so that it answers with the whole response."""
    resource: Any = method.__self__  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    twin = type(resource)(resource._client.raw)
    return cast("Callable[P, Awaitable[APIResponse[R]]]", getattr(twin, method.__name__))
