"""Trace sets: named, frozen sets of traces, made from a filter or from ids.

A set holds the traces that matched at the moment it was made and never another one.
Traces that are removed later leave it; `trace_count` still says how many there were.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from django.db import IntegrityError, connection, transaction
from django.db.models import Count, IntegerField, Q, QuerySet, Sum, Value
from django.utils.text import slugify

from apps.accounts.models import Project
from apps.engine.formats import labels
from apps.engine.trace import OutcomeKind
from apps.traces.models import Task, Trace, TraceSet, TraceSetMember, Upload
from apps.traces.queries import TraceFilter, traces_of

MOST_TRACES: Final = 50_000
MOST_IDS: Final = 1_000
MAX_NAME: Final = 80

# The page on which a set is made stands at this place among those of the sets.
_TAKEN_SLUGS: Final = frozenset({"new"})
_LONGEST_SLUG: Final = 60
_USAGE_WORDS: Final = {
    "all": "usage on every call",
    "some": "usage on some calls",
    "none": "usage on no call",
    "no_calls": "no model calls",
}


class WrongSet(Exception):
    """A set cannot be made or named so; the message is a sentence for a person."""


class Chosen(msgspec.Struct, frozen=True):
    """How the traces of a set are chosen: by a filter, or by their ids."""

    where: TraceFilter = TraceFilter()
    ids: tuple[int, ...] = ()


class NewSet(msgspec.Struct, frozen=True):
    """What somebody wants to call a set, why, and which traces it holds."""

    name: str
    chosen: Chosen
    note: str = ""


class SetRow(msgspec.Struct, frozen=True):
    """A set with what is left of it, how its traces ended, and their models."""

    trace_set: TraceSet
    traces: int
    passed: int
    failed: int
    signals: int
    models: list[tuple[str, int]]

    @property
    def others(self) -> int:
        """How many traces neither passed nor failed, as far as is recorded."""
        return self.traces - self.passed - self.failed

    @property
    def removed(self) -> int:
        """How many traces have been removed since the set was made."""
        return max(0, self.trace_set.trace_count - self.traces)


def chosen_traces(project: Project, chosen: Chosen) -> QuerySet[Trace]:
    """The traces of the project that a choice means, in no order."""
    rows = traces_of(project, where=chosen.where).order_by()
    return rows.filter(pk__in=chosen.ids) if chosen.ids else rows


def chosen_in_words(project: Project, chosen: Chosen) -> str:
    """How the traces are chosen, as people say it; names are of this project only."""
    parts = list(_words(project, chosen))
    return ", ".join(parts) if parts else "all traces of the project"


def _words(project: Project, chosen: Chosen) -> Iterator[str]:
    where = chosen.where
    if chosen.ids:
        yield f"{len(chosen.ids):,} trace ids given by hand"
    if where.upload:
        upload = Upload.objects.filter(project=project, pk=where.upload).first()
        yield f"upload {upload.name if upload else where.upload}"
    if where.task:
        task = Task.objects.filter(project=project, pk=where.task).first()
        yield f"task {task or where.task}"
    plain = {
        "name or id": where.q,
        "outcome": where.outcome,
        "format": labels().get(where.format, where.format),
        "agent": where.agent,
        "model": where.model,
    }
    yield from (f"{label} {value}" for label, value in plain.items() if value)
    if where.usage:
        yield _USAGE_WORDS.get(where.usage, where.usage)


def make_set(
    *, project: Project, new: NewSet, user_id: int | None, now: datetime
) -> TraceSet:
    """Freeze the chosen traces as a set by one statement.

    Raises `WrongSet` with a sentence for a name that is taken or too long, for a
    choice that no trace matches, and for more than 50,000 traces.
    """
    name = clean_name(new.name)
    chosen = new.chosen
    row = TraceSet(
        project=project,
        slug=slug_of(name),
        name=name,
        note=new.note.replace("\x00", "").strip(),
        made_from={
            "words": chosen_in_words(project, chosen),
            "filter": _fields(chosen.where),
            "ids": list(chosen.ids[:MOST_IDS]),
        },
        created_by_id=user_id,
        created_at=now,
    )
    _check_free(row)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            row.trace_count = _freeze(row, chosen_traces(project, chosen))
            row.save(update_fields=["trace_count"])
    except IntegrityError:
        raise _taken(name) from None
    return row


def _fields(where: TraceFilter) -> dict[str, Any]:
    default = TraceFilter()
    return {
        name: value
        for name, value in msgspec.structs.asdict(where).items()
        if value != getattr(default, name) and name != "sort"
    }


def _freeze(row: TraceSet, traces: QuerySet[Trace]) -> int:
    chosen = traces.values_list(Value(row.pk, output_field=IntegerField()), "pk")
    select, values = chosen.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO traces_tracesetmember (trace_set_id, trace_id) " + select,
            values,
        )
        count = int(cursor.rowcount)
    if not count:
        raise WrongSet("No trace matches, so there is nothing to make a set of.")
    if count > MOST_TRACES:
        raise WrongSet(
            f"{count:,} traces match, and a set holds at most {MOST_TRACES:,}. "
            "Filter the traces first."
        )
    return count


def clean_name(name: str) -> str:
    """A name on one line; raises `WrongSet` for none and for more than 80 characters."""
    words = " ".join(name.replace("\x00", "").split())
    if not words or len(words) > MAX_NAME:
        raise WrongSet(f"A set needs a name of 1 to {MAX_NAME} characters.")
    return words


def slug_of(name: str) -> str:
    """The part of an address that a name gives; a hash where it has no plain letters."""
    slug = slugify(name)[:_LONGEST_SLUG].strip("-")
    if not slug or slug in _TAKEN_SLUGS:
        return "set-" + hashlib.sha256(name.encode()).hexdigest()[:8]
    return slug


def rename_set(*, trace_set: TraceSet, name: str, note: str) -> None:
    """Give a set another name and note; its address stays. Raises `WrongSet`."""
    trace_set.name = clean_name(name)
    trace_set.note = note.replace("\x00", "").strip()
    _check_free(trace_set)
    trace_set.save(update_fields=["name", "note"])


def _check_free(row: TraceSet) -> None:
    same = Q(name__iexact=row.name) | Q(slug=slug_of(row.name))
    others = TraceSet.objects.filter(same, project_id=row.project_id)
    if others.exclude(pk=row.pk).exists():
        raise _taken(row.name)


def _taken(name: str) -> WrongSet:
    return WrongSet(
        f"A set called “{name}”, or with the same address, is here already. Choose "
        "another name."
    )


def delete_set(*, trace_set: TraceSet) -> None:
    """Forget a set; its traces stay."""
    trace_set.delete()


def sets_of(project: Project, *, before: int | None = None) -> QuerySet[TraceSet]:
    """The sets of a project, newest first; with `before` only older ones.

    What checks read of a baseline is large and not loaded.
    """
    rows = TraceSet.objects.filter(project=project).defer("baseline")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return rows.select_related("created_by").order_by("-pk")


def set_rows(sets: Sequence[TraceSet]) -> list[SetRow]:
    """What is left of each set, in the same order: two queries for all of them."""
    ids = [one.pk for one in sets]
    members = TraceSetMember.objects.filter(trace_set_id__in=ids).order_by()
    counted = members.values("trace_set_id").annotate(
        traces=Count("trace_id"),
        passed=Count("trace_id", filter=Q(trace__outcome=OutcomeKind.PASS.value)),
        failed=Count("trace_id", filter=Q(trace__outcome=OutcomeKind.FAIL.value)),
        signals=Sum("trace__signal_count", default=0),
    )
    counts = {
        row[0]: row[1:]
        for row in counted.values_list(
            "trace_set_id", "traces", "passed", "failed", "signals"
        )
    }
    models = _models(ids)
    return [_row(one, counts.get(one.pk), models.get(one.pk, [])) for one in sets]


def _row(
    one: TraceSet,
    counts: tuple[int, int, int, int] | None,
    models: list[tuple[str, int]],
) -> SetRow:
    traces, passed, failed, signals = counts or (0, 0, 0, 0)
    return SetRow(one, traces, passed, failed, signals, models)


_MODELS: Final = """
    SELECT trace_set_id, model, count(*)
    FROM traces_tracesetmember
    JOIN traces_trace ON traces_trace.id = trace_id
    CROSS JOIN LATERAL unnest(models_seen) AS model
    WHERE trace_set_id = ANY(%s)
    GROUP BY trace_set_id, model
    ORDER BY trace_set_id, count(*) DESC, model
"""


def _models(set_ids: list[int]) -> dict[int, list[tuple[str, int]]]:
    found: dict[int, list[tuple[str, int]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_MODELS, [set_ids])
        for set_id, model, count in cursor.fetchall():
            found.setdefault(set_id, []).append((model, count))
    return found


def traces_in_set(trace_set: TraceSet, *, after: int | None = None) -> QuerySet[Trace]:
    """The traces of a set that are still here, newest first; `after` is the keyset."""
    rows = Trace.objects.filter(tracesetmember__trace_set=trace_set)
    if after is not None:
        rows = rows.filter(pk__lt=after)
    return rows.select_related("task", "upload").order_by("-pk")
