"""Targets, cases and batches made through operations, for tests that need rows."""

from __future__ import annotations

from apps.accounts.models import Project
from apps.agents.models import Agent, AgentName
from apps.agents.operations import add_agent
from apps.engine.replay.case import Case, RecordedCall
from apps.engine.replay.run import Regime, TargetKind
from apps.replays.cases import Origin, keep_cases
from apps.replays.models import Batch, CaseSource, ReplayCase, Target
from apps.replays.planning import Caps, NewBatch, Plan, start_batch
from apps.replays.target_settings import Allowed
from apps.replays.targets import NewTarget, add_target, current_version
from tests.factories import NOW

ALLOWED = Allowed(
    refused_url=lambda url: "" if "inside" not in url else "It lies inside.",
    callables=("agents.memory:run",),
    commands=("/opt/agents/memory",),
)
MODEL = {"base_url": "https://models.example/v1", "model": "small"}
LOOKED_UP = RecordedCall(tool="lookup", arguments={"number": 7}, result="open")


def make_agent(project: Project, name: str = "memory") -> Agent:
    return add_agent(project_id=project.pk, name=name, now=NOW)


def make_nameless(project: Project) -> Agent:
    """What no named agent did, as an agent of the project: as scoring finds it."""
    agent = Agent.objects.create(project=project, key="", created_at=NOW)
    AgentName.objects.create(project=project, key="", agent=agent)
    return agent


def make_target(agent: Agent, name: str = "Small model", **more) -> Target:
    new = NewTarget(name=name, kind=TargetKind.OPENAI, settings={**MODEL, **more})
    return add_target(agent=agent, new=new, allowed=ALLOWED, user_id=None, now=NOW)


def make_case(agent: Agent, text: str = "Is order 7 open?", **more) -> ReplayCase:
    case = Case(agent=agent.name, input=text, calls=(LOOKED_UP,), **more)
    [kept] = keep_cases(
        agent=agent,
        cases=[case],
        origin=Origin(CaseSource.HAND),
        user_id=None,
        now=NOW,
    )
    return kept.case


def make_batch(target: Target, *cases: ReplayCase, repeats: int = 2, **more) -> Batch:
    caps = more.pop("caps", Caps())
    plan = Plan(repeats=repeats, regimes=more.pop("regimes", (Regime(),)), **more)
    return start_batch(
        version=current_version(target.pk),
        cases=cases,
        new=NewBatch(name="A batch", plan=plan, caps=caps),
        user_id=None,
        now=NOW,
    )
