"""Repeated side effects: a call that writes was made twice, and did not fail.

Whether it writes is taken from the name of the tool; whether the second time did any
harm is not known. A failed first attempt is a retry and does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import msgspec

from apps.engine.bodies import CalledTool, tool_lanes
from apps.engine.bodies.calls import calls_absent
from apps.engine.bodies.canonical import opened
from apps.engine.bodies.effects import (
    is_reading_action,
    is_write,
    sets_a_state,
    writes_in_place,
)
from apps.engine.bodies.numerals import counted, none_has
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
from apps.engine.rules import Rule, nothing_to_compare
from apps.engine.trace import StepStatus, Trace

_NOT_MODELLED: Final = (
    "What a tool does beyond what its name says: unknown verbs are neither reading nor "
    "writing.",
    "Whether the tool itself makes the second call harmless.",
    "The same act with other words in its arguments.",
)
_SHOWN: Final = 20
_LONGEST: Final = 300


class _Write(msgspec.Struct, frozen=True):
    """A writing call and how many other writing calls succeeded before it."""

    call: CalledTool
    after: int


@dataclass(frozen=True)
class RepeatedSideEffect(Rule):
    """Finds equal writing calls of a trace that ended more than once without failing.

    `writing_tools` names tools that write, beside those whose names say so (at most
    100). Raises `ValueError` for more.
    """

    writing_tools: tuple[str, ...] = ()

    slug = "repeated-side-effect"
    label = "Repeated side effect"
    version = 1
    level = Level.REVIEW_SIGNAL
    basis = Basis.FACT
    needs_bodies = True
    limits = (
        Parameter("writing_tools", "Further tools that write", high=100, names=True),
    )
    observes = (
        "Tool calls anywhere in the trace whose name begins with a verb that changes "
        "something (create, send, book, cancel, pay, ...), by tool, arguments and how "
        "they ended."
    )
    null_model = (
        "None: that the same call was made twice and no failure of it is recorded is a "
        "fact about the trace, not a statistic, and nothing is shuffled."
    )
    next_step = (
        "Look whether the act happened twice in the world: two bookings, two mails, "
        "two payments. If the tool ignores a second call, dismiss the signal."
    )

    @property
    def material_when(self) -> str:
        """What makes it worth a look, with the names that the project added."""
        named = (
            f"Beside the verbs, these count as writing: {', '.join(self.writing_tools)}."
            if self.writing_tools
            else "A project can name further tools that write."
        )
        return (
            "The same writing call with the same arguments ended at least twice without "
            "a failure (a status that says so, or a result that tells of none); failed "
            "attempts do not count. Setting a state or writing a whole file again "
            "is harmless, and updating something again after another write came between "
            f"(A, B, A) is no repetition. {named}"
        )

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer about the whole trace."""
        absent = calls_absent(trace)
        if absent is not None:
            yield nothing_to_compare(absent, self.slug)
            return
        lanes = tool_lanes(trace)
        hashed = hash_of_inputs(
            self.slug, [(lane.scope, lane.fingerprint) for lane in lanes]
        )
        calls = [call for lane in lanes for call in lane.calls]
        calls.sort(key=lambda call: call.step)
        extra = frozenset(self.writing_tools)
        writing = [call for call in calls if _writes(call, extra)]
        yield _screening(trace, len(calls), writing, hashed)


def _writes(call: CalledTool, extra: frozenset[str]) -> bool:
    if not is_write(call.name, extra):
        return False
    # One tool with many actions: `{"command": "view"}` writes nothing.
    return call.arguments is None or not is_reading_action(opened(call.arguments))


def _screening(
    trace: Trace, n: int, writing: list[CalledTool], hashed: str
) -> Screening:
    if not writing:
        said = Judgement(
            Answer.NOT_APPLICABLE,
            "no_writing_calls",
            "No call is known to write",
            none_has(n, "tool call", "a name that says it changes something")
            + ". Tools that do can be named in the parameters.",
        )
        return said.with_evidence(Evidence(scope="trace", length=0), hashed)
    known = [c for c in writing if c.key is not None and _is_ended(c)]
    if not known:
        said = Judgement(
            Answer.NOT_APPLICABLE,
            "endings_unknown",
            "How the writing calls ended is not recorded",
            "Arguments and ending are not both recorded of "
            + ("the only writing call" if len(writing) == 1 else "any writing call")
            + ", so whether an act was done twice is not known.",
        )
        return said.with_evidence(Evidence(scope="trace", length=len(writing)), hashed)
    groups = _groups([c for c in known if not (c.failed or sets_a_state(c.name))])
    evidence = _evidence(trace, writing, groups)
    if groups:
        return _repeated(groups).with_evidence(evidence, hashed)
    rest = len(writing) - len(known)
    unknown = f" Of {rest} more, the ending or arguments are not known." if rest else ""
    said = Judgement(
        Answer.QUIET,
        "no_repeated_write",
        f"No act repeated in {counted(len(known), 'writing call')}",
        "No writing call ended twice without a failure with the same arguments. Setting a "
        f"state or writing a whole file again does not count.{unknown}",
    )
    return said.with_evidence(evidence, hashed)


def _is_ended(call: CalledTool) -> bool:
    """Whether the file says how a call ended: a result or a status."""
    if call.status is StepStatus.UNFINISHED:
        return False
    return call.failed or call.result is not None or call.status is StepStatus.OK


def _groups(calls: list[CalledTool]) -> list[list[CalledTool]]:
    """Equal calls, two or more, without those that undo one another."""
    by_key: dict[tuple[str, str], list[_Write]] = {}
    for place, call in enumerate(calls):
        if call.key is not None:
            by_key.setdefault(call.key, []).append(_Write(call, place))
    groups = [_counted(writes) for writes in by_key.values() if len(writes) > 1]
    return [group for group in groups if len(group) > 1]


def _counted(writes: list[_Write]) -> list[CalledTool]:
    """The calls of one act that repeat it.

    What is set to a value may be set to it again once another write came between.
    """
    if not writes_in_place(writes[0].call.name):
        return [one.call for one in writes]
    kept: list[CalledTool] = []
    for before, one in pairwise(writes):
        if one.after == before.after + 1:
            if not kept:
                kept.append(before.call)
            kept.append(one.call)
    return kept


def _repeated(groups: list[list[CalledTool]]) -> Judgement:
    most = max(groups, key=lambda group: (len(group), -group[0].step))
    name, n = most[0].name, len(most)
    times = "twice" if n == 2 else f"{n} times"
    if all(call.status is StepStatus.OK for call in most):
        headline = f"{name} succeeded {times} with the same arguments"
        ended = "and each call succeeded"
    else:
        headline = f"{name} called {times} with the same arguments, no failure known"
        ended = "and no failure is recorded (nor, of each, that it succeeded)"
    more = f" {len(groups)} acts of the trace were repeated." if len(groups) > 1 else ""
    return Judgement(
        Answer.SIGNAL,
        "repeated_write",
        headline,
        f"{name} was called {times} with the same arguments, {ended}.{more} By its "
        "name the tool changes something; what the second call did is for a person to "
        "find out.",
        Level.REVIEW_SIGNAL,
    )


def _evidence(
    trace: Trace, writing: list[CalledTool], groups: list[list[CalledTool]]
) -> Evidence:
    steps = sorted({call.step for group in groups for call in group})
    owners = {step.seq: step.invocation for step in trace.steps} if steps else {}
    own = {owners[seq] for seq in steps}
    number = own.pop() if len(own) == 1 else None
    is_named = number is not None and 0 <= number < len(trace.invocations)
    acts = [
        {
            "tool": group[0].name,
            "arguments": (group[0].arguments or "")[:_LONGEST],
            "steps": [call.step for call in group[:_SHOWN]],
        }
        for group in groups[:_SHOWN]
    ]
    return Evidence(
        scope="trace",
        invocation=number,
        agent=trace.invocations[number].agent
        if is_named and number is not None
        else None,
        length=len(writing),
        effect=float(max((len(group) for group in groups), default=0)) or None,
        effect_bound=2.0 if groups else None,
        steps=tuple(steps),
        not_modelled=_NOT_MODELLED,
        facts={"acts": acts} if acts else {},
    )
