"""What people said of what a key fires at: the database beside plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.permissions import Role
from apps.review import operations as review
from apps.review.calibration import (
    BlindCount,
    Truth,
    blind_counts,
    named_steps,
    open_numbers,
    said_of,
    truths_of,
)
from apps.review.models import BlindEntry, BlindLook, HistoryEntry, Signal
from apps.review.operations import DecisionInput
from apps.review.transitions import Verdict
from apps.screening.calibration import GroupKind
from apps.screening.models import Screening
from apps.traces.models import Trace
from tests.factories import decay_trace, make_member, make_project, upload_traces
from tests.random_reviews import SLUG, furnish_at_random
from tests.screening.test_calibration import groups_in_python

NONE = BlindCount(fired=False, flagged=False, traces=0)
FIELDS = {
    "confirm": "confirmed",
    "dismiss": "dismissed",
    "needs_experiment": "needs_experiment",
    "cannot_tell": "cannot_tell",
}


@pytest.fixture
def furnished(project, owner, reviewer):
    keys = furnish_at_random(project, people=[reviewer, owner], seed=11, traces=150)
    other = make_project(owner=owner)
    furnish_at_random(other, people=[make_member(other, Role.REVIEWER), owner],
                      seed=5, traces=9)  # fmt: skip
    return keys


def answers(project, key):
    slug, version, parameters = key
    return Screening.objects.filter(
        project=project,
        check_slug=slug,
        check_version=version,
        parameters_hash=parameters,
    ).select_related("trace", "trace__upload")


def decisions(project):
    """The decision that stands on each fingerprint of the check."""
    found = {}
    decided = Signal.objects.filter(project=project, state="decided")
    for signal in decided.select_related("screening").order_by("decided_at"):
        seen = signal.screening
        found[seen.trace_id, seen.check_slug, seen.scope, seen.input_hash] = signal
    return found


def test_what_was_said_is_what_plain_python_counts_for_every_key(project, furnished):
    standing = decisions(project)
    kinds = list(GroupKind)
    found = said_of(project=project, keys=furnished, kinds=kinds)
    for key in furnished:
        expected = defaultdict(Counter)
        reasons = defaultdict(Counter)
        for row in answers(project, key):
            mark = (row.trace_id, row.check_slug, row.scope, row.input_hash)
            if (row.answer, row.level) != ("signal", "review_signal"):
                continue
            if mark not in standing:
                continue
            for group in groups_in_python(row):
                expected[group][FIELDS[standing[mark].verdict]] += 1
                if standing[mark].reason:
                    reasons[group][standing[mark].reason] += 1
        assert set(found[key]) == set(expected)
        for group, said in found[key].items():
            counted = {name: getattr(said, name) for name in FIELDS.values()}
            assert counted == {name: expected[group][name] for name in counted}
            assert said.reasons == dict(reasons[group])
            assert said.decided == said.confirmed + said.dismissed
            assert said.looked_at == sum(counted.values())
    [whole, part] = [found[key][GroupKind.ALL, ""] for key in furnished]
    # The stricter key sees the decisions that were taken on signals of the other one.
    assert whole.decided > part.decided > 2


def test_a_decision_that_was_undone_does_not_count(project, reviewer):
    upload_traces(project, decay_trace(100, 90, 80, 70, 60))
    signal = Signal.objects.get()
    key = (SLUG, signal.check_version, signal.screening.parameters_hash)
    for stands in (True, False):
        if stands:
            signal = review.decide(
                signal_id=signal.pk,
                user=reviewer,
                decision=DecisionInput(verdict=Verdict.CONFIRM),
                base_version=0,
            )
        else:
            review.undo(signal_id=signal.pk, user=reviewer, base_version=signal.version)
        groups = said_of(project=project, keys=[key])[key]
        assert bool(groups) is stands


def fired_per_trace(project, key):
    found = {}
    for row in answers(project, key).exclude(answer="not_applicable"):
        fires = (row.answer, row.level) == ("signal", "review_signal")
        found[row.trace_id] = found.get(row.trace_id, False) or fires
    return found


def test_what_blind_looks_found_is_what_plain_python_counts(project, furnished):
    found = blind_counts(project=project, keys=furnished)
    looks = {look.trace_id: look for look in BlindLook.objects.filter(project=project)}
    flagged = dict(
        Trace.objects.filter(project=project).values_list("pk", "signal_count")
    )
    for key in furnished:
        expected = defaultdict(Counter)
        for trace_id, fired in fired_per_trace(project, key).items():
            look = looks.get(trace_id)
            is_flagged = look.was_flagged if look else flagged[trace_id] > 0
            expected[fired, is_flagged]["traces"] += 1
            expected[fired, is_flagged][look.verdict if look else ""] += 1
        assert {(one.fired, one.flagged) for one in found[key]} == set(expected)
        for one in found[key]:
            counted = expected[one.fired, one.flagged]
            assert one.traces == counted["traces"]
            assert one.failures == counted["failure"]
            assert one.no_failures == counted["no_failure"]
            assert one.cannot_tell == counted["cannot_tell"]
        assert sum(one.looks for one in found[key] if not one.fired) > 3
    looked = blind_counts(project=project, keys=furnished, only_looks=True)
    for key in furnished:
        by_stratum = {(one.fired, one.flagged): one for one in looked[key]}
        for one in found[key]:
            alone = by_stratum.get((one.fired, one.flagged), NONE)
            decided = one.looks + one.cannot_tell
            assert (alone.traces, alone.failures) == (decided, one.failures)
            assert (alone.no_failures, alone.looks) == (one.no_failures, one.looks)


def truth_in_python(project):
    """For each kind of truth, whether each trace failed."""
    told = {truth: {} for truth in Truth}
    for trace in Trace.objects.filter(project=project, outcome__in=["pass", "fail"]):
        told[Truth.OUTCOME][trace.pk] = trace.outcome == "fail"
    for look in BlindLook.objects.filter(project=project):
        if look.verdict in {"failure", "no_failure"}:
            told[Truth.BLIND][look.trace_id] = look.verdict == "failure"
    decided = Signal.objects.filter(project=project, verdict__in=["confirm", "dismiss"])
    for signal in decided:
        before = told[Truth.DECISION].get(signal.trace_id, False)
        told[Truth.DECISION][signal.trace_id] = before or signal.verdict == "confirm"
    return told


def test_constant_rules_are_counted_as_plain_python_counts_them(project, furnished):
    told = truth_in_python(project)
    steps = dict(Trace.objects.values_list("pk", "step_count"))
    for key in furnished:
        fired = fired_per_trace(project, key)
        found = truths_of(project=project, key=key)
        assert set(found) == set(Truth)
        for truth, one in found.items():
            failed = {pk: told[truth][pk] for pk in told[truth] if pk in fired}
            flagged = [pk for pk in failed if fired[pk]]
            longest = sorted(failed, key=lambda pk: (-steps[pk], pk))[: len(flagged)]
            assert one.traces == len(failed)
            assert one.failures == sum(failed.values())
            assert one.flagged == len(flagged) > 0
            assert one.hits == sum(failed[pk] for pk in flagged)
            assert one.longest_hits == sum(failed[pk] for pk in longest)


def steps_in_python(project):
    """The steps that the standing decisions name, each once for its trace."""
    named = set()
    for signal in Signal.objects.filter(project=project, verdict="confirm"):
        last = HistoryEntry.objects.filter(signal=signal, act="decided")
        named.add((signal.trace_id, last.order_by("base_version").last().where_step))
    for look in BlindLook.objects.filter(project=project, verdict="failure"):
        last = BlindEntry.objects.filter(look=look, act="decided")
        named.add((look.trace_id, last.order_by("base_version").last().where_step))
    return {(trace_id, step) for trace_id, step in named if step is not None}


def test_steps_that_people_named_are_counted_as_plain_python_counts_them(
    project, furnished
):
    steps = dict(Trace.objects.values_list("pk", "step_count"))
    for key in furnished:
        pointed = defaultdict(set)
        rows = answers(project, key).filter(answer="signal", level="review_signal")
        for row in rows:
            pointed[row.trace_id] |= set(row.evidence["steps"])
        named = [one for one in steps_in_python(project) if one[0] in pointed]
        found = named_steps(project=project, key=key)
        assert found.named == len(named) > 0
        assert found.in_evidence == sum(step in pointed[pk] for pk, step in named)
        assert found.last == sum(step == steps[pk] - 1 for pk, step in named)
        assert found.by_chance == pytest.approx(
            sum(len(pointed[pk]) / steps[pk] for pk, _ in named)
        )


def test_what_waits_is_counted_per_check(project, furnished):
    waiting = Signal.objects.filter(project=project, state__in=["open", "claimed"])
    expected = Counter(waiting.values_list("check_slug", flat=True))
    assert open_numbers(project=project) == dict(expected)
    assert expected[SLUG] > 0


def test_ten_times_the_decisions_cost_the_same_statements(project, reviewer, owner):
    upload_traces(project, decay_trace(100, 90, 80, 70, 60), name="few.jsonl")
    screening = Signal.objects.get().screening
    key = (SLUG, screening.check_version, screening.parameters_hash)

    def statements():
        with CaptureQueriesContext(connection) as caught:
            said_of(project=project, keys=[key], kinds=list(GroupKind))
            blind_counts(project=project, keys=[key])
            truths_of(project=project, key=key)
            named_steps(project=project, key=key)
            open_numbers(project=project)
        return len(caught)

    few = statements()
    furnish_at_random(project, people=[reviewer, owner], seed=3, traces=30)
    assert statements() == few == 5
