"""Tool-distribution drift: the mix of tools late in a trajectory against early on.

Reads tool names only. It does not say that the agent is stuck: filling in a form ends
in the same tool again and again too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from apps.engine.check import (
    MAX_CHANCE,
    Answer,
    Basis,
    Chance,
    Evidence,
    Judgement,
    Level,
    Parameter,
    Screening,
    Series,
    chance_as_float,
    exact_chance,
    hash_of_inputs,
    odds,
    percent,
)
from apps.engine.nulls import (
    DriftNull,
    drift_null,
    entropy,
    entropy_lattice,
    transition_tail,
)
from apps.engine.nulls.windows import TOLERANCE, WIDEST_EXACT
from apps.engine.rules import ToolRule
from apps.engine.sequence_answers import evidence_of_tools
from apps.engine.sequences import ToolSequence

_NULL_MODEL: Final = "all orders of these tool calls are equally likely"
_ASSUMPTIONS: Final = (
    "Exchangeability: the same calls could have come in any order. Tools follow from "
    "one another, so see also the chance with the transitions kept."
)
_METHOD: Final = (
    "exact: all ways to place these calls in the first and the last window, counted"
)
_METHOD_OF_BROADENING: Final = f"{_METHOD}; of a mix that broadens as much"
_NOT_MODELLED: Final = (
    "What the task needs: many tasks end in one tool by design.",
    "Arguments and results: only names are read.",
    "Turns and sub-tasks inside the trajectory.",
)

# Differences as small as rounding errors are none; the smallest real one is larger.
_SMALLEST_BOUND: Final = 0.01


class _Drift(msgspec.Struct, frozen=True):
    """The two windows of one trajectory and how far apart their entropies are."""

    tools: ToolSequence
    early: float
    late: float
    null: DriftNull

    @property
    def delta(self) -> float:
        """Early minus late entropy, in nats: positive when the mix narrows."""
        return self.early - self.late


@dataclass(frozen=True)
class ToolDrift(ToolRule):
    """Compares the mix of tools in the first and the last `window` calls.

    `window` (2 to 6 calls), `collapse_at` and `hard_at` (nats, ascending, from 0.01 to
    the log of the window) and `max_chance` (a signal is queued only up to this chance,
    above 0 and at most 1). Raises `ValueError` outside these ranges.
    """

    window: int = 4
    collapse_at: float = 0.3
    hard_at: float = 0.5
    max_chance: float = 0.05

    slug = "tool-drift"
    label = "Tool-distribution drift"
    version = 1
    level = Level.REVIEW_SIGNAL
    basis = Basis.STATISTIC
    needs_bodies = False
    without_calls = "there is no mix of tools to compare"
    limits = (
        Parameter("window", "Window", 2, WIDEST_EXACT, unit="calls"),
        Parameter(
            "collapse_at",
            "Drop that is a collapse",
            _SMALLEST_BOUND,
            math.log(WIDEST_EXACT),
            unit="nats",
            is_whole=False,
        ),
        Parameter(
            "hard_at",
            "Drop that is a hard collapse",
            _SMALLEST_BOUND,
            math.log(WIDEST_EXACT),
            unit="nats",
            is_whole=False,
        ),
        MAX_CHANCE,
    )
    next_step = (
        "Read the last calls: does the agent repeat a tool without progress, or does "
        "the task end that way? Compare with the outcome before you confirm."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        most = math.log(self.window)
        if not self.collapse_at <= self.hard_at <= most:
            raise ValueError(
                f"The bounds must ascend to at most {most:.4f} nats, the log of a window "
                f"of {self.window} calls."
            )

    @property
    def observes(self) -> str:
        """What is read: names, in the first and the last window."""
        return (
            "The names of the tools that one agent invocation called, in order: the "
            f"Shannon entropy (nats) of the first {self.window} calls minus that of the "
            f"last {self.window}."
        )

    @property
    def null_model(self) -> str:
        """The order of the calls, shuffled freely and with its transitions kept."""
        values = len(entropy_lattice(self.window))
        return (
            "The same calls in any order, each equally likely, counted exactly; and, "
            "stricter, only the orders with the same first call and the same "
            f"transitions from tool to tool. With {self.window} calls in a window the "
            f"size of the difference can only take {values} values."
        )

    @property
    def material_when(self) -> str:
        """Both bounds, the largest chance of a queued signal, the mirror event."""
        return (
            f"The entropy drops by at least {self.collapse_at:g} nats (hard: "
            f"{self.hard_at:g}). A signal is queued only if shuffling the trajectory's "
            f"own calls drops it as far in at most {percent(self.max_chance)} of orders. "
            f"The mirror event (the mix widens by {self.collapse_at:g}) is reported as "
            "a fact, never as a signal."
        )

    def screening(self, tools: ToolSequence) -> Screening:
        """The answer about the tool calls of one owner."""
        inputs = hash_of_inputs("tool-drift", tools.scope, tools.order, tools.names)
        if len(tools.names) < 2 * self.window:
            return self._too_few(tools).with_evidence(evidence_of_tools(tools), inputs)
        drift = _Drift(
            tools=tools,
            early=entropy(tools.names[: self.window]),
            late=entropy(tools.names[-self.window :]),
            null=drift_null(tools.names, self.window),
        )
        said = self._judged(drift)
        evidence = self._measured(drift)
        if abs(drift.delta) >= self.collapse_at - TOLERANCE:
            evidence = self._with_windows(drift, evidence)
        if said.answer is Answer.SIGNAL:
            strict = self._kept_transitions(tools, inputs)
            evidence = msgspec.structs.replace(
                evidence, facts=evidence.facts | {"transitions_kept": strict}
            )
        return said.with_evidence(evidence, inputs)

    def _too_few(self, tools: ToolSequence) -> Judgement:
        n, needed = len(tools.names), 2 * self.window
        text = f"{n} tool {'call' if n == 1 else 'calls'}, needs {needed}"
        return Judgement(
            Answer.NOT_APPLICABLE,
            "too_few_tool_calls",
            text,
            f"{text}: two windows of {self.window} that do not share a call.",
        )

    def _judged(self, drift: _Drift) -> Judgement:
        delta = drift.delta
        if delta >= self.collapse_at - TOLERANCE:
            return self._collapse(drift)
        moved = f"{drift.early:.3f} to {drift.late:.3f} nats"
        if delta <= -self.collapse_at + TOLERANCE:
            share = odds(drift.null.at_most(delta))
            return Judgement(
                Answer.QUIET,
                "broadened",
                f"Tool mix widened from {moved}",
                f"The mix of tools widened from {moved}: the mirror event, a fact and "
                f"no signal. The chance that shuffling the same calls widens it as far "
                f"is {share}.",
            )
        return Judgement(
            Answer.QUIET,
            "no_collapse",
            f"Tool mix kept ({moved})",
            f"The entropy of tool names went from {moved}: a drop of {delta:.3f}, below "
            f"the bound of {self.collapse_at:g}."
            if delta > 0
            else f"The entropy of tool names went from {moved}: no drop.",
        )

    def _collapse(self, drift: _Drift) -> Judgement:
        chance = drift.null.at_least(drift.delta)
        is_rare = float(chance) <= self.max_chance
        is_hard = drift.delta >= self.hard_at - TOLERANCE
        consequence = (
            " A prompt to look closer, not by itself a finding."
            if is_rare
            else f" That is above {percent(self.max_chance)}, so this is telemetry and "
            "not queued."
        )
        return Judgement(
            Answer.SIGNAL,
            "hard_collapse" if is_hard else "collapse",
            f"Tool mix narrowed by {drift.delta:.3f} nats over "
            f"{len(drift.tools.names)} tool calls",
            f"The entropy of tool names fell from {drift.early:.3f} in the first "
            f"{self.window} calls to {drift.late:.3f} in the last {self.window} (drop "
            f"{drift.delta:.3f}, bound {self.collapse_at:g}). The chance that "
            f"shuffling the same calls drops it as far is {odds(chance)}.{consequence}",
            Level.REVIEW_SIGNAL if is_rare else Level.TELEMETRY,
        )

    def _measured(self, drift: _Drift) -> Evidence:
        delta = drift.delta
        return msgspec.structs.replace(
            evidence_of_tools(drift.tools),
            first=drift.early,
            last=drift.late,
            ratio=drift.late / drift.early if drift.early else None,
            effect=delta,
            effect_bound=self.collapse_at,
            chance=_chance(drift),
            chance_of_signal=chance_as_float(drift.null.at_least(self.collapse_at)),
            not_modelled=_NOT_MODELLED,
            facts={
                "delta": delta,
                "delta_of_log_window": delta / math.log(self.window),
                "direction": _direction(delta),
                "hard": delta >= self.hard_at - TOLERANCE,
                "early_window": list(drift.tools.names[: self.window]),
                "late_window": list(drift.tools.names[-self.window :]),
            },
        )

    def _with_windows(self, drift: _Drift, evidence: Evidence) -> Evidence:
        """The evidence with the sliding windows to draw and the values delta can take.

        Each window stands at the step of its last call, so the first one stands at
        the call that completes it.
        """
        names, width = drift.tools.names, self.window
        starts = range(len(names) - width + 1)
        windows = [names[start : start + width] for start in starts]
        series = Series(
            unit="entropy of tool names (nats)",
            steps=drift.tools.steps[width - 1 :],
            values=tuple([entropy(window) for window in windows]),
            labels=tuple([", ".join(window) for window in windows]),
            threshold=max(0.0, drift.early - self.collapse_at),
        )
        lattice = [round(value, 4) for value in entropy_lattice(width)]
        return msgspec.structs.replace(
            evidence,
            series=series,
            facts=evidence.facts | {"possible_sizes_of_delta": lattice},
        )

    def _kept_transitions(self, tools: ToolSequence, inputs: str) -> dict[str, Any]:
        """The chance under the stricter null model, and how it was computed."""
        tail = transition_tail(tools.names, self.window, seed=int(inputs[:16], 16))
        if tail is None:
            return {"p": None, "method": "not computed beyond 2,000 calls"}
        if tail.standard_error is None:
            method = f"exact, {tail.orders:,} distinct orders have these transitions"
        else:
            method = f"{tail.orders:,} seeded draws, (k + 1) / (n + 1)"
        return {
            "p": tail.p,
            "hits": tail.hits,
            "orders": tail.orders,
            "standard_error": tail.standard_error,
            # Where only one order has these transitions, its chance is 1 whatever it is.
            "floor": 1 / tail.orders if tail.standard_error is None else None,
            "method": method,
        }


def _direction(delta: float) -> str:
    if abs(delta) <= TOLERANCE:
        return "unchanged"
    return "narrowed" if delta > 0 else "widened"


def _chance(drift: _Drift) -> Chance:
    """The tail on the side to which the mix moved."""
    of_collapse, of_broadening = drift.null.floors
    narrowed = drift.delta > -TOLERANCE
    return exact_chance(
        drift.null.at_least(drift.delta)
        if narrowed
        else drift.null.at_most(drift.delta),
        model=_NULL_MODEL,
        assumptions=_ASSUMPTIONS,
        method=_METHOD if narrowed else _METHOD_OF_BROADENING,
        floor=of_collapse if narrowed else of_broadening,
    )
