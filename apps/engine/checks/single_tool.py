"""Single tool: one tool makes up nearly all tool calls of an agent invocation.

Reads names only. It cannot know which other tools were offered: an agent with one
tool uses one tool.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from apps.engine.check import (
    Answer,
    Basis,
    Judgement,
    Level,
    Parameter,
    Screening,
    hash_of_inputs,
    percent,
)
from apps.engine.rules import ToolRule
from apps.engine.sequence_answers import evidence_of_tools
from apps.engine.sequences import ToolSequence

_NOT_MODELLED: Final = (
    "Which tools the agent was offered: with one tool there is nothing to choose.",
    "Tools that do many things, such as a shell or an interpreter.",
    "Tasks that need one tool many times.",
)


@dataclass(frozen=True)
class SingleTool(ToolRule):
    """Measures the share of the most frequent tool among an owner's tool calls.

    `min_calls` (2 to 1,000) and `share_percent` (51 to 100). Raises `ValueError`
    outside these ranges.
    """

    min_calls: int = 8
    share_percent: int = 80

    slug = "single-tool"
    label = "Single tool"
    version = 1
    level = Level.TELEMETRY
    basis = Basis.FACT
    needs_bodies = False
    without_calls = "no tool was used more than another"
    limits = (
        Parameter("min_calls", "Fewest tool calls", 2, 1_000, unit="calls"),
        Parameter("share_percent", "Share of one tool", 51, 100, unit="%"),
    )
    observes = (
        "The names of the tools that one agent invocation called: how many of the "
        "calls go to the most frequent one."
    )
    null_model = (
        "None: a share of calls is a fact about the run. Nothing is shuffled, and "
        "nothing says which share would be usual for this task."
    )
    next_step = (
        "Nothing is queued. Read it beside a signal of the same agent: a tool that "
        "everything depends on is where its errors and its repeats come from."
    )

    @property
    def material_when(self) -> str:
        """The share, and the fewest calls."""
        return (
            f"One tool makes up at least {self.share_percent} % of the tool calls of an "
            f"agent invocation that made at least {self.min_calls:,}."
        )

    def screening(self, tools: ToolSequence) -> Screening:
        """The answer about the tool calls of one owner."""
        names = tools.names
        counts = Counter(names)
        # Of tools that are as frequent, the first by name, whatever the order.
        top = max(sorted(counts), key=counts.__getitem__)
        inputs = hash_of_inputs(self.slug, tools.scope, sorted(counts.items()))
        said = self._judged(top, counts[top], len(names))
        if said.answer is Answer.NOT_APPLICABLE:
            return said.with_evidence(evidence_of_tools(tools), inputs)
        is_signal = said.answer is Answer.SIGNAL
        evidence = evidence_of_tools(
            tools,
            effect=counts[top] / len(names),
            effect_bound=self.share_percent / 100,
            not_modelled=_NOT_MODELLED if is_signal else (),
            facts={"tool": top, "calls": counts[top], "different_tools": len(counts)},
        )
        return said.with_evidence(evidence, inputs)

    def _judged(self, top: str, count: int, n: int) -> Judgement:
        if n < self.min_calls:
            text = f"{n} tool {'call' if n == 1 else 'calls'}, needs {self.min_calls:,}"
            return Judgement(
                Answer.NOT_APPLICABLE,
                "too_few_tool_calls",
                text,
                f"{text}: a share of so few calls says little.",
            )
        share = percent(count / n)
        # Whole numbers only: exactly 80 % is inside the bound.
        if count * 100 >= n * self.share_percent:
            return Judgement(
                Answer.SIGNAL,
                "one_tool",
                f"One tool makes up {share} of {n} tool calls",
                f"{count} of {n} tool calls ({share}) went to “{top}”. This is "
                "telemetry: the agent may have no other tool.",
            )
        return Judgement(
            Answer.QUIET,
            "several_tools",
            f"The most frequent tool makes up {share} of {n} tool calls",
            f"{count} of {n} tool calls ({share}) went to “{top}”: below the bound of "
            f"{self.share_percent} %.",
        )
