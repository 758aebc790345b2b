"""Targets, cases, batches and runs of replays through the JSON door."""

from __future__ import annotations

import json
import re

import pytest
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.accounts.permissions import Scope
from apps.agents.models import Agent
from apps.api.urls import urlpatterns
from apps.pipeline.replay_stubs import answer_stub_call
from apps.replays.models import Batch, ReplayCase, Run, Target
from apps.replays.running import claim_run
from apps.replays.sealing import set_secret
from apps.replays.stub_calls import open_stubs
from apps.traces.models import Trace
from tests.api.replayed import get, lines_of, make_place, post
from tests.factories import NOW, make_project
from tests.replays.rows import make_agent, make_batch, make_case, make_target

KEY = "canary-key-0123456789"


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_place)


@pytest.fixture
def project(made, db, settings):
    settings.UPLOADS_DIR = made[1]
    return Project.objects.get(name="Support desk")


@pytest.fixture
def owner(made, db):
    return User.objects.get(username="olga")


@pytest.fixture
def agent(project):
    return Agent.objects.get(key="memory")


@pytest.fixture
def door(client_with, project):
    return client_with(project, Scope.READ, Scope.REPLAY)


class TestTargets:
    """Read, never written, and without their keys."""

    def test_a_target_shows_what_it_is_set_to_and_never_its_key(
        self, door, owner, agent, settings
    ):
        settings.REPLAY_KEYS = [b"k" * 32]
        target = make_target(agent, "With a key", max_tokens=77)
        set_secret(target=target, text=KEY, user_id=owner.pk, now=NOW)
        listed = get(door, "targets")["targets"]
        assert len(listed) == 3
        found = get(door, "target", target.pk)
        assert (found["kind"], found["version"], found["has_key"]) == (
            "openai",
            1,
            True,
        )
        assert found["settings"]["max_tokens"] == 77
        assert found["versions"][0]["settings"]["max_tokens"] == 77
        assert KEY not in json.dumps([listed, found])

    def test_nobody_makes_one_here(self, door):
        for method in ("post", "put", "patch", "delete"):
            answer = getattr(door, method)(reverse("api-replay-targets"))
            assert answer.status_code in {403, 405}
        get(door, "target", 10**17, status=404)


class TestCases:
    """Frozen, uploaded, read, downloaded and put away."""

    def test_lines_are_kept_once_and_bad_ones_are_named(self, door, agent):
        lines = (
            b'{"agent": "memory", "name": "a", "input": "Where is it?"}\n'
            b"{nothing}\n"
            b'{"agent": "stranger", "input": "Who?"}\n'
            b'{"input": "Of whom?", "messages": [{"role": "user", "content": "x"}]}\n'
        )
        query = f"?agent={agent.pk}"
        first = post(door, "cases", body=lines, status=201, query=query)
        assert (first["new"], len(first["cases"]), first["refused_count"]) == (2, 2, 2)
        assert "stranger" in first["refused"][0]["reason"]
        assert first["refused"][1]["line"] == 2
        again = post(door, "cases", body=lines, query=query)
        assert (again["new"], again["cases"]) == (0, first["cases"])
        answer = door.get(reverse("api-replay-case-lines"), {"source": "file"})
        down = lines_of(answer.streaming_content)
        assert [one["input"] for one in down] == ["Of whom?", "Where is it?"]
        nothing = post(door, "cases", body=b"\n", status=400)
        assert "no case" in nothing["sentence"]
        refused = post(door, "cases", body=lines, query="?agent=99999", status=400)
        assert "agent" in refused["sentence"]

    def test_an_invocation_is_frozen_once(self, door):
        trace = Trace.objects.order_by("pk").last()
        body = {"trace": trace.pk, "invocation": 0}
        found = post(door, "case-freeze", body=body, status=201)
        assert found["agent"] == "memory"
        assert found["case"]["input"]
        assert any("temperature" in one for one in found["not_recorded"])
        assert post(door, "case-freeze", body=body)["id"] == found["id"]
        for wrong, status in (
            ({"trace": 10**17}, 400),
            ({"trace": trace.pk, "invocation": 99}, 409),
            ({"trace": str(trace.pk)}, 400),
            ({"trace": trace.pk, "more": 1}, 400),
            ([], 400),
            (b"{", 400),
        ):
            refused = post(door, "case-freeze", body=wrong, status=status)
            assert refused["sentence"].endswith(".")

    def test_a_case_is_read_renamed_and_put_away(self, door, agent):
        case = make_case(agent, "Is order 9 open?")
        found = get(door, "case", case.pk)
        assert found["case"]["calls"][0]["tool"] == "lookup"
        body = {"name": "order 9", "is_retired": True}
        changed = post(door, "case", case.pk, body=body, method="patch")
        assert (changed["name"], changed["is_retired"]) == ("order 9", True)
        ids = [one["id"] for one in get(door, "cases")["cases"]]
        assert case.pk not in ids
        [retired] = get(door, "cases", retired="yes", q="order 9")["cases"]
        assert retired["id"] == case.pk
        post(door, "case", case.pk, body={"name": " "}, method="patch", status=400)
        post(door, "case", case.pk, body={"content": 1}, method="patch", status=400)

    def test_the_list_goes_on_and_asks_a_fixed_number_of_queries(
        self, door, agent, monkeypatch
    ):
        monkeypatch.setattr("apps.api.replay_views.PAGE_SIZE", 2)
        counts = []
        get(door, "cases")
        for number in range(4):
            make_case(agent, f"Is order {number} open?")
            with CaptureQueriesContext(
                connection,
            ) as queries:
                page = get(door, "cases", source="hand")
            counts.append(len(queries))
        assert len(set(counts)) == 1
        ids = [one["id"] for one in page["cases"]]
        rest = door.get(page["next"]).json()
        assert len({*ids, *[one["id"] for one in rest["cases"]]}) == 4


def wanted(agent, case, **more):
    target = make_target(agent, "For the door")
    return {"name": "Nightly", "target": target.pk, "cases": [case.pk], **more}


class TestStarting:
    """A batch starts with the estimate that was read, and with nothing else."""

    def test_it_is_estimated_confirmed_started_cancelled_and_resumed(self, door, agent):
        body = wanted(
            agent,
            make_case(agent, "Is order 8 open?"),
            repeats=3,
            regimes={"sampling": [0.7], "declared": ["Open yet?"]},
            caps={"calls": 100, "seconds": 600},
            stubs={"misses": "stop"},
            limits={"seconds": 30},
        )
        estimated = post(door, "estimate", body=body)
        assert estimated["estimate"]["runs"] == 9
        assert estimated["estimate"]["sentence"].startswith("9 runs, 9 to 180")
        assert not Batch.objects.filter(name="Nightly").exists()
        refused = post(door, "batches", body=body, status=409)
        assert refused["confirm"] == estimated["confirm"]
        other = {**body, "repeats": 4, "confirm": estimated["confirm"]}
        assert (
            "not as estimated"
            in post(door, "batches", body=other, status=409)["sentence"]
        )
        confirmed = {**body, "confirm": estimated["confirm"]}
        batch = post(door, "batches", body=confirmed, status=201)
        assert batch["runs"]["total"] == batch["progress"]["total"] == 9
        assert batch["caps"] == {
            "calls": 100,
            "tokens": None,
            "money": None,
            "seconds": 600,
        }
        assert batch["plan"]["stubs"]["misses"] == "stop"
        words = [one["regime_in_words"] for one in batch["groups"]]
        assert words[:2] == ["Temperature 0", "Temperature 0.7"]
        cancelled = post(door, "batch-cancel", batch["id"])
        assert (cancelled["state"], cancelled["runs"]["not_run"]) == ("cancelled", 9)
        post(door, "batch-cancel", batch["id"], status=409)
        caps = {"calls": 50}
        resumed = post(door, "batch-resume", batch["id"], body=caps)
        assert (resumed["state"], resumed["caps"]["calls"]) == ("running", 50)
        post(door, "batch-resume", batch["id"], status=409)
        post(door, "batch-resume", batch["id"], body={"calls": 0}, status=400)

    def test_a_memory_test_has_a_group_for_each_depth(self, door, agent):
        fact = {
            "slug": "card",
            "value": "4471",
            "telling": "My card ends in {value}.",
            "probe": "What does my card end in?",
        }
        memory = {"facts": [fact], "depths": [0, 4], "repeats": 2}
        target = make_target(agent, "For memory")
        body = {"name": "Card", "target": target.pk, "memory": memory}
        confirm = post(door, "estimate", body=body)["confirm"]
        batch = post(door, "batches", body={**body, "confirm": confirm}, status=201)
        assert [one["regime"]["depth"] for one in batch["groups"]] == [0, 4]
        assert batch["memory"]["points"][0]["standing"] == "not_tested"
        broken = {**body, "memory": {**memory, "depths": []}}
        said = post(door, "estimate", body=broken, status=400)["sentence"]
        assert "memory.depths" in said

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"name": 7}, "name"),
            ({"target": 0}, "target"),
            ({"target": 2**70}, "target"),
            ({"cases": [10**17]}, "cases"),
            ({"cases": [2**70]}, "cases"),
            ({"cases": []}, "at least one case"),
            ({"repeats": 0}, "repeats"),
            ({"repeats": "5"}, "repeats"),
            ({"seed": -1}, "seed"),
            ({"signal": 10**17}, "signal"),
            ({"least_isolation": "total"}, "least_isolation"),
            ({"limits": {"seconds": 0}}, "limits.seconds"),
            ({"limits": {"memory_bytes": 2**40}}, "memory_bytes"),
            ({"caps": {"calls": -5}}, "caps.calls"),
            ({"caps": {"money": 1}}, "price table"),
            ({"regimes": {"sampling": [9]}}, "sampling"),
            ({"regimes": {"paraphrases": ["shout"]}}, "paraphrases"),
            ({"regimes": {"declared": ["", ""]}}, "declared"),
            ({"regimes": {"determinism": False}}, "at least one"),
            ({"stubs": {"default": {"kind": "magic"}}}, "stubs"),
            (
                {"stubs": {"default": {"kind": "handler", "handler": "os:x"}}},
                "HANDLERS",
            ),
            ({"secret": KEY}, "secret"),
        ],
    )
    def test_what_cannot_be_run_is_refused_with_the_field(
        self, door, agent, change, said
    ):
        body = {**wanted(agent, make_case(agent, "Is order 8 open?")), **change}
        address = reverse("api-replay-batches")
        answer = door.post(address, json.dumps(body), content_type="application/json")
        if answer.status_code == 409:
            body["confirm"] = answer.json()["confirm"]
            answer = door.post(
                address, json.dumps(body), content_type="application/json"
            )
        assert answer.status_code == 400, answer.content
        assert said in answer.json()["sentence"]
        assert not Batch.objects.filter(name="Nightly").exists()


class TestResults:
    """What runs gave back, beside the pipeline."""

    def test_a_batch_says_how_its_groups_stand_beside_the_pipeline(self, door):
        batch = Batch.objects.get(name="Alone")
        listed = get(door, "batches", state="done")["batches"]
        assert {one["id"] for one in listed} >= {batch.pk}
        found = get(door, "batch", batch.pk)
        [group] = found["groups"]
        assert (group["finished"]["k"], group["finished"]["n"]) == (4, 5)
        assert group["runs"]["breaches"] == found["runs"]["breaches"] == 1
        assert group["score"]["consistency"]["n"] == 5
        beside = group["in_the_pipeline"]
        assert "in 3 of 3; alone" in beside["sentence"]
        assert beside["standing"] == "differ"
        assert found["progress"]["remaining_seconds"] == 0
        assert found["estimate"]["runs"] == 5

    def test_a_run_shows_its_proof_attempts_and_recording(self, door):
        batch = Batch.objects.get(name="Alone")
        red = Run.objects.get(batch=batch, has_breach=True)
        found = get(door, "run", red.pk)
        assert found["effects"][0]["what"] == "/etc/notes.txt"
        assert found["proof"]["input_after"] != found["proof"]["input_before"]
        assert found["decided"]["state"] == "decided"
        first = get(door, "run", Run.objects.filter(batch=batch).earliest("pk").pk)
        assert [one["ending"] for one in first["attempts"]] == ["put_back", "finished"]
        assert first["attempts"][0]["retry_after"] == 12.0
        recording = door.get(found["recording"])
        assert b"send_mail" in recording.content
        assert door.get(found["agents"]).json()["agents"]
        answer = door.get(reverse("api-replay-batch-runs", args=[batch.pk]))
        lines = lines_of(answer.streaming_content)
        assert [one["run"] for one in lines] == sorted(one["run"] for one in lines)
        assert [one["has_breach"] for one in lines].count(True) == 1

    def test_tool_calls_of_a_run_at_work_are_seen(self, door, agent):
        target = make_target(agent, "At work")
        make_batch(target, make_case(agent, "Is order 6 open?"), repeats=1)
        claim = claim_run(lease_seconds=60)
        run = Run.objects.get(pk=claim.run_id)
        answer_stub_call(
            token=open_stubs(claim), tool="lookup", arguments={"number": 7}, now=NOW
        )
        found = get(door, "run", run.pk)
        assert found["stub_calls"][0]["arguments"] == {"number": 7}
        assert (found["trace"], found["proof"]) == (None, None)
        get(door, "recording", run.pk, status=404)

    def test_a_memory_test_has_its_curve(self, door):
        found = get(door, "batch", Batch.objects.get(name="Card number").pk)
        points = found["memory"]["points"]
        assert [(one["depth"], one["recalled"]) for one in points] == [
            (1, 5),
            (6, 3),
            (12, 0),
        ]
        assert found["memory"]["first_uncertain"] == 6
        assert found["memory"]["sentences"]


class TestScopes:
    """`read` reads, `replay` acts, and both only in their own project."""

    ACTS = ("case-freeze", "estimate", "batches", "cases")

    def test_reading_and_acting_are_two_scopes(self, client_with, project):
        reads, acts = (
            client_with(project, Scope.READ),
            client_with(project, Scope.REPLAY),
        )
        for name in self.ACTS:
            address = reverse(f"api-replay-{name}")
            assert reads.post(address, {}).status_code == 403
            assert acts.get(address).status_code in {403, 405}
        assert get(reads, "batches")["batches"]

    def test_ids_of_another_project_are_not_found(self, client_with, owner, made):
        batch = Batch.objects.get(name="Alone")
        run = Run.objects.filter(batch=batch).first()
        case = ReplayCase.objects.filter(agent=batch.agent).first()
        target = Target.objects.first()
        other = make_project(owner=owner, name="Elsewhere")
        elsewhere = client_with(other, Scope.READ, Scope.REPLAY)
        for name, pk in (
            ("target", target.pk),
            ("case", case.pk),
            ("batch", batch.pk),
            ("batch-runs", batch.pk),
            ("run", run.pk),
            ("recording", run.pk),
        ):
            get(elsewhere, name, pk, status=404)
        for name in ("batch-cancel", "batch-resume"):
            post(elsewhere, name, batch.pk, status=404)
        body = {"name": "x", "target": target.pk, "cases": [case.pk]}
        post(elsewhere, "estimate", body=body, status=400)
        trace = {"trace": Trace.objects.first().pk}
        post(elsewhere, "case-freeze", body=trace, status=400)
        own = make_agent(other, "memory")
        mixed = {"name": "x", "target": make_target(own).pk, "cases": [case.pk]}
        post(elsewhere, "estimate", body=mixed, status=400)


def test_the_reference_page_names_every_address(owner):
    client = Browser()
    client.force_login(owner)
    page = client.get(reverse("api")).content.decode()
    said = re.sub(r"/[0-9]+", "/1", re.sub(r"<[^>]*>", "", page))
    for pattern in urlpatterns:
        name = getattr(pattern, "name", "") or ""
        if not name.startswith("api-replay-"):
            continue
        kwargs = dict.fromkeys(pattern.pattern.converters or _groups(pattern), 1)
        path = reverse(name, kwargs=kwargs).removeprefix("/api/v1/replays")
        assert path in said, path


def _groups(pattern):
    return re.compile(pattern.pattern.regex).groupindex
