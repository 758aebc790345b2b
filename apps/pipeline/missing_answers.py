"""What checks have not said of stored traces yet, whichever key of them counts.

A key has answered about a trace as a whole, but for one case: where the content of a
trace was replaced, answers on which a signal of people rests stay alone. Such a key is
asked again, and what it says of the other scopes is stored beside them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import msgspec
from django.db import DatabaseError
from django.db.models import Exists, OuterRef, QuerySet

from apps.engine.check import Check
from apps.engine.trace import Trace as EngineTrace
from apps.engine.traits import traits_of
from apps.review.models import Signal
from apps.screening.answering import answers_of, broken_answer, scope_of
from apps.screening.lineup import CheckKey, Entry, key_of
from apps.screening.models import Screening
from apps.screening.operations import Answered
from apps.traces.contents import StoredContent, stored_contents
from apps.traces.copying import StoredTrace
from apps.traces.models import Trace

logger = logging.getLogger(__name__)

_KEY = ("trace_id", "check_slug", "check_version", "parameters_hash")


def missing_answers(
    traces: Sequence[Trace], checks: Sequence[Check]
) -> Iterator[Answered]:
    """What `checks` say of stored traces and is not stored, trace by trace.

    Two queries, and three for each 1,000 steps of traces that something is missing of.
    Writes the traits of traces that have none yet.
    """
    entries = [Entry(check, key_of(check)) for check in checks]
    rows = _answers(traces, entries)
    whole, alone = _answered_whole(rows), _answered_alone(rows)
    missing = {
        trace.pk: [one for one in entries if (trace.pk, one.key) not in whole]
        for trace in traces
    }
    wanted = [one for one in traces if missing[one.pk] or not one.traits]
    for content in stored_contents(wanted):
        pk = content.trace.pk
        for entry, item in _answer_stored(content, missing[pk]):
            if (pk, entry.key, scope_of(item[2])) not in alone:
                yield item


def _answers(traces: Sequence[Trace], entries: Sequence[Entry]) -> QuerySet[Screening]:
    # By their slugs and not by their keys: a condition with each key is answered from
    # the index of the counts, through all traces of the project.
    return Screening.objects.filter(
        trace_id__in=[trace.pk for trace in traces],
        check_slug__in=[entry.key[0] for entry in entries],
    ).order_by()


# An untouched signal rests on an answer of the key that counts, with all others.
_KEPT = Exists(Signal.objects.filter(screening=OuterRef("pk"), version__gt=0))


def _answered_whole(rows: QuerySet[Screening]) -> set[tuple[int, CheckKey]]:
    found = rows.filter(~_KEPT).values_list(*_KEY).distinct()
    return {(row[0], row[1:]) for row in found}


def _answered_alone(rows: QuerySet[Screening]) -> set[tuple[int, CheckKey, str]]:
    found = rows.filter(_KEPT).values_list(*_KEY, "scope")
    return {(row[0], row[1:4], row[4]) for row in found}


def _answer_stored(
    found: StoredContent, entries: Sequence[Entry]
) -> list[tuple[Entry, Answered]]:
    trace = found.trace
    try:
        content = found.decoded()
        _fill_in_traits(trace, content)
    except DatabaseError:
        raise
    except Exception as error:
        # One trace that cannot be read must not keep all others from their answers.
        logger.exception("The stored trace %s cannot be read", trace.pk)
        stored = StoredTrace(
            trace.pk, trace.content_hash, EngineTrace(name=trace.name, steps=())
        )
        return [
            (one, (stored, one.check, broken_answer(one.check, error)))
            for one in entries
        ]
    stored = StoredTrace(trace.pk, trace.content_hash, _without_content(content))
    return [
        (one, (stored, one.check, answer))
        for one in entries
        for answer in answers_of(one.check, content)
    ]


def _fill_in_traits(trace: Trace, content: EngineTrace) -> None:
    if not trace.traits:
        traits = list(traits_of(content))
        Trace.objects.filter(pk=trace.pk).update(traits=traits)


def _without_content(trace: EngineTrace) -> EngineTrace:
    """What the answers of a batch keep of their trace: its steps would fill the memory."""
    return msgspec.structs.replace(trace, steps=(), invocations=())
