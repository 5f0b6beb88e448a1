"""What the states of a run mean. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from . import types
from ._errors import APIResponseValidationError
from ._model import Model
from ._sse import ServerSentEvent

ENDED_STATES = frozenset({"SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED"})
"""The states in which an execution is over. Only a follow-up moves such a run on."""

MOVING_STATES = frozenset({"PENDING", "QUEUED", "CLAIMED", "INPROGRESS"})
"""The states in which a run is still to be executed, or is being executed."""


def has_ended(run: types.RunItem) -> bool:
    """Say whether a run is over. A state that this version does not know counts as over once the run has an end."""
    return run.state in ENDED_STATES or (run.state not in MOVING_STATES and run.finished_at is not None)


@dataclass(frozen=True)
class RunEvent:
    """Something that happened in a run."""

    event: str
    """``"state"``, ``"message"``, or what a later server calls it."""
    data: types.RunStateEvent | types.ConversationMessage | Any
    """What happened; of an event that this version does not know, a JSON value."""
    id: str | None = None
    """Where the stream stands after it: what to resume from."""

    @property
    def state(self) -> types.RunStateEvent | None:
        """The change of the run's state, if that is what happened."""
        return self.data if isinstance(self.data, types.RunStateEvent) else None

    @property
    def message(self) -> types.ConversationMessage | None:
        """What was said, if that is what happened."""
        return self.data if isinstance(self.data, types.ConversationMessage) else None


def read_event(event: ServerSentEvent) -> RunEvent:
    """Read an event of a run's stream. What is not such an event is an APIResponseValidationError."""
    data: Any = None
    try:
        kinds: dict[str, type[Model]] = {"state": types.RunStateEvent, "message": types.ConversationMessage}
        kind = kinds.get(event.event)
        data = event.json() if kind is None else kind.model_validate_json(event.data)
    except (ValueError, RecursionError):
        data = _UNREADABLE
    if data is _UNREADABLE:
        raise APIResponseValidationError(f"an event of type {event.event!r} is not what was asked for")
    return RunEvent(event.event, data, event.id)


_UNREADABLE = object()


def ends_stream(event: RunEvent) -> bool | None:
    """Say whether a stream that closes after this event is complete; None when the event does not tell."""
    return None if event.state is None else event.state.state in ENDED_STATES


def poll_interval(attempt: int, longest: float) -> float:
    """Return the seconds until a run is looked at again: short at first, then ever longer."""
    return min(0.25 * 1.5 ** min(attempt, 32), longest) * random.uniform(0.9, 1)
