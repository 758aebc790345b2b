"""The agents of a report: their verdicts, what was masked, and what is asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django.db.models import Count

from apps.accounts.models import User
from apps.agents.models import AgentDefinition, OutcomeDefinition
from apps.agents.queries import Definitions
from apps.engine.agent_contracts import (
    AgentContractSpec,
    OutcomeExpectation,
    Unread,
    expectation_sentence,
    named,
    plain_sentence,
    stored_contracts,
    stored_decision,
    stored_expectations,
)
from apps.engine.extraction.wording import sentence_of
from apps.engine.masking import ReasonCode
from apps.reports.assessment import (
    AgentPart,
    ContractPart,
    DefinitionPart,
    MaskingPart,
)
from apps.reports.inert import one_line
from apps.reports.rates import Rate, rate_of
from apps.reports.words import GONE, utc
from apps.verdicts.models import AgentVerdict, ProjectVerdict

MAX_AGENTS: Final = 200
MAX_MASKINGS: Final = 100
MAX_DEFINITIONS: Final = 200
MAX_CONTRACTS: Final = 60
_MAX_REASONS: Final = 10
_IN_COLUMNS: Final = frozenset(
    {ReasonCode.CONTRACTS_HELD, ReasonCode.FACTS_RECALLED, ReasonCode.TASKS_STABLE}
)
"""Reasons that say what the counts of an agent say."""

Counts = dict[int, list[dict[str, Any]]]
"""What each contract of an agent answered, by the id of the agent."""


def maskings_of(verdict: ProjectVerdict) -> tuple[MaskingPart, ...]:
    """The agents that are masked, the worst first, at most `MAX_MASKINGS`."""
    return tuple(
        MaskingPart(
            agent=one_line(one["agent"]),
            colour=one["colour"],
            sentence=one_line(f"{one['headline']}."),
            traces=_rate(one["traces"]),
            tasks=_rate(one["tasks"]),
            reasons=_sentences(one["reasons"]),
        )
        for one in verdict.detail["report"]["maskings"][:MAX_MASKINGS]
    )


def _rate(share: Mapping[str, Any]) -> Rate:
    return rate_of(share["k"], share["n"])


def _sentences(reasons: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    said = [one_line(one["sentence"], limit=600) for one in reasons]
    return tuple(said[:_MAX_REASONS])


def _telling(reasons: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    telling = [one for one in reasons if one["code"] not in _IN_COLUMNS]
    return _sentences(telling or reasons[:1])


def colours_of(project_id: int) -> dict[str, int]:
    """How many agents have each verdict: one query."""
    rows = (
        AgentVerdict.objects.filter(project_id=project_id)
        .values("colour")
        .annotate(number=Count("pk"))
        .order_by("colour")
    )
    return {row["colour"]: row["number"] for row in rows}


def worst_verdicts(project_id: int) -> list[AgentVerdict]:
    """The `MAX_AGENTS` agents that stand first, masked ones before: one query."""
    rows = AgentVerdict.objects.filter(project_id=project_id).select_related("agent")
    return list(rows.order_by("-rank", "agent_id")[:MAX_AGENTS])


def agent_part(row: AgentVerdict) -> AgentPart:
    """The part of one agent, from the counts that its verdict rests on."""
    of: dict[str, int] = row.evidence
    applied = of["held"] + of["broken"] + of["undecided"]
    unstable = of["drifting"] + of["non_deterministic"]
    return AgentPart(
        id=row.agent_id,
        name=one_line(str(row.agent)),
        colour=row.colour,
        reasons=_telling(row.detail["reasons"]),
        gaps=_sentences(row.detail["gaps"]),
        traces=row.traces,
        tasks=row.tasks,
        invocations=of["invocations"],
        failed=of["failed"],
        contracts=of["contracts"],
        held=rate_of(of["held"], applied),
        broken=of["broken"],
        undecided=of["undecided"],
        not_applying=of["not_applying"],
        stable=rate_of(of["stable"], of["stable"] + unstable + of["insufficient"]),
        drifting=of["drifting"],
        non_deterministic=of["non_deterministic"],
        insufficient=of["insufficient"],
        stable_but_wrong=of["stable_but_wrong"],
        recalled=rate_of(
            of["recalled"], of["recalled"] + of["lost"] + of["contradicted"]
        ),
        findings=of["findings"],
        masked_traces=rate_of(row.masked_traces, row.green_traces),
        masked_tasks=rate_of(row.masked_tasks, row.green_tasks),
    )


def definition_parts(
    asked: Definitions, rows: Sequence[AgentVerdict], *, is_behind: bool
) -> tuple[tuple[DefinitionPart, ...], int]:
    """What is in force, outcomes first, and how many are left out: one query.

    `rows` say what each contract answered; where scores are behind they are not those
    of the contracts in force, so no count is given.
    """
    counts: Counts = (
        {} if is_behind else {r.agent_id: r.detail["contracts"] for r in rows}
    )
    said = [row for row in asked.asked.values() if row.contracts or row.decision]
    said.sort(
        key=lambda row: (str(asked.agents[row.agent_id]).casefold(), row.agent_id)
    )
    writers = {row.created_by_id for row in said}
    writers |= {asked.outcome.created_by_id} if asked.outcome else set()
    users = User.objects.in_bulk({pk for pk in writers if pk is not None})
    parts = [
        _of_agent(row, str(asked.agents[row.agent_id]), users, counts)
        for row in said[:MAX_DEFINITIONS]
    ]
    left_out = len(said) - len(parts)
    if asked.outcome is not None and asked.outcome.expectations:
        parts.insert(0, _of_outcomes(asked.outcome, users))
    return tuple(parts), left_out


def _of_agent(
    row: AgentDefinition, name: str, users: Mapping[int, User], counts: Counts
) -> DefinitionPart:
    answered = {one["place"]: one for one in counts.get(row.agent_id, [])}
    known = row.agent_id in counts
    held = stored_contracts(row.held, version=row.number)
    return DefinitionPart(
        agent=one_line(name),
        number=row.number,
        by=_name_of(row.created_by_id, users),
        at=utc(row.created_at),
        note=one_line(row.note, limit=300),
        decision=_decision_words(row),
        contracts=tuple(
            _contract(
                one, named(row.held[place]), answered.get(place, {}) if known else None
            )
            for place, one in enumerate(held[:MAX_CONTRACTS])
        ),
        left_out=max(0, len(held) - MAX_CONTRACTS),
    )


def _contract(
    spec: AgentContractSpec | Unread, name: str, answered: Mapping[str, int] | None
) -> ContractPart:
    names = ("held", "broken", "undecided", "not_applying")
    counts = {} if answered is None else {name: answered.get(name, 0) for name in names}
    if isinstance(spec, Unread):
        said = one_line(spec.sentence, limit=600)
        return ContractPart(one_line(name or "unnamed"), said, "", **counts)
    return ContractPart(
        name=one_line(spec.name),
        sentence=one_line(plain_sentence(spec), limit=600),
        own_words=one_line(spec.sentence, limit=600),
        **counts,
    )


def _of_outcomes(row: OutcomeDefinition, users: Mapping[int, User]) -> DefinitionPart:
    expected = list(stored_expectations(row.held, version=row.number).items())
    return DefinitionPart(
        agent="",
        number=row.number,
        by=_name_of(row.created_by_id, users),
        at=utc(row.created_at),
        note=one_line(row.note, limit=300),
        decision=_decision_words(row),
        contracts=tuple(_expectation(*one) for one in expected[:MAX_CONTRACTS]),
        left_out=max(0, len(expected) - MAX_CONTRACTS),
    )


def _expectation(task: str, one: OutcomeExpectation | Unread) -> ContractPart:
    sentence = one.sentence if isinstance(one, Unread) else expectation_sentence(one)
    return ContractPart(name=one_line(task), sentence=one_line(sentence, limit=600))


def _decision_words(row: AgentDefinition | OutcomeDefinition) -> str:
    spec = stored_decision(row.decision, version=row.number)
    sentence = spec.sentence if isinstance(spec, Unread) else sentence_of(spec)
    return one_line(sentence, limit=600)


def _name_of(pk: int | None, users: Mapping[int, User]) -> str:
    user = None if pk is None else users.get(pk)
    return GONE if user is None else one_line(user.label)
