"""Server-sent events, as the HTML standard writes them. Pure: bytes in, events out."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LONGEST_EVENT = 16 << 20
"""Maximum number of characters of an event, and of a line. A longer one ends the stream."""


@dataclass(frozen=True)
class ServerSentEvent:
    """One event of a stream."""

    event: str
    """The type; ``"message"`` by default."""
    data: str
    """The data, usually JSON."""
    id: str | None = None
    """ID to resume from after this event."""

    def json(self) -> Any:
        """Return the data as a JSON value. Raises ValueError if it is not JSON."""
        return json.loads(self.data)


class TooLongError(ValueError):
    """An event exceeds the maximum length."""


class Decoder:
    """Turns the bytes of a stream into events. Drops incomplete events."""

    last_id: str | None = None
    """The last ID that the stream gave."""
    retry: float | None = None
    """Seconds that the server asks to wait before a new connection."""

    def __init__(self, last_id: str | None = None) -> None:
        self.last_id = last_id
        self._id = last_id
        self._reset()

    def _reset(self) -> None:
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        self._buffer: list[str] = []
        self._buffered = 0
        self._start, self._skip_newline = True, False
        self._event, self._data, self._size = "", list[str](), 0

    def reconnected(self) -> None:
        """Forget the incomplete event of the last connection."""
        self._reset()
        self._id = self.last_id

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """Feed bytes, and return the completed events."""
        text = self._text.decode(chunk)
        if self._start and text:
            self._start = False
            text = text.removeprefix("\ufeff")
        if self._skip_newline and text:
            self._skip_newline = False
            text = text.removeprefix("\n")
        # A chunk may end between the two characters of a line end.
        self._skip_newline = self._skip_newline or text.endswith("\r")
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            if (event := self._line("".join([*self._buffer, line]))) is not None:
                yield event
            self._buffer.clear()
            self._buffered = 0
        if rest:
            self._buffer.append(rest)
            self._buffered += len(rest)
            if self._buffered > LONGEST_EVENT:
                raise TooLongError

    def _line(self, line: str) -> ServerSentEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._size += len(value) + 1
            if self._size > LONGEST_EVENT:
                raise TooLongError
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit() and len(value) < 10:
            self.retry = int(value) / 1000
        return None

    def _dispatch(self) -> ServerSentEvent | None:
        self.last_id = self._id
        event, data = self._event, self._data
        self._event, self._data, self._size = "", [], 0
        if not data:
            return None
        return ServerSentEvent(event=event or "message", data="\n".join(data), id=self.last_id)
