"""Batches of replays through the JSON door: estimated, started, followed, read run by run."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.http import Http404, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.permissions import Scope
from apps.agents.queries import agent_now
from apps.api.asking import following, one_of, whole
from apps.api.refusals import BadRequest, FileTooLarge
from apps.api.replay_documents import (
    batch_document,
    burial_document,
    group_document,
    plan_document,
    progress_document,
    run_document,
)
from apps.api.replay_planning import (
    AskedBatch,
    AskedCaps,
    PlannedBatch,
    converted,
    planned_batch,
)
from apps.api.replay_views import ReplayView, refused
from apps.engine.formats.evalsite_writer import dump
from apps.pipeline.replays import wake_runs
from apps.replays.batch_queries import (
    ON_A_PAGE,
    BatchFilter,
    BatchRow,
    RunCounts,
    attempts_of,
    batch_of,
    batch_rows,
    group_rows,
    is_memory,
    judged_runs,
    run_of,
    stub_calls_of,
)
from apps.replays.models import Batch, Run
from apps.replays.planning import WrongPlan, start_batch
from apps.replays.progress import batch_progress
from apps.replays.results import burial_of_batch, run_lines
from apps.replays.stopping import cancel_batch, resume_batch
from apps.replays.transitions import BatchState, NotPossibleNow
from apps.traces.queries import engine_trace
from apps.verdicts.replayed import (
    NOT_SCORED,
    decisions_in_batch,
    decisions_of,
    group_scores,
)

MOST_STEPS: Final = 20_000
_STATES: Final = {one.value: one for one in BatchState}


def _batch_of(project_id: int, batch_id: str) -> Batch:
    found = batch_of(project_id, int(batch_id))
    if found is None:
        raise Http404
    return found


class Estimates(ReplayView):
    """POST says what a batch would need; nothing is started."""

    scopes: ClassVar[dict[str, Scope]] = {"POST": Scope.REPLAY}

    def post(self, request: Request, **_path: str) -> Response:  # noqa: ARG002
        """The estimate, and the `confirm` with which this very batch can be started."""
        planned = planned_batch(self.project.pk, converted(self.sent(), AskedBatch))
        return Response(_estimate(planned))


def _estimate(planned: PlannedBatch) -> dict[str, Any]:
    return {"estimate": planned.new.estimate, "confirm": planned.confirm}


class Batches(ReplayView):
    """The batches of the project, newest first; POST starts one."""

    scopes: ClassVar[dict[str, Scope]] = {"GET": Scope.READ, "POST": Scope.REPLAY}

    def get(self, request: Request, **_path: str) -> Response:
        """One page: `agent` and `state` narrow it, `before` is the id to go on from."""
        where = BatchFilter(
            agent=whole(request, "agent"),
            state=one_of(request, "state", _STATES),
            before=whole(request, "before"),
        )
        rows = batch_rows(self.project.pk, where)
        shown = rows[:ON_A_PAGE]
        batches = [batch_document(row, request) for row in shown]
        after = following(request, "before", rows, [row.batch for row in shown])
        return Response({"batches": batches, "next": after})

    def post(self, request: Request, **_path: str) -> Response:
        """Start a batch whose estimate was read: 201, or 409 with the one of now."""
        asked = converted(self.sent(), AskedBatch)
        planned = planned_batch(self.project.pk, asked)
        if asked.confirm != planned.confirm:
            sentence = (
                "Read the estimate first, and send its “confirm” with the same batch."
                if not asked.confirm
                else "The batch, its cases, its target or prices are not as estimated."
            )
            return refused(409, sentence, **_estimate(planned))
        try:
            batch = start_batch(
                version=planned.version,
                cases=planned.cases,
                new=planned.new,
                user_id=self.user_id,
                now=timezone.now(),
            )
        except WrongPlan as error:
            raise BadRequest(str(error)) from None
        wake_runs(count=min(batch.run_count, batch.concurrency))
        document = _batch(_batch_of(self.project.pk, str(batch.pk)), request)
        headers = {"Location": document["url"]}
        return Response(document, status=201, headers=headers)


def _batch(batch: Batch, request: Request) -> dict[str, Any]:
    """A batch with its progress, its groups, and the curve of a memory test."""
    rows = group_rows(batch)
    # The last answers of a memory test are no decisions.
    compared = [] if is_memory(batch) else rows
    scores = group_scores(agent_now(batch.agent), compared)
    counts = _sum([row.counts for row in rows])
    return {
        **batch_document(BatchRow(batch, counts), request),
        "progress": progress_document(batch_progress(batch)),
        **plan_document(batch),
        "groups": [
            group_document(row, scores.get(row.group.pk, NOT_SCORED), request)
            for row in rows
        ],
        "memory": _memory(batch),
    }


def _sum(counts: list[RunCounts]) -> RunCounts:
    names = RunCounts.__struct_fields__
    return RunCounts(
        **{name: sum([getattr(one, name) for one in counts]) for name in names}
    )


def _memory(batch: Batch) -> dict[str, Any] | None:
    if not is_memory(batch):
        return None
    try:
        return burial_document(burial_of_batch(batch, judged_runs(batch)))
    except ValueError:
        # A test that another version wrote: nothing is said of it.
        return None


class OneBatch(ReplayView):
    """One batch."""

    def get(self, request: Request, batch_id: str, **_path: str) -> Response:
        """How far it is, its plan and estimate, its groups beside the pipeline."""
        return Response(_batch(_batch_of(self.project.pk, batch_id), request))


class BatchCancel(ReplayView):
    """POST lets no further run begin."""

    scopes: ClassVar[dict[str, Scope]] = {"POST": Scope.REPLAY}

    def post(self, request: Request, batch_id: str, **_path: str) -> Response:
        """The batch then; what was executed stays. 409 unless it is running."""
        found = _batch_of(self.project.pk, batch_id)
        try:
            cancel_batch(batch=found, user_id=self.user_id)
        except NotPossibleNow as error:
            return refused(409, str(error))
        return Response(_batch(_batch_of(self.project.pk, batch_id), request))


class BatchResume(ReplayView):
    """POST lets a cancelled or stopped batch go on."""

    scopes: ClassVar[dict[str, Scope]] = {"POST": Scope.REPLAY}

    def post(self, request: Request, batch_id: str, **_path: str) -> Response:
        """The batch then, under the caps of the body; 409 where it cannot go on."""
        found = _batch_of(self.project.pk, batch_id)
        caps = converted(self.sent(), AskedCaps).caps()
        try:
            waiting = resume_batch(batch=found, caps=caps)
        except NotPossibleNow as error:
            return refused(409, str(error))
        wake_runs(count=min(waiting, found.concurrency))
        return Response(_batch(_batch_of(self.project.pk, batch_id), request))


class BatchRuns(ReplayView):
    """All runs of a batch."""

    def get(self, request: Request, batch_id: str, **_path: str) -> HttpResponseBase:  # noqa: ARG002
        """JSON lines, a run each, with its attempts and what it decided."""
        found = _batch_of(self.project.pk, batch_id)
        lines = run_lines(found, decisions_in_batch(found))
        return StreamingHttpResponse(lines, content_type="application/x-ndjson")


class OneRun(ReplayView):
    """One run."""

    def get(self, request: Request, run_id: str, **_path: str) -> Response:
        """Its ending, proof, effects, attempts, and what answered its tools."""
        run = _run_of(self.project.pk, run_id)
        agent_id = agent_now(run.batch.agent)
        is_decided = run.trace_id is not None and not is_memory(run.batch)
        traces = [run.trace_id] if is_decided and run.trace_id else []
        document = run_document(
            run,
            attempts=attempts_of(run),
            stub_calls=stub_calls_of(run),
            decided=decisions_of(agent_id, traces),
            request=request,
        )
        return Response(document)


class Recording(ReplayView):
    """The recording of one run."""

    def get(self, request: Request, run_id: str, **_path: str) -> HttpResponseBase:  # noqa: ARG002
        """A line of Evalsite JSONL, which can be uploaded; 404 before it was executed."""
        run = _run_of(self.project.pk, run_id)
        if run.trace is None:
            raise Http404
        if run.trace.step_count > MOST_STEPS:
            raise FileTooLarge(f"A recording of more than {MOST_STEPS:,} steps.")
        return HttpResponse(
            dump(engine_trace(run.trace)), content_type="application/x-ndjson"
        )


def _run_of(project_id: int, run_id: str) -> Run:
    found = run_of(project_id, int(run_id))
    if found is None:
        raise Http404
    return found
