"""The states of a batch and of a run, and which may follow which. Pure."""

from __future__ import annotations

from enum import StrEnum


class BatchState(StrEnum):
    """Where a batch stands between its plan and its last run."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    STOPPED = "stopped"


ENDED = frozenset({BatchState.DONE, BatchState.CANCELLED, BatchState.STOPPED})
"""A batch that runs no more; all but those that are done can be resumed."""


class RunState(StrEnum):
    """Where a run stands. Whatever comes after `running` is an end."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"
    OVER_BUDGET = "over_budget"
    CANCELLED = "cancelled"


OPEN = frozenset({RunState.WAITING, RunState.RUNNING})
"""The states from which a run may still come to an end."""

EXECUTED = frozenset(
    {RunState.FINISHED, RunState.FAILED, RunState.TIMED_OUT, RunState.STOPPED}
)
"""The ends of runs that were executed: they count, and have a recording."""

RESUMABLE = frozenset({RunState.CANCELLED, RunState.OVER_BUDGET})
"""The ends from which a resumed batch lets runs wait again: they were not executed."""

NEXT: dict[RunState, frozenset[RunState]] = {
    RunState.WAITING: frozenset(
        {RunState.RUNNING, RunState.CANCELLED, RunState.OVER_BUDGET, RunState.FAILED}
    ),
    RunState.RUNNING: frozenset(RunState) - {RunState.RUNNING},
    **{state: frozenset({RunState.WAITING}) for state in RESUMABLE},
    **{state: frozenset() for state in EXECUTED},
}

MAX_TRIES = 3
"""So often a run is begun anew after its worker died, before it fails with a sentence."""


class NotPossibleNow(Exception):
    """The state does not allow the act; the message is a sentence for a person."""


def check_can_follow(state: RunState, following: RunState) -> None:
    """Raise `NotPossibleNow` unless `following` may come after `state`."""
    if following not in NEXT[state]:
        raise NotPossibleNow(
            f"This run is {state.value.replace('_', ' ')}, so it cannot become "
            f"{following.value.replace('_', ' ')}."
        )
