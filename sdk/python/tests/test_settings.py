"""Settings of a client, and the errors of incomplete ones."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

import millwright
from millwright import AsyncMillwright, Millwright

from .conftest import KEY, Both
from .hostile import Hostile, answer

URL = "http://127.0.0.1:1/api/v1"


@pytest.mark.parametrize("client", [Millwright, AsyncMillwright])
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"base_url": URL}, "MILLWRIGHT_API_KEY"),
        ({"base_url": URL, "api_key": ""}, "MILLWRIGHT_API_KEY"),
        ({"base_url": URL, "api_key": " \n"}, "MILLWRIGHT_API_KEY"),
        ({"base_url": URL, "api_key": "mw_sec\u00e9ret"}, "MILLWRIGHT_API_KEY"),
        ({"base_url": URL, "api_key": "mw_two\r\nX-Lines: 1"}, "MILLWRIGHT_API_KEY"),
        ({"api_key": KEY}, "MILLWRIGHT_BASE_URL"),
        (
            {"api_key": KEY, "base_url": "http://host:1"},
            "must end in /api/v1: http://host:1/api/v1 in place of",
        ),
        ({"api_key": KEY, "base_url": "http://host/mill/"}, "http://host/mill/api/v1"),
        ({"api_key": KEY, "base_url": "http://host/api/v1/agent"}, "must end in /api/v1"),
        ({"api_key": KEY, "base_url": ""}, "MILLWRIGHT_BASE_URL"),
        ({"api_key": KEY, "base_url": "localhost:8080"}, "MILLWRIGHT_BASE_URL"),
        ({"api_key": KEY, "base_url": "ftp://host/api/v1"}, "MILLWRIGHT_BASE_URL"),
        ({"api_key": KEY, "base_url": "http://"}, "MILLWRIGHT_BASE_URL"),
        ({"api_key": KEY, "base_url": "http://user:hidden@host/api/v1"}, "MILLWRIGHT_BASE_URL"),
        ({"api_key": KEY, "base_url": "http://host/api/v1?key=hidden"}, "MILLWRIGHT_BASE_URL"),
        ({"api_key": KEY, "base_url": "http://[broken"}, "MILLWRIGHT_BASE_URL"),
        ({"api_key": KEY, "base_url": URL, "max_retries": -1}, "max_retries"),
        ({"api_key": KEY, "base_url": URL, "max_retries": 1.5}, "max_retries"),
    ],
)
def test_what_is_missing_or_wrong_is_named(client: Any, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(millwright.MillwrightError, match=said) as caught:
        client(**settings)
    for secret in (KEY, "hidden", "sec"):
        assert secret not in str(caught.value).replace("secret", "")


def test_the_environment(hostile: Hostile, both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile.play(answer(200, {}))
    monkeypatch.setenv("MILLWRIGHT_API_KEY", " mw_from_the_environment\n")
    monkeypatch.setenv("MILLWRIGHT_BASE_URL", hostile.base_url + "/")
    both(lambda c: c.get("/x"), api_key=None)
    both(lambda c: c.get("/x"))
    first, second = hostile.requests
    assert first.headers["authorization"] == "Bearer mw_from_the_environment"
    assert second.headers["authorization"] == f"Bearer {KEY}"
    assert first.path == "/api/v1/x"


@pytest.mark.parametrize("path", ["", "/", "/api/v1"])
def test_the_server_that_the_program_reads(
    path: str, hostile: Hostile, both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile.play(answer(200, {}))
    monkeypatch.setenv("MILLWRIGHT_API_KEY", KEY)
    monkeypatch.setenv("MILLWRIGHT_SERVER", hostile.base_url.removesuffix("/api/v1") + path)
    both(lambda c: c.get("/x"))
    assert {r.path for r in hostile.requests} == {"/api/v1/x"}


def test_options_change_a_copy(hostile: Hostile, both: Both) -> None:
    hostile.play(answer(200, {}))

    def call(client: Any) -> Any:
        other = client.with_options(api_key="mw_other", default_headers={"x-b": "2"}, timeout=5)
        assert type(other) is type(client)
        assert client._client.settings.timeout == 60
        assert other._client.settings.timeout == 5
        return other.get("/x")

    both(call, base_url=hostile.base_url, default_headers={"x-a": "1"})
    sent = hostile.requests[0].headers
    assert (sent["authorization"], sent["x-a"], sent["x-b"]) == ("Bearer mw_other", "1", "2")


def test_an_http_client_of_ones_own_stays_open(hostile: Hostile) -> None:
    hostile.play(answer(200, {"a": 1}))
    with httpx.Client(auth=("user", "password"), headers={"x-mine": "yes"}, follow_redirects=True) as http:
        with Millwright(api_key=KEY, base_url=hostile.base_url, http_client=http) as client:
            assert client.get("/x") == {"a": 1}
        assert not http.is_closed
    assert hostile.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert hostile.requests[0].headers["x-mine"] == "yes"


def test_both_clients_have_the_same_surface() -> None:
    def surface(resource: Any, seen: tuple[str, ...] = ()) -> set[str]:
        found = set()
        for name in dir(resource):
            if name.startswith("_"):
                continue
            value = getattr(resource, name)
            if callable(value):
                found.add(".".join((*seen, name)))
            elif type(value).__module__.startswith("millwright._"):
                found |= surface(value, (*seen, name))
        return found

    one, other = Millwright(api_key=KEY, base_url=URL), AsyncMillwright(api_key=KEY, base_url=URL)
    names = surface(one)
    assert names == surface(other)
    assert len(names) > 60
    for name in names:
        resource, _, method = name.rpartition(".")
        streams_or_waits = method in ("events", "stream", "wait", "with_options", "close")
        if "with_raw_response" not in name and not streams_or_waits:
            raw = f"{resource}.with_raw_response.{method}".lstrip(".")
            assert raw in names, f"{name} has no raw form"
    one.close()
