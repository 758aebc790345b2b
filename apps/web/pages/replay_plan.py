"""What the planner of a batch needs: the form, its choices, and what it may cost."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec
from django import forms
from django.db.models import Count, QuerySet
from django.http import QueryDict
from django.urls import reverse

from apps.agents.models import Agent
from apps.agents.queries import agents_behind, named_agents
from apps.engine.replay.case import Case
from apps.engine.replay.estimates import Estimate, TargetSettings, estimate
from apps.engine.replay.paraphrases import DECLARED
from apps.engine.replay.prices import PriceTable
from apps.engine.replay.regimes import applicable, regime_in_words, regimes_of
from apps.engine.replay.run import TargetKind
from apps.engine.replay.stub_plan import StubPlan, encoded_plan
from apps.replays.cases import case_of
from apps.replays.models import ReplayCase, Target
from apps.replays.planning import NewBatch, Plan, limits_at, stored_estimate
from apps.replays.prices_file import known_prices, price_of
from apps.replays.queries import CaseFilter, TargetRow, cases_of, target_rows
from apps.review.models import Signal
from apps.web.access import Place
from apps.web.pages.replay_estimate import EstimatePart, estimate_part
from apps.web.replay_batch_forms import BatchForm, model_of
from apps.web.replay_plan_forms import PlanForm, StubForm, stub_plan
from apps.web.words import number_in_words

MOST_LISTED: Final = 200
MOST_UNPACKED: Final = 60
NOT_SENT: Final = frozenset({"csrfmiddlewaretoken", "act", "seen"})


class Planned(msgspec.Struct, frozen=True):
    """A batch that can be started, and what it may cost.

    `stamp` changes with anything in it, so that what is started is what was shown.
    """

    target: TargetRow
    cases: list[ReplayCase]
    new: NewBatch
    estimate: EstimatePart
    facts: list[tuple[str, str]]

    @property
    def stamp(self) -> str:
        """32 hex digits over the plan, its cases, the version and the estimate."""
        value = [
            self.target.version.pk,
            [one.pk for one in self.cases],
            msgspec.to_builtins(self.new, str_keys=True),
        ]
        return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:32]


class AgentChoice(msgspec.Struct, frozen=True):
    """An agent, and how much is there to run it alone with."""

    agent: Agent
    targets: int
    cases: int


class ChooseAgentPage(msgspec.Struct, frozen=True):
    """The agents of which a batch can be planned, those with a target first."""

    place: Place
    agents: list[AgentChoice]
    query: str
    is_memory: bool


class PlanPage(msgspec.Struct, frozen=True):
    """The planner of one agent."""

    place: Place
    agent: Agent
    form: PlanForm
    stubs: list[StubForm]
    estimate: EstimatePart | None
    is_cut: bool
    retired_why: str
    signal: Signal | None = None

    @property
    def is_signal_frozen(self) -> bool:
        """Whether a listed case was frozen from the trace of the signal."""
        found = self.signal
        return found is not None and any(
            one.trace_id == found.trace_id for one in self.form.cases.values()
        )


class ConfirmPage(msgspec.Struct, frozen=True):
    """What will be started, with every field of the form hidden in it."""

    place: Place
    agent: Agent
    planned: Planned
    hidden: list[tuple[str, str]]
    act_url: str
    said: str


def choose_agent_page(
    place: Place, query: str, *, is_memory: bool = False
) -> ChooseAgentPage:
    """The agents of a project, for a batch or for a memory test."""
    targets = _counts(place, Target.objects.all())
    cases = _counts(place, ReplayCase.objects.all())
    rows = [
        AgentChoice(one, targets.get(one.pk, 0), cases.get(one.pk, 0))
        for one in named_agents(place.project.pk)
    ]
    rows.sort(key=lambda one: not one.targets)
    return ChooseAgentPage(place, rows, query, is_memory)


def _counts(place: Place, rows: QuerySet[Any]) -> dict[int, int]:
    """By id of an agent how many of these rows are in use."""
    used = rows.filter(project=place.project, is_retired=False).order_by()
    found = used.values_list("agent").annotate(count=Count("pk"))
    return dict(found)


def confirm_page(
    place: Place, agent: Agent, planned: Planned, *, sent: QueryDict
) -> ConfirmPage:
    """What will be started, with everything that was sent."""
    name = "replay-memory" if planned.new.plan.memory else "replay-plan"
    where = reverse(name, args=[place.project.slug])
    return ConfirmPage(
        place=place,
        agent=agent,
        planned=planned,
        hidden=hidden_fields(sent),
        act_url=f"{where}?agent={agent.pk}",
        said="",
    )


def usable_targets(agent: Agent) -> list[TargetRow]:
    """The targets with which an agent can be run now, those of merged ones too."""
    rows = Target.objects.filter(agent__in=agents_behind(agent.pk), is_retired=False)
    return target_rows(rows.exclude(kind=TargetKind.RECORDED.value).order_by("name"))


def listed_cases(
    agent: Agent, *, ids: list[int], trace: int | None = None
) -> list[ReplayCase]:
    """The cases that can be ticked: those asked for first, then the newest ones."""
    where = CaseFilter(agent=agent.pk)
    rows = cases_of(agent.project_id, where=where)
    asked = list(rows.filter(pk__in=ids)[:MOST_LISTED])
    if trace is not None:
        asked += list(rows.filter(trace_id=trace).exclude(pk__in=ids)[:MOST_LISTED])
    known = {one.pk for one in asked}
    rest = rows.exclude(pk__in=known)[: max(0, MOST_LISTED - len(asked))]
    return [*asked, *rest]


def tools_of_cases(cases: list[ReplayCase]) -> list[str]:
    """The tools that some cases offer or have recordings of, by name."""
    rows = ReplayCase.objects.filter(pk__in=[one.pk for one in cases[:MOST_UNPACKED]])
    names: dict[str, None] = {}
    for row in rows:
        case = case_of(row)
        names |= dict.fromkeys(one.name for one in case.tools)
        names |= dict.fromkeys(one.tool for one in case.calls)
    return sorted(name[:200] for name in names if name.strip())


def planned_of(form: PlanForm, stubs: list[StubForm]) -> Planned | None:
    """The batch that a form plans; None with the errors at their fields."""
    is_valid = form.is_valid()
    target = form.chosen_target() if is_valid else None
    if target is None:
        return None
    plan_of_stubs = stub_plan(form, stubs)
    table, problem = known_prices()
    price = price_of(table, _model(target))
    form.check_money(price)
    rows = form.chosen_cases()
    if not rows:
        form.add_error("case", "Tick at least one case.")
    if plan_of_stubs is None or form.errors:
        form.mark_errors()
        return None
    new, found, cases = _new_batch(form, plan_of_stubs, target, (rows, table, price))
    part = estimate_part(
        found,
        target=target,
        least=form.cleaned_data["least_isolation"],
        caps=new.caps,
        price_problem=problem,
    )
    return Planned(target, rows, new, part, _facts(new, rows, cases))


def _model(target: TargetRow) -> str:
    return model_of(target.version, TargetKind(target.target.kind))


def _new_batch(
    form: PlanForm,
    stubs: StubPlan,
    target: TargetRow,
    known: tuple[list[ReplayCase], PriceTable, dict[str, str] | None],
) -> tuple[NewBatch, Estimate, list[Case]]:
    rows, table, price = known
    data = form.cleaned_data
    limits = limits_at(form.limits(), target.version.settings)
    asked = form.regimes()
    regimes = regimes_of(asked)
    contents = ReplayCase.objects.in_bulk([one.pk for one in rows])
    cases = [case_of(contents[one.pk]) for one in rows]
    found = estimate(
        cases,
        repeats=data["repeats"],
        regimes=regimes,
        settings=TargetSettings(
            kind=TargetKind(target.target.kind),
            model=_model(target),
            limits=limits,
            declared=asked.declared,
        ),
        prices=table,
    )
    plan = Plan(
        repeats=data["repeats"],
        regimes=regimes,
        stubs=encoded_plan(stubs),
        limits=limits,
        paraphrases={
            f"{DECLARED}{number}": text
            for number, text in enumerate(asked.declared, start=1)
        },
        price=price,
        seed=data["seed"] or 0,
        least_isolation=data["least_isolation"],
    )
    new = NewBatch(
        name=data["name"],
        plan=plan,
        caps=form.caps(),
        estimate=stored_estimate(found),
        signal=data["signal"],
    )
    return new, found, cases


def _facts(
    new: NewBatch, rows: list[ReplayCase], cases: list[Case]
) -> list[tuple[str, str]]:
    """What is started, in words."""
    declared = tuple(new.plan.paraphrases.values())
    regimes = [regime_in_words(one) for one in new.plan.regimes]
    skipped = sorted(
        {
            one.reason
            for case in cases
            for one in applicable(case, new.plan.regimes, declared=declared)[1]
        }
    )
    return [
        ("Cases", ", ".join(one.name for one in rows[:8]) + _more(len(rows) - 8)),
        ("Runs of each", f"{new.plan.repeats:,}"),
        ("Regimes", "; ".join(regimes)),
        *([("Left out", " ".join(skipped[:5]))] if skipped else []),
        ("Tools", _stubs_in_words(new.plan.stubs)),
        *caps_in_words(new),
    ]


def _more(count: int) -> str:
    return f" and {count:,} more" if count > 0 else ""


def _stubs_in_words(stubs: Mapping[str, Any]) -> str:
    how = {"recorded": "by their arguments", "in_order": "in their order"}
    own = len(stubs["tools"])
    said = f"Recordings are matched {how[stubs['default']['kind']]}"
    if own:
        said += (
            f"; {own} {'tool has' if own == 1 else 'tools have'} an answer of its own"
        )
    misses = {"error": "with an error", "empty": "with nothing", "stop": "by the end"}
    return f"{said}; a miss is answered {misses[stubs['misses']]}."


def caps_in_words(new: NewBatch) -> list[tuple[str, str]]:
    """Limits and caps of a batch in words."""
    limits, caps = new.plan.limits, new.caps
    capped = [
        f"{value if isinstance(value, Decimal) else number_in_words(value)} {word}"
        for value, word in (
            (caps.calls, "model calls"),
            (caps.tokens, "tokens"),
            (caps.money, "of money"),
            (caps.seconds, "seconds"),
        )
        if value is not None
    ]
    return [
        (
            "One run",
            f"{limits.seconds:g} seconds, {limits.model_calls} model calls, "
            f"{limits.tool_calls} tool calls, {number_in_words(limits.output_tokens)} "
            "output tokens of a call at most",
        ),
        ("All runs", ", ".join(capped) or "no cap of their own"),
    ]


def wrong_part(form: BatchForm, stubs: Sequence[forms.Form] = ()) -> EstimatePart:
    """In the place of an estimate: what is still wrong, by the label of the field."""
    found = [
        (str(one.fields[name].label or "") if name in one.fields else "", str(error))
        for one in (form, *stubs)
        for name, errors in one.errors.items()
        for error in errors
    ]
    return EstimatePart(wrong=found)


def hidden_fields(sent: QueryDict) -> list[tuple[str, str]]:
    """Every field of a form that was sent, to be sent again."""
    return [
        (name, value)
        for name, values in sent.lists()
        if name not in NOT_SENT
        for value in values
    ]
