"""Batches whose runs have ended, with recordings: written as a worker writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from django.db import transaction

from apps.accounts.models import Project
from apps.agents.models import Agent
from apps.agents.operations import add_agent
from apps.engine.memory.recall import Place as LostAt
from apps.engine.memory_tests import (
    Fact,
    MemoryTest,
    Probed,
    Recollection,
    encoded_memory_test,
)
from apps.engine.replay.case import Case, RecordedCall
from apps.engine.replay.recording import RunTitle, trace_of
from apps.engine.replay.run import (
    AnswerSource,
    Ending,
    Ran,
    Regime,
    TargetKind,
)
from apps.replays.cases import Origin, case_of, keep_cases
from apps.replays.models import (
    Batch,
    CaseSource,
    Group,
    ReplayCase,
    Run,
    RunAttempt,
    Target,
)
from apps.replays.newest import let_count
from apps.replays.planning import Caps, NewBatch, Plan, start_batch
from apps.replays.running import AttemptEnd, RunEnd, claim_run, end_run, put_back
from apps.replays.stopping import stop_batch
from apps.replays.targets import current_version
from apps.replays.transitions import RunState
from apps.traces.models import Task, Trace
from apps.traces.streams import replay_upload, write_replay_trace
from tests.factories import NOW
from tests.replays.ended import (
    CHANGED,
    LOOKED,
    PROOF,
    RATE_LIMITED,
    WROTE,
    called,
    decided,
    failed,
)
from tests.replays.rows import make_target
from tests.scored import scored


def make_frozen_case(agent: Agent, trace: Trace | None = None, **more: Any) -> Any:
    """A case of an agent with two recorded calls, frozen from a trace if one is given."""
    calls = (
        RecordedCall(tool="lookup", arguments={"number": 7}, result="open"),
        RecordedCall(tool="send_mail", arguments={"to": "A"}, result="ok", writes=True),
    )
    case = Case(
        agent=agent.name,
        name=more.pop("name", "Order 7"),
        input=more.pop("input", "Is order 7 open?"),
        calls=calls,
        **more,
    )
    source = CaseSource.HAND if trace is None else CaseSource.TRACE
    origin = Origin(source, trace=trace, invocation=None if trace is None else 0)
    [kept] = keep_cases(agent=agent, cases=[case], origin=origin, user_id=None, now=NOW)
    return kept.case


def record(run: Run, ran: Ran) -> Trace:
    """Write the recording of a run, with its task."""
    group = run.group
    case = case_of(group.case) if group.case else Case(agent=str(run.batch.agent))
    regime = Regime() if group.regime["kind"] == "memory" else group.regime
    title = RunTitle(
        name=f"{run.batch.name}, {case.name or 'memory'}",
        task=f"replay {run.batch_id} {group.number}",
        trial=run.number,
        regime=msgspec.convert(regime, Regime),
        target=TargetKind(run.batch.target_version.target.kind),
        target_name=run.batch.target_version.target.name,
    )
    upload = run.batch.upload
    if upload is None:
        upload = replay_upload(
            project_id=run.batch.project_id,
            batch_id=run.batch_id,
            name=run.batch.name,
            now=NOW,
        )
        Batch.objects.filter(pk=run.batch_id).update(upload=upload)
    stored = write_replay_trace(
        upload_id=upload.pk, trace=trace_of(case, ran, title), redactions={}
    )
    return Trace.everything.get(pk=stored.trace_id)


STATES = {
    Ending.FINISHED: RunState.FINISHED,
    Ending.FAILED: RunState.FAILED,
    Ending.TIMED_OUT: RunState.TIMED_OUT,
    Ending.STOPPED: RunState.STOPPED,
}
Judging = Callable[[Run], dict[str, Any] | None]


def run_out(
    batch: Batch,
    rans: Callable[[Run], Ran | None],
    *,
    judged: Judging = lambda run: None,
) -> Batch:
    """Run a batch to its end, or until `rans` gives `None` for a run, which waits.

    The first run is put back once, because its target asked to wait.
    """
    with transaction.atomic():
        while claim := claim_run(lease_seconds=600):
            run = Run.objects.select_related(
                "batch__target_version__target", "batch__upload", "group__case"
            ).get(pk=claim.run_id)
            ran = rans(run)
            if ran is None:
                put_back(claim=claim, seconds=3_600, end=_waits())
                continue
            if run.attempt == 1 and run.number == run.group.number == 1:
                RunAttempt.objects.filter(run=run).update(calls=1)
                put_back(claim=claim, seconds=-1, end=_waits())
                continue
            _end(claim, run, ran, judged(run))
    batch.refresh_from_db()
    return batch


def _waits() -> AttemptEnd:
    return AttemptEnd(
        ending="put_back",
        error_kind=RATE_LIMITED.kind.value,
        sentence=RATE_LIMITED.sentence,
        retry_after=RATE_LIMITED.retry_after,
    )


def _end(claim: Any, run: Run, ran: Ran, judged: dict[str, Any] | None) -> None:
    error = ran.error
    columns = {
        "trace": record(run, ran),
        "error_kind": error.kind.value if error else "",
        "sentence": error.sentence if error else "",
        "level": ran.proof.level,
        "has_breach": ran.has_breach,
        "effects": msgspec.to_builtins(ran.effects),
        "proof": msgspec.to_builtins(ran.proof),
        "printed": ran.printed,
        "judged": judged,
        "calls": 2,
        "input_tokens": 246,
        "output_tokens": 16,
    }
    state = STATES[ran.ending]
    end_run(
        claim=claim,
        run=RunEnd(state=state, columns=columns),
        attempt=AttemptEnd(
            ending=state.value,
            error_kind=columns["error_kind"],
            sentence=columns["sentence"],
        ),
    )
    let_count(run_id=run.pk)


def new_batch(
    agent: Agent, *cases: ReplayCase, name: str = "Alone", **more: Any
) -> Batch:
    """A planned batch of an agent at temperature 0, five runs of each case."""
    caps = more.pop("caps", Caps(calls=100, tokens=50_000))
    signal, depths = more.pop("signal", None), more.pop("depths", ())
    known = Target.objects.filter(agent=agent, name=f"{name} model").first()
    target = more.pop("target", None) or known or make_target(agent, f"{name} model")
    return start_batch(
        version=current_version(target.pk),
        cases=cases,
        new=NewBatch(
            name=name,
            plan=Plan(**more),
            caps=caps,
            estimate=ESTIMATE,
            signal=signal,
            depths=depths,
        ),
        user_id=more.pop("user_id", None),
        now=NOW,
    )


ESTIMATE: dict[str, Any] = {
    "groups": 1,
    "runs": 5,
    "left_out": 0,
    "calls": {"low": 5, "likely": 10, "worst": 100},
    "input_tokens": {"low": 600, "likely": 2_000, "worst": 40_000},
    "output_tokens": {"low": 0, "likely": 300, "worst": 4_000},
    "micros": None,
    "currency": "USD",
    "seconds_at_most": 600.0,
    "unknown": ["The price table has no price for small."],
    "assumptions": [],
}


def make_alone(
    project: Project,
    agent: Agent,
    trace: Trace | None = None,
    *,
    settle: Callable[[Project], object] = scored,
) -> Batch:
    """A finished batch of five runs: three decide B, one fails, one breaks out."""

    def ran(run: Run) -> Ran:
        if run.number == 4:
            return failed()
        if run.number == 5:
            return decided(
                {"route": "refunds"},
                effects=(WROTE, LOOKED),
                printed="writing notes\x1b[31m red\x07 done",
                events=(
                    called(AnswerSource.MISS, arguments={"number": 9}),
                    called(AnswerSource.STATIC, tool="send_mail", arguments={"to": 1}),
                ),
                proof=msgspec.structs.replace(
                    PROOF,
                    input_after=CHANGED,
                    missed_calls=1,
                    intended_writes=1,
                    unconsumed=(1,),
                ),
            )
        return decided({"route": "refunds"})

    batch = run_out(new_batch(agent, make_frozen_case(agent, trace)), ran)
    settle(project)
    batch.refresh_from_db()
    return batch


MEMORY_TEST = MemoryTest(
    facts=(
        Fact(
            slug="card",
            value="27",
            telling="My card ends in {value}.",
            probe="What does my card end in?",
        ),
    ),
    depths=(1, 6, 12),
    repeats=5,
)


def probed(run: Run, depth: int) -> Probed:
    """Recalled at depth 1, three of five at 6, none at 12, where a summary drops it."""
    is_kept = depth < 6 or (depth == 6 and run.number <= 3)
    return Probed(
        fact="card",
        trial=run.pk,
        depth=depth,
        repeat=run.number,
        position=1,
        recollection=Recollection.RECALLED if is_kept else Recollection.LOST,
        sentence="The answer names “27”." if is_kept else "It does not name “27”.",
        held=is_kept,
        place=None if is_kept else LostAt.DROPPED_BY_SUMMARISER,
        why="" if is_kept else "The summary after turn 6 does not name it.",
    )


def make_unanswered_batch(
    project: Project, agent: Agent, *, settle: Callable[[Project], object] = scored
) -> Batch:
    """A finished memory test whose target broke in every trial."""

    def judged(run: Run) -> dict[str, Any]:
        depth = run.group.regime["depth"]
        one = msgspec.structs.replace(
            probed(run, depth),
            recollection=Recollection.FAILED,
            sentence="The turn that asks failed: The target answered with status 500.",
            held=None,
            place=None,
            why="",
        )
        counts = {"recalled": 0, "lost": 0, "contradicted": 0, "unclear": 1}
        found = msgspec.to_builtins([one])
        return {**counts, "probed": found, "is_untried": False}

    batch = new_batch(
        agent,
        name="Card number",
        memory=encoded_memory_test(MEMORY_TEST),
        depths=MEMORY_TEST.depths,
    )
    run_out(batch, lambda run: failed(), judged=judged)
    settle(project)
    batch.refresh_from_db()
    return batch


def make_memory_batch(
    project: Project, agent: Agent, *, settle: Callable[[Project], object] = scored
) -> Batch:
    """A finished memory test whose agent forgets from depth 6 on."""

    def judged(run: Run) -> dict[str, Any]:
        one = probed(run, run.group.regime["depth"])
        return {
            "recalled": int(one.is_recalled),
            "lost": int(not one.is_recalled),
            "contradicted": 0,
            "unclear": 0,
            "probed": msgspec.to_builtins([one]),
            "is_untried": False,
        }

    batch = new_batch(
        agent,
        name="Card number",
        memory=encoded_memory_test(MEMORY_TEST),
        depths=MEMORY_TEST.depths,
    )
    run_out(batch, lambda run: decided("It ends in 27."), judged=judged)
    settle(project)
    batch.refresh_from_db()
    return batch


def stopped_batch(project: Project) -> Batch:
    """A batch that a cap has stopped before its first run; made when missing."""
    found = Batch.objects.filter(project=project, state="stopped").first()
    if found is not None:
        return found
    agent = add_agent(project_id=project.pk, name="stopped agent", now=NOW)
    batch = new_batch(agent, make_frozen_case(agent), name="Stopped", repeats=2)
    stop_batch(batch_id=batch.pk, sentence="The cap of 100 calls was reached.")
    batch.refresh_from_db()
    return batch


def group_task(group: Group) -> Task:
    """The replay task of a group."""
    return Task.everything.get(pk=group.task_id)
