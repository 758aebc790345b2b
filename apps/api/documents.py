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
from apps.traces.sets import SetRow


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


def set_document(row: SetRow) -> dict[str, Any]:
    """A trace set: how it was made, what is left of it, how its traces ended.

    `key` is its name as a side of a comparison; `removed` counts traces that are gone.
    """
    one = row.trace_set
    return {
        "id": one.pk,
        "key": one.slug,
        "name": one.name,
        "note": one.note,
        "made_from": one.made_from.get("words", ""),
        "is_baseline": one.is_baseline,
        "traces": row.traces,
        "removed": row.removed,
        "passed": row.passed,
        "failed": row.failed,
        "no_pass_or_fail": row.others,
        "signals": row.signals,
        "models": dict(row.models),
        "created_at": one.created_at,
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
