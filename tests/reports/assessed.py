"""What documents say of agents and trials, made by hand to exercise the renderers."""

from __future__ import annotations

from typing import Any

import msgspec

from apps.reports.assessment import (
    AgentPart,
    AnswerPart,
    AssessmentPart,
    BranchPart,
    CasePart,
    ConsistencyPart,
    ContractPart,
    DefinitionPart,
    ForkPart,
    ForksPart,
    LossPart,
    MaskingPart,
    MemoriesPart,
    MemoryPart,
    MirrorPart,
    NotePart,
    OutcomesPart,
    PatternPart,
    RulePart,
    StandingPart,
    UnstablePart,
)
from apps.reports.document import HeadlinePart
from apps.reports.rates import rate_of

MASKED = HeadlinePart(
    status="masked",
    title="Masking: 1 agent red or unstable behind outcomes that passed",
    sentence="memory is red in 5 of 12 traces that passed.",
)


def agent(name: str, **changes: Any) -> AgentPart:
    part = AgentPart(
        id=3,
        name=name,
        colour="red",
        reasons=("Contracts broke in 5 of 12 of their applications.",),
        gaps=("Contracts that could not be decided: 1 of 12.",),
        traces=12,
        tasks=4,
        invocations=12,
        failed=0,
        contracts=2,
        held=rate_of(6, 12),
        broken=5,
        undecided=1,
        not_applying=3,
        stable=rate_of(1, 4),
        drifting=1,
        non_deterministic=1,
        insufficient=1,
        stable_but_wrong=0,
        recalled=rate_of(1, 3),
        findings=1,
        masked_traces=rate_of(5, 12),
        masked_tasks=rate_of(1, 2),
    )
    return msgspec.structs.replace(part, **changes)


def assessed(text: str = "memory", note: str = "", **changes: Any) -> AssessmentPart:
    """An assessment with one of everything; every text from outside is `text`."""
    case = CasePart(7, text, text)
    contract = ContractPart(text, text, text, 6, 5, 1, 3)
    part = AssessmentPart(
        standing=StandingPart(0, is_behind=False, settled_at="2026-11-30T07:00:00Z"),
        sentence=text or "Nothing is said.",
        traces=OutcomesPart(15, passed=12, failed=2, unknown=1, all_green=1),
        tasks=OutcomesPart(5, passed=2, failed=1, mixed=1, unknown=1, all_green=1),
        maskings=(
            MaskingPart(
                text, "red", text, rate_of(5, 12), rate_of(1, 2), ("Contracts broke.",)
            ),
        ),
        agent_count=2,
        colours={"red": 1, "unknown": 1},
        agents=(
            agent(text),
            agent(text, id=4, colour="unknown", traces=0, contracts=0, undecided=0),
        ),
        mirror=MirrorPart(traces=(case,), tasks=(case,)),
        consistency=ConsistencyPart(
            tasks=5,
            by_verdict={
                "stable": 1,
                "drifting": 1,
                "non_deterministic": 1,
                "insufficient": 2,
            },
            stable_but_wrong=1,
            unstable=3,
            least_stable=(
                UnstablePart(
                    task_id=9,
                    task=text,
                    agent=text,
                    verdict="non_deterministic",
                    agreement=rate_of(2, 4),
                    distinct=3,
                    answers=(
                        AnswerPart(text, 2),
                        AnswerPart("missing", 1, is_decision=False),
                    ),
                    distinct_inputs=4,
                ),
            ),
        ),
        forks=ForksPart(
            mixed=2,
            decisive=1,
            listed=(
                ForkPart(
                    task_id=9,
                    task=text,
                    passed=rate_of(2, 4),
                    forks=3,
                    sentence=text,
                    is_decisive=True,
                    first_step=4,
                    last_step=6,
                    p=0.33,
                    branches=(
                        BranchPart(text, 2, rate_of(2, 2)),
                        BranchPart(text, 2, rate_of(0, 0)),
                    ),
                    branches_left_out=1,
                ),
            ),
        ),
        memory=MemoriesPart(
            traces=3,
            facts=(
                MemoryPart(
                    "declared",
                    text,
                    rate_of(1, 3),
                    1,
                    1,
                    {"not_told": 2},
                    {"ignored": 1},
                ),
            ),
            losses=(
                LossPart(7, text, "declared", text, "lost", text, "ignored", text),
            ),
        ),
        patterns=(
            PatternPart(
                target="unstable",
                sentence="1 rule beats chance: unstable in 9 of 30 runs, 80 rules tried.",
                rules=(
                    RulePart(
                        words=text,
                        inside=rate_of(8, 9),
                        outside=rate_of(1, 21),
                        lift=3.0,
                        p=0.005,
                        is_smallest_p=True,
                        tasks=6,
                        near=(text,),
                    ),
                ),
                made_at="2026-11-30T07:01:00Z",
                is_current=False,
            ),
        ),
        notes=(
            NotePart(
                case,
                kind="right_by_luck",
                outcome="green",
                note=note,
                by=text,
                at="2026-11-30T07:02:00Z",
                step=3,
            ),
        ),
        definitions=(
            DefinitionPart(
                text, 3, text, "2026-11-29T10:00:00Z", text, text, (contract,)
            ),
            DefinitionPart(
                "",
                1,
                text,
                "2026-11-29T10:00:00Z",
                "",
                text,
                (ContractPart(text, text),),
            ),
        ),
    )
    return msgspec.structs.replace(part, **changes)
