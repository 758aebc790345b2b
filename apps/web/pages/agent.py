"""What the page of one agent needs: its verdict, what it did, and what is asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from django.db.models import Case, Count, IntegerField, Min, Value, When
from django.urls import reverse

from apps.accounts.permissions import Permission
from apps.agents.models import Agent, AgentDefinition, AgentName, NameChange
from apps.agents.queries import (
    definition_history,
    name_changes,
    named_agents,
    names_of,
)
from apps.engine.agent_contracts import (
    AgentContractSpec,
    Unread,
    named,
    plain_sentence,
    stored_contracts,
    stored_decision,
)
from apps.engine.extraction import (
    AUTOMATIC,
    AUTOMATIC_ORDER,
    DecisionState,
    sentence_of,
)
from apps.engine.masking import COLOURS
from apps.scoring.models import AgentTaskScore, Conduct
from apps.traces.models import Trace
from apps.verdicts.models import AgentVerdict, ProjectVerdict
from apps.web.access import Place
from apps.web.numbers import whole
from apps.web.pages.agent_alone import AlonePart, alone_part
from apps.web.pages.agent_trying import Tried, recent_rows
from apps.web.pages.agent_versions import Version, asked_versions
from apps.web.pages.agents import AgentRow, tools_of
from apps.web.pages.bodies import as_text
from apps.web.pages.scoring_state import ScoringState, scoring_state
from apps.web.pages.task_agreement import word_of
from apps.web.words import WITHOUT_DECISION

MASKED_ON_A_PAGE: Final = 8
TASKS_ON_A_PAGE: Final = 25
MOST_DISTINCT: Final = 10
MOST_COUNTED: Final = 5_000
_COUNTS: Final = ("held", "broken", "undecided", "not_applying")


class HeldContract(msgspec.Struct, frozen=True):
    """One contract of an agent with what it says of all invocations.

    `counts` is `None` where nothing is scored by this version yet. `wrong` says why a
    stored contract cannot be asked any more, `stored` is its text then.
    """

    place: int
    name: str
    says: str
    words: str
    counts: Mapping[str, int] | None
    broken_trace: int | None
    wrong: str = ""
    stored: str = ""

    @property
    def applied(self) -> int:
        """How many applications were not ruled out."""
        counts = self.counts or {}
        return sum(counts.get(name, 0) for name in _COUNTS[:3])

    @property
    def is_undecided(self) -> bool:
        """Whether it applied and none of that could be decided: no share of 0 %."""
        return 0 < self.applied == (self.counts or {}).get("undecided", 0)


class MaskedTrace(msgspec.Struct, frozen=True):
    """A trace that passed although the agent is red in it, and why it is red."""

    trace: Trace
    sentence: str
    step: int | None


class Decided(msgspec.Struct, frozen=True):
    """One decision, or a reason for none, and in how many traces it stands."""

    shown: str
    is_decided: bool
    count: int


class TaskRow(msgspec.Struct, frozen=True):
    """What the agent did over the trials of one task."""

    score: AgentTaskScore
    words: str


class Renamed(msgspec.Struct, frozen=True):
    """A change of a name; `back_to` is the agent it can be given back to, or `None`."""

    row: NameChange
    back_to: int | None


class Naming(msgspec.Struct, frozen=True):
    """Under which names an agent is recorded, and to whom they may be given."""

    names: list[AgentName]
    others: list[Agent]
    history: list[Renamed]
    own_key_is_elsewhere: bool


class Asking(msgspec.Struct, frozen=True):
    """What is asked of an agent now: how its decision is found, what it must hold."""

    number: int
    decision: str
    is_automatic: bool
    unread: Unread | None
    contracts: list[HeldContract]
    history: list[Version]


class AgentPage(msgspec.Struct, frozen=True):
    """Everything about one agent."""

    place: Place
    row: AgentRow
    reasons: list[str]
    gaps: list[str]
    masked: list[MaskedTrace]
    masked_next: str
    tools: list[dict[str, Any]]
    asking: Asking
    automatic_order: Sequence[str]
    distinct: list[Decided]
    counted: int
    is_part: bool
    tasks: list[TaskRow]
    tasks_next: str
    naming: Naming
    refusal: str
    scoring: ScoringState
    recent: list[Tried] | None
    alone: AlonePart

    @property
    def agent(self) -> Agent:
        """The agent itself."""
        return self.row.agent

    @property
    def freeze_refusal(self) -> str:
        """Why the member may not keep cases, "" where they may."""
        return self.place.refusal(Permission.REPLAY)

    @property
    def other_writing(self) -> str:
        """The tools that a person said write, and that it did not call; one a line."""
        called = {tool["name"] for tool in self.tools}
        return "\n".join(
            [name for name in self.agent.writing_tools if name not in called]
        )

    @property
    def restore_url(self) -> str:
        """Where an earlier version is used again."""
        return reverse("agent-restore", args=[self.place.project.slug, self.agent.pk])

    @property
    def models(self) -> list[dict[str, Any]]:
        """The models that it asked with the number of traces."""
        verdict = self.row.verdict
        return [] if verdict is None else list(verdict.detail.get("models", []))

    @property
    def memory(self) -> list[tuple[str, int]]:
        """How planted facts fared, where there were any."""
        found = self.row.evidence
        names = ("recalled", "lost", "contradicted")
        counts = [(name, found.get(name, 0)) for name in names]
        return counts if any(count for _, count in counts) else []

    @property
    def facts(self) -> int:
        """How many planted facts were probed and decided."""
        return sum(count for _, count in self.memory)


def agent_page(place: Place, agent: Agent, query: Mapping[str, str]) -> AgentPage:
    """One agent: a fixed number of queries, bodies only where they are asked for."""
    verdict = AgentVerdict.objects.filter(agent=agent).first()
    detail = {} if verdict is None else verdict.detail
    scoring = scoring_state(place.project.pk)
    masked, masked_next = _masked(agent, query)
    tasks, tasks_next = _tasks(agent, query)
    distinct, counted = _distinct(agent)
    return AgentPage(
        place=place,
        row=AgentRow(agent=agent, verdict=verdict),
        reasons=[one["sentence"] for one in detail.get("reasons", [])],
        gaps=[one["sentence"] for one in detail.get("gaps", [])],
        masked=masked,
        masked_next=masked_next,
        tools=tools_of(agent, verdict),
        asking=_asking(place, agent, detail),
        automatic_order=AUTOMATIC_ORDER,
        distinct=distinct[:MOST_DISTINCT],
        counted=counted,
        is_part=counted == MOST_COUNTED,
        tasks=tasks,
        tasks_next=tasks_next,
        naming=_naming(place, agent),
        refusal=place.refusal(Permission.MANAGE_AGENTS),
        scoring=scoring,
        alone=alone_part(place, agent, detail),
        recent=(
            recent_rows(place.project.pk, agent) if query.get("recent") == "1" else None
        ),
    )


def _masked(agent: Agent, query: Mapping[str, str]) -> tuple[list[MaskedTrace], str]:
    rows = Conduct.objects.filter(agent=agent, is_masked=True, trace__is_replay=False)
    before = whole(query.get("before", ""))
    if before is not None:
        rows = rows.filter(trace_id__lt=before)
    rows = rows.select_related("trace").order_by("-trace_id")
    found = list(rows[: MASKED_ON_A_PAGE + 1])
    shown = found[:MASKED_ON_A_PAGE]
    more = f"?before={shown[-1].trace_id}" if len(found) > MASKED_ON_A_PAGE else ""
    return [_masked_trace(row) for row in shown], more


def _masked_trace(row: Conduct) -> MaskedTrace:
    none: dict[str, Any] = {}
    bad = next((one for one in row.judged if one.get("broken")), none)
    sentence = bad.get("sentence", "")
    if bad.get("name"):
        sentence = f"“{bad['name']}” broke. {sentence}".strip()
    if not sentence:
        sentence = (
            "A person confirmed a finding about it."
            if row.findings
            else "A fact was lost."
        )
    step = bad.get("step")
    return MaskedTrace(row.trace, sentence, None if step is None else step + 1)


def _tasks(agent: Agent, query: Mapping[str, str]) -> tuple[list[TaskRow], str]:
    start = whole(query.get("from", "")) or 0
    worst = Case(
        *[When(colour=one.value, then=Value(at)) for at, one in enumerate(COLOURS)],
        default=Value(len(COLOURS)),
        output_field=IntegerField(),
    )
    recorded = AgentTaskScore.objects.filter(agent=agent, task__is_replay=False)
    rows = recorded.select_related("task")
    rows = rows.defer("detail")
    rows = rows.order_by("-is_masked", worst, "-distinct", "-trials", "task_id")
    found = list(rows[start : start + TASKS_ON_A_PAGE + 1])
    more = f"?from={start + TASKS_ON_A_PAGE}" if len(found) > TASKS_ON_A_PAGE else ""
    return [TaskRow(row, word_of(row).label) for row in found[:TASKS_ON_A_PAGE]], more


def _distinct(agent: Agent) -> tuple[list[Decided], int]:
    """What was decided in the newest traces, the most frequent first, and of how many."""
    recorded = Conduct.objects.filter(agent=agent, trace__is_replay=False)
    newest = recorded.order_by("-trace_id")
    ids = newest.values("trace_id")[:MOST_COUNTED]
    rows = Conduct.objects.filter(agent=agent, trace_id__in=ids)
    counts = (
        rows.values("state", "decision")
        .annotate(count=Count("trace_id"), words=Min("shown"))
        .order_by("-count", "words")
    )
    found = [
        Decided(
            shown=row["words"] or WITHOUT_DECISION[DecisionState(row["state"])],
            is_decided=row["state"] == "decided",
            count=row["count"],
        )
        for row in counts
    ]
    return found, sum(one.count for one in found)


def _asking(place: Place, agent: Agent, detail: Mapping[str, Any]) -> Asking:
    history = definition_history(agent)
    current = history[0] if history else None
    number = 0 if current is None else current.number
    spec = stored_decision(
        None if current is None else current.decision, version=number
    )
    unread = spec if isinstance(spec, Unread) else None
    return Asking(
        number=number,
        decision=spec.sentence if isinstance(spec, Unread) else sentence_of(spec),
        is_automatic=spec == AUTOMATIC,
        unread=unread,
        contracts=_contracts(current, _fresh(place, current, detail)),
        history=asked_versions(history),
    )


def _fresh(
    place: Place, current: AgentDefinition | None, detail: Mapping[str, Any]
) -> dict[int, Mapping[str, Any]]:
    """What was counted by contract, where it was counted by the version that counts."""
    verdict = ProjectVerdict.objects.filter(project=place.project).first()
    settled = None if verdict is None else verdict.settled_at
    if current is None or settled is None or settled < current.created_at:
        return {}
    return {one["place"]: one for one in detail.get("contracts", [])}


def _contracts(
    current: AgentDefinition | None, counted: Mapping[int, Mapping[str, Any]]
) -> list[HeldContract]:
    if current is None:
        return []
    return [
        _held(place, one, current.held[place], counted.get(place))
        for place, one in enumerate(
            stored_contracts(current.held, version=current.number)
        )
    ]


def _held(
    place: int,
    one: AgentContractSpec | Unread,
    plain: Any,
    counts: Mapping[str, Any] | None,
) -> HeldContract:
    unread = one if isinstance(one, Unread) else None
    return HeldContract(
        place=place,
        name=named(plain) or f"Contract {place + 1}",
        says="" if isinstance(one, Unread) else plain_sentence(one),
        words=named(plain, "sentence"),
        counts=None
        if counts is None
        else {name: int(counts[name] or 0) for name in _COUNTS},
        broken_trace=None if counts is None else counts["broken_trace"],
        wrong="" if unread is None else unread.sentence,
        stored="" if unread is None else as_text(plain),
    )


def _naming(place: Place, agent: Agent) -> Naming:
    names = names_of(agent)
    keys = {one.key for one in names}
    agents = named_agents(place.project.pk)
    changes = name_changes(place.project.pk, {*keys, agent.key})
    by_name: dict[str, list[Agent]] = {}
    # Agents that were merged away have no names and can be given one back.
    known = Agent.objects.filter(project=place.project)
    for one in known.filter(name__in={row.before for row in changes}):
        by_name.setdefault(one.name, []).append(one)
    done: set[str] = set()
    history = []
    for row in changes:
        before = by_name.get(row.before, [])
        is_undoable = row.key not in done and row.key in keys and len(before) == 1
        history.append(Renamed(row, before[0].pk if is_undoable else None))
        done.add(row.key)
    return Naming(
        names=names,
        others=[one for one in agents if one.pk != agent.pk],
        history=history,
        own_key_is_elsewhere=agent.key not in keys,
    )
