"""Trials for the tests of consistency, in short."""

from __future__ import annotations

from apps.engine.consistency import TrialConduct


def decided(*decisions, start=0, **more):
    """One trial for each decision, numbered from `start`."""
    return [
        TrialConduct(
            trial=f"t{start + number:03}",
            state="decided",
            decision=decision,
            shown=decision,
            **more,
        )
        for number, decision in enumerate(decisions)
    ]


def without(state, number, start=500, **more):
    """`number` trials that decided nothing, for the reason `state`."""
    return [
        TrialConduct(trial=f"t{start + each:03}", state=state, **more)
        for each in range(number)
    ]
