"""Paging, streams that go on, and waiting, against a server that misbehaves."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import millwright
from millwright import types as t

from .conftest import KEY, Both
from .hostile import Behaviour, Connection, Hostile, answer, hang, problem, raw, reset
from .test_transport import RUN


def page(*names: str, after: str = "", more: bool | None = None) -> Behaviour:
    runs = [{**RUN, "run_id": name} for name in names]
    return answer(
        200,
        {
            "runs": runs,
            "page_info": {"has_next_page": bool(after) if more is None else more, "next_cursor": after},
        },
    )


def test_all_pages(hostile: Hostile, both: Both) -> None:
    hostile.play(
        page("a", "b", after="c1"), problem(500, "x"), page("c", after="c/2 &"), page(), page("never")
    )
    found = both.collect(
        lambda c: c.agent.runs.list(limit=2, state=["QUEUED", "FAILED"], metadata={"k": "v w"}),
        base_url=hostile.base_url,
    )
    assert [r.run_id for r in found] == ["a", "b", "c"]
    assert all(isinstance(r, t.RunItem) for r in found)
    query = "limit=2&state=QUEUED&state=FAILED&metadata%5Bk%5D=v+w"
    assert [r.path.removeprefix("/api/v1/agent/runs?") for r in hostile.requests] == [
        query, f"{query}&cursor=c1", f"{query}&cursor=c1", f"{query}&cursor=c%2F2+%26",
    ]  # fmt: skip


def test_page_by_page(hostile: Hostile, both: Both) -> None:
    hostile.play(page("a", after="1"), page("b", after="2"), page("c"))

    def shown(p: Any) -> tuple[list[str], bool, int]:
        assert isinstance(p.response, t.ListRunsResponse)
        assert p.runs == p.items == p.response.runs
        assert bool(p)
        return [r.run_id for r in p.runs], p.has_next_page(), len(p)

    def one(client: Any) -> Any:
        first = client.agent.runs.list()
        second = first.get_next_page()
        return [shown(p) for p in (first, *second.iter_pages())]

    async def other(client: Any) -> Any:
        first = await client.agent.runs.list()
        second = await first.get_next_page()
        return [shown(first)] + [shown(p) async for p in second.iter_pages()]

    pages = both(one if both.flavour == "sync" else other, base_url=hostile.base_url)
    assert pages == [(["a"], True, 1), (["b"], True, 1), (["c"], False, 1)]


def test_a_list_that_would_never_end(hostile: Hostile, both: Both) -> None:
    hostile.play(page("a", after="same"))
    with pytest.raises(millwright.MillwrightError, match="same cursor"):
        both.collect(lambda c: c.agent.runs.list(), base_url=hostile.base_url)
    assert len(hostile.requests) == 2


@pytest.mark.parametrize("last", [page("a", more=True), answer(200, {"runs": [{**RUN, "run_id": "a"}]})])
def test_a_list_without_a_cursor_ends(hostile: Hostile, both: Both, last: Behaviour) -> None:
    hostile.play(last)
    found = both.collect(lambda c: c.agent.runs.list(), base_url=hostile.base_url)
    assert [r.run_id for r in found] == ["a"]


def test_there_is_no_page_after_the_last(hostile: Hostile) -> None:
    hostile.play(page("a"))
    with millwright.Millwright(api_key=KEY, base_url=hostile.base_url) as client:
        with pytest.raises(millwright.MillwrightError, match="last page"):
            client.agent.runs.list().get_next_page()
        assert "of 1" in repr(client.agent.runs.list())


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n"


def state(id: int, name: str) -> bytes:
    data = f'{{"run_id": "r", "state": "{name}", "execution": 1, "attempt": 1, "timestamp": "2026-01-02T03:04:05Z"}}'
    return f"id: {id}\nevent: state\ndata: {data}\n\n".encode()


def said(id: int, text: str) -> bytes:
    data = f'{{"role": "assistant", "content": [{{"type": "text", "text": "{text}"}}], "timestamp": "2026-01-02T03:04:05Z"}}'
    return f"id: {id}\nevent: message\ndata: {data}\n\n".encode()


def short(event: millwright.RunEvent) -> str:
    if event.state:
        return f"{event.id} {event.state.state}"
    if event.message:
        return f"{event.id} {event.message.content[0].text}"
    return f"{event.id} {event.event} {event.data}"


def test_a_stream_goes_on_after_a_dropped_connection(hostile: Hostile, both: Both) -> None:
    hostile.play(
        problem(503, "resource_unavailable"),
        raw(
            HEAD
            + b": hello\n\n"
            + state(0, "QUEUED")
            + said(3, "one")
            + b"id: 4\nevent: message\ndata: {half"
        ),
        reset(),
        reset(HEAD),
        raw(HEAD + b"retry: 1\n\n" + said(4, "two") + b'id: 5\nevent: weather\ndata: {"sun": true}\n\n'),
        raw(HEAD + state(6, "SUCCEEDED") + said(7, "a last word")),
    )
    found = both.collect(lambda c: c.agent.runs.events("r"), base_url=hostile.base_url)
    assert [short(e) for e in found] == [
        "0 QUEUED",
        "3 one",
        "4 two",
        "5 weather {'sun': True}",
        "6 SUCCEEDED",
        "7 a last word",
    ]
    resumed = [r.headers.get("last-event-id") for r in hostile.requests]
    assert resumed == [None, None, "3", "3", "3", "5"]
    assert {r.headers["accept"] for r in hostile.requests} == {"text/event-stream"}


def accepted(id: str) -> bytes:
    return f'id: {id}\nevent: delivery\ndata: {{"delivery_id": "{id}", "outcome": "accepted"}}\n\n'.encode()


def test_deliveries_are_followed_and_none_is_repeated(hostile: Hostile, both: Both) -> None:
    listening = b"id: d0\nevent: listening\ndata: {}\n\n"
    hostile.play(
        raw(HEAD + listening + accepted("d1") + accepted("d2")),
        raw(HEAD + b"event: listening\ndata: {}\n\n" + accepted("d1") + accepted("d2") + accepted("d3")),
        raw(HEAD + b'event: weather\ndata: {"sun": true}\n\n' + accepted("d3") + accepted("d4")),
        answer(204, kind=""),
    )
    found = both.collect(
        lambda c: c.factories.webhooks.deliveries.events("f", "w"), base_url=hostile.base_url
    )
    said = [e.delivery.delivery_id if e.delivery else f"{e.event} {e.data}" for e in found]
    assert said == ["listening {}", "d1", "d2", "listening {}", "d3", "weather {'sun': True}", "d4"]
    assert [r.headers.get("last-event-id") for r in hostile.requests] == [None, "d2", "d3", "d4"]
    hostile.play(raw(HEAD + b"event: delivery\ndata: [1]\n\n"))
    with pytest.raises(millwright.APIResponseValidationError):
        both.collect(lambda c: c.factories.webhooks.deliveries.stream("f", "w"), base_url=hostile.base_url)


def test_a_stream_that_is_resumed_at_its_end(hostile: Hostile, both: Both) -> None:
    hostile.play(answer(204, b"", ""))
    assert (
        both.collect(lambda c: c.agent.runs.stream("r", last_event_id="9"), base_url=hostile.base_url) == []
    )
    assert hostile.requests[0].headers["last-event-id"] == "9"


def test_a_run_that_goes_on_after_it_ended(hostile: Hostile, both: Both) -> None:
    hostile.play(raw(HEAD + state(1, "SUCCEEDED") + state(2, "QUEUED")), answer(204, b"", ""))
    found = both.collect(lambda c: c.agent.runs.events("r"), base_url=hostile.base_url)
    assert [short(e) for e in found] == ["1 SUCCEEDED", "2 QUEUED"]
    assert len(hostile.requests) == 2, "the end of the connection was not the end of the run"


def test_a_stream_that_only_drops_fails(hostile: Hostile, both: Both) -> None:
    hostile.play(raw(HEAD))
    with pytest.raises(millwright.APIConnectionError, match="too early"):
        both.collect(lambda c: c.agent.runs.events("r", max_retries=3), base_url=hostile.base_url)
    assert len(hostile.requests) == 4


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (problem(404, "resource_not_found"), millwright.NotFoundError),
        (problem(401, "authentication_required"), millwright.AuthenticationError),
        (answer(200, b"<html>", "text/html"), millwright.APIResponseValidationError),
        (raw(HEAD + b"event: state\ndata: {half\n\n"), millwright.APIResponseValidationError),
        (raw(HEAD + b"event: state\ndata: [1]\n\n"), millwright.APIResponseValidationError),
        (raw(HEAD + b"event: new\ndata: " + b"[" * 100_000 + b"\n\n"), millwright.APIResponseValidationError),
    ],
)
def test_what_is_no_stream(hostile: Hostile, both: Both, bad: Behaviour, kind: type[Exception]) -> None:
    hostile.play(bad)
    with pytest.raises(kind):
        both.collect(lambda c: c.agent.runs.events("r"), base_url=hostile.base_url)
    assert len(hostile.requests) == 1


def test_a_flood_without_a_line_end(hostile: Hostile, both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millwright._sse.LONGEST_EVENT", 100_000)
    hostile.play(raw(HEAD + b"data: " + b"x" * 400_000))
    with pytest.raises(millwright.APIResponseValidationError, match="too long"):
        both.collect(lambda c: c.agent.runs.events("r"), base_url=hostile.base_url)


def test_a_stream_falls_silent(hostile: Hostile, both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    for half in ("_sync", "_async"):
        monkeypatch.setattr(f"millwright.{half}._stream.SILENCE", 1)
    hostile.play(hang(HEAD + state(0, "QUEUED")), raw(HEAD + state(1, "FAILED")))
    found = both.collect(lambda c: c.agent.runs.events("r", timeout=1), base_url=hostile.base_url)
    assert [short(e) for e in found] == ["0 QUEUED", "1 FAILED"]


def test_a_stream_left_early_is_closed(hostile: Hostile, both: Both) -> None:
    gone: list[bool] = []

    def watch(c: Connection) -> None:
        c.send(HEAD + state(0, "QUEUED"))
        gone.append(c.socket.recv(1) == b"")

    hostile.play(watch)

    def one(client: Any) -> Any:
        with client.agent.runs.events("r") as stream:
            for event in stream:
                return short(event), stream.last_event_id, stream.headers["content-type"]
        return None

    async def other(client: Any) -> Any:
        async with client.agent.runs.events("r") as stream:
            async for event in stream:
                return short(event), stream.last_event_id, stream.headers["content-type"]
        return None

    seen = both(one if both.flavour == "sync" else other, base_url=hostile.base_url)
    assert seen == ("0 QUEUED", "0", "text/event-stream; charset=utf-8")
    hostile.close()
    assert gone == [True]


def seen_as(*states: str) -> list[Behaviour]:
    return [answer(200, {**RUN, "state": s}) for s in states]


def test_waiting(hostile: Hostile, both: Both) -> None:
    for end in millwright.ENDED_STATES:
        hostile.requests.clear()
        hostile.play(*seen_as("QUEUED", "CLAIMED", "INPROGRESS", "SOMETHING_NEW", end))
        run = both(lambda c: c.agent.runs.wait("r", longest_interval=0.001), base_url=hostile.base_url)
        assert run.state == end
        assert len(hostile.requests) == 5


def test_waiting_for_a_state_that_is_not_known(hostile: Hostile, both: Both) -> None:
    hostile.play(answer(200, {**RUN, "state": "EXPLODED", "finished_at": "2026-01-02T03:04:05Z"}))
    assert both(lambda c: c.agent.runs.wait("r"), base_url=hostile.base_url).state == "EXPLODED"


def test_waiting_ends(hostile: Hostile, both: Both) -> None:
    hostile.play(*seen_as("INPROGRESS"))
    with pytest.raises(millwright.RunWaitTimeoutError, match="INPROGRESS") as caught:
        both(lambda c: c.agent.runs.wait("r", max_wait=1, longest_interval=0.02), base_url=hostile.base_url)
    assert caught.value.run.state == "INPROGRESS"
    assert isinstance(caught.value, TimeoutError)


def test_waiting_can_be_cancelled(hostile: Hostile) -> None:
    hostile.play(*seen_as("INPROGRESS"))

    async def run() -> None:
        async with millwright.AsyncMillwright(api_key=KEY, base_url=hostile.base_url) as client:
            with anyio.move_on_after(0.2) as scope:
                await client.agent.runs.wait("r", longest_interval=0.05)
            assert scope.cancelled_caught

    anyio.run(run)
