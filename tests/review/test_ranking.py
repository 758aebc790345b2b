"""q-values of signals, their place in the queue, and pages of the queue in order."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import close_old_connections, connection
from django.test.utils import CaptureQueriesContext

from apps.engine.check import Answer
from apps.engine.nulls import benjamini_hochberg
from apps.review.models import HistoryEntry, Signal
from apps.review.operations import claim_next
from apps.review.queries import (
    ORDERS,
    QueueFilter,
    after,
    counts,
    neighbours,
    parts_in_order,
    queue_signals,
)
from apps.review.ranking import FACT_RANK, rank_all
from apps.review.transitions import SignalState
from apps.screening.models import Screening
from tests.factories import decay_trace, make_project, upload_traces

FALLS = [
    (100, 90, 80, 70, 60),
    (100, 90, 80, 70, 60, 50),
    (100, 100, 90, 80, 60),
    (200, 150, 120, 90, 80, 60, 40),
    (90, 80, 70, 60, 30),
    (100, 100, 100, 100, 60),
]
RISES = [(10, 90, 30, 20, 40), (50, 60, 55, 58, 61)]


def traces(shapes, prefix=""):
    return [decay_trace(*shape, name=f"{prefix}{n}") for n, shape in enumerate(shapes)]


def oracle(project):
    """The q of each applicable answer by the engine's own procedure, by its id."""
    found = {}
    for slug in Screening.objects.values_list("check_slug", flat=True).distinct():
        rows = list(
            Screening.objects.filter(
                project=project, check_slug=slug, chance_of_signal__isnull=False
            ).exclude(answer=Answer.NOT_APPLICABLE)
        )
        chances = [
            1.0 if row.chance is None or row.answer != Answer.SIGNAL else row.chance
            for row in rows
        ]
        q_values = benjamini_hochberg(chances)
        found |= dict(zip([row.pk for row in rows], q_values, strict=True))
    return found


def standings(project):
    rows = Signal.objects.filter(project=project)
    return {row.screening_id: (row.q, row.rank) for row in rows}


def test_the_q_of_every_signal_is_that_of_benjamini_and_hochberg(project, owner):
    upload_traces(project, *traces(FALLS + RISES))
    upload_traces(make_project(owner=owner), *traces(RISES, "other"))
    expected = oracle(project)
    found = standings(project)
    assert len(found) == 5
    for screening_id, (q, rank) in found.items():
        assert q == rank == expected[screening_id]
    assert len({q for q, _ in found.values()}) > 1


def test_a_quiet_answer_that_is_rare_the_other_way_makes_no_signal_rarer(project):
    upload_traces(project, *traces(FALLS + RISES))
    before = standings(project)
    quiet = Screening.objects.filter(check_slug="output-decay", answer=Answer.QUIET)
    assert quiet.update(chance=0.0001) == 2
    rank_all(project.pk)
    assert standings(project) == before


def test_equal_chances_have_one_q_and_more_answers_make_it_larger(project):
    upload_traces(project, *traces([FALLS[0], FALLS[4], *RISES]))
    [before] = {q for q, _ in standings(project).values()}
    assert before == pytest.approx(4 / 120 / 2)
    upload_traces(project, *traces(RISES * 3, "more"), name="more.jsonl")
    [behind] = {q for q, _ in standings(project).values()}
    assert behind == pytest.approx(10 / 120 / 2)


@pytest.mark.parametrize("seed", range(8))
def test_any_set_of_chances_is_corrected_as_the_engine_does_it(project, seed):
    upload_traces(project, *traces(FALLS * 4))
    choose = random.Random(seed)
    for row in Screening.objects.filter(check_slug="output-decay"):
        chance = choose.choice([None, 0.0, 1.0, 0.03, 0.05, choose.random() ** 3])
        Screening.objects.filter(pk=row.pk).update(chance=chance)
    rank_all(project.pk)
    expected = oracle(project)
    assert {key: q for key, (q, _) in standings(project).items()} == {
        key: expected[key] for key in standings(project)
    }


def test_a_fact_has_no_q_and_stands_behind_what_is_below_5_percent(project):
    upload_traces(project, *traces(FALLS + RISES))
    fact = Signal.objects.order_by("pk").first()
    Screening.objects.filter(pk=fact.screening_id).update(
        chance=None, chance_of_signal=None
    )
    rank_all(project.pk)
    fact.refresh_from_db()
    assert (fact.q, fact.rank) == (None, FACT_RANK)
    ranks = [s.rank for s in queue_signals(project=project, where=QueueFilter())]
    assert ranks == sorted(ranks)
    assert min(ranks) < FACT_RANK


def test_only_what_differs_is_written_and_nothing_else_of_a_signal(project):
    upload_traces(project, *traces(FALLS + RISES))
    assert rank_all(project.pk) == 0
    one = Signal.objects.first()
    Signal.objects.filter(pk=one.pk).update(q=0.9, rank=0.9)
    with CaptureQueriesContext(connection) as caught:
        assert rank_all(project.pk) == 1
    assert sum("UPDATE" in query["sql"] for query in caught) == 1
    again = Signal.objects.get(pk=one.pk)
    assert (again.q, again.rank, again.version) == (one.q, one.rank, one.version)
    assert HistoryEntry.objects.filter(signal=one).count() == 1


def test_answers_of_keys_that_are_not_current_do_not_count(project):
    upload_traces(project, *traces(FALLS + RISES))
    before = standings(project)
    for row in Screening.objects.filter(check_slug="output-decay"):
        row.pk, row.parameters_hash, row.chance = None, "another", 0.0001
        row.save()
    assert rank_all(project.pk) == 0
    assert standings(project) == before


@pytest.mark.django_db(transaction=True)
def test_rankings_at_the_same_time_end_as_one_would(project):
    upload_traces(project, *traces(FALLS * 8))
    right = standings(project)
    Signal.objects.update(q=None, rank=1)

    def rank(_):
        try:
            rank_all(project.pk)
        finally:
            close_old_connections()
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(rank, range(8)))
    assert standings(project) == right


@pytest.mark.parametrize("sort", ORDERS)
@pytest.mark.parametrize("seed", range(3))
def test_pages_and_neighbours_follow_the_order_whatever_is_equal(
    project, owner, sort, seed
):
    upload_traces(project, *traces(FALLS[:5] * 4))
    choose = random.Random(seed)
    for signal in Signal.objects.all():
        Signal.objects.filter(pk=signal.pk).update(
            rank=choose.choice([0.01, 0.05, 0.3]),
            chance=choose.choice([0.001, 0.02]),
            effect=choose.choice([0.4, 0.7]),
            is_masked=choose.choice([True, False]),
        )
    where = QueueFilter(sort=sort)
    every = list(queue_signals(project=project, where=where))
    assert len(every) == 20
    for place, signal in enumerate(every):
        rest = queue_signals(project=project, where=where)
        following = after(rest, where=where, last=signal)
        assert [s.pk for s in following] == [s.pk for s in every[place + 1 :]]
        before, behind = neighbours(
            project=project, where=where, signal=signal, user=owner
        )
        assert before == (every[place - 1].pk if place else None)
        assert behind == (every[place + 1].pk if place < 19 else None)


def test_masked_signals_come_first_then_the_rank_and_another_order_stays(project):
    upload_traces(project, *traces(FALLS[:5]))
    by_rank = list(queue_signals(project=project, where=QueueFilter(sort="rarest")))
    last = by_rank[-1]
    Signal.objects.filter(pk=last.pk).update(is_masked=True)
    ids = [signal.pk for signal in by_rank]
    found = queue_signals(project=project, where=QueueFilter())
    assert [signal.pk for signal in found] == [last.pk, *ids[:-1]]
    rarest = queue_signals(project=project, where=QueueFilter(sort="rarest"))
    assert [signal.pk for signal in rarest] == ids
    masked = queue_signals(project=project, where=QueueFilter(masked=True))
    assert [signal.pk for signal in masked] == [last.pk]
    assert QueueFilter(masked=True).is_narrowed


def test_the_next_to_claim_is_masked_and_the_counts_follow(project, owner):
    upload_traces(project, *traces(FALLS[:3]))
    *_, last = queue_signals(project=project, where=QueueFilter())
    Signal.objects.filter(pk=last.pk).update(is_masked=True)
    assert counts(project=project, user=owner).masked == 1
    first = claim_next(project=project, user=owner, where=QueueFilter())
    assert first.pk == last.pk
    assert counts(project=project, user=owner).masked == 1
    then = claim_next(project=project, user=owner, where=QueueFilter())
    assert not then.is_masked
    assert (
        claim_next(project=project, user=owner, where=QueueFilter(masked=True)) is None
    )


def test_an_index_gives_each_part_of_the_masked_order_sorted(project):
    upload_traces(project, *traces(FALLS[:5]))
    waiting = queue_signals(
        project=project, where=QueueFilter(), state=SignalState.OPEN
    )
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        for part in parts_in_order(waiting, where=QueueFilter()):
            plan = part[:1].explain()
            assert "Index Scan" in plan
            assert "Sort" not in plan


def test_superseded_signals_are_under_all_and_not_to_review(project):
    upload_traces(project, *traces(FALLS[:2]))
    old = Signal.objects.first()
    Signal.objects.filter(pk=old.pk).update(state=SignalState.SUPERSEDED)
    shown = queue_signals(project=project, where=QueueFilter())
    assert old.pk not in [s.pk for s in shown]
    everything = queue_signals(project=project, where=QueueFilter(view="all"))
    assert old.pk in [s.pk for s in everything]
