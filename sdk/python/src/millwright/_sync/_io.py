"""Where the synchronous half differs from the asynchronous one in more than words."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar, cast

from .._response import APIResponse

P = ParamSpec("P")
R = TypeVar("R")

sleep = time.sleep
clock = time.monotonic


@contextmanager
def deadline(seconds: float | None) -> Generator[Callable[[], None], None, None]:
    """Give a function that raises TimeoutError once the time is over. It is to be called between reads."""
    end = None if seconds is None else clock() + seconds

    def check() -> None:
        if end is not None and clock() >= end:
            raise TimeoutError

    yield check


def raw(method: Callable[P, R]) -> Callable[P, APIResponse[R]]:
    """Return the method of a resource so that it answers with the whole response."""
    resource: Any = method.__self__  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    twin = type(resource)(resource._client.raw)
    return cast("Callable[P, APIResponse[R]]", getattr(twin, method.__name__))
