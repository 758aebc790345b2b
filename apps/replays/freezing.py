"""Freezing what an agent of a stored trace was given into a case."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Final

import msgspec

from apps.agents.models import Agent, AgentName
from apps.agents.queries import names_of
from apps.engine.agent_names import agent_key
from apps.engine.conduct import conducts_of
from apps.engine.replay.case import Case
from apps.engine.replay.freezing import NothingToFreeze, frozen_case
from apps.engine.trace import StepKind
from apps.replays.cases import Kept, Origin, WrongCase, keep_cases
from apps.replays.models import CaseSource
from apps.traces.contents import packed_size, packed_sizes
from apps.traces.models import KINDS, Step, Task, Trace
from apps.traces.queries import engine_trace

MOST_STEPS: Final = 20_000
LARGEST: Final = 32 * 1024**2
"""Steps, and bytes of packed texts, of the largest trace that a page freezes from."""

_ACTS: Final = tuple(
    KINDS.index(kind)
    for kind in (
        *(StepKind.MODEL_CALL, StepKind.TOOL_CALL, StepKind.HANDOFF, StepKind.AGENT),
        *(StepKind.RETRIEVAL, StepKind.MEMORY),
    )
)

MOST_TRIALS: Final = 200
MOST_CASES: Final = 500


class Frozen(msgspec.Struct, frozen=True):
    """The cases that were kept, and a sentence for each trace that gave none."""

    kept: list[Kept]
    left_out: list[str]

    @property
    def new(self) -> int:
        """How many of the cases were not kept before."""
        return len({one.case.pk for one in self.kept if one.is_new})


def freeze_invocation(
    *, trace: Trace, invocation: int | None, user_id: int | None, now: datetime
) -> Kept:
    """Keep what one agent invocation of a trace was given as a case of that agent.

    `None` stands for what no named agent did. The same content is kept once. Raises
    `WrongCase` where nothing can be frozen, or the agent is not known yet.
    """
    if refused := refused_size(trace, packed_sizes([trace.pk])[trace.pk]):
        raise WrongCase(refused)
    content = engine_trace(trace)
    agent = _agent_called(trace.project_id, _name_in(content.invocations, invocation))
    try:
        case = frozen_case(
            content, invocation, writing_tools=frozenset(agent.writing_tools)
        )
    except NothingToFreeze as error:
        raise WrongCase(str(error)) from None
    kept = keep_cases(
        agent=agent,
        cases=[case],
        origin=Origin(CaseSource.TRACE, trace, invocation),
        user_id=user_id,
        now=now,
    )
    return kept[0]


def freeze_task(
    *, task: Task, agent: Agent, user_id: int | None, now: datetime
) -> Frozen:
    """Keep what an agent was given in each trial of a task: one case an invocation.

    Equal inputs of several trials are one case. Raises `WrongCase` where a case is too
    large, or no trial gave one.
    """
    rows = Trace.objects.filter(task=task).order_by("trial", "id")[:MOST_TRIALS]
    traces = list(rows.select_related("task"))
    sizes = packed_sizes([trace.pk for trace in traces])
    keys = {one.key for one in names_of(agent)}
    kept: list[Kept] = []
    left_out: list[str] = []
    for trace in traces:
        label = trace.name or f"trace {trace.pk}"
        refused = refused_size(trace, sizes[trace.pk])
        found = [] if refused else list(_cases_of(trace, agent, keys))
        if not found:
            left_out.append(f"{label}: {refused or 'it does not act there.'}")
        for number, case in found:
            kept += keep_cases(
                agent=agent,
                cases=[case],
                origin=Origin(CaseSource.TRACE, trace, number),
                user_id=user_id,
                now=now,
            )
        if len(kept) >= MOST_CASES:
            left_out.append(f"No more than {MOST_CASES:,} cases are frozen at once.")
            break
    if not kept:
        raise WrongCase(f"“{agent}” acts in no trial of this task that can be frozen.")
    return Frozen(kept, left_out)


def refused_size(trace: Trace, packed: int) -> str:
    """Why a trace is too large to freeze from a page, "" where it is not."""
    if trace.step_count <= MOST_STEPS and packed <= LARGEST:
        return ""
    return (
        f"It has more than {MOST_STEPS:,} steps or {LARGEST // 1024**2} MiB of packed "
        "texts; freeze a case of it from a file."
    )


def _cases_of(
    trace: Trace, agent: Agent, keys: set[str]
) -> Iterator[tuple[int | None, Case]]:
    content = engine_trace(trace)
    for conduct in conducts_of(content):
        if agent_key(conduct.agent) not in keys:
            continue
        for one in conduct.invocations:
            yield (
                one.number,
                frozen_case(
                    content, one.number, writing_tools=frozenset(agent.writing_tools)
                ),
            )


def _name_in(invocations: tuple[object, ...], number: int | None) -> str:
    if number is None:
        return ""
    if not 0 <= number < len(invocations):
        raise WrongCase("This trace has no such agent invocation.")
    return getattr(invocations[number], "agent", None) or ""


def _agent_called(project_id: int, name: str) -> Agent:
    key = agent_key(name)
    row = (
        AgentName.objects.filter(project_id=project_id, key=key)
        .select_related("agent")
        .first()
    )
    if row is None:
        raise WrongCase(unknown_agent(name))
    return row.agent


def unknown_agent(name: str) -> str:
    """That a project does not know an agent of this recorded name yet, as a sentence."""
    called = f"“{name}”" if name else "what no named agent did"
    return (
        f"The project does not know {called} as an agent yet: that comes once the trace "
        "is scored."
    )


def known_keys(project_id: int, keys: Collection[str]) -> set[str]:
    """Which of these normalised names a project knows as agents. One query."""
    rows = AgentName.objects.filter(project_id=project_id, key__in=keys)
    return set(rows.values_list("key", flat=True))


class Acts(msgspec.Struct, frozen=True):
    """Who may have done something in a trace, and the bytes of its packed texts.

    `owners` are numbers of invocations, and `None` for no invocation. Of all others no
    case can be made, for they have no step that can be an act.
    """

    owners: frozenset[int | None]
    packed: int


def acts_in(trace: Trace) -> Acts:
    """The acts of a trace. One query; without an act the bytes are not looked up."""
    rows = Step.objects.filter(trace_id=trace.pk, kind__in=_ACTS).order_by()
    found = rows.annotate(packed=packed_size(trace.pk)).values_list(
        "invocation", "packed"
    )
    acts = list(found.distinct())
    return Acts(
        owners=frozenset(owner for owner, _ in acts),
        packed=acts[0][1] if acts else 0,
    )
