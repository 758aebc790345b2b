"""No progress: calls in a row, not all the same, that all give one result.

Equal results are a fact. That the agent learnt nothing from them is not known: it may
rule out one place after another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from apps.engine.bodies import ToolLane
from apps.engine.bodies.calls import CalledTool, Round
from apps.engine.bodies.effects import is_write
from apps.engine.bodies.numerals import are, counted, none_has
from apps.engine.check import (
    Answer,
    Basis,
    Evidence,
    Judgement,
    Level,
    Parameter,
    Screening,
)
from apps.engine.rules import LaneRule
from apps.engine.sequence_answers import evidence_of_lane

_NOT_MODELLED: Final = (
    "What the agent wanted to rule out: an empty answer can be what it looked for.",
    "Results that say the same in other words, or with another time or id in them.",
)
_LONGEST: Final = 300
_WORD: Final = re.compile(r"\w+")
# What a tool says when it did its work and has nothing to tell.
_CONFIRMATIONS: Final = frozenset(
    {
        "ok", "okay", "done", "success", "successful", "successfully", "true", "false",
        "none", "null", "completed", "complete", "finished", "no", "output", "command",
        "executed", "ran", "run", "running", "with", "without", "tool", "status",
        "result", "results", "message", "the", "has", "have", "been", "was", "were",
        "is", "code", "exit", "exitcode", "returncode", "stdout", "stderr", "file",
        "updated", "created", "written", "saved", "sent", "and", "any", "did", "not",
        "produce", "bash", "data", "type", "text", "content", "ack", "acknowledged",
        "accepted", "received", "yes", "0", "1", "200", "your", "log", "process",
        "interrupted", "isimage", "metadata", "nooutputexpected", "undefined", "empty", "nothing", "thought", "noted",
    }
)  # fmt: skip
_READ_OF_RESULT: Final = 400


class _Run(msgspec.Struct, frozen=True):
    """Rounds in a row with one and the same result."""

    rounds: tuple[Round, ...]
    result: str

    @property
    def calls(self) -> tuple[CalledTool, ...]:
        """The calls of all rounds."""
        return tuple([call for one in self.rounds for call in one.calls])

    @property
    def different(self) -> int:
        """How many different calls it holds for sure.

        Arguments that are not known may be those of another call of the same tools.
        """
        keys = {one.key for one in self.rounds} - {None}
        tools = {_tools(one) for one in self.rounds}
        named = {_tools(one) for one in self.rounds if one.key is not None}
        return len(keys) + len(tools - named)

    @property
    def unknown(self) -> int:
        """How many of its rounds have arguments that cannot be compared."""
        return sum([one.key is None for one in self.rounds])


@dataclass(frozen=True)
class NoProgress(LaneRule):
    """Finds different calls in a row whose results are all the same.

    `in_a_row` (2 to 100) rounds of calls. Raises `ValueError` outside this range.
    """

    in_a_row: int = 4

    slug = "no-progress"
    label = "No progress"
    version = 1
    level = Level.REVIEW_SIGNAL
    basis = Basis.FACT
    needs_bodies = True
    limits = (Parameter("in_a_row", "Equal results in a row", 2, 100, unit="rounds"),)
    observes = (
        "The results of one agent's tool calls in order: calls in a row, with "
        "different tools or arguments, that all gave the same result or left the same "
        "page or state. A user message ends a run."
    )
    null_model = (
        "None: equal results are a fact, not a statistic, and nothing is shuffled to "
        "find them."
    )
    next_step = (
        "Read the repeated result: does it say what is wrong (a missing id, a denied "
        "right, a page that did not change)? Then see whether the agent reacted."
    )

    @property
    def material_when(self) -> str:
        """What makes it worth a look, with the value of the parameter."""
        return (
            f"At least {self.in_a_row} rounds of calls in a row gave the same result "
            "and were not all the same call. Empty results and mere confirmations (ok, "
            "done, success) do not count, and calls that write and succeeded end a run."
        )

    def screening(self, lane: ToolLane, hashed: str) -> Screening:
        """The answer about the tool calls of one owner."""
        known = sum([call.result is not None for call in lane.calls])
        if not known:
            said = Judgement(
                Answer.NOT_APPLICABLE,
                "no_results",
                "No results recorded",
                none_has(len(lane.calls), "tool call", "a recorded result") + ".",
            )
            return said.with_evidence(_evidence(lane, ()), hashed)
        if len(lane.rounds) < self.in_a_row:
            return self._too_few(lane).with_evidence(_evidence(lane, ()), hashed)
        if _longest_recorded(lane.rounds) < self.in_a_row:
            return self._gaps(lane, known).with_evidence(_evidence(lane, ()), hashed)
        runs = [run for run in _runs(lane.rounds) if len(run.rounds) >= self.in_a_row]
        runs = [run for run in runs if run.different > 1]
        if not runs:
            return self._quiet(lane, known).with_evidence(_evidence(lane, ()), hashed)
        longest = max(runs, key=lambda r: (len(r.rounds), -r.calls[0].step))
        return self._signal(longest).with_evidence(
            self._measured(lane, longest, len(runs)), hashed
        )

    def _too_few(self, lane: ToolLane) -> Judgement:
        n = len(lane.rounds)
        rounds = f"{counted(n, 'round')} of tool calls"
        return Judgement(
            Answer.NOT_APPLICABLE,
            "too_few_calls",
            f"{rounds}, needs {self.in_a_row}",
            f"{rounds} one after another, needs {self.in_a_row}.",
        )

    def _gaps(self, lane: ToolLane, known: int) -> Judgement:
        n = len(lane.calls)
        return Judgement(
            Answer.NOT_APPLICABLE,
            "results_missing",
            f"{known} of {n} results recorded, too few in a row",
            f"Results are recorded of {known} of {n} tool calls, and nowhere of "
            f"{self.in_a_row} rounds of calls in a row.",
        )

    def _quiet(self, lane: ToolLane, known: int) -> Judgement:
        missing = len(lane.calls) - known
        rest = (
            f" {counted(missing, 'result')} {are(missing)} not recorded."
            if missing
            else ""
        )
        return Judgement(
            Answer.QUIET,
            "results_change",
            f"No run of different calls with one result in {counted(known, 'result')}",
            f"No {self.in_a_row} rounds of calls in a row, not all the same, gave one "
            "result. Empty results, mere confirmations and calls that write and "
            f"succeeded do not count.{rest}",
        )

    def _signal(self, run: _Run) -> Judgement:
        n = len(run.rounds)
        names = list(dict.fromkeys(call.name for call in run.calls))
        tools = names[0] if len(names) == 1 else f"{len(names)} tools"
        failed = all(call.failed for call in run.calls)
        what = "the same failure" if failed else "the same result"
        rounds = f"{n} calls" if len(run.calls) == n else f"{n} rounds of calls"
        which = f"{rounds} in a row, {run.different} of them different,"
        if run.different == n:
            which = f"{n} different {rounds.removeprefix(f'{n} ')} in a row"
        rest = (
            f" The arguments of {run.unknown} are not known, so more may differ."
            if run.unknown
            else ""
        )
        return Judgement(
            Answer.SIGNAL,
            "same_failure" if failed else "same_result",
            f"{which} gave {what} ({tools})",
            f"{which} gave {what}: “{_short(run.result, 120)}”.{rest} A fact about the results; whether "
            "the agent was stuck is for a person to say.",
            Level.REVIEW_SIGNAL,
        )

    def _measured(self, lane: ToolLane, run: _Run, runs: int) -> Evidence:
        return msgspec.structs.replace(
            _evidence(lane, tuple([call.step for call in run.calls])),
            effect=float(len(run.rounds)),
            effect_bound=float(self.in_a_row),
            facts={
                "result": _short(run.result, _LONGEST),
                "tools": list(dict.fromkeys(call.name for call in run.calls))[:20],
                "different_calls": run.different,
                "runs": runs,
            },
        )


def _tools(one: Round) -> tuple[str, ...]:
    """The tools of a round in no order."""
    return tuple(sorted([call.name for call in one.calls]))


def _longest_recorded(rounds: tuple[Round, ...]) -> int:
    """The most rounds in a row of which every result is recorded."""
    longest = here = 0
    for one in rounds:
        here = 0 if any(call.result is None for call in one.calls) else here + 1
        longest = max(longest, here)
    return longest


def _runs(rounds: tuple[Round, ...]) -> Iterator[_Run]:
    """Yield the longest runs of rounds with one result that says something."""
    first, before, turn = 0, None, -1
    for place, one in enumerate(rounds):
        result = _result_of(one)
        if result is None or result != before or one.turn != turn:
            if before is not None:
                yield _Run(rounds[first:place], before)
            first, before, turn = place, result, one.turn
    if before is not None:
        yield _Run(rounds[first:], before)


def _result_of(one: Round) -> str | None:
    """The one result of all calls of a round, where it is no mere confirmation."""
    result = one.calls[0].result
    if result is None or any(call.result != result for call in one.calls):
        return None
    if any(is_write(call.name) and not call.failed for call in one.calls):
        return None
    return None if _is_trivial(result) else result


def _is_trivial(result: str) -> bool:
    """Whether a result only confirms, or is empty."""
    if len(result) > _READ_OF_RESULT:
        return False
    return _CONFIRMATIONS.issuperset(_WORD.findall(result.casefold()))


def _short(text: str, most: int) -> str:
    text = " ".join(text[: 2 * most].split())
    return text if len(text) <= most else text[:most] + "…"


def _evidence(lane: ToolLane, steps: tuple[int, ...]) -> Evidence:
    return evidence_of_lane(
        lane,
        steps=steps,
        not_modelled=_NOT_MODELLED,
    )
