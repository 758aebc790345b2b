"""What runs gave back, read out of their rows, and all runs of a batch as JSON lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from django.db.models import QuerySet

from apps.engine.memory_tests import (
    Burial,
    MemoryTest,
    Probed,
    burial_from,
    decoded_memory_test,
    sentences_of,
)
from apps.engine.replay.run import UNKNOWN, Effect, Proof
from apps.replays.batch_queries import judged_runs
from apps.replays.models import Batch, Run, RunAttempt
from apps.replays.transitions import EXECUTED

LEVELS: Final = {
    "namespaces": "namespaces, Landlock and seccomp",
    "landlock_seccomp": "Landlock and seccomp",
    "none": "no isolation of the process",
    UNKNOWN: "not known: no record came back",
}
"""The levels of isolation that are reached here; others say it in words themselves."""
_AT_ONCE: Final = 200
_EXECUTED: Final = frozenset(one.value for one in EXECUTED)


class UnreadRun(ValueError):
    """A stored record of a run that this version cannot read; says which and why."""


Kind = TypeVar("Kind")


def effects_of(run: Run) -> tuple[Effect, ...]:
    """The attempted side effects of a run, in order."""
    return _recorded(run, run.effects, tuple[Effect, ...], "side effects")


def proof_of(run: Run) -> Proof | None:
    """The proof record of a run; `None` where it was never executed."""
    return _recorded(run, run.proof, Proof, "proof") if run.proof else None


def probed_of(run: Run) -> tuple[Probed, ...]:
    """What a run of a memory test shows of each fact."""
    judged = run.judged or {}
    found = judged.get("probed", ()) if isinstance(judged, dict) else judged
    return _recorded(run, found, tuple[Probed, ...], "facts")


def _recorded(run: Run, value: Any, kind: type[Kind], what: str) -> Kind:
    """Part of the record of a run; raises `UnreadRun`, for nothing is no record."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise UnreadRun(
            f"What is recorded of run {run.number} of batch {run.batch_id} ({what}) "
            f"cannot be read by this version of Evalsite: {str(error).rstrip('.')}. "
            "Plan the batch again; the record is kept."
        ) from None


def memory_test_of(batch: Batch) -> MemoryTest:
    """The memory test that a batch was planned with; raises `ValueError`."""
    return decoded_memory_test(batch.plan.get("memory"))


def burial_of_batch(batch: Batch, runs: Sequence[Run]) -> Burial:
    """The curve of a memory test from its judged runs; raises `ValueError`."""
    untried = sum(bool((run.judged or {}).get("is_untried")) for run in runs)
    probed = [one for run in runs for one in probed_of(run)]
    return burial_from(memory_test_of(batch), probed, untried=untried)


def recall_of(batch: Batch) -> str:
    """What a memory test shows, in one sentence; "" where nothing is known. One query."""
    try:
        burial = burial_of_batch(batch, judged_runs(batch))
    except ValueError:
        return ""
    return next(iter(sentences_of(burial)), "")


def run_lines(
    batch: Batch, decided: Mapping[int, Mapping[str, Any]]
) -> Iterator[bytes]:
    """All runs of a batch, a JSON object and a line break each.

    `decided` has by id of a trace what was extracted from it. Texts of the recordings
    are not in it; they are downloaded with each trace.
    """
    rows = (
        Run.objects.filter(batch=batch)
        .select_related("group__case")
        .defer("group__case__content")
        .order_by("group__number", "number")
    )
    for some in _in_pieces(rows):
        attempts = _attempts(some)
        for run in some:
            line = _line(run, attempts[run.pk], decided.get(run.trace_id or 0))
            yield msgspec.json.encode(line) + b"\n"


def _in_pieces(rows: QuerySet[Run]) -> Iterator[list[Run]]:
    start = 0
    while some := list(rows[start : start + _AT_ONCE]):
        yield some
        start += _AT_ONCE


def _attempts(runs: Sequence[Run]) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    rows = RunAttempt.objects.filter(run__in=[run.pk for run in runs])
    for row in rows.defer("events").order_by("run_id", "number"):
        found[row.run_id].append({name: getattr(row, name) for name in _OF_ATTEMPT})
    return found


_OF_ATTEMPT: Final = (
    "number",
    "ending",
    "error_kind",
    "sentence",
    "retry_after",
    "calls",
    "started_at",
    "ended_at",
)


_COLUMNS: Final = (
    "number",
    "seed",
    "state",
    "error_kind",
    "sentence",
    "level",
    "has_breach",
    "is_billed_twice",
    "calls",
    "input_tokens",
    "output_tokens",
    "money",
    "started_at",
    "finished_at",
    "effects",
    "proof",
    "judged",
    "printed",
)


def _line(
    run: Run,
    attempts: Sequence[Mapping[str, Any]],
    decided: Mapping[str, Any] | None,
) -> dict[str, Any]:
    group = run.group
    case = group.case
    return {
        "batch": run.batch_id,
        "group": group.number,
        "case": None if case is None else {"name": case.name, "hash": case.hash},
        "regime": group.regime,
        "run": run.pk,
        "trace": run.trace_id,
        "was_executed": run.state in _EXECUTED,
        "decided": decided,
        **{name: getattr(run, name) for name in _COLUMNS},
        "attempts": list(attempts),
    }
