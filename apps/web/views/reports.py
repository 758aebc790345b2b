"""Reports: freeze what the queue shows, read it, take it away."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from apps.accounts.permissions import Permission, check_allowed
from apps.reports import markdown, pdf
from apps.reports.layout import outline_of
from apps.reports.models import Report
from apps.reports.operations import filter_in_words, freeze
from apps.reports.queries import document_of, filename, reports_of
from apps.review.queries import QueueFilter
from apps.web.access import Place, in_project
from apps.web.forms import ReportForm, first_error
from apps.web.pages.queue import fields_of, filter_from
from apps.web.views.errors import refusal

CARDS_ON_PAGE = 100


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.VIEW)
def reports(request: HttpRequest, place: Place) -> HttpResponse:
    """The frozen reports; POST freezes a new one from a filter."""
    if request.method == "POST":
        check_allowed(place.role, Permission.FREEZE_REPORT)
        return _freeze(request, place)
    where = _where(request.GET)
    is_part = where.is_narrowed or where.view != "all"
    context = {
        "place": place,
        "filter_words": filter_in_words(where, place.lineup.labels) if is_part else "",
        "reports": reports_of(place.project)[:200],
        "fields": fields_of(where) | {"view": where.view},
        "refusal": place.refusal(Permission.FREEZE_REPORT),
    }
    return render(request, "web/reports.html", context)


def _where(query: Mapping[str, str]) -> QueueFilter:
    """What a report holds: every signal, decided or not, unless the query says less."""
    where = filter_from(query)
    return where if "view" in query else msgspec.structs.replace(where, view="all")


def _freeze(request: HttpRequest, place: Place) -> HttpResponse:
    form = ReportForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=422, sentence=first_error(form))
    report = freeze(
        project=place.project,
        user=place.user,
        title=form.cleaned_data["title"],
        where=_where(request.POST),
        now=timezone.now(),
    )
    messages.success(request, "Frozen. This report will not change any more.")
    return redirect("report", place.project.slug, report.pk)


@require_safe
@in_project(Permission.VIEW)
def report(request: HttpRequest, place: Place, report_id: int) -> HttpResponse:
    """One frozen report as a page."""
    found = place.report(report_id)
    outline = outline_of(document_of(found), max_cards=CARDS_ON_PAGE)
    drawn = msgspec.to_builtins(outline)
    for block in drawn["blocks"]:
        if block["block"] == "table":
            block["rows"] = [
                list(zip(block["columns"], row, strict=True)) for row in block["rows"]
            ]
    context = {"place": place, "report": found, "outline": drawn}
    return render(request, "web/report.html", context)


def _attachment(
    report: Report, extension: str, content: bytes | str, content_type: str
) -> HttpResponse:
    response = HttpResponse(content, content_type=content_type)
    name = filename(report, extension)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@require_safe
@in_project(Permission.VIEW)
def as_markdown(request: HttpRequest, place: Place, report_id: int) -> HttpResponse:  # noqa: ARG001
    """The report as markdown."""
    found = place.report(report_id)
    text = markdown.render(document_of(found))
    return _attachment(found, "md", text, "text/markdown; charset=utf-8")


@require_safe
@in_project(Permission.VIEW)
def as_pdf(request: HttpRequest, place: Place, report_id: int) -> HttpResponse:  # noqa: ARG001
    """The report as PDF."""
    found = place.report(report_id)
    content = pdf.render(document_of(found))
    return _attachment(found, "pdf", content, "application/pdf")


@require_safe
@in_project(Permission.VIEW)
def as_json(request: HttpRequest, place: Place, report_id: int) -> HttpResponse:  # noqa: ARG001
    """The frozen document itself."""
    found = place.report(report_id)
    return _attachment(found, "json", found.document, "application/json")
