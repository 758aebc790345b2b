"""Targets, cases, secrets and the plan of a batch, on the real database."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from apps.engine.replay.case import Case
from apps.engine.replay.run import Regime, RegimeKind, TargetKind
from apps.replays.cases import (
    Origin,
    WrongCase,
    case_of,
    keep_cases,
    rename_case,
    retire_case,
    shown_input,
)
from apps.replays.models import Batch, CaseSource, ReplayCase, Run, TargetSecret
from apps.replays.planning import Caps, NewBatch, Plan, WrongPlan, start_batch
from apps.replays.sealing import CannotSeal, seal_again, secret_of, set_secret
from apps.replays.target_settings import WrongTarget, decoded_settings
from apps.replays.targets import (
    NewTarget,
    add_target,
    change_target,
    current_version,
    rename_target,
    retire_target,
    secret_for,
)
from tests.factories import NOW, make_project
from tests.replays.rows import (
    ALLOWED,
    MODEL,
    make_agent,
    make_batch,
    make_case,
    make_target,
)

pytestmark = pytest.mark.django_db
OLD, NEW = b"o" * 32, b"n" * 32


@pytest.fixture
def agent(project):
    return make_agent(project)


@pytest.fixture(autouse=True)
def keys(settings):
    settings.REPLAY_KEYS = [OLD]


def changed(target, **settings):
    return change_target(
        target=target,
        settings={**current_version(target.pk).settings, **settings},
        allowed=ALLOWED,
        user_id=None,
        now=NOW,
    )


class TestTargets:
    def test_a_change_is_a_version_and_the_same_again_is_none(self, agent):
        target = make_target(agent)
        changed(target, max_tokens=5)
        changed(target, max_tokens=5)
        assert target.versions.count() == 2
        assert current_version(target.pk).settings["max_tokens"] == 5

    def test_a_version_is_never_changed(self, agent):
        version = current_version(make_target(agent).pk)
        version.settings = {}
        with pytest.raises(IntegrityError, match="only added"), transaction.atomic():
            version.save()

    def test_a_name_is_taken_once_whatever_its_case(self, agent):
        target = make_target(agent, "Small")
        other = make_target(agent, "Large")
        with pytest.raises(WrongTarget, match="already"):
            make_target(agent, "  SMALL ")
        with pytest.raises(WrongTarget, match="already"):
            rename_target(target=other, name="small")
        retire_target(target=target, is_retired=True)
        rename_target(target=other, name="small")
        with pytest.raises(WrongTarget, match="already"):
            retire_target(target=target, is_retired=False)

    @pytest.mark.parametrize(
        ("kind", "wanted", "field"),
        [
            (TargetKind.OPENAI, {**MODEL, "base_url": "https://inside/"}, "base_url"),
            (TargetKind.OPENAI, {**MODEL, "model": " "}, "model"),
            (TargetKind.OPENAI, {**MODEL, "api": "completions"}, "api"),
            (TargetKind.OPENAI, {**MODEL, "max_tokens": 0}, "max_tokens"),
            (TargetKind.OPENAI, {**MODEL, "concurrency": 21}, "concurrency"),
            (TargetKind.OPENAI, {**MODEL, "requests_per_minute": -1},
             "requests_per_minute"),
            (TargetKind.OPENAI, {**MODEL, "parameters": {"tools": []}}, "parameters"),
            (TargetKind.OPENAI, {"model": "small"}, ""),
            (TargetKind.HTTP, {"url": ""}, "url"),
            (TargetKind.HTTP, {"url": "https://inside/"}, "url"),
            (TargetKind.HTTP, {"url": "https://a.example", "header": "a b"}, "header"),
            (TargetKind.HTTP, {"url": "https://a.example", "header": "Host"}, "header"),
            (TargetKind.HTTP, {"url": "https://a.example", "prefix": "a\r\nb"},
             "prefix"),
            (TargetKind.CALLABLE, {"callable": "os:system"}, "callable"),
            (TargetKind.CALLABLE, {"callable": "os.system"}, "callable"),
            (TargetKind.COMMAND, {"command": "/bin/sh"}, "command"),
            (TargetKind.COMMAND, {"command": "/opt/agents/memory",
                                  "arguments": ["\x00"]}, "arguments"),
        ],
    )  # fmt: skip
    def test_what_it_cannot_be_set_to_is_a_sentence_at_its_field(
        self, kind, wanted, field
    ):
        with pytest.raises(WrongTarget) as refused:
            decoded_settings(kind, wanted, ALLOWED)
        assert refused.value.field == field
        assert str(refused.value).endswith(".")

    def test_what_the_operator_allows_is_taken(self, agent):
        for kind, settings in (
            (TargetKind.CALLABLE, {"callable": "agents.memory:run"}),
            (TargetKind.COMMAND, {"command": "/opt/agents/memory"}),
            (TargetKind.RECORDED, {}),
        ):
            new = NewTarget(name=kind.value, kind=kind, settings=settings)
            add_target(agent=agent, new=new, allowed=ALLOWED, user_id=None, now=NOW)


class TestSecrets:
    def test_it_is_sealed_and_read_by_who_has_the_key(self, agent, owner):
        target = make_target(agent)
        set_secret(target=target, text=" sk-canary ", user_id=owner.pk, now=NOW)
        assert secret_of(target.pk, now=NOW) == "sk-canary"
        row = TargetSecret.objects.get()
        assert b"canary" not in bytes(row.sealed)
        assert row.last_used_at == NOW

    def test_a_new_one_empties_the_old_and_a_new_address_forgets_it(self, agent, owner):
        target = make_target(agent)
        for text in ("the first", "the second"):
            set_secret(target=target, text=text, user_id=owner.pk, now=NOW)
        kept = [bytes(row.sealed) for row in TargetSecret.objects.order_by("pk")]
        assert kept[0] == b""
        changed(target, max_tokens=9)
        assert secret_of(target.pk, now=NOW) == "the second"
        changed(target, base_url="https://elsewhere.example/v1")
        assert secret_of(target.pk, now=NOW) == ""

    def test_it_is_never_for_an_older_address(self, agent, owner):
        target = make_target(agent)
        before = current_version(target.pk).settings
        after = changed(target, base_url="https://elsewhere.example/v1").settings
        set_secret(target=target, text="sk-canary", user_id=owner.pk, now=NOW)
        of = partial(secret_for, target_id=target.pk, now=NOW)
        assert of(settings=after) == "sk-canary"
        with pytest.raises(CannotSeal, match="Plan a new batch"):
            of(settings=before)

    @pytest.mark.parametrize(
        "text", ["", "short", "with\nlines", "schlüssel", "x" * 4_001]
    )
    def test_what_cannot_be_sent_is_refused(self, agent, owner, text):
        with pytest.raises(CannotSeal):
            set_secret(target=make_target(agent), text=text, user_id=owner.pk, now=NOW)

    def test_a_site_without_a_key_says_so(self, agent, owner, settings):
        settings.REPLAY_KEYS = []
        with pytest.raises(CannotSeal, match="EVALSITE_REPLAY_KEY"):
            set_secret(
                target=make_target(agent), text="sk-canary", user_id=owner.pk, now=NOW
            )

    def test_keys_are_turned_over_and_a_lost_one_is_said(
        self, agent, owner, settings, capsys
    ):
        target = make_target(agent)
        set_secret(target=target, text="sk-canary", user_id=owner.pk, now=NOW)
        settings.REPLAY_KEYS = [NEW, OLD]
        call_command("seal_again")
        assert "1 secret is sealed" in capsys.readouterr().out
        settings.REPLAY_KEYS = [NEW]
        assert secret_of(target.pk, now=NOW) == "sk-canary"
        settings.REPLAY_KEYS = [OLD]
        with pytest.raises(CannotSeal, match="Enter it again"):
            secret_of(target.pk, now=NOW)
        with pytest.raises(CommandError, match="Nothing was changed"):
            call_command("seal_again")
        settings.REPLAY_KEYS = [NEW]
        assert seal_again() == 1


class TestCases:
    def test_the_same_content_is_one_case_and_comes_back_when_put_away(self, agent):
        first = make_case(agent, name="first")
        retire_case(case=first, is_retired=True)
        again = make_case(agent, name="another name")
        assert again.pk == first.pk
        assert not ReplayCase.objects.get().is_retired

    def test_what_is_frozen_comes_back_as_it_was_and_cannot_be_changed(self, agent):
        messages = ({"role": "system", "content": "Be brief.\x00"},)
        row = make_case(agent, messages=messages, state={"seen": [1, None]})
        case = case_of(ReplayCase.objects.get())
        assert case.messages == messages
        assert case.state == {"seen": [1, None]}
        row.content = b""
        with pytest.raises(IntegrityError, match="only added"), transaction.atomic():
            row.save()
        rename_case(case=row, name=" Order  seven ")
        assert ReplayCase.objects.get().name == "Order seven"

    def test_one_that_is_too_large_keeps_none(self, agent):
        cases = [Case(agent="memory", input=text) for text in ("a", "b" * 5_000_000)]
        with pytest.raises(WrongCase, match="bytes"):
            keep_cases(
                agent=agent,
                cases=cases,
                origin=Origin(CaseSource.FILE),
                user_id=None,
                now=NOW,
            )
        assert not ReplayCase.objects.exists()

    def test_an_input_is_shown_in_one_line(self):
        assert shown_input("a\n b\x00") == "a b�"
        assert shown_input({"order": 7}) == '{"order":7}'
        assert shown_input("x" * 400).endswith("…")
        assert shown_input(None) == ""


class TestBatches:
    def test_it_has_a_group_for_each_case_and_regime_and_a_run_for_each_repeat(
        self, agent
    ):
        regimes = (Regime(), Regime(kind=RegimeKind.SAMPLING, temperature=1.0))
        cases = [make_case(agent, text) for text in ("one", "two")]
        batch = make_batch(make_target(agent), *cases, repeats=3, regimes=regimes)
        assert batch.run_count == Run.objects.filter(batch=batch).count() == 12
        assert len(set(Run.objects.values_list("seed", flat=True))) == 12
        keys = list(batch.groups.order_by("number").values_list("case", "regime_key"))
        assert len(set(keys)) == 4

    def test_a_memory_test_has_a_group_for_each_depth(self, agent):
        version = current_version(make_target(agent).pk)
        plan = Plan(repeats=2, memory={"facts": []})
        new = NewBatch(name="Depths", plan=plan, depths=(0, 10, 50))
        batch = start_batch(version=version, cases=[], new=new, user_id=None, now=NOW)
        assert batch.kind == "memory"
        assert [g.regime["depth"] for g in batch.groups.order_by("number")] == [
            0,
            10,
            50,
        ]

    def test_its_plan_is_frozen(self, agent):
        batch = make_batch(make_target(agent), make_case(agent))
        batch.plan = {}
        with pytest.raises(IntegrityError, match="only added"), transaction.atomic():
            batch.save()

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"repeats": 0}, "repeats"),
            ({"repeats": 101}, "repeats"),
            ({"regimes": ()}, "cases"),
            ({"caps": Caps(calls=0)}, "calls"),
            ({"caps": Caps(money=Decimal(-1))}, "money"),
        ],
    )
    def test_a_plan_that_cannot_be_is_a_sentence_at_its_field(
        self, agent, change, field
    ):
        with pytest.raises(WrongPlan) as refused:
            make_batch(make_target(agent), make_case(agent), **change)
        assert refused.value.field == field
        assert not Batch.objects.exists()

    def test_it_takes_no_case_of_others_and_no_target_that_was_put_away(
        self, agent, owner, settings
    ):
        target = make_target(agent)
        stranger = make_agent(make_project(owner=owner, name="Other"))
        with pytest.raises(WrongPlan, match="another agent"):
            make_batch(target, make_case(stranger))
        settings.REPLAY_MAX_RUNS = 3
        with pytest.raises(WrongPlan, match="at most 3 runs"):
            make_batch(target, make_case(agent), repeats=4)
        retire_target(target=target, is_retired=True)
        with pytest.raises(WrongPlan, match="put away"):
            make_batch(target, make_case(agent))

    def test_a_project_goes_with_everything_in_it(self, project, agent):
        make_batch(make_target(agent), make_case(agent))
        project.delete()
        assert not Run.objects.exists()
        assert not ReplayCase.objects.exists()
