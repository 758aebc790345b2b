"""The planners of batches: nothing starts before what it may cost was seen."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from apps.engine.memory_tests import decoded_memory_test
from apps.engine.replay.run import TargetKind
from apps.engine.replay.stub_plan import decoded_plan
from apps.replays.models import Batch, Group, Run, TargetVersion
from apps.replays.targets import NewTarget, add_target
from tests.factories import NOW, make_project, make_user
from tests.replays.rows import ALLOWED, MODEL, make_agent, make_case, make_target
from tests.web.visiting import text, url

PRICES = "currency: EUR\nprices:\n  - {model: small*, input: 2, output: 0.5, as_of: 2026-01-01}\n"
LIMITS = {
    "seconds": "30",
    "model_calls": "5",
    "tool_calls": "9",
    "output_tokens": "100",
}
PLAN = {
    "name": "Does it waver?",
    "repeats": "5",
    "determinism": "on",
    "matched": "recorded",
    "again": "last",
    "misses": "error",
    "least_isolation": "namespaces",
    "seed": "3",
    **LIMITS,
}
MEMORY = {
    "name": "What it keeps",
    "repeats": "3",
    "depths": "1, 4",
    "mode": "raw",
    "length": "grows",
    "filler": "own",
    "languages": ["en", "de"],
    "certain": "80",
    "least_isolation": "namespaces",
    **LIMITS,
    "fact-0-value": "K-4417",
    "fact-0-telling": "My order number is {value}.",
    "fact-0-probe": "What was my order number?",
    "fact-0-decoys": "K-9032 | My sister's order number is {value}.",
}


@pytest.fixture
def agent(project):
    return make_agent(project)


@pytest.fixture
def target(agent):
    return make_target(agent)


@pytest.fixture
def case(agent):
    return make_case(agent)


@pytest.fixture
def prices(settings, tmp_path):
    path = tmp_path / "prices.yaml"
    path.write_text(PRICES)
    settings.REPLAY_PRICES = str(path)
    return path


def where(project, agent, name="replay-plan"):
    return url(project, name) + f"?agent={agent.pk}"


def send(web, address, act, fields, **more):
    return web.post(address, {"act": act, **fields, **more})


def seen_in(answer) -> str:
    return re.search(r'name="seen" value="(\w+)"', answer.content.decode())[1]


class TestAPlan:
    def test_it_is_estimated_shown_confirmed_and_only_then_started(
        self, web, project, agent, target, case, prices
    ):
        address = where(project, agent)
        page = text(web.get(f"{url(project, 'replay-plan')}?case={case.pk}"))
        assert "Run memory alone" in page
        assert re.search(rf'name="case" value="{case.pk}"[^>]*checked', page)
        assert 'value="lookup"' in page
        fields = {
            **PLAN,
            "target": target.pk,
            "case": [case.pk],
            "temperatures": "0.7",
            "paraphrases": ["polite"],
            "declared": "Is order number 7 still open?",
            "max_calls": "200",
            "max_money": "1.5",
            "tool-0-name": "lookup",
            "tool-0-kind": "static",
            "tool-0-value": '{"state": "open"}',
            "tool-0-value_as": "json",
            "tool-0-writes": "no",
        }
        part = web.post(
            address, {"act": "estimate", **fields}, headers={"HX-Request": "true"}
        )
        assert "<html" not in part.content.decode()
        assert "20 runs, 20 to 100 model calls (likely 40)" in text(part)
        assert "EUR" in text(part)
        assert "called without one" in text(part)
        shown = send(web, address, "look", fields)
        page = text(shown)
        assert "Nothing has started." in page
        assert "Start 20 runs" in page
        assert Batch.objects.count() == 0
        refused = send(web, address, "start", fields, seen="stale")
        assert refused.status_code == 409
        assert Batch.objects.count() == 0
        changed = {**fields, "repeats": "4"}
        answer = send(web, address, "start", changed, seen=seen_in(shown))
        assert "Something changed since this was shown" in text(answer)
        back = send(web, address, "change", fields)
        assert "Is order number 7 still open?" in text(back)
        answer = send(web, address, "start", fields, seen=seen_in(shown))
        batch = Batch.objects.get()
        assert answer["Location"] == url(project, "replay-batch", batch.pk)
        assert Run.objects.filter(batch=batch, state="waiting").count() == 20
        kinds = [one.regime["kind"] for one in Group.objects.order_by("number")]
        assert kinds == ["determinism", "sampling", "paraphrase", "paraphrase"]
        assert batch.plan["price"] == {"input": "2", "output": "0.5"}
        assert list(batch.plan["paraphrases"].values()) == [fields["declared"]]
        assert batch.plan["least_isolation"] == "namespaces"
        assert (batch.max_calls, batch.max_money) == (200, Decimal("1.5"))
        stub = decoded_plan(batch.plan["stubs"]).of("lookup")
        assert (stub.value, stub.writes) == ({"state": "open"}, False)
        assert batch.estimate["sentence"].startswith("20 runs")
        assert batch.created_by.username == "olga"

    @pytest.mark.parametrize(
        ("fields", "place", "said"),
        [
            ({"name": ""}, "name", "required"),
            ({"target": ""}, "target", "required"),
            ({"target": "999"}, "target", "valid choice"),
            ({"case": []}, "case", "Tick at least one case"),
            ({"case": ["999"]}, "case", "not of this agent"),
            ({"repeats": "0"}, "repeats", "greater than or equal to 1"),
            ({"repeats": "101"}, "repeats", "less than or equal to 100"),
            ({"temperatures": "warm"}, "temperatures", "Write numbers"),
            ({"temperatures": "3"}, "temperatures", "at most 2"),
            ({"determinism": ""}, "determinism", "at least one regime"),
            ({"declared": "same\nsame"}, "declared", "the same text"),
            ({"max_money": "5"}, "max_money", "Money cannot be capped"),
            ({"max_calls": "0"}, "max_calls", "greater than or equal to 1"),
            ({"least_isolation": "none"}, "least_isolation", "valid choice"),
            ({"tool-0-kind": "static", "tool-0-value": "{", "tool-0-value_as": "json"},
             "tool-0-value", "This is not JSON"),
            ({"tool-0-kind": "expression", "tool-0-expression": "1 +"},
             "tool-0-expression", ""),
            ({"tool-0-kind": "handler"}, "tool-0-kind", "valid choice"),
        ],
    )  # fmt: skip
    def test_what_is_wrong_is_said_at_its_field_and_nothing_starts(
        self, web, project, agent, target, case, fields, place, said
    ):
        whole = {
            **PLAN,
            "target": target.pk,
            "case": [case.pk],
            "tool-0-name": "lookup",
            **fields,
        }
        address = where(project, agent)
        answer = send(web, address, "start", whole, seen="x")
        assert answer.status_code == 400
        page = text(answer)
        error = page.split(f'id="f_{place}_error">')[1].split("</p>")[0]
        assert said in error
        part = web.post(
            address, {"act": "estimate", **whole}, headers={"HX-Request": "true"}
        )
        assert "Nothing to estimate yet" in text(part)
        assert Batch.objects.count() == 0

    def test_a_plan_that_the_site_refuses_is_said_in_words(
        self, web, project, agent, target, case, settings
    ):
        settings.REPLAY_MAX_RUNS = 3
        fields = {**PLAN, "target": target.pk, "case": [case.pk]}
        address = where(project, agent)
        shown = send(web, address, "look", fields)
        answer = send(web, address, "start", fields, seen=seen_in(shown))
        assert answer.status_code == 400
        assert "a batch has at most 3 runs" in text(answer)
        assert Batch.objects.count() == 0

    def test_a_target_that_changed_meanwhile_is_shown_again(
        self, web, project, agent, target, case
    ):
        fields = {**PLAN, "target": target.pk, "case": [case.pk]}
        address = where(project, agent)
        shown = send(web, address, "look", fields)
        one = TargetVersion.objects.get()
        TargetVersion.objects.create(
            target=target,
            number=2,
            settings={**one.settings, "model": "large"},
            created_at=one.created_at,
        )
        answer = send(web, address, "start", fields, seen=seen_in(shown))
        assert answer.status_code == 409
        assert "version 2" in text(answer)

    def test_handlers_are_those_of_the_operator(
        self, web, project, agent, target, case, settings
    ):
        settings.REPLAY_HANDLERS = ["desk:lookup"]
        fields = {
            **PLAN,
            "target": target.pk,
            "case": [case.pk],
            "tool-0-name": "lookup",
            "tool-0-kind": "handler",
            "tool-0-handler": "desk:lookup",
        }
        address = where(project, agent)
        shown = send(web, address, "look", fields)
        send(web, address, "start", fields, seen=seen_in(shown))
        plan = decoded_plan(Batch.objects.get().plan["stubs"])
        assert plan.handlers == ("desk:lookup",)

    def test_without_an_agent_it_is_asked_for_and_without_a_target_it_says_so(
        self, web, project, agent, case
    ):
        assert "Which agent is run alone?" in text(web.get(url(project, "replay-plan")))
        page = text(web.get(where(project, agent)))
        assert "This agent has no target." in page
        other = make_project(owner=make_user(), name="Elsewhere")
        strange = make_case(make_agent(other))
        page = text(web.get(f"{url(project, 'replay-plan')}?case={strange.pk}"))
        assert "Which agent is run alone?" in page


class TestPrices:
    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"prices: [", "It is no YAML in line"),
            (b"[]", "It holds no table"),
            (b"\xff", "is not UTF-8 text"),
            (b"prices: [{model: a, input: dear, output: 1}]", "prices"),
            (b"prices: [{model: a, input: -1, output: 1}]", "lies between 0"),
            (b"models: []", "models"),
            (None, "cannot be read (no such file or directory)"),
        ],
    )
    def test_a_file_that_cannot_be_used_is_named_where_money_is_not_known(
        self, web, project, agent, target, case, prices, content, said
    ):
        if content is None:
            prices.unlink()
        else:
            prices.write_bytes(content)
        fields = {**PLAN, "target": target.pk, "case": [case.pk]}
        page = text(send(web, where(project, agent), "estimate", fields))
        assert "The price file (EVALSITE_REPLAY_PRICES) is not used:" in page
        assert said in page
        assert "cost not known" in page


class TestWhatIsNotSeen:
    """Targets whose calls are not known before: why, and what caps are worth then."""

    @pytest.fixture
    def estimated(self, web, project, agent, case, settings):
        settings.REPLAY_CALLABLES = ["agents.memory:run"]
        settings.REPLAY_STUB_URL = "https://stubs.example"

        def asked(kind, chosen, **caps):
            new = NewTarget(name=kind, kind=TargetKind(kind), settings=chosen)
            made = add_target(
                agent=agent, new=new, allowed=ALLOWED, user_id=None, now=NOW
            )
            fields = {**PLAN, "target": made.pk, "case": [case.pk], **caps}
            page = text(send(web, where(project, agent), "estimate", fields))
            return page.split('id="estimate"')[1].split("</section>")[0]

        return asked

    def test_a_callable_without_a_model_counts_runs_and_no_token(self, estimated):
        chosen = {"callable": "agents.memory:run"}
        part = estimated("callable", chosen, max_calls="3", max_tokens="900")
        assert "not known: no model is set for it" in part
        assert "Each run counts as one call under a cap on calls" in part
        assert "The cap of 3 calls is below the likely 5" in part
        assert "The cap of 900 tokens is never reached" in part
        assert "<td>not known</td>" not in part

    def test_a_callable_with_a_model_is_held_to_all_caps(self, estimated):
        chosen = {"callable": "agents.memory:run", **MODEL}
        part = estimated("callable", chosen, max_calls="3", max_tokens="900")
        assert "not known: its own code decides how often" in part
        assert "is held against every cap at its worst" in part
        assert "The cap of" not in part

    def test_an_agent_elsewhere_counts_each_time_that_it_is_asked(self, estimated):
        chosen = {"url": "https://agent.example/run"}
        part = estimated("http", chosen, max_calls="3", max_tokens="900")
        assert "what it asks is not seen" in part
        assert "all that the limits of a run allow count" in part
        assert "The cap of 3 calls is below the likely 5" in part
        assert "never reached" not in part

    def test_a_model_without_a_price_says_why_money_is_not_known(self, estimated):
        part = estimated("openai", {**MODEL, "model": "nameless"})
        assert "not known: there is no price for its model" in part
        assert "<td>not known</td>" not in part


class TestAMemoryTest:
    def test_it_is_planned_confirmed_and_started(
        self, web, project, agent, target, prices
    ):
        address = where(project, agent, "replay-memory")
        assert "What does memory still know?" in text(web.get(address))
        fields = {**MEMORY, "target": target.pk}
        shown = send(web, address, "look", fields)
        page = text(shown)
        assert "Start 6 runs" in page
        assert "our texts in en, de" in page
        assert send(web, address, "start", fields, seen="x").status_code == 409
        answer = send(web, address, "start", fields, seen=seen_in(shown))
        batch = Batch.objects.get()
        assert answer["Location"] == url(project, "replay-batch", batch.pk)
        assert batch.kind == "memory"
        test = decoded_memory_test(batch.plan["memory"])
        assert test.depths == (1, 4)
        assert test.facts[0].decoys[0].value == "K-9032"
        regimes = [one.regime for one in Group.objects.order_by("number")]
        assert regimes == [{"kind": "memory", "depth": one} for one in (1, 4)]
        assert batch.plan["limits"]["model_calls"] >= 6
        assert batch.estimate["calls"]["low"] == 3 * (3 + 6)

    @pytest.mark.parametrize(
        ("fields", "place", "said"),
        [
            ({"depths": "deep"}, "depths", "Write whole numbers"),
            ({"depths": "9999"}, "depths", "between 0 and 1,000"),
            ({"fact-0-telling": "No value here."}, "fact-0-telling", "once"),
            ({"fact-0-probe": "Is it K-4417?"}, "fact-0-probe", "names"),
            ({"fact-0-decoys": "K-1 | no value"}, "fact-0-decoys", "once"),
            ({"mode": "summarised"}, "summary_every", "how many turns"),
            ({"filler": "typed"}, "texts", "no such texts"),
            ({"filler": "traces"}, "filler", "no such texts"),
            ({"certain": "100"}, "certain", "less than or equal to 99"),
        ],
    )
    def test_what_is_wrong_is_said_at_its_field(
        self, web, project, agent, target, fields, place, said
    ):
        address = where(project, agent, "replay-memory")
        whole = {**MEMORY, "target": target.pk, **fields}
        answer = send(web, address, "start", whole, seen="x")
        assert answer.status_code == 400
        page = text(answer)
        error = page.split(f'id="f_{place}_error">')[1].split("</p>")[0]
        assert said in error
        assert Batch.objects.count() == 0
