"""What a rule found in one invocation, before it is normalised and compared."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from apps.engine.conduct import InvocationConduct


class DecisionState(StrEnum):
    """Whether an agent is known to have decided, and if not, why not."""

    DECIDED = "decided"
    MISSING = "missing"
    FAILED = "failed"
    NOT_COMPARED = "not_compared"
    NO_BODIES = "no_bodies"


class Found(msgspec.Struct, frozen=True):
    """A decision or the reason why there is none; `how` is a sentence for people.

    `stands` says that the decision cannot be a matter of where a failed run broke off.
    """

    state: DecisionState
    how: str
    value: Any = None
    step: int | None = None
    stands: bool = True


def decided(value: Any, how: str, *, step: int | None, stands: bool = True) -> Found:
    """A decision."""
    return Found(DecisionState.DECIDED, how, value, step, stands)


def missing(why: str, *, step: int | None = None) -> Found:
    """No decision where the rule looked for one."""
    return Found(DecisionState.MISSING, why, step=step)


def not_compared(why: str, *, step: int | None = None) -> Found:
    """There is something, but nothing that may be compared unasked."""
    return Found(DecisionState.NOT_COMPARED, why, step=step)


def step_of_output(one: InvocationConduct) -> int | None:
    """The `seq` of the step that holds the output; `None` where no step does."""
    if one.output is None:
        return None
    for step in reversed(one.steps):
        if step.body is not None and step.body.output is one.output:
            return step.seq
    return None
