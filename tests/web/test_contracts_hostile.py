"""Contracts by hand-made requests: nothing sent makes an error of the server."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.accounts.permissions import Role
from apps.screening.models import Definition
from tests.factories import make_contract, make_member, tools_trace, upload_traces
from tests.web.hostile import TEXTS
from tests.web.test_contracts import PRECEDES, new, text_of

SCHEMAS = [
    '{"maximum": 1' + "0" * 400 + "}",
    '{"maximum": 1e999}',
    '{"enum": ["\\ud800"]}',
    '{"enum": ["\\u0000"]}',
    '{"const": 123456789012345678901234567890}',
    "[" * 5_000 + "]" * 5_000,
    '{"not": ' * 2_000 + "{}" + "}" * 2_000,
    '{"a": 1, "a": 2}',
    '{"$ref": 5}',
    '{"$ref": "#/$defs/nowhere"}',
    '{"$schema": ["x"]}',
    '{"pattern": 5}',
    '{"patternProperties": {"[": true}}',
    '{"required": "x"}',
    '{"type": "nothing"}',
    '{"multipleOf": 0}',
    '{"multipleOf": 1e-308}',
    '{"maxLength": -1}',
    '{"enum": []}',
    "true",
    "false",
    "null",
    "NaN",
    "",
    "{'a': 1}",
    "\ufeff{}",
]


@pytest.fixture
def desk(project):
    upload_traces(project, tools_trace("refund", "lookup", name="rash"))
    return project


def test_any_schema_is_saved_or_refused_with_a_sentence(web, desk):
    for number, schema in enumerate(SCHEMAS):
        fields = PRECEDES | {
            "label": f"Schema {number}",
            "select_asks": "arguments",
            "select_condition": schema,
        }
        tried = new(web, desk, fields, act="preview")
        assert tried.status_code == 200, schema
        answer = new(web, desk, fields)
        assert answer.status_code in {302, 400}, schema
        if answer.status_code == 302:
            assert web.get(answer.url).status_code == 200, schema
            slug = f"schema-{number}"
            url = reverse("contract-edit", args=[desk.slug, slug])
            assert web.get(url).status_code == 200, schema
    stored = Definition.objects.count()
    assert 3 <= stored < len(SCHEMAS) / 2


@pytest.mark.parametrize(
    "text", [TEXTS[name] for name in ("html", "quotes", "controls", "templates")]
)
@pytest.mark.parametrize("kind", ["contract", "planted-fact"])
def test_any_text_in_any_field_is_saved_or_refused(web, desk, text, kind):
    text = text.encode("utf-8", "replace").decode()
    names = {
        "contract": (
            "label", "sentence", "select_kind", "select_name", "select_agent",
            "select_model", "select_status", "select_asks", "select_condition",
            "before_name", "operator", "scope", "level", "n",
        ),
        "planted-fact": (
            "label", "value", "plant", "probe", "decoys", "normaliser", "sentence",
        ),
    }[kind]  # fmt: skip
    fact = {"label": "Code", "value": "X9-4417", "probe": "code"}
    for name in names:
        fields = (PRECEDES if kind == "contract" else fact) | {"label": f"A {name}"}
        for act in ("preview", "save"):
            answer = new(web, desk, fields | {name: text}, act, kind)
            assert answer.status_code in {200, 302, 400}
            assert "<script>alert" not in answer.content.decode()
            assert "<svg/onload" not in answer.content.decode()
    for row in Definition.objects.all():
        for page in ("contract", "contract-edit"):
            shown = web.get(reverse(page, args=[desk.slug, row.slug]))
            assert shown.status_code == 200
            assert "<script>alert" not in shown.content.decode()
            assert "script-src 'self'" in shown["Content-Security-Policy"]


@pytest.mark.parametrize("name", ["select_condition", "sentence", "select_name"])
def test_a_megabyte_is_refused_at_its_field(web, desk, name):
    fields = PRECEDES | {"select_asks": "arguments", name: "x" * 1_000_000}
    answer = new(web, desk, fields)
    assert answer.status_code == 400
    assert not Definition.objects.exists()


def test_the_kind_of_a_definition_does_not_change_by_hand(web, desk):
    row = make_contract(desk)
    url = reverse("contract-edit", args=[desk.slug, row.slug])
    fact = {"label": "Code", "value": "X9", "probe": "code", "kind": "planted-fact"}
    answer = web.post(url + "?kind=planted-fact", fact | {"act": "save"})
    assert answer.status_code == 400
    assert set(Definition.objects.values_list("kind", flat=True)) == {"contract"}


def test_a_retired_contract_that_is_edited_stays_retired_and_says_so(web, desk):
    row = make_contract(desk)
    state = reverse("contract-state", args=[desk.slug, row.slug])
    web.post(state, {"state": "retired"})
    url = reverse("contract-edit", args=[desk.slug, row.slug])
    answer = web.post(url, PRECEDES | {"act": "save"}, follow=True)
    assert Definition.objects.order_by("-number").first().state == "retired"
    said = text_of(answer)
    assert "are checked in the background" not in said
    assert "It stays retired" in said


def test_of_two_who_edit_at_once_the_second_is_told_and_nothing_is_lost(web, desk):
    row = make_contract(desk)
    url = reverse("contract-edit", args=[desk.slug, row.slug])
    mine = PRECEDES | {"label": "Mine", "number": row.number, "act": "save"}
    theirs = PRECEDES | {"label": "Theirs", "number": row.number, "act": "save"}
    assert web.post(url, mine).status_code == 302
    late = web.post(url, theirs)
    assert late.status_code == 400
    assert 'value="Theirs"' in late.content.decode()
    assert Definition.objects.order_by("-number").first().label == "Mine"


def test_a_number_that_is_none_is_no_way_around_it(web, desk):
    row = make_contract(desk)
    url = reverse("contract-edit", args=[desk.slug, row.slug])
    for number in ("", "x", "-1", "9" * 40, "\u0661"):
        fields = PRECEDES | {"label": "Mine", "number": number, "act": "save"}
        assert web.post(url, fields).status_code == 400
    assert Definition.objects.count() == 1


@pytest.mark.parametrize("on", ["", "x", "0", "9" * 40, "-1", "1 OR 1=1"])
def test_trying_without_traces_or_on_no_trace_is_an_answer(web, project, on):
    answer = new(web, project, PRECEDES | {"on": on}, act="preview")
    assert answer.status_code == 200
    assert "There is no trace yet to try it on." in text_of(answer)


def test_a_viewer_changes_nothing_whatever_is_sent(client, desk):
    row = make_contract(desk)
    client.force_login(make_member(desk, Role.VIEWER))
    before = Definition.objects.count()
    for name, sent in (
        ("contract-edit", PRECEDES | {"act": "save"}),
        ("contract-edit", PRECEDES | {"act": "preview"}),
        ("contract-state", {"state": "retired"}),
    ):
        url = reverse(name, args=[desk.slug, row.slug])
        assert client.post(url, sent).status_code == 403
    assert new(client, desk, PRECEDES).status_code == 403
    assert Definition.objects.count() == before
