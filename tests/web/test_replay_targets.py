"""Pages of targets: kinds, what the operator allows, keys that are never shown again."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.permissions import Role
from apps.engine.replay.run import TargetKind
from apps.replays.models import Target, TargetSecret, TargetVersion
from apps.replays.sealing import secret_of
from tests.agents.making import make_agent
from tests.factories import NOW, make_member
from tests.web.visiting import text, url

SECRET = "sk-nobody-may-read-this-4711"
COMMON = {"seconds": "60", "concurrency": "3", "requests_per_minute": "0"}
OPENAI = {
    "name": "small model",
    "base_url": "http://127.0.0.1:9/v1",
    "model": "small",
    "api": "responses",
    "stream": "on",
    "max_tokens": "512",
    "parameters": '{"top_p": 1}',
    **COMMON,
}
FORMS = {
    "openai": OPENAI,
    "http": {"name": "h", "url": "http://127.0.0.1:9/run", "header": "X-Key", **COMMON},
    "callable": {"name": "c", "callable": "desk:agent", **COMMON},
    "command": {"name": "d", "command": "/bin/agent", "arguments": "-v\n-x", **COMMON},
    "recorded": {"name": "r"},
}


@pytest.fixture(autouse=True)
def allowed(settings):
    settings.REPLAY_HOSTS = ["127.0.0.1:9"]
    settings.REPLAY_CALLABLES = ["desk:agent"]
    settings.REPLAY_COMMANDS = ["/bin/agent"]
    settings.REPLAY_KEYS = [bytes(32)]


@pytest.fixture
def agent(project):
    return make_agent(project)


def new(web, project, one, kind, **fields):
    where = url(project, "replay-target-new") + f"?kind={kind}"
    return web.post(where, {"agent": one.pk, **FORMS[kind], **fields})


def test_a_target_of_each_kind_is_made_changed_and_used_again(web, project, agent):
    for kind in TargetKind:
        page = text(web.get(url(project, "replay-target-new") + f"?kind={kind}"))
        assert "New target" in page
        answer = new(web, project, agent, kind)
        assert answer.status_code == 302, text(answer)
        target = Target.objects.latest("pk")
        assert target.kind == kind
        page = text(web.get(answer["Location"]))
        assert "Version 1" in page
    page = text(web.get(url(project, "replay-targets")))
    assert "small at http://127.0.0.1:9/v1" in page
    assert "/bin/agent -v -x" in page
    assert "Isolation reached here" in page
    assert "What is not guaranteed" in page
    target = Target.objects.get(kind="openai")
    where = url(project, "replay-target", target.pk)
    assert "called over plain http" in text(web.get(where))
    assert web.post(where, {**OPENAI, "model": "large"}).status_code == 302
    assert "model: small → large" in text(web.get(where))
    again = url(project, "replay-target-again", target.pk)
    assert web.post(again, {"version": "1"}).status_code == 302
    versions = TargetVersion.objects.filter(target=target).order_by("number")
    assert [one.settings["model"] for one in versions] == ["small", "large", "small"]
    assert web.post(again, {"version": "9" * 19}).status_code == 400


def test_the_form_of_a_command_says_how_it_is_talked_to(web, project, agent):
    page = text(web.get(url(project, "replay-target-new") + "?kind=command"))
    for words in (
        "one line of JSON on its standard input, which stays open",
        "{&quot;ask&quot;: &quot;tool&quot;, &quot;tool&quot;: …, &quot;arguments&quot;: …}",
        "{&quot;output&quot;: …, &quot;state&quot;: …}</code> is its answer",
    ):
        assert words in page


@pytest.mark.parametrize(
    ("kind", "fields", "place", "said"),
    [
        ("openai", {"base_url": "http://10.0.0.7/v1"}, "base_url", "EVALSITE_REPLAY_HOSTS"),
        ("openai", {"base_url": ""}, "base_url", "must begin with https://"),
        ("openai", {"parameters": "{"}, "parameters", "This is not JSON"),
        ("openai", {"parameters": '{"model": "x"}'}, "parameters", "set by the replay"),
        ("openai", {"name": ""}, "name", "required"),
        ("openai", {"concurrency": "99"}, "concurrency", "from 1 to 20"),
        ("openai", {"key": "ключ-доступа"}, "key", "plain letters"),
        ("http", {"url": "https://u:p@a.example/"}, "url", "user name or password"),
        ("http", {"header": "a b"}, "header", "letters, digits and hyphens"),
        ("callable", {"callable": "os:system"}, "callable", "EVALSITE_REPLAY_CALLABLES"),
        ("command", {"command": "/bin/sh"}, "command", "EVALSITE_REPLAY_COMMANDS"),
        ("openai", {"agent": ""}, "agent", "Choose the agent"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_at_its_field(
    web, project, agent, kind, fields, place, said
):
    answer = new(web, project, agent, kind, **fields)
    assert answer.status_code == 400
    page = text(answer)
    error = page.split(f'id="f_{place}_error">')[1].split("</p>")[0]
    assert said in error
    assert Target.objects.count() == 0


def test_a_kind_without_a_list_of_the_operator_says_which_setting(
    web, project, agent, settings
):
    settings.REPLAY_CALLABLES, settings.REPLAY_COMMANDS = [], []
    for kind in ("callable", "command"):
        page = text(web.get(url(project, "replay-target-new") + f"?kind={kind}"))
        assert f"EVALSITE_REPLAY_{kind.upper()}S; nobody can add one here" in page


def test_a_key_is_set_forgotten_and_never_shown(web, project, agent):
    page = text(new(web, project, agent, "openai", key=SECRET, name=""))
    assert SECRET not in page
    new(web, project, agent, "openai", key=SECRET)
    target = Target.objects.get()
    where, key = (
        url(project, f"replay-target{one}", target.pk) for one in ("", "-key")
    )
    assert secret_of(target.pk, now=NOW) == SECRET
    for address in (where, url(project, "replay-targets")):
        page = text(web.get(address))
        assert SECRET not in page
        assert "by olga" in page
    Target.objects.update(needs_key=True)
    assert "The target refused the key" in text(web.get(where))
    assert web.post(key, {"key": ""}).status_code == 400
    assert web.post(key, {"key": "another"}).status_code == 302
    assert "The target refused the key" not in text(web.get(where))
    moved = {**OPENAI, "base_url": "https://models.example/v1"}
    page = text(web.post(where, moved, follow=True))
    assert "the key was forgotten" in page
    assert secret_of(target.pk, now=NOW) == ""
    web.post(key, {"key": "the third"})
    page = text(web.post(key, {"act": "forget"}, follow=True))
    assert "Forgotten." in page
    assert not TargetSecret.objects.exclude(sealed=b"").exists()


def test_a_site_without_sealing_keys_says_so(web, project, agent, settings):
    settings.REPLAY_KEYS = []
    new(web, project, agent, "openai")
    target = Target.objects.get()
    page = text(web.get(url(project, "replay-target", target.pk)))
    assert "EVALSITE_REPLAY_KEY" in page
    answer = web.post(url(project, "replay-target-key", target.pk), {"key": "x"})
    assert answer.status_code == 400


def test_a_retired_target_is_folded_away_and_comes_back(web, project, agent):
    new(web, project, agent, "openai", key=SECRET)
    target = Target.objects.get()
    retire = url(project, "replay-target-retire", target.pk)
    web.post(retire)
    page = text(web.get(url(project, "replay-targets")))
    assert "1 retired target" in page
    assert secret_of(target.pk, now=NOW) == ""
    key = url(project, "replay-target-key", target.pk)
    assert web.post(key, {"key": "x"}).status_code == 409
    new(web, project, agent, "openai")
    assert web.post(retire, {"act": "restore"}).status_code == 409
    rename = url(project, "replay-target-rename", target.pk)
    assert web.post(rename, {"name": "old model"}).status_code == 302
    assert web.post(retire, {"act": "restore"}).status_code == 302


def test_a_reviewer_reads_targets_and_changes_none(client, project, agent, web):
    new(web, project, agent, "openai")
    target = Target.objects.get()
    client.force_login(make_member(project, Role.REVIEWER))
    where = url(project, "replay-target", target.pk)
    page = text(client.get(where))
    assert "Only a maintainer or higher may change how agents are run alone" in page
    assert client.post(where, OPENAI).status_code == 403


def test_the_list_asks_the_same_for_more_targets(
    web, project, agent, django_assert_num_queries
):
    where = url(project, "replay-targets")
    new(web, project, agent, "openai", key=SECRET)
    web.get(where)
    with CaptureQueriesContext(connection) as found:
        web.get(where)
    few = len(found.captured_queries)
    for number in range(4):
        new(web, project, agent, "openai", name=f"n{number}", key=SECRET)
    with django_assert_num_queries(few):
        web.get(where)
