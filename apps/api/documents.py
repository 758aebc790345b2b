"""What the JSON door says of uploads and signals, as plain values."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework.request import Request

from apps.engine.trace import UsageState
from apps.review.models import Signal
from apps.traces.models import (
    Upload,
)
from apps.traces.queries import rejected_of


def upload_document(upload: Upload, request: Request) -> dict[str, Any]:
    """An upload: its state, its counts, its addresses here and among the pages.

    `state` is received, reading, done or failed; counts grow while it is read.
    """
    page = reverse("upload", args=[upload.project.slug, upload.pk])
    return {
        "id": upload.pk,
        "url": request.build_absolute_uri(reverse("api-upload", args=[upload.pk])),
        "page": request.build_absolute_uri(page),
        "name": upload.name,
        "sha256": upload.sha256,
        "size": upload.size,
        "state": upload.state,
        "failure": upload.failure or None,
        "format": upload.format or None,
        "reader_version": upload.reader_version,
        "bytes_read": upload.bytes_read,
        "bytes_total": upload.bytes_total,
        "traces": upload.trace_count,
        "steps": upload.step_count,
        "model_calls": upload.model_call_count,
        "tool_calls": upload.tool_call_count,
        "usage_known": upload.usage_known,
        "duplicates": upload.duplicate_count,
        "rejected": upload.rejected_count,
        "signals": upload.signal_count,
        "agents": upload.agents_seen,
        "models": upload.models_seen,
        "notes": upload.notes,
        "created_at": upload.created_at,
        "finished_at": upload.finished_at,
    }


def receipt_document(upload: Upload, request: Request) -> dict[str, Any]:
    """An upload with the states of its model calls' usage and its rejected records."""
    return {
        **upload_document(upload, request),
        "usage": usage_of(upload),
        "rejected_records": list(
            rejected_of(upload).values("place", "reason", "excerpt")
        ),
    }


def usage_of(upload: Upload) -> dict[str, int]:
    """How many model calls of an upload have their usage in each state; all states."""
    return {
        state.value: upload.usage_states.get(state.value, 0) for state in UsageState
    }


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
