"""Handoff ping-pong: two agents hand the work to each other and back, undone.

A handoff is what the file records as one. Turns that a program deals out, as in a
group chat, are none, and neither is getting the work back because a callee finished.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from apps.engine.check import (
    Answer,
    Basis,
    Evidence,
    Judgement,
    Level,
    Parameter,
    Screening,
    hash_of_inputs,
)
from apps.engine.rules import Rule, nothing_read
from apps.engine.sequence_answers import ORDERS, not_applicable
from apps.engine.sequences import Turn, has_handoffs, turns_of
from apps.engine.trace import OrderSource, Trace

_NOT_MODELLED: Final = (
    "Two agents that are meant to take turns, such as a writer and an editor.",
    "What they said: an agent without tools may have answered each time.",
)


class _Rally(msgspec.Struct, frozen=True):
    """The longest run of returns: the turns `first` to `last`, both included."""

    returns: int
    first: int
    last: int


@dataclass(frozen=True)
class HandoffPingPong(Rule):
    """Looks for handoffs that go back and forth between the same two agents.

    A return is a handoff back to the agent that handed over just before. `min_returns`
    (2 to 100) of them in a row are a signal; a turn with more than `most_calls` (0 to
    1,000) tool calls is work and ends the row. Raises `ValueError` outside the ranges.
    """

    min_returns: int = 2
    most_calls: int = 0

    slug = "handoff-ping-pong"
    label = "Handoff ping-pong"
    version = 1
    level = Level.REVIEW_SIGNAL
    basis = Basis.FACT
    needs_bodies = False
    limits = (
        Parameter("min_returns", "Returns in a row", 2, 100, unit="handoffs"),
        Parameter(
            "most_calls",
            "Tool calls of a turn without work",
            0,
            1_000,
            unit="calls",
        ),
    )
    observes = (
        "Which agent acted when, and where the file records a handoff between two "
        "turns: a handoff step of the first agent, or an invocation of the second that "
        "began by handoff. Turns that a program deals out are no handoffs."
    )
    null_model = (
        "None: a recorded handoff is a fact. Handoffs are choices of agents that read "
        "each other, so no order of them is called random."
    )
    next_step = (
        "Read what each agent said when it handed over: does either know that the "
        "other already declined? Look for a task that belongs to neither, and at what "
        "the user got in the end."
    )

    @property
    def material_when(self) -> str:
        """How many returns, and what ends a row of them."""
        work = (
            "called a tool"
            if self.most_calls == 0
            else f"made more than {self.most_calls:,} tool calls"
        )
        return (
            f"The work is handed back at least {self.min_returns} times in a row to the "
            "agent that had just handed it over (A to B, B to A, A to B are 2 returns). "
            f"A turn in between that {work}, a third agent or a word of the user ends "
            "the row."
        )

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer about the whole trace: handoffs join its invocations."""
        agents = {one.agent for one in trace.invocations if one.agent is not None}
        if len(agents) < 2:
            yield _silent(
                self.slug,
                "one_agent",
                f"{len(agents) or 'No'} named agent{'' if len(agents) == 1 else 's'}",
                "Work is handed over between two agents that have a name.",
            )
        elif not has_handoffs(trace):
            yield _silent(
                self.slug,
                "no_handoffs",
                "No handoffs recorded",
                "Several agents acted, but none is recorded to have handed over: a "
                "program dealt the turns out, or one agent called another.",
            )
        else:
            yield self._screening(*turns_of(trace))

    def _screening(self, turns: tuple[Turn, ...], order: OrderSource) -> Screening:
        found = _longest(turns, self.most_calls)
        handoffs = sum(turn.by_handoff for turn in turns)
        inputs = hash_of_inputs(
            self.slug,
            order,
            [(turn.agent, turn.by_handoff, turn.tool_calls) for turn in turns],
        )
        facts: dict[str, Any] = {"handoffs": handoffs, "returns": found.returns}
        evidence = Evidence(
            scope="trace",
            order=ORDERS[order],
            length=handoffs,
            steps=tuple([turn.handed_over_at for turn in turns if turn.by_handoff]),
            effect=float(found.returns),
            effect_bound=float(self.min_returns),
            facts=facts,
        )
        if found.returns < self.min_returns:
            worked = _longest(turns, None).returns >= self.min_returns
            said = self._quiet(handoffs, found.returns, worked=worked)
            return said.with_evidence(evidence, inputs)
        rally = turns[found.first : found.last + 1]
        said = _signal(rally, found.returns)
        evidence = msgspec.structs.replace(
            evidence,
            steps=tuple([turn.handed_over_at for turn in rally[1:]]),
            not_modelled=_NOT_MODELLED,
            facts=facts | {"agents": [rally[0].agent, rally[1].agent]},
        )
        return said.with_evidence(evidence, inputs)

    def _quiet(self, handoffs: int, returns: int, *, worked: bool) -> Judgement:
        times = "handoff" if handoffs == 1 else "handoffs"
        text = f"{handoffs} {times}, {returns} handed straight back in a row"
        return Judgement(
            Answer.QUIET,
            "worked_in_between" if worked else "few_returns",
            text,
            f"{text}. The two agents changed places often, but called tools in between: "
            "that is work handed out and back."
            if worked
            else f"{text}: fewer than {self.min_returns}.",
        )


def _silent(slug: str, code: str, headline: str, why: str) -> Screening:
    return nothing_read(not_applicable(code, headline, why), slug, code, headline)


def _signal(rally: tuple[Turn, ...], returns: int) -> Judgement:
    one, other = rally[0].agent, rally[1].agent
    return Judgement(
        Answer.SIGNAL,
        "ping_pong",
        f"Work handed back {returns} times between two agents",
        f"{one} and {other} handed the work to each other {len(rally) - 1} times; "
        f"{returns} of these handoffs went straight back, with no other agent and no "
        "word of the user in between. A prompt to look closer, not by itself a finding.",
        Level.REVIEW_SIGNAL,
    )


def _longest(turns: tuple[Turn, ...], most_calls: int | None) -> _Rally:
    """The longest run of returns, the first of those that are as long.

    A turn is a return if it and the one before came by handoff, its agent acted two
    turns ago, and the turn before held at most `most_calls` tool calls (None: any).
    """
    best = _Rally(0, 0, 0)
    run = 0
    for at in range(2, len(turns)):
        before, turn = turns[at - 1], turns[at]
        is_return = (
            turn.by_handoff
            and before.by_handoff
            and turn.agent == turns[at - 2].agent
            and (most_calls is None or before.tool_calls <= most_calls)
        )
        run = run + 1 if is_return else 0
        if run > best.returns:
            best = _Rally(run, at - run - 1, at)
    return best
