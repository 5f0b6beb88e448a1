"""The states of a run. Pure."""

from __future__ import annotations

import random

from . import types
from ._events import RunEvent

ENDED_STATES = frozenset({"SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED"})
"""The end states. Only a follow-up continues such a run."""

MOVING_STATES = frozenset({"PENDING", "QUEUED", "CLAIMED", "INPROGRESS"})
"""The states of a run that waits or is executed."""


def has_ended(run: types.RunItem) -> bool:
    """Report whether a run has ended. Unknown states count as ended once the run has an end time."""
    return run.state in ENDED_STATES or (run.state not in MOVING_STATES and run.finished_at is not None)


def ends_stream(event: RunEvent) -> bool | None:
    """Report whether a stream that closes after this event is complete; None if unknown."""
    return None if event.state is None else event.state.state in ENDED_STATES


def poll_interval(attempt: int, longest: float) -> float:
    """Return the seconds until the next look at a run: short at first, then longer."""
    return min(0.25 * 1.5 ** min(attempt, 32), longest) * random.uniform(0.9, 1)
