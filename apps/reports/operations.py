"""Freezing a report: one document from the database, stored with its hash."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from django.conf import settings
from django.db import connection, transaction

from apps.accounts.models import Project, User
from apps.reports import gathering
from apps.reports.assessing import assessment_of, headline_of
from apps.reports.check_parts import checks
from apps.reports.document import (
    FORMAT_VERSION,
    MAX_SIGNALS,
    MAX_UPLOADS,
    ReportDocument,
    SignalPart,
    UploadPart,
    canonical,
    sha256_of,
)
from apps.reports.gaps import not_checked
from apps.reports.inert import one_line
from apps.reports.models import Report
from apps.reports.signal_parts import signal_parts
from apps.reports.words import number, plural, utc
from apps.review.queries import QueueFilter, queue_signals
from apps.screening.lineup import lineup_of

_VIEWS = {
    "open": "open signals",
    "mine": "signals claimed by the one who froze this report",
    "decided": "decided signals",
    "all": "all signals",
}
_SORTS = {
    "masked": "masked first, then rarest by chance, corrected for the number looked at",
    "rarest": "rarest by chance first, corrected for the number looked at",
    "largest": "largest effect first",
    "newest": "newest first",
    "oldest": "oldest first",
}
_MAX_TITLE = 200


def freeze(
    *, project: Project, user: User, title: str, where: QueueFilter, now: datetime
) -> Report:
    """Build the document of what `where` selects and store it; returns the report.

    The same state of the database and the same `now` give the same bytes. Everything
    is read in one snapshot, in a fixed number of queries. At most `MAX_SIGNALS`
    signals go in; the document says how many were left out. Running it twice stores
    two reports.
    """
    shown = one_line(title, limit=_MAX_TITLE - 30).strip() or "Report"
    with transaction.atomic():
        _read_one_snapshot()
        document = build(project=project, user=user, title=shown, where=where, now=now)
        text = canonical(document)
        return Report.objects.create(
            project=project,
            title=shown,
            filter=document.filter,
            document=text,
            sha256=sha256_of(text),
            created_by=user,
            created_at=now,
        )


def _read_one_snapshot() -> None:
    # Only the outermost transaction may choose; inside another one its level rules.
    if len(connection.atomic_blocks) == 1:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def build(
    *, project: Project, user: User, title: str, where: QueueFilter, now: datetime
) -> ReportDocument:
    """The document itself, not stored."""
    lineup = lineup_of(project.pk)
    scope = gathering.Scope(
        project=project, lineup=lineup, upload_id=where.upload, check=where.check
    )
    chosen = queue_signals(project=project, where=where, user=user)
    selected = chosen.count()
    signals = signal_parts(chosen[:MAX_SIGNALS])
    counts = gathering.counts(scope)
    answered = checks(scope)
    uploads = gathering.uploads(scope)
    found = assessment_of(project.pk)
    return ReportDocument(
        format_version=FORMAT_VERSION,
        product_version=product_version(),
        project=one_line(project.name),
        project_slug=project.slug,
        title=title,
        generated_at=utc(now),
        generated_by=one_line(user.label),
        filter=_filter_fields(where),
        filter_words=filter_in_words(where, lineup.labels),
        scope_words=_scope_in_words(where, uploads),
        headline=headline_of(found, traces=counts.traces),
        counts=counts,
        checks=answered,
        decisions=gathering.decisions(scope),
        signals=signals,
        signals_selected=selected,
        uploads=uploads,
        not_checked=not_checked(counts, answered, uploads, found),
        left_out=_left_out(selected, signals, counts.uploads),
        assessment=found,
    )


@cache
def product_version() -> str:
    """The version of this product, from its `pyproject.toml`."""
    content = (settings.BASE_DIR / "pyproject.toml").read_text()
    version: str = tomllib.loads(content)["project"]["version"]
    return version


def _filter_fields(where: QueueFilter) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(where)
    return {
        name: one_line(value, limit=200) if isinstance(value, str) else value
        for name, value in fields.items()
    }


def filter_in_words(where: QueueFilter, labels: Mapping[str, str]) -> str:
    """What the filter selects: `open signals of Output decay, rarest first`.

    `labels` are those of the checks by slug.
    """
    words = [_VIEWS.get(where.view, _VIEWS["open"])]
    if where.check:
        words.append(f"check {one_line(labels.get(where.check, where.check))}")
    if where.agent:
        words.append(f"agent {one_line(where.agent)}")
    if where.outcome:
        words.append(f"outcome {one_line(where.outcome)}")
    if where.usage:
        is_missing = where.usage == "missing"
        words.append("with usage missing" if is_missing else "with all usage recorded")
    if where.upload:
        words.append(f"upload {where.upload}")
    if where.masked:
        words.append("masked: the agent is red while the outcome is green")
    words.append(_SORTS.get(where.sort, _SORTS["masked"]))
    return ", ".join(words)


def _scope_in_words(where: QueueFilter, uploads: tuple[UploadPart, ...]) -> str:
    if not where.upload:
        return "the whole project"
    names = [upload.name for upload in uploads]
    return f"upload {where.upload} ({names[0]})" if names else f"upload {where.upload}"


def _left_out(
    selected: int, signals: tuple[SignalPart, ...], uploads: int
) -> tuple[str, ...]:
    sentences = []
    if selected > len(signals):
        sentences.append(
            f"{plural(selected - len(signals), 'signal')} of {number(selected)} that "
            f"the filter selects: a report holds {number(MAX_SIGNALS)}."
        )
    if uploads > MAX_UPLOADS:
        sentences.append(
            f"{plural(uploads - MAX_UPLOADS, 'older upload')} of {number(uploads)}: "
            f"a report lists the newest {number(MAX_UPLOADS)}. All counts include them."
        )
    return tuple(sentences)
