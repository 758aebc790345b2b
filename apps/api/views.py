"""The JSON door: upload files, follow them, read signals and reports."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.http import Http404
from django.urls import reverse
from django.utils import timezone
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.models import ApiToken, Project
from apps.accounts.permissions import Scope
from apps.engine.formats import FORMATS
from apps.pipeline.flow import EmptyUpload, submit_upload
from apps.reports.models import Report
from apps.reports.queries import document_of, reports_of
from apps.review.models import Signal
from apps.review.queries import QueueFilter, after, queue_signals, with_rows
from apps.traces.models import Upload
from apps.traces.queries import rejected_of, uploads_of
from apps.traces.storage import HashedUpload, too_large_sentence, was_too_large

PAGE_SIZE = 100


class UploadTooLarge(APIException):
    """413: the file is over the limit; the detail says which limit and what to do."""

    status_code = 413


class ProjectView(APIView):
    """A view of the token's own project."""

    scopes: ClassVar[dict[str, Scope]] = {"GET": Scope.READ}

    @property
    def project(self) -> Project:
        """The project that the token belongs to."""
        token = self.request.auth
        if not isinstance(token, ApiToken):
            raise Http404
        return token.project


def _whole(request: Request, name: str) -> int | None:
    value = request.query_params.get(name, "")
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 18):
        raise ValidationError({name: "This is a whole number."})
    return int(value)


def upload_document(upload: Upload) -> dict[str, Any]:
    """An upload as JSON: its state, its counts, what was rejected."""
    return {
        "id": upload.pk,
        "url": reverse("api-upload", args=[upload.project.slug, upload.pk]),
        "name": upload.name,
        "sha256": upload.sha256,
        "size": upload.size,
        "state": upload.state,
        "failure": upload.failure or None,
        "format": upload.format or None,
        "reader_version": upload.reader_version,
        "traces": upload.trace_count,
        "steps": upload.step_count,
        "model_calls": upload.model_call_count,
        "tool_calls": upload.tool_call_count,
        "usage_known": upload.usage_known,
        "duplicates": upload.duplicate_count,
        "rejected": upload.rejected_count,
        "signals": upload.signal_count,
        "notes": upload.notes,
        "created_at": upload.created_at,
        "finished_at": upload.finished_at,
    }


class Uploads(ProjectView):
    """GET lists uploads, newest first; POST takes one file (multipart `file`)."""

    scopes: ClassVar[dict[str, Scope]] = {"GET": Scope.READ, "POST": Scope.UPLOAD}
    parser_classes = (MultiPartParser,)

    def get(self, request: Request, slug: str) -> Response:  # noqa: ARG002
        """The uploads; `before` is the id to go on from."""
        rows = uploads_of(self.project, before=_whole(request, "before"))
        rows = rows.select_related("project")[:PAGE_SIZE]
        return Response({"uploads": [upload_document(row) for row in rows]})

    def post(self, request: Request, slug: str) -> Response:  # noqa: ARG002
        """Take one file: 202 for a new upload, 200 for bytes that are here already."""
        file = request.FILES.get("file")
        if was_too_large(request.META):
            raise UploadTooLarge(too_large_sentence(settings.MAX_UPLOAD_BYTES))
        if not isinstance(file, HashedUpload):
            raise ValidationError({"file": "Send one file in the field “file”."})
        override = str(request.POST.get("format", ""))
        if override and override not in {format_.slug for format_ in FORMATS}:
            raise ValidationError({"format": "This is not a format we know."})
        try:
            upload, is_new = submit_upload(
                project=self.project,
                received=file.received,
                user=None,
                now=timezone.now(),
                format_override=override,
            )
        except EmptyUpload as error:
            raise ValidationError({"file": str(error)}) from error
        return Response(upload_document(upload), status=202 if is_new else 200)


class OneUpload(ProjectView):
    """One upload with its rejected records."""

    def get(self, request: Request, slug: str, upload_id: int) -> Response:  # noqa: ARG002
        """The upload, or 404."""
        upload = uploads_of(self.project).filter(pk=upload_id).first()
        if upload is None:
            raise Http404
        rejected = rejected_of(upload).values("place", "reason", "excerpt")
        return Response({**upload_document(upload), "rejected_records": list(rejected)})


def signal_document(signal: Signal) -> dict[str, Any]:
    """A signal as JSON, with the evidence exactly as it was stored."""
    return {
        "id": signal.pk,
        "check": signal.check_slug,
        "check_version": signal.check_version,
        "headline": signal.headline,
        "state": signal.state,
        "verdict": signal.verdict or None,
        "reason": signal.reason or None,
        "trace": {
            "id": signal.trace_id,
            "name": signal.trace.name,
            "native_id": signal.trace.native_id,
            "outcome": signal.trace.outcome,
        },
        "agent": signal.agent or None,
        "input_hash": signal.screening.input_hash,
        "evidence": signal.screening.evidence,
        "created_at": signal.created_at,
    }


class Signals(ProjectView):
    """The signals of the project, rarest by chance first."""

    def get(self, request: Request, slug: str) -> Response:  # noqa: ARG002
        """One page; `view` is open, decided or all, `after` the id to go on from."""
        view = request.query_params.get("view", "all")
        if view not in {"open", "decided", "all"}:
            raise ValidationError({"view": "One of: open, decided, all."})
        where = QueueFilter(view=view)
        signals = queue_signals(project=self.project, where=where)
        edge = _whole(request, "after")
        if edge is not None:
            last = Signal.objects.filter(project=self.project, pk=edge).first()
            if last is None:
                raise Http404
            signals = after(signals, where=where, last=last)
        rows = with_rows(signals)[:PAGE_SIZE]
        return Response({"signals": [signal_document(row) for row in rows]})


class Reports(ProjectView):
    """The frozen reports of the project."""

    def get(self, request: Request, slug: str) -> Response:  # noqa: ARG002
        """Id, title, hash and time of each."""
        rows = reports_of(self.project)[:PAGE_SIZE]
        fields = ("id", "title", "sha256", "created_at")
        return Response({"reports": [{f: getattr(r, f) for f in fields} for r in rows]})


class OneReport(ProjectView):
    """One frozen document."""

    def get(self, request: Request, slug: str, report_id: int) -> Response:  # noqa: ARG002
        """The document as it was frozen, or 404."""
        report = Report.objects.filter(project=self.project, pk=report_id).first()
        if report is None:
            raise Http404
        return Response(document_of(report))
