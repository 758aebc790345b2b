"""The counts of answers are sums that follow every row that comes, changes or goes."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db.models import Sum

from apps.screening import counting
from apps.screening.counting import sum_up
from apps.screening.lineup import lineup_of
from apps.screening.models import AnswerCount, Screening
from apps.screening.queries import counts_per_check
from apps.traces.models import Trace
from apps.traces.operations import allow_erasing_history
from tests.factories import decay_trace, make_project, upload_traces

pytestmark = pytest.mark.django_db

KIND = ("check_slug", "check_version", "parameters_hash", "answer", "reason_code")


def kept(project) -> Counter[tuple[object, ...]]:
    rows = AnswerCount.objects.filter(project_id=project.pk).values_list(*KIND)
    summed = rows.annotate(sum=Sum("count"))
    return Counter({tuple(kind): count for *kind, count in summed if count})


def counted(project) -> Counter[tuple[object, ...]]:
    return Counter(Screening.objects.filter(project=project).values_list(*KIND))


def runs(number: int):
    return [decay_trace(90, 70, 50, 30, 10, name=f"{number} {n}") for n in range(3)]


def test_the_counts_are_those_of_the_rows_whatever_happens_to_them(
    project, monkeypatch
):
    other = make_project()
    upload_traces(other, *runs(0))
    upload_traces(project, *runs(1))
    upload_traces(project, *runs(2))
    assert kept(project) == counted(project) != Counter()
    allow_erasing_history()
    Trace.objects.filter(project=project).first().delete()
    rows = Screening.objects.filter(project=project, answer="quiet")
    rows.update(reason_code="another")
    assert kept(project) == counted(project)
    before = counts_per_check(project)
    monkeypatch.setattr(counting, "MOST_ROWS", 1)
    many = AnswerCount.objects.count()
    sum_up(project_id=project.pk)
    assert AnswerCount.objects.count() < many
    assert kept(project) == counted(project)
    assert kept(other) == counted(other)
    assert counts_per_check(project) == before


def test_few_counts_stay_as_they_are(project):
    upload_traces(project, *runs(1))
    ids = set(AnswerCount.objects.values_list("pk", flat=True))
    assert sum_up(project_id=project.pk) == len(ids)
    assert set(AnswerCount.objects.values_list("pk", flat=True)) == ids


def test_counts_need_no_look_at_the_answers(project, django_assert_num_queries):
    upload_traces(project, *runs(1))
    lineup = lineup_of(project.pk)
    with django_assert_num_queries(1) as captured:
        counts_per_check(project, lineup=lineup)
    assert "screening_screening" not in captured[0]["sql"]
