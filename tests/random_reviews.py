"""A project of random traces, answers of two keys, and random decisions of people.

Made through the product's own operations from a seed, so that what the database counts
can be compared with what plain Python counts over the same rows.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random

from django.db import transaction

from apps.accounts.models import Project, User
from apps.accounts.operations import set_blind_percent
from apps.engine.check import configured
from apps.engine.checks import by_slug
from apps.engine.trace import Outcome, OutcomeKind
from apps.review import blind
from apps.review import operations as review
from apps.review.blind import BlindInput
from apps.review.models import BlindLook, Signal
from apps.review.operations import DecisionInput
from apps.review.transitions import BlindVerdict, DismissalReason, Verdict
from apps.screening.lineup import CheckKey, LineUp, key_of
from apps.screening.operations import store_answers
from apps.traces.copying import StoredTrace
from apps.traces.models import Trace, TraceSet, TraceSetMember, Upload
from apps.traces.queries import engine_trace
from tests.factories import NOW, decay_trace, model_call, trace_of, upload_traces

SLUG = "output-decay"


def _trace(random: Random, number: int):
    outcome = random.choice(
        [OutcomeKind.PASS, OutcomeKind.FAIL, OutcomeKind.FAIL, OutcomeKind.UNKNOWN]
    )
    length = random.randint(3, 8)
    lengths = [random.randint(20, 200) for _ in range(length)]
    if random.random() < 0.6:
        lengths = sorted(set(lengths), reverse=True)
        lengths[-1] = min(lengths[-1], random.randint(1, lengths[0]))
    more = {
        "name": f"run {number}",
        "outcome": Outcome(kind=outcome),
        "task": random.choice([None, "refund", "exchange", "cancel"]),
        "metadata": random.choice(
            [{"domain": "retail"}, {"domain": "airline", "suite": "b"}, {"seed": 4}, {}]
        ),
    }
    if random.random() < 0.2:
        steps = [
            model_call(seq, out, resets_context=seq == 2)
            for seq, out in enumerate(lengths)
        ]
        return trace_of(steps, **more)
    if random.random() < 0.2:
        return decay_trace(*lengths, None, **more)
    return decay_trace(*lengths, **more)


def _store_second_key(project: Project) -> CheckKey:
    """Answers of a stricter key of the same check, of which nothing is queued."""
    check = configured(by_slug(SLUG), {"last_percent": 40})
    answered = []
    for row in Trace.objects.filter(project=project).select_related("upload"):
        stored = StoredTrace(row.pk, row.content_hash, engine_trace(row))
        answered += [(stored, check, answer) for answer in check.run(stored.trace)]
    with transaction.atomic():
        store_answers(project_id=project.pk, answered=answered, lineup=LineUp([]))
    return key_of(check)


def _decision(random: Random) -> DecisionInput:
    verdict = random.choice([*Verdict, Verdict.DISMISS, Verdict.CONFIRM])
    return DecisionInput(
        verdict=verdict,
        reason=random.choice(DismissalReason.values),
        note="noted",
        where_step=random.choice([None, 0, 2, 4]),
    )


def _review(random: Random, project: Project, user: User) -> None:
    for signal in Signal.objects.filter(project=project).order_by("pk"):
        if random.random() < 0.3:
            continue
        decided = review.decide(
            signal_id=signal.pk,
            user=user,
            decision=_decision(random),
            base_version=0,
        )
        if random.random() < 0.25:
            undone = review.undo(
                signal_id=signal.pk, user=user, base_version=decided.version
            )
            if random.random() < 0.5:
                review.decide(
                    signal_id=signal.pk,
                    user=user,
                    decision=_decision(random),
                    base_version=undone.version,
                )


def _look(random: Random, project: Project, user: User) -> None:
    for look in BlindLook.objects.filter(project=project).order_by("pk"):
        if random.random() < 0.2:
            continue
        verdict = random.choice([*BlindVerdict, BlindVerdict.FAILURE])
        decided = blind.decide(
            look_id=look.pk,
            user=user,
            decision=BlindInput(
                verdict=verdict, where_step=random.choice([None, 1, 4])
            ),
            base_version=0,
        )
        if random.random() < 0.2:
            blind.undo(look_id=look.pk, user=user, base_version=decided.version)


def furnish_at_random(
    project: Project, *, people: list[User], seed: int, traces: int
) -> tuple[CheckKey, CheckKey]:
    """Fill `project`; returns the current key of the check and the other one.

    Three uploads of three weeks, a set of traces by hand, decisions on most signals,
    some of them undone, and blind looks at most of the traces.
    """
    random = Random(seed)
    set_blind_percent(project=project, percent=85)
    for week in range(3):
        made = [_trace(random, week * 1000 + number) for number in range(traces // 3)]
        upload = upload_traces(project, *made, name=f"week {week}.jsonl")
        moment = NOW + timedelta(days=7 * week, hours=week)
        Upload.objects.filter(pk=upload.pk).update(created_at=moment)
    chosen = TraceSet.objects.create(
        project=project, slug="odd", name="Odd ones", created_at=NOW
    )
    ids = Trace.objects.filter(project=project).values_list("pk", flat=True)
    TraceSetMember.objects.bulk_create(
        TraceSetMember(trace_set=chosen, trace_id=pk) for pk in ids if pk % 3 == 0
    )
    other = _store_second_key(project)
    _review(random, project, people[0])
    _look(random, project, people[1])
    return key_of(by_slug(SLUG)), other
