"""How runs end: the recording, the row, the group that counts, in one transaction.

A worker that lost its run leaves nothing behind. What is stored of a recording is what
the project keeps of every trace.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import msgspec
import zstandard
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Sum

from apps.accounts.models import Project
from apps.engine.formats.evalsite_writer import dump
from apps.engine.replay.recording import RunTitle, trace_of
from apps.engine.replay.retrying import may_have_been_billed
from apps.engine.replay.run import (
    UNKNOWN,
    Ending,
    ErrorKind,
    ModelCalled,
    Proof,
    Ran,
    RunError,
    told_proof,
)
from apps.engine.trace import Trace
from apps.isolation.hooks import NotNow
from apps.pipeline.privacy import Privacy
from apps.pipeline.replay_calls import Calls, Price, cost_of, used_tokens
from apps.pipeline.replay_local import limits_of
from apps.pipeline.replay_orders import Order
from apps.pipeline.scoring import wake_scoring
from apps.replays.models import Batch, RunAttempt
from apps.replays.newest import let_count
from apps.replays.running import (
    PUT_BACK,
    AttemptEnd,
    LostRun,
    RunClaim,
    RunEnd,
    end_run,
    put_back,
)
from apps.replays.stub_calls import forget_calls
from apps.replays.transitions import EXECUTED, BatchState, RunState
from apps.scoring.storable import storable, storable_text
from apps.traces.streams import replay_upload, write_replay_trace
from apps.verdicts.operations import unsettle

logger = logging.getLogger(__name__)

STATES: Final = {
    Ending.FINISHED: RunState.FINISHED,
    Ending.FAILED: RunState.FAILED,
    Ending.TIMED_OUT: RunState.TIMED_OUT,
    Ending.CANCELLED: RunState.CANCELLED,
    Ending.OVER_BUDGET: RunState.OVER_BUDGET,
    Ending.STOPPED: RunState.STOPPED,
}
_AGAIN: Final = (0.2, 0.5, 1.0, 2.0, 4.0)
_LONGEST_PRINTED: Final = 1_000_000
_MOST_MONEY: Final = Decimal(10**8)
"""What the column of a run cannot hold is taken for not known."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an attempt; `judged` is what a memory test says of it.

    `batch_state` is how the batch stood when the worker last looked.
    """

    ran: Ran
    judged: dict[str, Any] | None = None
    calls: int = 0
    batch_state: BatchState = BatchState.RUNNING


def nothing_made(ending: Ending, kind: ErrorKind, sentence: str) -> Ran:
    """An attempt of which no driver tells anything: what it did is not known."""
    now = time.time_ns()
    return Ran(
        ending=ending,
        error=RunError(kind=kind, sentence=sentence),
        proof=Proof(level=UNKNOWN),
        start_ns=now,
        end_ns=now,
    )


def finish(claim: RunClaim, order: Order, done: Done, *, now: datetime) -> RunState:
    """Write how a run ended, with its recording if it was executed; where it stands.

    Tries again for a few seconds where the database went away in the middle: what was
    paid for is not to be made anew. What cannot be kept at all is given up, so that it
    is not made again and again. Raises `LostRun`.
    """
    try:
        return _in_the_end(claim, _Ending(claim, order, done, now).write)
    except (LostRun, OperationalError, InterfaceError):
        raise
    except Exception as error:
        logger.exception("What run %s did could not be kept", claim.run_id)
        return give_up(
            claim, f"What it did could not be kept ({type(error).__name__})."
        )


def give_up(claim: RunClaim, why: str) -> RunState:
    """End a run as failed by our fault, without a recording; where it stands.

    Raises `LostRun`.
    """
    sentence = f"{why} That is Evalsite's fault and says nothing of the agent."
    end = AttemptEnd(
        ending=RunState.FAILED.value, error_kind=ErrorKind.OURS.value, sentence=sentence
    )
    columns: dict[str, Any] = {"error_kind": end.error_kind, "sentence": sentence}

    def write() -> RunState:
        with transaction.atomic():
            columns["calls"] = _calls_of_attempts(claim)
            _end(claim, RunEnd(state=RunState.FAILED, columns=columns), end)
        return RunState.FAILED

    return _in_the_end(claim, write)


def _in_the_end(claim: RunClaim, write: Callable[[], RunState]) -> RunState:
    """What a write gives, which is tried for some seconds if the database is away."""
    for pause in _AGAIN:
        try:
            return write()
        except (OperationalError, InterfaceError):
            connection.close()
            logger.warning("Run %s is not written yet", claim.run_id)
            time.sleep(pause)
    return write()


def _end(claim: RunClaim, run: RunEnd, attempt: AttemptEnd) -> None:
    """End a run in the caller's transaction, with all that follows from it."""
    batch = end_run(claim=claim, run=run, attempt=attempt)
    forget_calls(claim.run_id)
    if run.state in EXECUTED and let_count(run_id=claim.run_id):
        unsettle(claim.project_id)
    if batch is not BatchState.RUNNING:
        wake_scoring(project_id=claim.project_id)


def _calls_of_attempts(claim: RunClaim) -> int:
    """How many calls all attempts at a run have begun."""
    rows = RunAttempt.objects.filter(run_id=claim.run_id)
    calls: int = rows.aggregate(calls=Sum("calls", default=0))["calls"]
    return calls


def _project_of(claim: RunClaim) -> Project:
    """The project of a run; raises `LostRun` where it was deleted meanwhile."""
    project = Project.objects.filter(pk=claim.project_id).first()
    if project is None:
        raise LostRun
    return project


class _Ending:
    """Writes the end of one run, as often as it takes."""

    def __init__(
        self, claim: RunClaim, order: Order, done: Done, now: datetime
    ) -> None:
        self._claim = claim
        self._order = order
        self._done = msgspec.structs.replace(done, ran=_limited(done.ran, order))
        self._now = now
        self._state = _state_of(done)

    def write(self) -> RunState:
        claim = self._claim
        privacy = _Kept(_project_of(claim))
        recording = None
        if self._state in EXECUTED:
            recording = privacy.trace(self._order, self._done.ran)
        with transaction.atomic():
            columns = self._columns(privacy)
            if recording is not None:
                columns["trace_id"] = self._store(recording, privacy)
            run = RunEnd(state=self._state, columns=columns)
            _end(claim, run, self._attempt(columns))
        return self._state

    def _store(self, recording: Trace, privacy: _Kept) -> int:
        """Write the recording; returns the id of its trace.

        First of all, so that nobody waits for the batch while it is written.
        """
        claim = self._claim
        batch = Batch.objects.only("name", "upload_id").get(pk=claim.batch_id)
        upload = replay_upload(
            project_id=claim.project_id,
            batch_id=claim.batch_id,
            name=f"Replays: {batch.name}",
            now=self._now,
        )
        stored = write_replay_trace(
            upload_id=upload.pk, trace=recording, redactions=privacy.counts
        )
        if batch.upload_id is None:
            Batch.objects.filter(pk=batch.pk).update(upload=upload)
        return stored.trace_id

    def _columns(self, privacy: _Kept) -> dict[str, Any]:
        ran, price = self._done.ran, Price.of(self._order.plan.price)
        given, made = _usage(ran)
        money = None
        if given is not None and made is not None:
            money = cost_of(price, given, made).money
        if money is not None and money >= _MOST_MONEY:
            money = None
        error = ran.error
        return {
            "error_kind": "" if error is None else error.kind.value,
            "sentence": "" if error is None else privacy.text(error.sentence),
            "level": ran.proof.level,
            "has_breach": ran.has_breach,
            "effects": privacy.value(msgspec.to_builtins(ran.effects)),
            "proof": storable(told_proof(ran.proof)),
            "judged": storable(self._done.judged),
            "printed": privacy.printed(ran.printed),
            "calls": self._calls(),
            "input_tokens": given,
            "output_tokens": made,
            "money": money,
        }

    def _calls(self) -> int:
        """How many calls it made; of one that is given up those of all attempts."""
        claim = self._claim
        return _calls_of_attempts(claim) if claim.is_hopeless else self._done.calls

    def _attempt(self, columns: dict[str, Any]) -> AttemptEnd:
        error = self._done.ran.error
        return AttemptEnd(
            ending=self._state.value,
            error_kind=columns["error_kind"],
            sentence=columns["sentence"],
            retry_after=None if error is None else error.retry_after,
        )


def _limited(ran: Ran, order: Order) -> Ran:
    """The run; where no record came back, with the limits that it had."""
    if ran.proof.level != UNKNOWN:
        return ran
    seconds = order.settings.get("seconds", order.limits.seconds)
    proof = msgspec.structs.replace(ran.proof, limits=limits_of(order, seconds))
    return msgspec.structs.replace(ran, proof=proof)


def _state_of(done: Done) -> RunState:
    state = STATES[done.ran.ending]
    if state is RunState.CANCELLED and done.batch_state is BatchState.STOPPED:
        return RunState.OVER_BUDGET
    return state


def _usage(ran: Ran) -> tuple[int | None, int | None]:
    """Input and output tokens of all model calls; `None` where one of them is unknown.

    Calls that were turned away used none.
    """
    used = [
        used_tokens(event.usage)
        for event in ran.events
        if isinstance(event, ModelCalled) and may_have_been_billed(event)
    ]
    known = [one for one in used if one is not None]
    if not known or len(known) < len(used):
        return None, None
    return sum(given for given, _ in known), sum(made for _, made in known)


class _Kept:
    """What a project keeps of a run."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._privacy = Privacy.of(project)

    @property
    def counts(self) -> dict[str, int]:
        return self._privacy.counts

    def trace(self, order: Order, ran: Ran) -> Trace:
        title = RunTitle(
            name=order.title,
            task=order.task_key,
            trial=order.number,
            regime=order.regime,
            target=order.kind,
            target_name=order.target_name,
        )
        return self._privacy.keep(trace_of(order.case, ran, title))

    def text(self, text: str) -> str:
        return storable_text(self._privacy.keep_sentence(text))

    def printed(self, text: str) -> str:
        return (
            "" if self._project.structure_only else self.text(text)[:_LONGEST_PRINTED]
        )

    def value(self, effects: list[dict[str, Any]]) -> Any:
        return storable([{**one, "what": self.text(one["what"])} for one in effects])


def postpone(claim: RunClaim, order: Order, later: NotNow, *, calls: Calls) -> RunState:
    """Put a run back for some seconds, with what had happened kept in its attempt.

    Raises `LostRun`.
    """
    privacy, ran = _Kept(_project_of(claim)), later.ran
    error = calls.last_error
    events = None
    if ran is not None and ran.events:
        events = zstandard.compress(dump(privacy.trace(order, ran)))
    end = AttemptEnd(
        ending=PUT_BACK,
        error_kind="" if error is None else error.kind.value,
        sentence="" if error is None else privacy.text(error.sentence),
        retry_after=None if error is None else error.retry_after,
        events=events,
    )
    return put_back(claim=claim, seconds=later.seconds, end=end)
