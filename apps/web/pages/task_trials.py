"""The trials of a task as rows: outcome, agent decision, agents' colours, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from apps.engine.masking import COLOURS
from apps.scoring.models import AgentTaskScore, TaskScore
from apps.traces.models import Trace
from apps.verdicts.models import TrialNote, TrialNoteKind
from apps.verdicts.notes import current_note, history_of, recorded_outcome

MOST_COLOURS: Final = 4


class AgentColour(msgspec.Struct, frozen=True):
    """The verdict on one agent in one trace; `is_masked`: behind a green outcome."""

    name: str
    colour: str
    is_masked: bool


class TrialLine(msgspec.Struct, frozen=True):
    """One trial; without `is_scored` its outcome is as recorded, and no more is known.

    `agents` are the worst, `more` are those not listed. `note` is the one that counts,
    `history` all of them, the newest first.
    """

    trace: Trace
    label: str
    outcome: str
    outcome_reason: str
    decision: str
    is_scored: bool
    agents: list[AgentColour]
    more: int
    note: TrialNote | None
    history: tuple[TrialNote, ...]

    @property
    def name(self) -> str:
        """The name of the trace, where the label and the task do not say it already."""
        task = str(self.trace.task) if self.trace.task else ""
        return "" if self.trace.name in {self.label, task} else self.trace.name

    @property
    def may_be_sound(self) -> bool:
        """Whether it can be sound but wrong: it did not pass."""
        return self.outcome != "green"


def trial_lines(
    traces: Sequence[Trace], score: TaskScore | None, agents: Sequence[AgentTaskScore]
) -> list[TrialLine]:
    """The rows of the trials, in the order of `traces`. One query, for the notes."""
    known: Mapping[str, dict[str, Any]] = {
        one["id"]: one for one in (score.detail["trials"] if score else ())
    }
    notes = history_of([trace.pk for trace in traces])
    lines = []
    for trace in traces:
        found = known.get(str(trace.pk))
        colours = _colours(str(trace.pk), found, agents)
        history = notes.get(trace.pk, ())
        lines.append(
            TrialLine(
                trace=trace,
                label=label_of(trace),
                outcome=found["outcome"] if found else recorded_outcome(trace),
                outcome_reason=found["outcome_reason"] if found else "",
                decision=found["decision"] if found else "",
                is_scored=found is not None,
                agents=colours[:MOST_COLOURS],
                more=max(0, len(colours) - MOST_COLOURS),
                note=current_note(history),
                history=history,
            )
        )
    return lines


def label_of(trace: Trace) -> str:
    """`trial 3`, or the name of the trace where trials are not numbered."""
    return trace.name if trace.trial is None else f"trial {trace.trial}"


def _colours(
    trace_id: str, found: dict[str, Any] | None, agents: Sequence[AgentTaskScore]
) -> list[AgentColour]:
    masked = set(found["masked"]) if found else set()
    colours = [
        AgentColour(
            name=str(one.agent),
            colour=one.detail["colours"][trace_id],
            is_masked=one.agent.key in masked,
        )
        for one in agents
        if trace_id in one.detail["colours"]
    ]
    return sorted(colours, key=_worst_first)


def _worst_first(one: AgentColour) -> tuple[bool, int, str]:
    return not one.is_masked, COLOURS.index(one.colour), one.name.casefold()


KINDS: Final = {
    TrialNoteKind.SOUND_BUT_WRONG.value: TrialNoteKind.SOUND_BUT_WRONG.label,
    TrialNoteKind.RIGHT_BY_LUCK.value: TrialNoteKind.RIGHT_BY_LUCK.label,
}
