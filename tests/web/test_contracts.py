"""Contracts: written in a form, tried on traces that are here, checked on all of them."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.permissions import Role
from apps.pipeline.lineups import catch_up
from apps.reports.models import Report
from apps.review.models import Signal
from apps.screening.models import Definition, Screening
from apps.traces.models import Trace
from apps.web.contract_forms import FORMS, initial_of
from tests.factories import (
    CHAT,
    NOW,
    chat_bytes,
    make_contract,
    make_member,
    tools_trace,
    upload_bytes,
    upload_traces,
)
from tests.web.hostile import HTML
from tests.web.visiting import freeze, pages

PRECEDES = {
    "label": "Look before you refund",
    "operator": "precedes",
    "select_kind": "tool_call",
    "select_name": "refund",
    "before_name": "lookup",
    "scope": "trace",
    "level": "review_signal",
}


@pytest.fixture
def desk(project):
    """Four traces: one breaks the contract, two hold, one it is not about."""
    upload_traces(
        project,
        tools_trace("refund", "lookup", name="rash"),
        tools_trace("lookup", "refund", name="careful"),
        tools_trace("lookup", "lookup", "refund", name="thorough"),
        tools_trace("lookup", name="idle"),
    )
    return project


def text_of(answer):
    page = re.sub(r"<[^>]+>", " ", answer.content.decode())
    return " ".join(page.split())


def new(web, project, fields, act="save", kind="contract", **more):
    url = reverse("contract-new", args=[project.slug]) + f"?kind={kind}"
    return web.post(url, {**fields, "act": act}, **more)


def test_an_empty_project_is_shown_an_example(web, project):
    page = text_of(web.get(reverse("contracts", args=[project.slug])))
    assert "No contract yet" in page
    assert "there must be an earlier" in page


def test_a_contract_is_saved_checked_and_listed_with_its_counts(web, desk):
    answer = new(web, desk, PRECEDES)
    assert answer.status_code == 302, text_of(answer)
    while catch_up(project_id=desk.pk, clock=lambda: NOW):
        pass
    stored = Screening.objects.filter(check_slug="contract-look-before-you-refund")
    assert sorted(stored.values_list("answer", flat=True)) == [
        "not_applicable",
        "quiet",
        "quiet",
        "signal",
    ]
    signal = Signal.objects.get(check_slug="contract-look-before-you-refund")
    assert signal.trace.name == "rash"
    for name in ("contracts", "contract"):
        args = (
            [desk.slug]
            if name == "contracts"
            else [desk.slug, "look-before-you-refund"]
        )
        page = text_of(web.get(reverse(name, args=args)))
        assert "before every tool call named “refund”" in page
    assert "1 2 1 active" in text_of(web.get(reverse("contracts", args=[desk.slug])))
    shown = web.get(reverse("signal", args=[desk.slug, signal.pk]))
    assert shown.status_code == 200
    assert "before every tool call named “refund”" in text_of(shown)


def test_counts_of_a_contract_that_nothing_answered_yet_are_no_zeros(web, desk):
    new(web, desk, PRECEDES)
    listed = web.get(reverse("contracts", args=[desk.slug]))
    page = text_of(listed)
    assert "Catching up: 4 traces are not answered yet" in page
    assert "— — — active" in page
    assert 'hx-select="#answers"' in listed.content.decode()
    one = reverse("contract", args=[desk.slug, "look-before-you-refund"])
    page = text_of(web.get(one))
    assert "Catching up: 4 traces are not answered yet" in page
    assert "nothing breaks it" not in page
    while catch_up(project_id=desk.pk, clock=lambda: NOW):
        pass
    listed = web.get(reverse("contracts", args=[desk.slug]))
    assert "Catching up" not in text_of(listed)
    assert "hx-select" not in listed.content.decode()


def test_a_contract_that_applied_to_nothing_is_not_said_to_hold(web, desk):
    new(web, desk, {**PRECEDES, "select_name": "pay"})
    while catch_up(project_id=desk.pk, clock=lambda: NOW):
        pass
    one = reverse("contract", args=[desk.slug, "look-before-you-refund"])
    page = text_of(web.get(one))
    assert "it applied to nothing yet" in page
    assert "nothing breaks it" not in page


def test_trying_says_what_it_asks_once_above_the_list(web, desk):
    page = text_of(new(web, desk, PRECEDES, act="preview"))
    assert page.count("before every tool call named “refund”") == 1


def test_trying_shows_what_breaks_it_and_stores_nothing(web, desk):
    page = text_of(new(web, desk, PRECEDES, act="preview"))
    assert "1 breaks it 2 hold 1 does not apply" in page
    assert "rash" in page
    assert "Nothing to hold" in page
    assert not Definition.objects.exists()
    assert not Screening.objects.filter(check_slug__startswith="contract").exists()


def test_the_live_preview_is_the_same_part_alone(web, desk):
    answer = new(web, desk, PRECEDES, act="preview", headers={"HX-Request": "true"})
    page = answer.content.decode()
    assert page.lstrip().startswith('<section class="card flush" id="preview"')
    assert "<html" not in page
    rash = Trace.objects.get(name="rash")
    assert f"/traces/{rash.pk}/?step=1" in page


def test_it_can_be_tried_on_one_trace(web, desk):
    chosen = Trace.objects.get(name="careful")
    page = text_of(new(web, desk, {**PRECEDES, "on": chosen.pk}, act="preview"))
    assert "1 holds" in page
    assert "1 breaks it" not in page


def test_trying_stops_in_time_and_says_so(web, desk, monkeypatch):
    monkeypatch.setattr("apps.web.pages.contracts.TRYING_SECONDS", -1.0)
    page = text_of(new(web, desk, PRECEDES, act="preview"))
    assert "3 traces were not tried" in page


def test_a_long_trace_is_not_tried(web, desk, monkeypatch):
    monkeypatch.setattr("apps.web.pages.contracts.LONGEST_TRIED", 2)
    page = text_of(new(web, desk, PRECEDES, act="preview"))
    assert "1 not tried" in page
    assert "Too long to try here" in page


@pytest.mark.parametrize(
    ("fields", "name", "sentence"),
    [
        ({"operator": "at_most"}, "n", "needs a number from 1"),
        ({"operator": "always"}, "then_name", "at least one thing"),
        ({"before_name": ""}, "before_name", "at least one thing"),
        ({"label": ""}, "label", "required"),
        ({"label": "new"}, "label", "becomes the address"),
        ({"operator": "sometimes"}, "operator", "valid choice"),
        ({"select_asks": "cel"}, "select_condition", "Write an expression"),
        (
            {"select_asks": "cel", "select_condition": "step.seq >"},
            "select_condition",
            "does not understand",
        ),
        (
            {"select_asks": "arguments", "select_condition": "{"},
            "select_condition",
            "not JSON",
        ),
        (
            {"before_asks": "result", "before_condition": '{"tipe": 1}'},
            "before_condition",
            "is not supported",
        ),
        (
            {"select_asks": "step", "select_condition": '{"pattern": "(?<=a)"}'},
            "select_condition",
            "no pattern of RE2",
        ),
    ],
)
def test_what_is_wrong_is_said_at_the_field(web, desk, fields, name, sentence):
    answer = new(web, desk, {**PRECEDES, **fields})
    page = answer.content.decode()
    assert answer.status_code == 400
    found = re.search(rf'id="f_{name}_error">([^<]*)<', page)
    assert found, page
    assert sentence in found.group(1)
    assert re.search(rf'name="{name}"[^>]*aria-invalid="true"', page, re.DOTALL)
    assert not Definition.objects.exists()
    shown = text_of(new(web, desk, {**PRECEDES, **fields}, act="preview"))
    assert sentence in shown


def test_a_name_that_is_taken_is_said_at_the_name(web, desk):
    new(web, desk, PRECEDES)
    answer = new(web, desk, PRECEDES)
    assert answer.status_code == 400
    assert "there already" in text_of(answer)


def test_an_edit_starts_from_what_is_stored_and_writes_the_next_row(web, desk, owner):
    make_contract(desk)
    url = reverse("contract-edit", args=[desk.slug, "no-refund"])
    page = web.get(url).content.decode()
    assert 'name="select_name" value="refund"' in page
    fields = {"label": "No refund", "operator": "never", "select_name": "pay"}
    assert web.post(url, {**fields, "number": 1, "act": "save"}).status_code == 302
    row = Definition.objects.get(number=2)
    assert (row.version, row.created_by_id) == (2, owner.pk)
    late = web.post(url, {**fields, "number": 1, "act": "save"})
    assert late.status_code == 400
    assert "since you opened it" in text_of(late)
    shown = text_of(web.get(reverse("contract", args=[desk.slug, "no-refund"])))
    assert "asks something else: version 2" in shown


@pytest.mark.parametrize(
    "spec",
    [
        {"operator": "never", "select": {"kind": "tool_call", "status": "error"}},
        {"operator": "at_most", "n": 3, "select": {"name": "a"}, "scope": "invocation"},
        {
            "operator": "always",
            "select": {"agent": "a", "model": "m"},
            "then": {"condition": {"language": "cel", "expression": "step.seq > 1"}},
            "level": "telemetry",
            "sentence": "Why.",
        },
        {
            "operator": "precedes",
            "select": {
                "condition": {
                    "language": "json_schema",
                    "subject": "result",
                    "json_schema": {"type": "object"},
                }
            },
            "before": {"name": "x"},
        },
    ],
)
def test_a_form_gives_back_the_spec_that_it_was_filled_from(web, project, spec):
    row = make_contract(project, spec)
    initial = initial_of(label=row.label, spec=row.spec)
    form = FORMS["contract"](initial)
    assert form.is_valid(), form.errors
    url = reverse("contract-edit", args=[project.slug, row.slug])
    assert web.post(url, {**initial, "act": "save"}).status_code == 302
    assert Definition.objects.count() == 1


def test_a_contract_is_paused_checked_again_and_retired(web, desk):
    make_contract(desk)
    url = reverse("contract-state", args=[desk.slug, "no-refund"])
    shown = reverse("contract", args=[desk.slug, "no-refund"])
    for state, words in (
        ("paused", "nothing of it is queued"),
        ("active", "is checked again"),
        ("retired", "answers about no trace"),
    ):
        answer = web.post(url, {"state": state}, follow=True)
        assert words in text_of(answer)
    assert "Check it again" in text_of(web.get(shown))
    assert web.post(url, {"state": "gone"}).status_code == 400


def test_a_viewer_reads_and_is_told_who_may_change(client, desk):
    make_contract(desk)
    client.force_login(make_member(desk, Role.VIEWER))
    for name, args in (("contracts", []), ("contract", ["no-refund"])):
        page = text_of(client.get(reverse(name, args=[desk.slug, *args])))
        assert "Only a maintainer or higher may change which checks count" in page
        assert "Edit" not in page
    assert client.get(reverse("contract-new", args=[desk.slug])).status_code == 403


def test_a_planted_fact_has_a_form_of_its_own(web, project):
    chat = [
        *CHAT[:1],
        {"role": "user", "content": "My order is X9-4417."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "Which order was mine?"},
    ]
    told = [{"role": "assistant", "content": said} for said in ("X9 4417.", "No idea.")]
    upload_bytes(project, chat_bytes([*chat, told[0]], [*chat, told[1]]))
    fields = {
        "label": "Order number",
        "value": "X9-4417",
        "probe": "which order",
        "normaliser": "id",
        "decoys": "A1-0001\n\nA1-0002",
    }
    page = text_of(new(web, project, fields, act="preview", kind="planted-fact"))
    assert "1 breaks it 1 holds" in page
    assert new(web, project, fields, kind="planted-fact").status_code == 302
    row = Definition.objects.get()
    assert row.spec["decoys"] == ["A1-0001", "A1-0002"]
    edit = web.get(reverse("contract-edit", args=[project.slug, row.slug]))
    assert "A1-0001\nA1-0002" in edit.content.decode()
    wrong = new(
        web, project, {**fields, "value": "--", "label": "B"}, kind="planted-fact"
    )
    assert "letter or a digit" in text_of(wrong)


def test_there_is_no_form_of_another_kind(web, project):
    assert new(web, project, {}, kind="other").status_code == 404


def test_a_definition_that_is_no_longer_taken_says_so(web, desk):
    make_contract(desk)
    Definition.objects.all().delete()
    Definition.objects.create(
        project=desk,
        kind="contract",
        slug="old",
        number=1,
        version=1,
        label="Old",
        spec={"operator": "until"},
        created_at=NOW,
    )
    sentence = (
        "Contract “Old” (version 1), a check of its own, cannot be read by this version "
        "of Evalsite at “operator”: “until” is none of the words that are known here. "
        "Edit it anew; nothing is known from it until then."
    )
    page = text_of(web.get(reverse("contracts", args=[desk.slug])))
    assert "not checked" in page
    assert sentence in page
    for name in ("contract", "contract-edit"):
        answer = web.get(reverse(name, args=[desk.slug, "old"]))
        assert (answer.status_code, text_of(answer).count(sentence)) == (200, 1)
        assert "Invalid enum value" not in text_of(answer)
    own = text_of(web.get(reverse("contract", args=[desk.slug, "old"])))
    assert "What it asks" not in own, "there is nothing that it asks"


def test_what_people_write_is_text_wherever_it_is_shown(web, desk):
    fields = {**PRECEDES, "select_name": HTML[:400], "sentence": HTML[:290]}
    answer = new(web, desk, fields, act="preview")
    assert "<svg/onload" not in answer.content.decode()
    assert new(web, desk, fields).status_code == 302
    shown = web.get(reverse("contract", args=[desk.slug, "look-before-you-refund"]))
    assert "<svg/onload" not in shown.content.decode()


def test_the_list_asks_the_database_as_often_for_two_as_for_six(web, desk):
    url = reverse("contracts", args=[desk.slug])
    web.get(url)
    counts = []
    for labels in ("AB", "CDEF"):
        for label in labels:
            make_contract(desk, label=f"Contract {label}")
        with CaptureQueriesContext(connection) as queries:
            web.get(url)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_signal_of_a_contract_is_shown_on_every_page(web, desk):
    new(web, desk, PRECEDES)
    while catch_up(project_id=desk.pk, clock=lambda: NOW):
        pass
    freeze(web, desk)
    assert pages(web, desk)
    args = {
        "queue": [],
        "overview": [],
        "report-markdown": [Report.objects.get().pk],
        "trace": [Trace.objects.get(name="rash").pk],
    }
    for name, more in args.items():
        page = web.get(reverse(name, args=[desk.slug, *more])).content.decode()
        assert "Look before you refund" in page, name
    check = "contract-look-before-you-refund"
    answer = web.get(reverse("project-check", args=[desk.slug, check]))
    assert "Look before you refund" in text_of(answer)
