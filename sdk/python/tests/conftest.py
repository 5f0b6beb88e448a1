"""What the tests share: a hostile server, and both clients behind one face."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import pytest

from millwright import AsyncMillwright, Millwright, _retry

from .hostile import Hostile

KEY = "mw_0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ("MILLWRIGHT_API_KEY", "MILLWRIGHT_BASE_URL", "MILLWRIGHT_SERVER")
    for name in (*ours, "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hostile]:
    """A hostile server, and retries that come at once."""
    monkeypatch.setattr(_retry, "FIRST_DELAY", 0.001)
    server = Hostile()
    yield server
    server.close()


class Both:
    """Runs the same call on the synchronous or on the asynchronous client."""

    def __init__(self, flavour: str) -> None:
        self.flavour = flavour

    def __call__(self, call: Callable[[Any], Any], **settings: Any) -> Any:
        """Make a client, give it to the call, and return what the call returns, awaited."""
        settings = {"api_key": KEY, **settings}
        if self.flavour == "sync":
            with Millwright(**settings) as client:
                return call(client)

        async def run() -> Any:
            async with AsyncMillwright(**settings) as client:
                return await self.settled(call(client))

        return anyio.run(run, backend=self.flavour)

    async def settled(self, value: Any) -> Any:
        return await value if isinstance(value, Awaitable) else value

    def collect(self, call: Callable[[Any], Any], **settings: Any) -> list[Any]:
        """As a call, of what is iterated over."""
        if self.flavour == "sync":
            return self(lambda c: list(call(c)), **settings)

        async def items(client: Any) -> list[Any]:
            return [item async for item in call(client)]

        return self(items, **settings)


@pytest.fixture(params=["sync", "asyncio", "trio"])
def both(request: pytest.FixtureRequest) -> Both:
    return Both(request.param)
