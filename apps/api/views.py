"""The JSON door: upload files, follow them, read signals, comparisons and reports.

Every address works with the token alone, which belongs to one project.
"""

from __future__ import annotations

import re
from typing import ClassVar

import msgspec
from django.http import Http404
from django.utils import timezone
from rest_framework.exceptions import NotFound
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.models import ApiToken, Project
from apps.accounts.permissions import Scope
from apps.api.asking import PAGE_SIZE, following, whole
from apps.api.documents import (
    receipt_document,
    set_document,
    signal_document,
    upload_document,
)
from apps.api.receiving import WholeBody, files_of, format_of
from apps.api.refusals import BadRequest, in_a_sentence
from apps.pipeline.flow import EmptyUpload, submit_upload
from apps.reports.models import Report
from apps.reports.queries import document_of, reports_of
from apps.review.models import Signal
from apps.review.queries import QueueFilter, after, queue_signals, with_rows
from apps.traces.comparing import compare_sides, comparison_document
from apps.traces.models import Upload
from apps.traces.queries import uploads_of
from apps.traces.sets import set_rows, sets_of
from apps.traces.sides import UnknownSide, choices
from apps.traces.storage import ReceivedFile

# What fits into the longest request line that the web server takes.
MOST_HASHES = 50
_SHA256 = re.compile(r"[0-9a-f]{64}")


class ProjectView(APIView):
    """A view of the token's own project; every refusal is a sentence."""

    scopes: ClassVar[dict[str, Scope]] = {"GET": Scope.READ}

    @property
    def project(self) -> Project:
        """The project that the token belongs to."""
        token = self.request.auth
        if not isinstance(token, ApiToken):
            raise Http404
        return token.project

    def handle_exception(self, exc: Exception) -> Response:
        """The answer for an exception, with its sentence under the same two names."""
        if isinstance(exc, Http404):
            exc = NotFound("There is no such thing in the project of this token.")
        response = super().handle_exception(exc)
        response.data = in_a_sentence(response.data)
        return response


def _hashes(request: Request) -> list[str]:
    values = [value.lower() for value in request.query_params.getlist("sha256")]
    if len(values) > MOST_HASHES:
        raise BadRequest(f"Ask for at most {MOST_HASHES} values of “sha256” at once.")
    if not all(_SHA256.fullmatch(value) for value in values):
        raise BadRequest("“sha256” is 64 hexadecimal digits.")
    return values


class Uploads(ProjectView):
    """GET lists uploads, newest first; POST takes files (form field `file`, or body)."""

    scopes: ClassVar[dict[str, Scope]] = {"GET": Scope.READ, "POST": Scope.UPLOAD}
    parser_classes = (MultiPartParser, WholeBody)

    def get(self, request: Request, **_path: str) -> Response:
        """One page of uploads: `before` is the id to go on from, `sha256` picks some."""
        rows = uploads_of(self.project, before=whole(request, "before"))
        hashes = _hashes(request)
        if hashes:
            rows = rows.filter(sha256__in=hashes)
        found = list(rows.select_related("project")[: PAGE_SIZE + 1])
        shown = found[:PAGE_SIZE]
        uploads = [upload_document(row, request) for row in shown]
        after_these = following(request, "before", found, shown)
        return Response({"uploads": uploads, "next": after_these})

    def post(self, request: Request, **_path: str) -> Response:
        """Take files: 201 when one of them is new, 200 for bytes that were here."""
        # Before the files: a body is not kept for a format that is not known.
        override = format_of(request)
        received = files_of(request, self.project)
        taken = [self._take(file, override) for file in received]
        status = 201 if any(is_new for _, is_new in taken) else 200
        documents = [upload_document(upload, request) for upload, _ in taken]
        if len(documents) > 1:
            return Response({"uploads": documents}, status=status)
        [document] = documents
        headers = {"Location": document["url"]}
        return Response(document, status=status, headers=headers)

    def _take(self, received: ReceivedFile, override: str) -> tuple[Upload, bool]:
        try:
            return submit_upload(
                project=self.project,
                received=received,
                user=None,
                now=timezone.now(),
                format_override=override,
            )
        except EmptyUpload as error:
            raise BadRequest(str(error)) from error


class OneUpload(ProjectView):
    """The receipt of one upload."""

    def get(self, request: Request, upload_id: str, **_path: str) -> Response:
        """What was read, what was not and how usage stands; or 404."""
        rows = uploads_of(self.project).select_related("project")
        upload = rows.filter(pk=int(upload_id)).first()
        if upload is None:
            raise Http404
        return Response(receipt_document(upload, request))


class Signals(ProjectView):
    """The signals of the project, rarest by chance first."""

    def get(self, request: Request, **_path: str) -> Response:
        """One page; `view` is open, decided or all, `after` the id to go on from."""
        view = request.query_params.get("view", "all")
        if view not in {"open", "decided", "all"}:
            raise BadRequest("“view” is one of: open, decided, all.")
        where = QueueFilter(view=view, sort="rarest")
        signals = queue_signals(project=self.project, where=where)
        edge = whole(request, "after")
        if edge is not None:
            last = Signal.objects.filter(project=self.project, pk=edge).first()
            if last is None:
                raise Http404
            signals = after(signals, where=where, last=last)
        rows = with_rows(signals)[:PAGE_SIZE]
        return Response({"signals": [signal_document(row) for row in rows]})


class TraceSets(ProjectView):
    """The trace sets of the project, newest first."""

    def get(self, request: Request, **_path: str) -> Response:
        """One page of sets: `before` is the id to go on from."""
        found = sets_of(self.project, before=whole(request, "before"))
        rows = set_rows(list(found[:PAGE_SIZE]))
        return Response({"sets": [set_document(row) for row in rows]})


class Comparisons(ProjectView):
    """Two sides of the project compared."""

    def get(self, request: Request, **_path: str) -> Response:
        """The comparison of the sides `first` and `second`, or 404 for unknown ones.

        Without them: what may be compared.
        """
        first = request.query_params.get("first", "")
        second = request.query_params.get("second", "")
        if not first and not second:
            rows = choices(self.project)
            return Response({"sides": [msgspec.structs.asdict(row) for row in rows]})
        if first == second:
            raise BadRequest("“first” and “second” are two different sides.")
        try:
            found = compare_sides(self.project, first=first, second=second)
        except UnknownSide:
            raise Http404 from None
        return Response(comparison_document(found))


class Reports(ProjectView):
    """The frozen reports of the project."""

    def get(self, request: Request, **_path: str) -> Response:  # noqa: ARG002
        """Id, title, hash and time of each."""
        rows = reports_of(self.project)[:PAGE_SIZE]
        fields = ("id", "title", "sha256", "created_at")
        return Response({"reports": [{f: getattr(r, f) for f in fields} for r in rows]})


class OneReport(ProjectView):
    """One frozen document."""

    def get(self, request: Request, report_id: str, **_path: str) -> Response:  # noqa: ARG002
        """The document as it was frozen, or 404."""
        report = Report.objects.filter(project=self.project, pk=int(report_id)).first()
        if report is None:
            raise Http404
        return Response(document_of(report))
