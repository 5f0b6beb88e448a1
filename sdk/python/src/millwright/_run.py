"""What the states of a run mean. Pure."""

from __future__ import annotations

import random

from . import types
from ._events import RunEvent

ENDED_STATES = frozenset({"SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED"})
"""The states in which an execution is over. Only a follow-up moves such a run on."""

MOVING_STATES = frozenset({"PENDING", "QUEUED", "CLAIMED", "INPROGRESS"})
"""The states in which a run is still to be executed, or is being executed."""


def has_ended(run: types.RunItem) -> bool:
    """Say whether a run is over. A state that this version does not know counts as over once the run has an end."""
    return run.state in ENDED_STATES or (run.state not in MOVING_STATES and run.finished_at is not None)


def ends_stream(event: RunEvent) -> bool | None:
    """Say whether a stream that closes after this event is complete; None when the event does not tell."""
    return None if event.state is None else event.state.state in ENDED_STATES


def poll_interval(attempt: int, longest: float) -> float:
    """Return the seconds until a run is looked at again: short at first, then ever longer."""
    return min(0.25 * 1.5 ** min(attempt, 32), longest) * random.uniform(0.9, 1)
