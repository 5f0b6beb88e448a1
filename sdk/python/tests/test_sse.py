"""The decoder of event streams."""

from __future__ import annotations

import random

import pytest

from millwright import ServerSentEvent as Event
from millwright import _sse


def decode(data: bytes, sizes: list[int] | None = None) -> tuple[list[Event], _sse.Decoder]:
    decoder = _sse.Decoder()
    events: list[Event] = []
    while data:
        n = sizes.pop(0) if sizes else len(data)
        events += decoder.feed(data[:n])
        data = data[n:]
    return events, decoder


CASES: list[tuple[bytes, list[Event]]] = [
    (b"data: a\n\n", [Event("message", "a")]),
    (b"data:a\r\n\r\n", [Event("message", "a")]),
    (b"data:a\r\rdata:b\r\r", [Event("message", "a"), Event("message", "b")]),
    (b"data: a\ndata:  b\ndata\ndata:\n\n", [Event("message", "a\n b\n\n")]),
    (
        b"event: state\nid: 7\ndata: {}\n\ndata: x\n\n",
        [Event("state", "{}", "7"), Event("message", "x", "7")],
    ),
    (b": a comment\n\nevent: nothing\n\ndata: x\n\n", [Event("message", "x")]),
    (b"\xef\xbb\xbfdata: bom\n\n", [Event("message", "bom")]),
    (b"data: \xc3\xa4\xf0\x9f\x8c\x8d\n\n", [Event("message", "\u00e4\U0001f30d")]),
    (b"data: \xff\n\n", [Event("message", "\ufffd")]),
    (b"data: never finished\n", []),
    (b"id: bad\0id\ndata: x\n\n", [Event("message", "x")]),
    (b"id: 1\ndata: x\n\nid\ndata: y\n\n", [Event("message", "x", "1"), Event("message", "y", "")]),
    ("unknown: x\ndata: y\u2028z\n\n".encode(), [Event("message", "y\u2028z")]),
]


@pytest.mark.parametrize(("data", "events"), CASES)
def test_events(data: bytes, events: list[Event]) -> None:
    assert decode(data)[0] == events
    assert decode(data, [1] * len(data))[0] == events, "byte by byte"
    for seed in range(20):
        draw = random.Random(seed)
        assert decode(data, [draw.randint(1, 5) for _ in data])[0] == events


def test_retry_is_in_milliseconds_and_bounded() -> None:
    assert decode(b"retry: 1500\n\n")[1].retry == 1.5
    for senseless in (b"soon", b"-1", b"1e3", b"", b"99999999999", "\u0663".encode()):
        assert decode(b"retry: " + senseless + b"\n\n")[1].retry is None


def test_the_id_counts_once_its_event_is_complete() -> None:
    decoder = decode(b"id: 1\ndata: x\n\nid: 2\ndata: y")[1]
    assert decoder.last_id == "1"
    decoder.reconnected()
    assert list(decoder.feed(b"data: z\n\n")) == [Event("message", "z", "1")]


@pytest.mark.parametrize("flood", [b"data: " + b"x" * 1000, b"data: xxxxxxx\n" * 100, b"x" * 1000])
def test_floods_are_not_kept(flood: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sse, "LONGEST_EVENT", 500)
    with pytest.raises(_sse.TooLongError):
        decode(flood, [50] * 100)


def test_any_bytes_are_decoded() -> None:
    draw = random.Random(1)
    for _ in range(2000):
        data = bytes(draw.choice(b"data:id event\n\r\0\xff\xc3retry1 ") for _ in range(draw.randint(0, 80)))
        whole = decode(data)[0]
        assert decode(data, [draw.randint(1, 7) for _ in data])[0] == whole
