"""What makes a finding out of a signal: a decision, or a second measure of the task.

A signal is a shape that wants a look. It becomes a finding when a reviewer confirms
it, or when the recorded outcome of its own trace is a fail and, among the traces of
the same upload, those on which the check fired fail more often than the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from apps.engine.check import Level, percent
from apps.engine.checks import CHECKS
from apps.engine.nulls import Association
from apps.engine.trace import OutcomeKind
from apps.review.models import Signal
from apps.review.transitions import SignalState, Verdict
from apps.screening.models import Screening
from apps.screening.queries import associations_per_upload

_ASKED: Final = sum(check.level is Level.REVIEW_SIGNAL for check in CHECKS)

LARGEST_P: Final = 0.05 / _ASKED
"""The two-sided Fisher p up to which the outcome supports a signal.

5 % shared out over all checks that may queue (Bonferroni): with one table for each of
them, one at 5 % would come about by chance more often than not.
"""

LEAST_TASKS: Final = 10
"""Over fewer distinct tasks no outcome supports a signal: trials of one task agree."""

RULE: Final = (
    "A signal is a finding only if a reviewer confirmed it, or if a second measure "
    "supports it: its own trace is recorded as a fail, and among the traces of the same "
    "upload those on which the check fired fail more often than the others, with a "
    f"Fisher p of at most {percent(LARGEST_P)} (5 % shared out over the {_ASKED} checks "
    f"that may queue) over at least {LEAST_TASKS} distinct tasks. A dismissed signal is never a finding, and an outcome that is not recorded "
    "never supports one."
)


class Standing(msgspec.Struct, frozen=True):
    """Whether a signal is a finding, and by what.

    `kind` is `signal`, `confirmed` or `supported`; `association` is the outcome table
    of the signal's group, where it supports the signal.
    """

    kind: str = "signal"
    words: str = "signal"
    association: Association | None = None

    @property
    def is_finding(self) -> bool:
        """Whether more than the shape speaks for it."""
        return self.kind != "signal"


SIGNAL: Final = Standing()


def supports(found: Association | None) -> bool:
    """Whether firing goes with failing in a group, over enough distinct tasks."""
    if found is None or found.p is None or found.tasks < LEAST_TASKS:
        return False
    fails_fired = (found.fired - found.fired_passed) * found.not_fired
    fails_others = (found.not_fired - found.not_fired_passed) * found.fired
    return found.p <= LARGEST_P and fails_fired > fails_others


def standing_of(signal: Signal, found: Association | None) -> Standing:
    """The standing of a signal; `found` is the outcome table of its group."""
    if signal.verdict == Verdict.CONFIRM:
        who = signal.decided_by.label if signal.decided_by else "a removed account"
        return Standing("confirmed", f"finding: confirmed by {who}")
    if not _may_be_supported(signal) or not supports(found):
        return SIGNAL
    return Standing("supported", "finding: supported by a second measure", found)


def _may_be_supported(signal: Signal) -> bool:
    return (
        signal.trace.outcome == OutcomeKind.FAIL
        and signal.verdict not in {Verdict.CONFIRM, Verdict.DISMISS}
        and signal.state != SignalState.SUPERSEDED
    )


def standings_of(signals: Sequence[Signal]) -> dict[int, Standing]:
    """The standing of each of these signals of one project by id.

    At most one query; none where no outcome could support a signal. The signals come
    with their screening, trace and who decided.
    """
    asked = [signal for signal in signals if _may_be_supported(signal)]
    found = {}
    if asked:
        rows = Screening.objects.filter(
            project_id=asked[0].project_id,
            trace__upload_id__in={signal.trace.upload_id for signal in asked},
            check_slug__in={signal.check_slug for signal in asked},
        )
        found = associations_per_upload(rows)
    return {
        signal.pk: standing_of(signal, found.get(_group_of(signal)))
        for signal in signals
    }


def _group_of(signal: Signal) -> tuple[int, tuple[str, int, str]]:
    answer = signal.screening
    key = (answer.check_slug, answer.check_version, answer.parameters_hash)
    return signal.trace.upload_id, key
