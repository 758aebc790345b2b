"""Regression cases: frozen traces that a check must keep quiet on."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.operations import PrivacyChoice, set_privacy
from apps.engine.check import configured
from apps.engine.checks.output_decay import OutputDecay
from apps.pipeline.shadows import CasesFail, Wish, adopt_key
from apps.review.models import Signal
from apps.screening import regression
from apps.screening.lineup import lineup_of
from apps.screening.models import Adoption, RegressionCase
from apps.screening.operations import evidence_document
from apps.screening.regression import (
    cases_of,
    frozen,
    rename_case,
    restore_case,
    retire_case,
    run_cases,
    thawed,
)
from apps.traces.models import Trace
from apps.traces.operations import allow_erasing_history
from apps.traces.queries import engine_trace
from tests.adopting import FALLING, STEEP, adopt, kept_quiet, key, make_regression_case
from tests.factories import (
    NOW,
    decay_trace,
    make_project,
    upload_bytes,
    upload_traces,
)
from tests.formats.all_samples import FILES

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_remembered():
    cache.clear()


@pytest.fixture
def case(project) -> RegressionCase:
    """The falling trace must stay quiet; what counts now gives a signal on it."""
    upload_traces(project, decay_trace(*FALLING, name="falling"))
    return make_regression_case(project)


@pytest.mark.parametrize("structure_only", [False, True], ids=["whole", "structure"])
def test_every_check_says_of_the_kept_trace_what_it_says_of_the_stored_one(
    owner, structure_only
):
    project = make_project(owner=owner)
    choice = PrivacyChoice(structure_only=structure_only)
    set_privacy(project=project, choice=choice, user=owner, now=NOW)
    for slug, samples in FILES.items():
        upload_bytes(project, samples[0], name=f"{slug}.json")

    def said(trace):
        return [
            (answer, evidence_document(check, answer))
            for check in lineup_of(project.pk).checks
            for answer in check.run(trace)
        ]

    rows = Trace.objects.select_related("task")
    assert len(rows) > 30
    for row in rows:
        trace = engine_trace(row)
        assert said(thawed(frozen(trace))) == said(trace), row.format


def test_a_review_signal_on_its_scope_fails_it_and_quiet_passes(project, case):
    [failure] = run_cases(project_id=project.pk, check=OutputDecay())
    assert (failure.case_id, failure.name) == (case.pk, case.name)
    assert failure.headline == case.headline
    tight = configured(OutputDecay(), {"last_percent": 30})
    assert run_cases(project_id=project.pk, check=tight) == []


def test_telemetry_is_no_failure(project):
    upload_traces(project, decay_trace(*FALLING, name="falling"))
    kept_quiet(project)
    rare = configured(OutputDecay(), {"max_chance": 0.001})
    assert run_cases(project_id=project.pk, check=rare) == []


def test_a_signal_on_another_scope_is_no_failure(project, case):
    RegressionCase.objects.update(scope="invocation 9, sequence 1")
    assert run_cases(project_id=project.pk, check=OutputDecay()) == []


def test_a_key_that_fails_one_is_not_adopted_and_the_case_is_named(project, case):
    adopt(project, last_percent=30)
    with pytest.raises(CasesFail, match="retire it first") as caught:
        adopt_key(
            project_id=project.pk,
            wish=Wish(key(project, last_percent=60)),
            user_id=None,
            now=NOW,
        )
    assert [failure.name for failure in caught.value.failures] == [case.name]
    last = Adoption.objects.filter(check_slug="output-decay").latest("number")
    assert last.parameters["last_percent"] == 30


def test_a_retired_case_stands_in_nobodys_way_until_it_is_restored(project, case):
    adopt(project, last_percent=30)
    assert retire_case(case=case, now=NOW)
    assert not retire_case(case=case, now=NOW)
    adopt(project, last_percent=60)
    assert restore_case(case=case)
    assert len(run_cases(project_id=project.pk, check=OutputDecay())) == 1


def test_one_signal_makes_one_case(project, case):
    again, is_new = kept_quiet(project)
    assert (again.pk, is_new) == (case.pk, False)
    retire_case(case=case, now=NOW)
    other, is_new = kept_quiet(project)
    assert is_new
    assert not restore_case(case=case), "another case of this signal is run now"
    assert list(cases_of(project.pk)) == [case, other]


def test_it_stays_when_its_trace_is_removed(project, case):
    allow_erasing_history()
    Trace.objects.all().delete()
    [failure] = run_cases(project_id=project.pk, check=OutputDecay())
    assert (failure.trace_id, failure.headline) == (None, case.headline)


def test_what_a_key_says_of_a_case_is_remembered(project, case, monkeypatch):
    first = run_cases(project_id=project.pk, check=OutputDecay())
    monkeypatch.setattr(
        regression, "thawed", lambda content: pytest.fail("It was run again.")
    )
    assert run_cases(project_id=project.pk, check=OutputDecay()) == first


def test_the_cases_of_other_projects_and_checks_are_left_alone(project, case):
    elsewhere = make_project(name="Elsewhere")
    assert run_cases(project_id=elsewhere.pk, check=OutputDecay()) == []
    assert list(cases_of(project.pk, slug="tool-drift")) == []


def test_a_name_is_cut_to_what_fits(project, case):
    rename_case(case=case, name="n" * 500)
    case.refresh_from_db()
    assert case.name == "n" * 120


def test_remembered_cases_take_one_query_however_many_there_are(project):
    def queries(count: int, prefix: str) -> int:
        upload_traces(
            project,
            *(decay_trace(*STEEP, name=f"{prefix}{n}") for n in range(count)),
            name=f"{prefix}.jsonl",
        )
        for signal in Signal.objects.filter(
            trace__name__startswith=prefix
        ).select_related("screening", "trace"):
            kept_quiet(project, signal)
        run_cases(project_id=project.pk, check=OutputDecay())
        with CaptureQueriesContext(connection) as seen:
            run_cases(project_id=project.pk, check=OutputDecay())
        return len(seen)

    assert queries(2, "a") == queries(9, "b") == 1


@pytest.mark.parametrize("content", [b"", b"damaged", frozen(decay_trace(3))[:-4]])
def test_one_that_cannot_be_read_stands_in_the_way_until_it_is_retired(
    project, case, content
):
    RegressionCase.objects.update(content=content)
    wish = Wish(key(project, last_percent=30))
    with pytest.raises(CasesFail) as refused:
        adopt_key(project_id=project.pk, wish=wish, user_id=None, now=NOW)
    [failure] = refused.value.failures
    assert (failure.case_id, failure.headline) == (case.pk, regression.UNREADABLE)
    retire_case(case=case, now=NOW)
    adopt_key(project_id=project.pk, wish=wish, user_id=None, now=NOW)
