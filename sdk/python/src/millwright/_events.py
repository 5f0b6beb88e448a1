"""Parses the events of streams. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import types
from ._errors import APIResponseValidationError
from ._model import Model
from ._sse import ServerSentEvent


@dataclass(frozen=True)
class RunEvent:
    """An event of a run."""

    event: str
    """``"state"``, ``"message"``, or a type of later servers."""
    data: types.RunStateEvent | types.ConversationMessage | Any
    """The event; a JSON value for events that this version does not know."""
    id: str | None = None
    """ID to resume from after this event."""

    @property
    def state(self) -> types.RunStateEvent | None:
        """The state change, for events of that type."""
        return self.data if isinstance(self.data, types.RunStateEvent) else None

    @property
    def message(self) -> types.ConversationMessage | None:
        """The message, for events of that type."""
        return self.data if isinstance(self.data, types.ConversationMessage) else None


@dataclass(frozen=True)
class DeliveryEvent:
    """An event of a webhook."""

    event: str
    """``"listening"``, ``"delivery"``, or a type of later servers."""
    data: types.Delivery | Any
    """The delivery; a JSON value for other events."""
    id: str | None = None
    """ID to resume from after this event."""

    @property
    def delivery(self) -> types.Delivery | None:
        """The delivery, for events of that type."""
        return self.data if isinstance(self.data, types.Delivery) else None


def read_run_event(event: ServerSentEvent) -> RunEvent:
    """Read an event of a run's stream. Raises APIResponseValidationError for anything else."""
    data = _read(event, {"state": types.RunStateEvent, "message": types.ConversationMessage})
    return RunEvent(event.event, data, event.id)


class DeliveryReader:
    """Reads the events of one stream of deliveries.

    A server that is asked to go on repeats the deliveries of the last half minute. Those are left out.
    """

    _REMEMBERED = 10_000

    def __init__(self) -> None:
        self._seen: dict[str, None] = {}

    def __call__(self, event: ServerSentEvent) -> DeliveryEvent | None:
        """Read an event; None if it is a repeat. Raises APIResponseValidationError for anything else."""
        data = _read(event, {"delivery": types.Delivery})
        if isinstance(data, types.Delivery) and data.delivery_id:
            if data.delivery_id in self._seen:
                return None
            self._seen[data.delivery_id] = None
            if len(self._seen) > self._REMEMBERED:
                del self._seen[next(iter(self._seen))]
        return DeliveryEvent(event.event, data, event.id)


def _read(event: ServerSentEvent, kinds: dict[str, type[Model]]) -> Any:
    kind = kinds.get(event.event)
    try:
        return event.json() if kind is None else kind.model_validate_json(event.data)
    except (ValueError, RecursionError):
        pass
    raise APIResponseValidationError(f"an event of type {event.event!r} is not what was asked for")
