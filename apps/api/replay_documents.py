"""What the JSON door says of replays. Missing is null; nobody reads a secret out of it.

Every count is `k` of `n` with its 95 % Wilson interval as `low` and `high`, null for
0 of 0. Money is a decimal text in the currency of the price table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from django.urls import reverse
from rest_framework.request import Request

from apps.accounts.models import ApiToken
from apps.engine.consistency import share
from apps.engine.memory_tests import Burial, rule_of, sentences_of
from apps.engine.replay.beside import Beside, ContractBeside
from apps.engine.replay.freezing import not_recorded
from apps.engine.replay.regimes import regime_in_words
from apps.engine.replay.run import Regime
from apps.engine.trials.documents import consistency_document
from apps.engine.trials.plain import plain_share
from apps.replays.batch_queries import BatchRow, GroupRow, RunCounts
from apps.replays.cases import case_of
from apps.replays.models import (
    Batch,
    Group,
    ReplayCase,
    Run,
    RunAttempt,
    StubCall,
    TargetVersion,
)
from apps.replays.progress import Progress
from apps.replays.queries import TargetRow
from apps.scoring.models import AgentTaskScore, Conduct
from apps.verdicts.replayed import GroupScore


def _address(request: Request, name: str, *args: Any) -> str:
    return request.build_absolute_uri(reverse(name, args=args))


def _slug(request: Request) -> str:
    """The slug of the token's project."""
    token = request.auth
    return token.project.slug if isinstance(token, ApiToken) else ""


def target_document(row: TargetRow, request: Request) -> dict[str, Any]:
    """A target with what it is set to now; of its key only whether there is one."""
    target = row.target
    return {
        "id": target.pk,
        "url": _address(request, "api-replay-target", target.pk),
        "name": target.name,
        "agent": str(target.agent),
        "agent_id": target.agent_id,
        "kind": target.kind,
        "version": row.version.number,
        "settings": row.version.settings,
        "has_key": row.key is not None,
        "needs_key": target.needs_key,
        "paused_until": target.paused_until,
        "is_retired": target.is_retired,
        "created_at": target.created_at,
    }


def version_document(version: TargetVersion) -> dict[str, Any]:
    """What a target was set to from one moment on."""
    return {
        "version": version.number,
        "settings": version.settings,
        "created_at": version.created_at,
    }


def case_document(row: ReplayCase, request: Request) -> dict[str, Any]:
    """A case without its content; `invocation` counts from 0 as in files of traces."""
    return {
        "id": row.pk,
        "url": _address(request, "api-replay-case", row.pk),
        "name": row.name,
        "agent": str(row.agent),
        "agent_id": row.agent_id,
        "hash": row.hash,
        "shown": row.shown,
        "recorded_calls": row.recorded_calls,
        "source": row.source,
        "trace": row.trace_id,
        "invocation": row.invocation,
        "is_retired": row.is_retired,
        "created_at": row.created_at,
    }


def whole_case_document(row: ReplayCase, request: Request) -> dict[str, Any]:
    """A case with its content, and what a replay of it lacks."""
    case = case_of(row)
    return {
        **case_document(row, request),
        "case": msgspec.to_builtins(case),
        "not_recorded": list(not_recorded(case)),
    }


def batch_document(row: BatchRow, request: Request) -> dict[str, Any]:
    """A batch with the counts of its runs."""
    batch, version = row.batch, row.batch.target_version
    return {
        "id": batch.pk,
        "url": _address(request, "api-replay-batch", batch.pk),
        "page": _address(request, "replay-batch", _slug(request), batch.pk),
        "name": batch.name,
        "kind": batch.kind,
        "state": batch.state,
        "stopped_why": batch.stopped_why or None,
        "agent": str(batch.agent),
        "agent_id": batch.agent_id,
        "target": version.target_id,
        "target_version": version.number,
        "signal": batch.signal,
        "runs": _counts(row.counts),
        "caps": {
            "calls": batch.max_calls,
            "tokens": batch.max_tokens,
            "money": batch.max_money,
            "seconds": batch.max_seconds,
        },
        "created_at": batch.created_at,
        "started_at": batch.started_at,
        "finished_at": batch.finished_at,
    }


def _counts(counts: RunCounts) -> dict[str, int]:
    return {**msgspec.structs.asdict(counts), "not_run": counts.not_run}


def progress_document(found: Progress) -> dict[str, Any]:
    """How far a batch is; `remaining_seconds` is null where nothing says it."""
    return {
        "state": found.state.value,
        "runs": {state.value: count for state, count in found.counts.items()},
        "total": found.total,
        "executed": found.executed,
        "remaining_seconds": found.remaining_seconds,
        "spent": {
            "calls": found.spent_calls,
            "tokens": found.spent_tokens,
            # Nothing counted and something unknown is no 0.
            "money": (
                found.spent_money if found.is_money_known or found.spent_money else None
            ),
            "is_money_known": found.is_money_known,
        },
        "reserved": {
            "calls": found.reserved_calls,
            "tokens": found.reserved_tokens,
            "money": found.reserved_money,
        },
    }


def plan_document(batch: Batch) -> dict[str, Any]:
    """What was frozen with a batch, and what was estimated before it started."""
    return {"plan": batch.plan, "estimate": batch.estimate}


def group_document(
    row: GroupRow, scored: GroupScore, request: Request
) -> dict[str, Any]:
    """One case in one regime: its agreement, and the pipeline beside it."""
    group = row.group
    score = scored.score
    return {
        "group": group.number,
        "case": None if group.case is None else case_name(group.case),
        "regime": group.regime,
        "regime_in_words": _words(group),
        "runs": _counts(row.counts),
        "finished": plain_share(share(row.counts.finished, row.counts.executed)),
        "task": group.task_id,
        "task_url": (
            None
            if group.task_id is None
            else _address(request, "api-task", group.task_id)
        ),
        "is_newest": group.is_newest,
        "score": None if score is None else _score(score),
        "in_the_pipeline": None if scored.beside is None else _beside(scored.beside),
        "contracts": [_contract(one) for one in scored.contracts],
    }


def case_name(case: ReplayCase) -> dict[str, Any]:
    """How a case is named in other documents."""
    return {"id": case.pk, "name": case.name, "hash": case.hash}


def _words(group: Group) -> str:
    if group.regime.get("kind") == "memory":
        return f"Depth {group.regime['depth']}"
    try:
        return regime_in_words(msgspec.convert(group.regime, Regime))
    except msgspec.ValidationError:
        return "conditions that this version cannot read"


def _score(score: AgentTaskScore) -> dict[str, Any]:
    detail = score.detail
    return {
        "colour": score.colour,
        "consistency": consistency_document(detail["consistency"]),
        "reasons": detail["reasons"],
        "gaps": detail["gaps"],
        "contracts": {
            "held": score.held,
            "broken": score.broken,
            "undecided": score.undecided,
        },
    }


def _beside(found: Beside) -> dict[str, Any]:
    return {
        "standing": found.standing.value,
        "sentence": found.sentence,
        "reasons": list(found.reasons),
        "p": None if found.test is None else found.test.p,
        "answers": [
            {
                "state": one.state,
                "decision": one.shown,
                "in_the_pipeline": plain_share(one.recorded),
                "alone": plain_share(one.alone),
            }
            for one in found.answers
        ],
    }


def _contract(one: ContractBeside) -> dict[str, Any]:
    return {
        "name": one.name,
        "broken_alone": plain_share(one.alone),
        "broken_in_the_pipeline": plain_share(one.recorded),
        "sentence": one.sentence,
    }


def burial_document(found: Burial) -> dict[str, Any]:
    """What a memory test shows: sentences, the rule, and recall by depth."""
    return {
        "sentences": list(sentences_of(found)),
        "rule": rule_of(found),
        "first_uncertain": found.whole.first_uncertain,
        "points": msgspec.to_builtins(found.whole.points),
        "facts": [
            {"fact": one.name, "points": msgspec.to_builtins(one.points)}
            for one in found.facts
        ],
    }


def run_document(
    run: Run,
    *,
    attempts: Sequence[RunAttempt],
    stub_calls: Sequence[StubCall],
    decided: Mapping[int, Conduct],
    request: Request,
) -> dict[str, Any]:
    """One run with its proof, what it tried and every attempt at it.

    `stub_calls` came over the network and are not in a recording yet.
    """
    group = run.group
    conduct = decided.get(run.trace_id or 0)
    return {
        "id": run.pk,
        "url": _address(request, "api-replay-run", run.pk),
        "batch": run.batch_id,
        "group": group.number,
        "case": None if group.case is None else case_name(group.case),
        "regime": group.regime,
        "run": run.number,
        "seed": run.seed,
        "state": run.state,
        "error_kind": run.error_kind or None,
        "sentence": run.sentence or None,
        "level": run.level or None,
        "has_breach": run.has_breach,
        "effects": run.effects,
        "proof": run.proof or None,
        "judged": run.judged,
        "printed": run.printed or None,
        "decided": None if conduct is None else _decided(conduct),
        "is_billed_twice": run.is_billed_twice,
        "calls": run.calls,
        "input_tokens": run.input_tokens,
        "output_tokens": run.output_tokens,
        "money": run.money,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "attempts": [_attempt(one, is_priced=_is_priced(run)) for one in attempts],
        "stub_calls": [_stub_call(one) for one in stub_calls],
        **_recording(run, request),
    }


def _recording(run: Run, request: Request) -> dict[str, Any]:
    if run.trace_id is None:
        return {"trace": None, "recording": None, "agents": None}
    return {
        "trace": run.trace_id,
        "recording": _address(request, "api-replay-recording", run.pk),
        "agents": _address(request, "api-trace-agents", run.trace_id),
    }


def _decided(conduct: Conduct) -> dict[str, Any]:
    return {
        "state": conduct.state,
        "decision": conduct.decision or None,
        "shown": conduct.shown or None,
        "contracts": conduct.judged,
    }


def _is_priced(run: Run) -> bool:
    return run.batch.plan.get("price") is not None


def _attempt(one: RunAttempt, *, is_priced: bool) -> dict[str, Any]:
    return {
        "attempt": one.number,
        "ending": one.ending or None,
        "error_kind": one.error_kind or None,
        "sentence": one.sentence or None,
        "retry_after": one.retry_after,
        "calls": one.calls,
        "tokens": one.spent_tokens,
        "money": one.spent_money if is_priced or not one.spent_tokens else None,
        "started_at": one.started_at,
        "ended_at": one.ended_at,
    }


def _stub_call(one: StubCall) -> dict[str, Any]:
    return {
        "number": one.number,
        "tool": one.tool,
        "arguments": one.arguments,
        "answer": one.answer,
        "called_at": one.called_at,
    }
