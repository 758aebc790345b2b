"""No self-check: an agent changed something and called nothing after it.

Reads tool names only, so the rule is as narrow as they allow: the last call of all
writes, by its name. Whether the answer of that call already said enough is not seen,
and where anything else was called afterwards nothing is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from apps.engine.bodies.effects import Effect, effect_of, words_of
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
from apps.engine.rules import ToolRule
from apps.engine.sequence_answers import evidence_of_tools
from apps.engine.sequences import ToolSequence
from apps.engine.trace import StepStatus

_NOT_MODELLED: Final = (
    "What the write itself answered: it often says whether it worked.",
    "Checks that another agent, a program or a person makes afterwards.",
    "Tools whose names do not tell what they do, such as a shell.",
)
# They end the run or pass time, so they neither change anything nor look at anything.
_ENDINGS: Final = frozenset(
    {
        "submit", "finish", "done", "complete", "exit", "terminate", "stop", "end",
        "reply", "respond", "answer", "think", "wait", "sleep",
    }
)  # fmt: skip
_LAST_WORDS: Final = frozenset({"answer", "think", "thought"})


@dataclass(frozen=True)
class NoSelfCheck(ToolRule):
    """Looks for agent invocations whose last tool call of all is a write.

    `writing_tools` (at most 100) are names of tools that write, beside those that say so
    by a verb. Raises `ValueError` for other values.
    """

    writing_tools: tuple[str, ...] = ()

    slug = "no-self-check"
    label = "No self-check"
    version = 1
    level = Level.TELEMETRY
    basis = Basis.FACT
    needs_bodies = False
    without_calls = "no tool wrote anything"
    limits = (
        Parameter("writing_tools", "Further tools that write", high=100, names=True),
    )
    null_model = (
        "None: that nothing was called after the last write is a fact about the run. "
        "Many tasks end with the write by design, so it says little alone."
    )
    material_when = (
        "A tool call that writes, and is not recorded as failed, is the last one of "
        "its agent invocation. Calls that only think, wait or hand in the answer are "
        "passed over. Anything else after the write counts as a look."
    )
    next_step = (
        "Nothing is queued. Where the same agent has a signal, see whether a look at "
        "what it wrote would have shown the mistake."
    )

    @property
    def observes(self) -> str:
        """What is read, and which tools count as writing."""
        named = len(self.writing_tools)
        more = f", and {named} that this project names" if named else ""
        return (
            "The names of the tools that one agent invocation called, in order. A tool "
            f"writes if a verb in its name says so (create, update, send){more}; what "
            "the name does not tell is not guessed."
        )

    def screening(self, tools: ToolSequence) -> Screening:
        """The answer about the tool calls of one owner."""
        failed = [step.status is StepStatus.ERROR for step in tools.calls]
        inputs = hash_of_inputs(
            self.slug, tools.scope, tools.order, tools.names, failed
        )
        writes = self._writes(tools, failed)
        if not writes:
            said = _nothing_written(len(tools.names))
            return said.with_evidence(evidence_of_tools(tools), inputs)
        last = writes[-1]
        after = [name for name in tools.names[last + 1 :] if not _is_ending(name)]
        said = _judged(tools.names[last], after)
        return said.with_evidence(_evidence(tools, writes, after), inputs)

    def _writes(self, tools: ToolSequence, failed: list[bool]) -> list[int]:
        """The places of the calls that wrote something, in order."""
        extra = frozenset(self.writing_tools)
        return [
            at
            for at, name in enumerate(tools.names)
            if effect_of(name, extra) is Effect.WRITES
            and not failed[at]
            and not _is_ending(name)
        ]


def _nothing_written(n: int) -> Judgement:
    calls = f"{n} tool {'call' if n == 1 else 'calls'}"
    return Judgement(
        Answer.NOT_APPLICABLE,
        "no_writes",
        f"No write among {calls}",
        f"None of {calls} is known to have written something: by its name, and "
        "without a recorded failure.",
    )


def _evidence(tools: ToolSequence, writes: list[int], after: list[str]) -> Evidence:
    """Where the last write is: the step that a signal rests on."""
    last = writes[-1]
    return evidence_of_tools(
        tools,
        steps=tools.steps if after else (tools.steps[last],),
        length=len(tools.steps),
        not_modelled=() if after else _NOT_MODELLED,
        facts={
            "writes": len(writes),
            "last_write": tools.names[last],
            "calls_after": len(after),
        },
    )


def _judged(write: str, after: list[str]) -> Judgement:
    if not after:
        return Judgement(
            Answer.SIGNAL,
            "nothing_after_write",
            "Nothing was called after the last write",
            f"“{write}” changes something by its name, and no tool was called after "
            "it. This is telemetry: its own answer may have said enough.",
        )
    does_read = any(effect_of(name) is Effect.READS for name in after)
    calls = f"{len(after)} {'call' if len(after) == 1 else 'calls'}"
    return Judgement(
        Answer.QUIET,
        "read_after_write" if does_read else "called_after_write",
        f"{calls} after the last write",
        f"{calls} came after “{write}”, of which at least 1 reads by its name."
        if does_read
        else f"{calls} came after “{write}”. No name tells whether it was looked at, so "
        "nothing is claimed.",
    )


def _is_ending(name: str) -> bool:
    words = words_of(name)
    if len(words) == 1:
        return words[0] in _ENDINGS
    return not _LAST_WORDS.isdisjoint(words[-1:])
