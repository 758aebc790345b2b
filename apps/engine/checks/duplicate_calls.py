"""Duplicate calls: how many calls of one agent were made before, anywhere.

It does not say that the second call was useless: the world may have changed between
the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from apps.engine.bodies import CalledTool, ToolLane
from apps.engine.bodies.numerals import counted, none_has
from apps.engine.check import (
    Answer,
    Basis,
    Evidence,
    Judgement,
    Level,
    Parameter,
    Screening,
    percent,
)
from apps.engine.rules import LaneRule
from apps.engine.sequence_answers import evidence_of_lane

_SHOWN: Final = 20
_LONGEST: Final = 200


@dataclass(frozen=True)
class DuplicateCalls(LaneRule):
    """Counts equal tool calls of one agent invocation, in a row or not.

    `times` (2 to 100) equal calls make a group of duplicates. Raises `ValueError`
    outside this range.
    """

    times: int = 2

    slug = "duplicate-calls"
    label = "Duplicate calls"
    version = 1
    level = Level.TELEMETRY
    basis = Basis.FACT
    needs_bodies = True
    limits = (Parameter("times", "Equal calls", 2, 100, unit="calls"),)
    observes = (
        "How many tool calls of one agent invocation have the same tool and the same "
        "arguments as another, wherever they stand."
    )
    null_model = (
        "None: equal calls are counted, a fact about the trace and not a statistic; "
        "nothing is shuffled."
    )
    next_step = (
        "Nothing is queued. Many duplicates over a whole source point to results that "
        "do not stay in the context, or to a missing cache."
    )

    @property
    def material_when(self) -> str:
        """What is counted, with the value of the parameter."""
        return (
            f"The same call was made at least {self.times} times. Only calls whose "
            "arguments are recorded and not redacted are compared."
        )

    def screening(self, lane: ToolLane, hashed: str) -> Screening:
        """The answer about the tool calls of one owner."""
        known = [call for call in lane.calls if call.key is not None]
        if not known:
            said = Judgement(
                Answer.NOT_APPLICABLE,
                "no_arguments",
                "No arguments recorded",
                none_has(len(lane.calls), "tool call", "arguments that can be compared")
                + ": they are not recorded, or redacted.",
            )
            return said.with_evidence(_evidence(lane, [], 0), hashed)
        groups = _groups(known, self.times)
        evidence = _evidence(lane, groups, len(known))
        if not groups:
            said = Judgement(
                Answer.QUIET,
                "all_different",
                f"No call made {_often(self.times)} in {counted(len(known), 'tool call')}",
                f"No tool call was made {_often(self.times)} with the same arguments."
                f"{lane.unknown_words}",
            )
            return said.with_evidence(evidence, hashed)
        return self._counted(lane, groups, len(known)).with_evidence(evidence, hashed)

    def _counted(
        self, lane: ToolLane, groups: list[list[CalledTool]], known: int
    ) -> Judgement:
        again, most = _again(groups), groups[0]
        which = (
            ""
            if self.times == 2
            else f" that was made {self.times} times or more often"
        )
        return Judgement(
            Answer.SIGNAL,
            "duplicates",
            f"{again} of {known} tool calls {_repeat(again)} an earlier one{which}",
            f"{again} of {known} tool calls ({percent(again / known)}) {_repeat(again)} "
            f"an earlier one of the same agent{which}; most often {most[0].name}, made "
            f"{_often(len(most))} with the same arguments.{lane.unknown_words}",
        )


def _repeat(number: int) -> str:
    return "repeats" if number == 1 else "repeat"


def _groups(calls: list[CalledTool], times: int) -> list[list[CalledTool]]:
    """Equal calls together, the largest group first."""
    by_key: dict[tuple[str, str], list[CalledTool]] = {}
    for call in calls:
        if call.key is not None:
            by_key.setdefault(call.key, []).append(call)
    groups = [group for group in by_key.values() if len(group) >= times]
    return sorted(groups, key=lambda group: (-len(group), group[0].step))


def _again(groups: list[list[CalledTool]]) -> int:
    return sum(len(group) - 1 for group in groups)


def _often(times: int) -> str:
    return "twice" if times == 2 else f"{times} times"


def _evidence(lane: ToolLane, groups: list[list[CalledTool]], known: int) -> Evidence:
    shown = [
        {
            "tool": group[0].name,
            "arguments": (group[0].arguments or "")[:_LONGEST],
            "times": len(group),
            "steps": [call.step for call in group[:_SHOWN]],
        }
        for group in groups[:_SHOWN]
    ]
    return evidence_of_lane(
        lane,
        effect=_again(groups) / known if known else None,
        steps=tuple(sorted([call.step for group in groups for call in group])),
        facts={"duplicates": shown} if shown else {},
    )
