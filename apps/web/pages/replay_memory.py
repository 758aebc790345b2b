"""What the planner of memory tests needs: forms, own and recorded filler, the estimate."""

from __future__ import annotations

import msgspec

from apps.agents.models import Agent
from apps.engine.contracts.spec import BadDefinition
from apps.engine.memory_tests import MemoryTest, Mode, encoded_memory_test
from apps.engine.memory_tests.decoding import LONGEST_TEXT
from apps.engine.replay.estimates import TargetSettings
from apps.engine.replay.run import TargetKind
from apps.engine.trace import StepKind
from apps.replays.cases import case_of
from apps.replays.memory_costs import memory_estimate, most_calls
from apps.replays.models import ReplayCase
from apps.replays.planning import NewBatch, Plan, limits_at, stored_estimate
from apps.replays.prices_file import known_prices, price_of
from apps.web.access import Place
from apps.web.pages.agent_trying import recent_runs
from apps.web.pages.replay_estimate import EstimatePart, estimate_part
from apps.web.pages.replay_plan import Planned, caps_in_words
from apps.web.replay_batch_forms import model_of
from apps.web.replay_memory_forms import SHOWN_FACTS, FactForm, MemoryForm

MOST_SAID = 500
MOST_TRACES = 30
_MODE_WORDS = {
    Mode.RAW: "the conversation goes on as it is",
    Mode.SUMMARISED: "it is summarised after every {} turns",
    Mode.STORE: "what the agent keeps is read before it is asked",
}


class MemoryPage(msgspec.Struct, frozen=True):
    """The planner of memory tests of one agent."""

    place: Place
    agent: Agent
    form: MemoryForm
    facts: list[FactForm]
    estimate: EstimatePart | None

    @property
    def first(self) -> list[FactForm]:
        """The forms of facts that are open from the start."""
        return self.facts[:SHOWN_FACTS]

    @property
    def rest(self) -> list[FactForm]:
        """The forms of further facts."""
        return self.facts[SHOWN_FACTS:]


def said_in_traces(project_id: int) -> list[str]:
    """What users said in the newest traces of a project, each text once."""
    found: dict[str, None] = {}
    for _, trace, _ in recent_runs(project_id, None, most=MOST_TRACES).runs:
        for step in trace.steps:
            body = step.body
            if step.kind is not StepKind.USER_MESSAGE or body is None:
                continue
            said = body.output if body.output is not None else body.input
            if isinstance(said, str) and 0 < len(said.strip()) <= LONGEST_TEXT:
                found[said.strip()] = None
    return list(found)[:MOST_SAID]


def planned_test(
    place: Place, form: MemoryForm, facts: list[FactForm]
) -> Planned | None:
    """The batch that a form plans; None with the errors at their fields."""
    are_valid = [one.is_valid() for one in (form, *facts)]
    target = form.chosen_target() if all(are_valid) else None
    if target is None:
        return None
    said = (
        said_in_traces(place.project.pk)
        if form.cleaned_data["filler"] == "traces"
        else []
    )
    test = form.test(facts, said)
    table, problem = known_prices()
    kind = TargetKind(target.target.kind)
    model = model_of(target.version, kind)
    price = price_of(table, model)
    form.check_money(price)
    if test is None or form.errors:
        form.mark_errors()
        return None
    rows = form.chosen_case()
    try:
        limits = limits_at(form.limits(), target.version.settings)
        limits = msgspec.structs.replace(
            limits, model_calls=max(limits.model_calls, most_calls(test))
        )
        found = memory_estimate(
            test,
            settings=TargetSettings(kind=kind, model=model, limits=limits),
            base=_bytes_of(rows),
            prices=table,
        )
    except BadDefinition as error:
        form.add_error("texts", str(error))
        return None
    plan = Plan(
        repeats=test.repeats,
        regimes=(),
        limits=limits,
        memory=encoded_memory_test(test),
        price=price,
        seed=test.seed,
        least_isolation=form.cleaned_data["least_isolation"],
    )
    new = NewBatch(
        name=form.cleaned_data["name"],
        plan=plan,
        caps=form.caps(),
        estimate=stored_estimate(found),
        depths=test.depths,
        signal=form.cleaned_data["signal"],
    )
    least = form.cleaned_data["least_isolation"]
    part = estimate_part(
        found, target=target, least=least, caps=new.caps, price_problem=problem
    )
    return Planned(target, rows, new, part, [*_facts(test), *caps_in_words(new)])


def _bytes_of(rows: list[ReplayCase]) -> int:
    """The bytes of the messages and tools that stand before each conversation."""
    contents = ReplayCase.objects.filter(pk__in=[one.pk for one in rows])
    cases = [case_of(one) for one in contents]
    return sum(len(msgspec.json.encode((one.messages, one.tools))) for one in cases)


def _facts(test: MemoryTest) -> list[tuple[str, str]]:
    planted = "; ".join(f"“{fact.value}”" for fact in test.facts)
    texts = test.filler.texts
    between = (
        f"{len(texts):,} texts of yours"
        if texts
        else f"our texts in {', '.join(test.filler.languages)}"
    )
    return [
        ("Facts", planted),
        ("Depths", ", ".join(str(one) for one in test.depths)),
        ("Conversations at each", f"{test.repeats:,}"),
        ("Tried on", _MODE_WORDS[test.mode].format(test.summary_every)),
        ("In between", between),
    ]
