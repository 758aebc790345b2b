"""What can stand on a side of a comparison: a trace set, a model, an upload.

A side is named by a key: the slug of a set, `model:<name>` or `upload:<id>`. Sets are
frozen; the traces of a model or an upload are those that are here now.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.traces.models import Trace, TraceSet, Upload
from apps.traces.queries import TraceFilter, traces_of
from apps.traces.sets import sets_of, traces_in_set

MOST_CHOICES: Final = 100

_MODEL: Final = "model:"
_UPLOAD: Final = "upload:"
_MOST_DIGITS: Final = 18
_LONGEST_NAME: Final = 300
_LONGEST_KEY: Final = len(_MODEL) + _LONGEST_NAME


class UnknownSide(Exception):
    """No set, model or upload of the project is meant by this key."""


class Side(msgspec.Struct, frozen=True):
    """One side: its key, its name, its traces, and the set or else the filter."""

    key: str
    label: str
    traces: QuerySet[Trace]
    trace_set: TraceSet | None = None
    where: TraceFilter | None = None


class Choice(msgspec.Struct, frozen=True):
    """A side that may be chosen."""

    key: str
    label: str
    kind: str


def side_of(project: Project, key: str) -> Side:
    """The side that a key names; raises `UnknownSide`.

    A model that no trace of the project names is unknown too.
    """
    if len(key) > _LONGEST_KEY or "\x00" in key:
        raise UnknownSide
    if key.startswith(_MODEL):
        return _of_model(project, key.removeprefix(_MODEL))
    if key.startswith(_UPLOAD):
        return _of_upload(project, key.removeprefix(_UPLOAD))
    found = sets_of(project).filter(slug=key).first()
    if found is None:
        raise UnknownSide
    return Side(key, found.name, traces_in_set(found), trace_set=found)


def _of_model(project: Project, model: str) -> Side:
    where = TraceFilter(model=model)
    traces = traces_of(project, where=where)
    if not model or not traces.exists():
        raise UnknownSide
    return Side(_MODEL + model, f"model {model}", traces, where=where)


def _of_upload(project: Project, number: str) -> Side:
    is_id = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
    uploads = Upload.objects.filter(project=project)
    upload = uploads.filter(pk=int(number)).first() if is_id else None
    if upload is None:
        raise UnknownSide
    where = TraceFilter(upload=upload.pk)
    key = f"{_UPLOAD}{upload.pk}"
    traces = traces_of(project, where=where)
    return Side(key, f"upload {upload.name}", traces, where=where)


def choices(project: Project) -> list[Choice]:
    """What may be compared: sets, models, uploads, at most 100 of each, newest first."""
    return [*_sets(project), *_models(project), *_uploads(project)]


def _sets(project: Project) -> Iterator[Choice]:
    for one in sets_of(project)[:MOST_CHOICES]:
        yield Choice(one.slug, one.name, "set")


def _models(project: Project) -> Iterator[Choice]:
    seen = Upload.objects.filter(project=project).values_list("models_seen", flat=True)
    names = {name for names in seen for name in names if len(name) <= _LONGEST_NAME}
    for name in sorted(names, key=str.casefold)[:MOST_CHOICES]:
        yield Choice(_MODEL + name, name, "model")


def _uploads(project: Project) -> Iterator[Choice]:
    rows = Upload.objects.filter(project=project, trace_count__gt=0).order_by("-pk")
    for pk, name in rows.values_list("pk", "name")[:MOST_CHOICES]:
        yield Choice(f"{_UPLOAD}{pk}", f"{name} (upload {pk})", "upload")


def shared_traces(first: Side, second: Side) -> int:
    """How many traces stand on both sides."""
    rows = first.traces.order_by().select_related(None)
    other = second.traces.order_by().select_related(None).values("pk")
    return rows.filter(pk__in=other).count()
