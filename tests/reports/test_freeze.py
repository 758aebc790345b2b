from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.engine.trace import Outcome, OutcomeKind
from apps.reports import markdown, pdf
from apps.reports.document import canonical, sha256_of
from apps.reports.models import Report
from apps.reports.operations import freeze
from apps.reports.queries import document_of, filename, reports_of
from apps.review.models import Signal
from apps.review.operations import DecisionInput, decide, undo
from apps.review.queries import QueueFilter
from apps.review.transitions import Verdict
from tests.factories import NOW, decay_trace, make_project, upload_traces

pytestmark = pytest.mark.django_db

FALLING = (112, 96, 81, 67, 52, 43)
ALL = QueueFilter(view="all")


def frozen(project, owner, *, where=ALL, title="Release 12", now=NOW):
    return freeze(project=project, user=owner, title=title, where=where, now=now)


@pytest.fixture
def screened(project):
    """One falling trace, one that is quiet, one with usage missing."""
    return upload_traces(
        project,
        decay_trace(*FALLING, name="falls", task="t1", trial=0),
        decay_trace(50, 60, 55, 70, 65, 80, name="rises", task="t1", trial=1),
        decay_trace(90, None, 70, 60, 50, name="has a hole"),
    )


def only_signal(project) -> Signal:
    return Signal.objects.get(project=project, check_slug="output-decay")


def test_the_same_state_and_moment_give_the_same_bytes(project, owner, screened):
    first, second = frozen(project, owner), frozen(project, owner)
    assert first.pk != second.pk
    assert first.document == second.document
    assert first.sha256 == second.sha256 == sha256_of(first.document)
    document = document_of(first)
    assert markdown.render(document) == markdown.render(document_of(second))
    assert pdf.render(document) == pdf.render(document_of(second))


def test_another_moment_gives_another_document(project, owner, screened):
    later = frozen(project, owner, now=NOW + timedelta(seconds=1))
    assert frozen(project, owner).sha256 != later.sha256


def test_what_is_stored_is_canonical(project, owner, screened):
    report = frozen(project, owner)
    assert canonical(json.loads(report.document)) == report.document


def test_the_counts_are_those_of_the_project(project, owner, screened):
    counts = document_of(frozen(project, owner))["counts"]
    assert counts["uploads"] == 1
    assert counts["traces"] == 3
    assert counts["model_calls"] == 17
    assert counts["usage_known"] == 16
    assert counts["tasks"] == 1
    assert counts["trials"] == 2
    assert counts["outcomes"] == {"pass": 3, "fail": 0, "score": 0, "unknown": 0}


def test_a_signal_holds_its_whole_evidence(project, owner, screened):
    (signal,) = [
        part
        for part in document_of(frozen(project, owner))["signals"]
        if part["check"] == "output-decay"
    ]
    row = only_signal(project)
    evidence = signal["evidence"]
    assert signal["id"] == row.pk
    assert signal["input_hash"] == row.screening.input_hash
    assert evidence["length"] == 6
    assert evidence["first"] == 112
    assert evidence["last"] == 43
    assert evidence["series"]["values"] == list(FALLING)
    assert evidence["chance"]["numerator"] == "1"
    assert evidence["chance"]["denominator"] == "720"
    assert evidence["agent"] == "planner"
    assert signal["trace"]["name"] == "falls"
    assert signal["trace"]["task"] == "t1"
    assert signal["trace"]["upload_sha256"] == screened.sha256
    assert signal["history"] == []


def test_a_check_says_what_it_answered_and_why_not(project, owner, screened):
    checks = document_of(frozen(project, owner))["checks"]
    (decay,) = [check for check in checks if check["slug"] == "output-decay"]
    assert decay["signals"] == 1
    assert decay["not_applicable"] == 1
    assert decay["expected"] >= 1 / 720
    reasons = [r for r in decay["reasons"] if r["answer"] == "not_applicable"]
    assert [r["count"] for r in reasons] == [1]
    assert "1 of 5" in reasons[0]["example"]
    assert decay["parameters"]
    assert decay["observes"]


def test_missing_usage_is_admitted(project, owner, screened):
    sentences = document_of(frozen(project, owner))["not_checked"]
    assert any(
        "Usage is missing on 1 of 17" in s.replace("\u202f", "") for s in sentences
    )


def test_decisions_and_their_undoing_are_in_the_history(
    project, owner, screened, reviewer
):
    signal = only_signal(project)
    dismissal = DecisionInput(verdict=Verdict.DISMISS, reason="converged")
    signal = decide(
        signal_id=signal.pk,
        user=reviewer,
        decision=dismissal,
        base_version=signal.version,
    )
    signal = undo(signal_id=signal.pk, user=reviewer, base_version=signal.version)
    decide(
        signal_id=signal.pk,
        user=reviewer,
        decision=DecisionInput(verdict=Verdict.CONFIRM, note="要約で失われた"),
        base_version=signal.version,
    )
    document = document_of(frozen(project, owner, where=QueueFilter(view="decided")))
    (part,) = document["signals"]
    assert [entry["act"] for entry in part["history"]] == [
        "decided",
        "undone",
        "decided",
    ]
    assert part["history"][0]["reason"] == "converged"
    assert part["history"][2]["note"] == "要約で失われた"
    assert part["verdict"] == "confirm"
    everything = document["decisions"][0]
    assert everything["check"] == ""
    assert everything["confirmed"] == 1
    assert everything["precision"]["share"] == 1.0
    assert everything["precision"]["low"] < 0.3
    text = markdown.render(document)
    assert "要約で失われた" in text


def test_no_decision_is_no_precision(project, owner, screened):
    document = document_of(frozen(project, owner))
    assert document["decisions"][0]["precision"]["share"] is None
    assert "no decisions yet" in markdown.render(document)


def test_a_filter_narrows_the_signals_and_is_written_down(project, owner, screened):
    document = document_of(
        frozen(project, owner, where=QueueFilter(view="decided", agent="planner"))
    )
    assert document["signals"] == []
    assert document["filter_words"].startswith("decided signals, agent planner")
    assert document["counts"]["traces"] == 3


def test_an_upload_narrows_the_counts_too(project, owner, screened):
    other = upload_traces(project, decay_trace(9, 8, 9, 8, 9, name="other"), name="b")
    document = document_of(
        frozen(project, owner, where=QueueFilter(view="all", upload=other.pk))
    )
    assert document["counts"]["traces"] == 1
    assert [upload["id"] for upload in document["uploads"]] == [other.pk]
    assert document["signals"] == []


def test_nothing_of_another_project_gets_in(project, owner, screened):
    other = make_project(owner=owner, name="Other")
    document = document_of(frozen(other, owner))
    assert document["counts"]["traces"] == 0
    assert document["signals"] == []
    assert document["uploads"] == []
    assert "falls" not in json.dumps(document)


def test_an_empty_project_gives_a_report(project, owner):
    document = document_of(frozen(project, owner))
    assert document["headline"]["status"] == "not_assessed"
    assert pdf.render(document).startswith(b"%PDF")
    assert "There is no upload in scope" in markdown.render(document)


def test_more_signals_cost_no_more_queries(project, owner, screened):
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            frozen(project, owner)
        return len(caught)

    before = queries()
    upload_traces(
        project,
        *[
            decay_trace(*(value + n for value in FALLING), name=f"falls {n}")
            for n in range(1, 9)
        ],
        name="more",
    )
    assert Signal.objects.filter(project=project).count() >= 9
    assert queries() == before
    assert before <= 40


def test_too_many_signals_are_left_out_and_counted(
    project, owner, screened, monkeypatch
):
    monkeypatch.setattr("apps.reports.operations.MAX_SIGNALS", 0)
    document = document_of(frozen(project, owner))
    assert document["signals"] == []
    assert document["signals_selected"] == Signal.objects.count()
    assert "a report holds 0" in " ".join(document["left_out"])
    assert "a report holds 0" in markdown.render(document)


def test_each_check_says_how_firing_goes_with_the_outcome(project, owner):
    passes, fails = (
        Outcome(kind=kind) for kind in (OutcomeKind.PASS, OutcomeKind.FAIL)
    )
    upload_traces(
        project,
        *[
            decay_trace(100 + n, *FALLING[1:], name=f"f{n}", outcome=fails, task="t")
            for n in range(4)
        ],
        *[
            decay_trace(50 + n, 60, 55, 58, 61, name=f"l{n}", outcome=passes, task="t")
            for n in range(4)
        ],
    )
    document = document_of(frozen(project, owner))
    (decay,) = [c for c in document["checks"] if c["slug"] == "output-decay"]
    assert decay["association"] == {
        "fired": 4,
        "fired_passed": 0,
        "not_fired": 4,
        "not_fired_passed": 4,
        "tasks": 1,
        "without_task": 0,
        "p": pytest.approx(2 / 70),
    }
    text = markdown.render(document)
    assert "of 4 without 4 passed; Fisher exact p" in text
    assert "1 distinct task, so the traces are not independent" in text


def test_a_document_of_before_the_association_is_still_read(project, owner, screened):
    document = document_of(frozen(project, owner))
    for check in document["checks"]:
        del check["association"]
    assert "not enough outcomes" in markdown.render(document)


def test_reports_belong_to_their_project(project, owner):
    report = frozen(project, owner)
    other = make_project(owner=owner, name="Other")
    assert list(reports_of(project)) == [report]
    assert list(reports_of(other)) == []


@pytest.mark.parametrize(
    ("title", "stem"),
    [
        ("Release 12: airline", "release-12-airline"),
        ("../../etc/passwd\r\nX: y", "etc-passwd-x-y"),
        ("日本語", "report"),
        ("Café", "cafe"),
        ("x" * 500, "x" * 60),
    ],
)
def test_a_file_name_is_plain_and_safe(title, stem):
    name = filename(Report(pk=7, title=title), "pdf")
    assert name == f"{stem}-7.pdf"


def test_a_hostile_title_is_kept_and_inert(project, owner):
    report = frozen(project, owner, title="a\x00b\u202e # <b>" + "x" * 400)
    assert len(report.title) <= 200
    assert report.title.startswith("a\u2400b[U+202E] # <b>")


@pytest.mark.django_db(transaction=True)
def test_it_reads_one_snapshot(project, owner, screened):
    with CaptureQueriesContext(connection) as caught:
        frozen(project, owner)
    statements = [query["sql"] for query in caught]
    assert any("REPEATABLE READ" in statement for statement in statements[:2])
