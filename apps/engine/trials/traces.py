"""The score of one trace: what each agent decided, and what was asked of it there."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from apps.engine.agent_contracts import (
    AgentJudgement,
    ContractState,
    Unread,
    expectation_for,
    judge,
    outcome_verdict,
)
from apps.engine.bodies.canonical import canonical, opened
from apps.engine.branching import has_uncertain_order, packed, points_of
from apps.engine.conduct import (
    Conduct,
    InvocationConduct,
    conducts_of,
    temperature_of,
    whole_conduct,
)
from apps.engine.extraction import DecisionSpec, DecisionState, Extracted, extracted
from apps.engine.masking import AgentEvidence, Extent, verdict_of
from apps.engine.memory import Recall, Source, State, detected_reuse, memory_of
from apps.engine.patterns.features import features_of
from apps.engine.trace import StepKind, Trace
from apps.engine.trials.asked import AgentAsked, Asked
from apps.engine.trials.scores import ConductScore, Decided, TraceScore

LONGEST_DECISION: Final = 2_000
_MOST_TOOLS: Final = 200
_LONGEST_SENTENCE: Final = 500
_DEEPEST_SHAPE: Final = 8
_NO_DECISION_POINT: Final = frozenset({StepKind.TOOL_CALL, StepKind.HANDOFF})


def score_trace(
    trace: Trace, asked: Asked | None = None, findings: Sequence[str] = ()
) -> TraceScore:
    """Score one trace by what is asked of its system.

    `findings` are the recorded names of the agents at which a person confirmed a
    signal, "" for the trace as a whole, which is about its agent where it has only one;
    one entry per finding. Steps in any order give the same answer. Never raises for
    what a trace can hold.
    """
    asked = Asked() if asked is None else asked
    recalls = memory_of(trace, asked.facts) + detected_reuse(trace)
    conducts = merged_conducts(trace, asked)
    only = conducts[0][0] if len(conducts) == 1 else None
    found = [asked.agent_of(name) if name else only for name in findings]
    expected = expectation_for(trace.task, asked.expectations)
    outcome = outcome_verdict(trace.outcome, expected)
    decided = [
        (conduct, _extracted(conduct, asked.of(key).decision))
        for key, conduct in conducts
    ]
    return TraceScore(
        outcome=outcome.colour.value,
        outcome_reason=outcome.sentence,
        decided=_whole(trace, asked.decision),
        points=packed(points_of(trace, extra=_answers(trace, decided))),
        is_order_uncertain=has_uncertain_order(trace),
        recalls=tuple([msgspec.to_builtins(one) for one in recalls]),
        conducts=tuple(
            [
                _conduct_score(
                    _Scoring(trace, key, asked.of(key)),
                    conduct,
                    answer,
                    [one for one in recalls if _is_of(one, key, asked)],
                    found.count(key),
                )
                for (key, conduct), (_, answer) in zip(conducts, decided, strict=True)
            ]
        ),
    )


def merged_conducts(trace: Trace, asked: Asked) -> list[tuple[str, Conduct]]:
    """What each agent did, by the key of the agent that its names stand for."""
    by_key: dict[str, list[Conduct]] = {}
    for conduct in conducts_of(trace):
        by_key.setdefault(asked.agent_of(conduct.agent), []).append(conduct)
    return [(key, _joined(found)) for key, found in by_key.items()]


def _joined(conducts: Sequence[Conduct]) -> Conduct:
    if len(conducts) == 1:
        return conducts[0]
    invocations = [one for conduct in conducts for one in conduct.invocations]
    invocations.sort(key=lambda one: one.steps[0].seq)
    return Conduct(conducts[0].agent, tuple(invocations))


class _Scoring(msgspec.Struct, frozen=True):
    """Which agent is scored in which trace, and what is asked of it."""

    trace: Trace
    key: str
    asked: AgentAsked


def _conduct_score(
    scoring: _Scoring,
    conduct: Conduct,
    answer: Extracted,
    recalls: Sequence[Recall],
    findings: int,
) -> ConductScore:
    judgement = judge(
        conduct,
        scoring.asked.contracts,
        decision=scoring.asked.decision,
        task=scoring.trace.task,
    )
    counts = judgement.counts
    states = Counter(one.state for one in recalls if one.source is Source.DECLARED)
    failures = sum(one.has_failed for one in conduct.invocations)
    verdict = verdict_of(
        AgentEvidence(
            agent=scoring.key,
            extent=Extent.TRACE,
            traces=1,
            invocations=len(conduct.invocations),
            failed=failures,
            contracts=judgement.contracts,
            contracts_applied=sum(one.applied > 0 for one in judgement.by_contract),
            held=counts.held,
            broken=counts.broken,
            undecided=counts.undecided,
            not_applying=counts.does_not_apply,
            recalled=states[State.RECALLED],
            lost=states[State.LOST],
            contradicted=states[State.CONTRADICTED],
            findings=findings,
            unread=scoring.asked.unread,
        )
    )
    return ConductScore(
        agent=scoring.key,
        name=conduct.agent,
        decided=_decided(conduct, answer, features_of(conduct, scoring.trace)),
        invocations=len(conduct.invocations),
        failures=failures,
        calls=len(conduct.calls),
        tools=dict(Counter(c.name for c in conduct.calls).most_common(_MOST_TOOLS)),
        models=tuple(
            dict.fromkeys(name for one in conduct.invocations for name in one.models)
        ),
        held=counts.held,
        broken=counts.broken,
        undecided=counts.undecided,
        not_applying=counts.does_not_apply,
        judged=tuple(_judged(judgement, scoring.asked.unread)),
        recalled=states[State.RECALLED],
        lost=states[State.LOST],
        contradicted=states[State.CONTRADICTED],
        findings=findings,
        colour=verdict.colour.value,
        reasons=tuple([reason.sentence for reason in verdict.reasons]),
    )


def _judged(
    judgement: AgentJudgement, unread: Sequence[str]
) -> Iterable[dict[str, Any]]:
    """One JSON value per contract: its counts, and the first answer that did not hold.

    The first of them carries what could not be read of all that is asked.
    """
    for place, counts in enumerate(judgement.by_contract):
        answers = [one for one in judgement.entries if one.contract == place]
        bad = [
            one
            for state in (ContractState.BROKEN, ContractState.UNDECIDED)
            for one in answers
            if one.answer.state is state
        ]
        said: dict[str, Any] = {
            "name": answers[0].name if answers else "",
            "held": counts.held,
            "broken": counts.broken,
            "undecided": counts.undecided,
            "not_applying": counts.does_not_apply,
        }
        if bad:
            said["sentence"] = bad[0].answer.sentence[:_LONGEST_SENTENCE]
            said["step"] = bad[0].answer.step
            said["invocation"] = bad[0].invocation
        if unread and not place:
            said["unread"] = list(unread)
        yield said


def _whole(trace: Trace, decision: DecisionSpec | Unread) -> Decided:
    conduct = whole_conduct(trace)
    answer = _extracted(conduct, decision)
    return _decided(conduct, answer, features_of(conduct, trace))


def _extracted(conduct: Conduct, decision: DecisionSpec | Unread) -> Extracted:
    if isinstance(decision, Unread):
        return Extracted(DecisionState.MISSING, how=decision.sentence)
    return extracted(conduct, decision)


def _decided(conduct: Conduct, answer: Extracted, features: dict[str, Any]) -> Decided:
    last = conduct.invocations[-1]
    value = answer.value
    if len(value) > LONGEST_DECISION:
        # A text of its own length is compared as a whole all the same.
        value = f"{value[: LONGEST_DECISION - 24]} sha256:{_hash(value)}"
    return Decided(
        state=answer.state.value,
        decision=value,
        shown=answer.shown,
        how=answer.how,
        step=answer.step,
        exact=_hash_of(last.output),
        structure=_structure(last),
        input=_hash_of(conduct.invocations[0].input),
        temperature=temperature_of(conduct),
        features=features,
    )


def _answers(
    trace: Trace, decided: Iterable[tuple[Conduct, Extracted]]
) -> dict[int, tuple[str, str]]:
    """Extracted answers as decision points, but those that a tool call is already."""
    kinds = {step.seq: step.kind for step in trace.steps}
    found: dict[int, tuple[str, str]] = {}
    for conduct, answer in decided:
        step = answer.step
        if answer.state is not DecisionState.DECIDED or step is None:
            continue
        if kinds.get(step) not in _NO_DECISION_POINT:
            name = conduct.agent or "answer"
            found[step] = (f"{name} {answer.value}", f"{name}: {answer.shown}")
    return found


def _is_of(recall: Recall, key: str, asked: Asked) -> bool:
    return asked.agent_of(recall.agent) == key


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _hash_of(value: Any) -> str:
    return "" if value is None else _hash(canonical(value))


def _structure(one: InvocationConduct) -> str:
    """What was called in which order, and which fields the output has."""
    if one.output is None and not one.calls:
        return ""
    called = [sorted(call.name for call in each.calls) for each in one.rounds]
    return _hash_of([called, _shape(opened(one.output), 0)])


def _shape(value: Any, depth: int) -> Any:
    if depth > _DEEPEST_SHAPE:
        return "…"
    if isinstance(value, dict):
        return {str(key): _shape(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_shape(item, depth + 1) for item in value[:100]]
    return "null" if value is None else type(value).__name__
