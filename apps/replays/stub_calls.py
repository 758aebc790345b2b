"""Tool calls that come over the network to the stubs of one run.

A token opens the stubs of one attempt and nothing else; only its hash is kept, and it
ends with the attempt. What was called is kept until the recording of the run holds it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from django.db import transaction
from django.db.models import QuerySet

from apps.engine.replay.run import AnswerSource, ToolAnswer
from apps.replays.models import Run, RunAttempt, StubCall
from apps.replays.running import LostRun, RunClaim
from apps.replays.transitions import RunState

Log = Sequence[dict[str, Any]]


class NoSuchStubs(Exception):
    """No run that is at work has this token."""


def open_stubs(claim: RunClaim) -> str:
    """A token for the stubs of a claimed run, in place of any before; raises `LostRun`."""
    token = secrets.token_urlsafe(32)
    opened = Run.objects.filter(
        pk=claim.run_id, attempt=claim.attempt, state=RunState.RUNNING.value
    ).update(stub_digest=_digest(token))
    if opened != 1:
        raise LostRun
    return token


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def run_of_token(token: str) -> Run:
    """The run at work whose stubs a token opens; raises `NoSuchStubs`. One query."""
    run = Run.objects.filter(
        stub_digest=_digest(token), state=RunState.RUNNING.value
    ).first()
    if run is None:
        raise NoSuchStubs
    return run


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a tool, as JSON values that can be stored."""

    tool: str
    arguments: Any


TOO_MANY: Final = ToolAnswer(
    source=AnswerSource.MISS,
    error="This run may make no more tool calls.",
    stops=True,
)
"""What a call beyond the limit of its run is answered."""


def answer_call(
    *,
    run: Run,
    call: Call,
    answer: Callable[[Log], ToolAnswer],
    most: int,
    now: datetime,
) -> ToolAnswer:
    """Answer a call after all calls before it, one at a time, and keep both.

    `answer` gets the log of the calls so far, as `StubSession` writes it. After `most`
    calls nothing is kept any more. Raises `NoSuchStubs` where the attempt has ended.
    """
    with transaction.atomic():
        attempts = RunAttempt.objects.select_for_update().filter(
            run=run, number=run.attempt, ended_at=None
        )
        if attempts.first() is None:
            raise NoSuchStubs
        before = calls_of(run.pk, run.attempt)
        log = [_entry(one) for one in before]
        if len(log) >= most:
            return TOO_MANY
        given = answer(log)
        StubCall.objects.create(
            run=run,
            attempt=run.attempt,
            number=len(log) + 1,
            tool=call.tool,
            arguments=call.arguments,
            answer=msgspec.to_builtins(given),
            called_at=now,
        )
    return given


def _entry(call: StubCall) -> dict[str, Any]:
    return {"tool": call.tool, "arguments": call.arguments, "answer": call.answer}


def calls_of(run_id: int, attempt: int) -> QuerySet[StubCall]:
    """The calls of one attempt, in order."""
    return StubCall.objects.filter(run=run_id, attempt=attempt).order_by("number")


def forget_calls(run_id: int) -> None:
    """Forget the calls of a run whose recording holds them."""
    StubCall.objects.filter(run=run_id).delete()
