"""Running checks over traces and storing every answer: signal, quiet, not applicable."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
from django.db import connection
from psycopg.types.json import Jsonb

from apps.engine.check import Answer, Check, Level, Screening
from apps.screening import models
from apps.screening.answering import answers_of, scope_of
from apps.screening.lineup import LineUp, key_of, parameters_hash
from apps.traces.copying import StoredTrace, copy_rows
from apps.traces.models import Trace


class StoredScreening(msgspec.Struct, frozen=True):
    """An answer that was written, with its id and its trace."""

    screening_id: int
    trace: StoredTrace
    check: Any
    screening: Screening


_COLUMNS = (
    ("project_id", "int8"),
    ("trace_id", "int8"),
    ("check_slug", "text"),
    ("check_version", "int4"),
    ("parameters_hash", "text"),
    ("scope", "text"),
    ("answer", "text"),
    ("level", "text"),
    ("reason_code", "text"),
    ("headline", "text"),
    ("agent", "text"),
    ("chance", "float8"),
    ("chance_of_signal", "float8"),
    ("input_hash", "text"),
    ("evidence", "jsonb"),
)


def evidence_document(check: Check, screening: Screening) -> dict[str, Any]:
    """The evidence as JSON values, with the reason and the check's parameters.

    The exact fraction of a probability is kept as two decimal strings: its terms
    outgrow 64 bits at 21 distinct values.
    """
    document: dict[str, Any] = msgspec.to_builtins(screening.evidence)
    chance = document.get("chance")
    if chance:
        for term in ("numerator", "denominator"):
            if term in chance:
                chance[term] = str(chance[term])
    document["reason"] = screening.reason
    document["parameters"] = msgspec.to_builtins(check.parameters)
    return document


def _row(
    project_id: int,
    stored: StoredTrace,
    check: Check,
    screening: Screening,
    parameters: str,
) -> tuple[Any, ...]:
    evidence = screening.evidence
    return (
        project_id,
        stored.trace_id,
        check.slug,
        check.version,
        parameters,
        scope_of(screening),
        screening.answer.value,
        screening.level.value,
        screening.reason_code,
        screening.headline,
        evidence.agent,
        evidence.chance.value if evidence.chance else None,
        evidence.chance_of_signal,
        screening.input_hash,
        Jsonb(evidence_document(check, screening)),
    )


def screen_traces(
    *, project_id: int, traces: Sequence[StoredTrace], lineup: LineUp
) -> list[StoredScreening]:
    """Run the line-up over `traces`, store every answer, return the queued signals.

    Runs inside the caller's transaction. Only review signals of checks that are not
    paused are returned, with the ids of their rows. The traces are marked as answered
    by this line-up. A check that breaks answers just that, and stops no other one.
    """
    queued = store_answers(
        project_id=project_id,
        answered=[
            (stored, check, screening)
            for stored in traces
            for check in lineup.checks
            for screening in answers_of(check, stored.trace)
        ],
        lineup=lineup,
    )
    mark_screened(trace_ids=[stored.trace_id for stored in traces], lineup=lineup)
    return queued


def mark_screened(*, trace_ids: Sequence[int], lineup: LineUp) -> None:
    """Say of traces that every check of `lineup` has answered about them."""
    Trace.objects.filter(pk__in=trace_ids).update(screened_as=lineup.name)


Answered = tuple[StoredTrace, Check, Screening]


def store_answers(
    *, project_id: int, answered: Sequence[Answered], lineup: LineUp
) -> list[StoredScreening]:
    """Store answers and return those that `lineup` queues.

    Runs inside the caller's transaction. Each answer may be there only once.
    """
    copy_answers(project_id=project_id, answered=answered)
    return _with_ids([item for item in answered if is_queued(item, lineup)])


def copy_answers(*, project_id: int, answered: Sequence[Answered]) -> None:
    """Store answers of any keys, inside the caller's transaction, and queue nothing.

    Each answer may be there only once.
    """
    if not answered:
        return
    hashes = {id(check): parameters_hash(check) for _, check, _ in answered}
    copy_rows(
        "screening_screening",
        _COLUMNS,
        (
            _row(project_id, stored, check, screening, hashes[id(check)])
            for stored, check, screening in answered
        ),
    )


def drop_answers(*, trace_id: int, kept_ids: Collection[int]) -> None:
    """Drop the answers about a trace whose content was replaced, but `kept_ids`.

    Foreign keys are checked when the caller's transaction ends: until then each signal
    of a dropped answer must have been given another one, or be gone.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM screening_screening WHERE trace_id = %s AND id <> ALL(%s)",
            [trace_id, list(kept_ids)],
        )


def answer_key(check: Check, screening: Screening) -> tuple[str, int, str, str]:
    """What names an answer within its trace: check, version, parameters, scope."""
    return *key_of(check), scope_of(screening)


def is_review_signal(screening: Screening) -> bool:
    """Whether an answer wants a look, whichever key of its check is current."""
    return screening.answer is Answer.SIGNAL and screening.level is Level.REVIEW_SIGNAL


def is_queued(item: Answered, lineup: LineUp) -> bool:
    """Whether an answer wants a reviewer: telemetry and paused checks never do."""
    _, check, screening = item
    return is_review_signal(screening) and key_of(check) in lineup.queueing


def _with_ids(
    queued: list[tuple[StoredTrace, Check, Screening]],
) -> list[StoredScreening]:
    if not queued:
        return []
    rows = models.Screening.objects.filter(
        trace_id__in={stored.trace_id for stored, _, _ in queued},
        answer=Answer.SIGNAL.value,
    ).values_list(
        "trace_id", "check_slug", "check_version", "parameters_hash", "scope", "id"
    )
    ids = {row[:5]: row[5] for row in rows}
    return [
        StoredScreening(
            screening_id=ids[(stored.trace_id, *answer_key(check, screening))],
            trace=stored,
            check=check,
            screening=screening,
        )
        for stored, check, screening in queued
    ]
