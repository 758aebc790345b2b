"""Retry storm: one call of a model or a tool tried many times.

Counts attempts that the structure shows to be of one call. It does not say that
retrying was wrong: a busy service is best asked again.
"""

from __future__ import annotations

from collections import Counter
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
from apps.engine.sequence_answers import evidence_of_agent, evidence_of_tools
from apps.engine.sequences import (
    AgentCalls,
    Attempts,
    ToolSequence,
    agent_calls,
    attempts_of,
    tool_sequences,
)
from apps.engine.trace import ModelCall, OrderSource, Step, StepStatus, ToolCall, Trace

_NOT_MODELLED: Final = (
    "Retries inside a client library, which leave no record.",
    "A tool that the model asks for once more: that is another call.",
    "Limits of a service: waiting and asking again is then what should happen.",
)
_FILE_ORDER: Final = (
    "The order is that of the file: nothing proves that no two attempts overlapped."
)
_MOST_LISTED: Final = 20
_ENDED: Final = {StepStatus.OK: True, StepStatus.ERROR: False}
_SECOND: Final = 1_000_000_000


class _Owner(msgspec.Struct):
    """The calls of one agent invocation, or of what none owns, and their attempts."""

    calls: AgentCalls | None = None
    tools: ToolSequence | None = None
    attempts: list[Attempts] = []

    @property
    def steps(self) -> list[Step]:
        """Every call of the owner that is recorded, of models and then of tools."""
        of_models = [] if self.calls is None else [e.step for e in self.calls.calls]
        return of_models if self.tools is None else [*of_models, *self.tools.calls]

    def evidence(self, **more: Any) -> Evidence:
        """Where the calls lie; the weaker order of the two stands for both."""
        tools, calls = self.tools, self.calls
        if tools is not None and (calls is None or tools.order is OrderSource.FILE):
            return evidence_of_tools(tools, **more)
        if calls is not None:
            return evidence_of_agent(calls, **more)
        return Evidence(scope="trace", **more)


@dataclass(frozen=True)
class RetryStorm(Rule):
    """Looks for one call of an agent invocation that was attempted many times.

    `min_attempts` (2 to 100) is how many attempts of one call are a signal, the first
    included. Raises `ValueError` outside this range.
    """

    min_attempts: int = 3

    slug = "retry-storm"
    label = "Retry storm"
    version = 1
    level = Level.REVIEW_SIGNAL
    basis = Basis.FACT
    needs_bodies = False
    limits = (
        Parameter("min_attempts", "Attempts of one call", 2, 100, unit="attempts"),
    )
    observes = (
        "How often one call of an agent invocation was attempted. Of a model: where a "
        "later call says that it retries it, or follows its failure with the same "
        "model. Of a tool: where the same name follows a failure without the model "
        "being asked in between."
    )
    null_model = (
        "None: attempts are counted. A failure that lasts fails every attempt, so no "
        "order of them is called random."
    )
    next_step = (
        "See what failed and whether the last attempt got through. Look at the time "
        "and the tokens it took, and at the retry settings of the client: how many "
        "attempts, how long between them, and for which errors."
    )

    @property
    def material_when(self) -> str:
        """How many attempts of one call are a signal."""
        return (
            f"One call was attempted at least {self.min_attempts} times, the first "
            "attempt included, whether or not the last one succeeded."
        )

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer for each owner of calls, or one that there are none."""
        owners = _owners(trace)
        if not owners:
            yield _no_calls(self.slug)
        for owner in owners:
            yield self._screening(owner)

    def _screening(self, owner: _Owner) -> Screening:
        steps = owner.steps
        known = sum(1 for step in steps if step.status in _ENDED)
        attempts = sorted(owner.attempts, key=_by_size)
        evidence = owner.evidence(
            length=len(steps),
            steps=tuple(sorted([step.seq for step in steps])),
            facts={"statuses_known": known, "retried_calls": len(attempts)},
        )
        said = self._judged(len(steps), known, attempts)
        if said.answer is Answer.SIGNAL:
            evidence = self._with_storms(evidence, attempts)
        listed = [_read(one) for one in attempts]
        inputs = hash_of_inputs(
            self.slug, evidence.scope, evidence.order, len(steps), known, listed
        )
        return said.with_evidence(evidence, inputs)

    def _judged(self, n: int, known: int, attempts: list[Attempts]) -> Judgement:
        calls = f"{n} {'call' if n == 1 else 'calls'} of models and tools"
        if n < self.min_attempts:
            text = f"{calls}, needs {self.min_attempts}"
            return Judgement(
                Answer.NOT_APPLICABLE,
                "too_few_calls",
                text,
                f"{text}: fewer cannot hold as many attempts.",
            )
        if not known and not attempts:
            return Judgement(
                Answer.NOT_APPLICABLE,
                "no_status",
                f"No status on {calls}",
                f"None of {calls} records how it ended or which one it retries, so "
                "attempts of one call cannot be told from new calls.",
            )
        if attempts and len(attempts[0].steps) >= self.min_attempts:
            return _storm(attempts, self.min_attempts)
        if attempts:
            again = f"{len(attempts)} of {calls} {_was(len(attempts))} attempted again"
            return Judgement(
                Answer.QUIET,
                "few_attempts",
                f"No call attempted {self.min_attempts} times",
                f"{again}; the most attempts of one are {len(attempts[0].steps)}.",
            )
        return Judgement(
            Answer.QUIET,
            "no_retries",
            "No call attempted again",
            f"None of {calls} is recorded as another attempt of one before. {known} of "
            f"them {'records how it' if known == 1 else 'record how they'} ended.",
        )

    def _with_storms(self, evidence: Evidence, attempts: list[Attempts]) -> Evidence:
        worst = attempts[0]
        storms = [one for one in attempts if len(one.steps) >= self.min_attempts]
        by_file = evidence.order is not None and "file" in evidence.order
        return msgspec.structs.replace(
            evidence,
            steps=tuple([step.seq for step in worst.steps]),
            effect=float(len(worst.steps)),
            effect_bound=float(self.min_attempts),
            not_modelled=_NOT_MODELLED + ((_FILE_ORDER,) if by_file else ()),
            facts=evidence.facts
            | {
                "storms": len(storms),
                "attempts": [_described(one) for one in storms[:_MOST_LISTED]],
            },
        )


def _owners(trace: Trace) -> list[_Owner]:
    """The owners of calls, invocations before the rest."""
    found: dict[int | None, _Owner] = {}
    for calls in agent_calls(trace):
        found[calls.invocation] = _Owner(calls=calls)
    for tools in tool_sequences(trace):
        found.setdefault(tools.invocation, _Owner()).tools = tools
    for attempts in attempts_of(trace):
        found[attempts.invocation].attempts.append(attempts)
    if len(found) == 1:
        return list(found.values())
    return [found[key] for key in sorted(found, key=_invocations_first)]


def _invocations_first(invocation: int | None) -> tuple[bool, int]:
    return (invocation is None, invocation or 0)


def _by_size(attempts: Attempts) -> tuple[int, int]:
    """The most attempts first, then what came first in the trace."""
    return (-len(attempts.steps), attempts.steps[0].seq)


def _read(attempts: Attempts) -> tuple[str, list[StepStatus]]:
    return _name(attempts), [step.status for step in attempts.steps]


def _name(attempts: Attempts) -> str:
    call = attempts.steps[0].call
    if isinstance(call, ToolCall):
        return call.name
    model = call.model if isinstance(call, ModelCall) else None
    return model or "a model"


def _described(attempts: Attempts) -> dict[str, Any]:
    """One storm as figures; `seconds` from its first start to its last start."""
    steps = attempts.steps
    first, last = steps[0].start_ns, steps[-1].start_ns
    seconds = None if first is None or last is None else (last - first) / _SECOND
    return {
        "called": _name(attempts),
        "kind": "tool" if attempts.is_tool else "model",
        "attempts": len(steps),
        "failed": sum(1 for step in steps if step.status is StepStatus.ERROR),
        # None where the last attempt does not say how it ended.
        "succeeded": _ENDED.get(steps[-1].status),
        "error_types": dict(Counter(s.error_type for s in steps if s.error_type)),
        "seconds": seconds,
        "first_step": steps[0].seq,
    }


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _storm(attempts: list[Attempts], least: int) -> Judgement:
    worst = attempts[0]
    n, called = len(worst.steps), _name(worst)
    kind = "tool" if worst.is_tool else "model"
    ended = (
        "The last attempt is not recorded as failed."
        if worst.succeeded
        else "The last attempt failed too."
    )
    storms = sum(1 for one in attempts if len(one.steps) >= least)
    others = f" {storms} calls were attempted as often or more." if storms > 1 else ""
    return Judgement(
        Answer.SIGNAL,
        "storm" if worst.succeeded else "storm_in_vain",
        f"One {kind} call attempted {n} times",
        f"One call of {called} was attempted {n} times. {ended}{others} A prompt to "
        "look closer, not by itself a finding.",
        Level.REVIEW_SIGNAL,
    )


def _no_calls(slug: str) -> Screening:
    said = Judgement(
        Answer.NOT_APPLICABLE,
        "no_calls",
        "No calls recorded",
        "The trace holds no call of a model or a tool, so none was attempted again.",
    )
    return nothing_read(said, slug)
