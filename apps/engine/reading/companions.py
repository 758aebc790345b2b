"""Files that lie beside traces and hold none: results, labels, predictions, fixtures.

Each is known by its keys and answered with a sentence, so that a person learns what
to upload instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from apps.engine.format import Source
from apps.engine.reading.json_peek import first_record

Record = dict[str, Any]


def why_no_trace(record: Any) -> str | None:
    """Return why this first record of a file is no trace; `None` when it is not known."""
    if not isinstance(record, dict):
        return None
    return next((words for holds, words in _KNOWN if holds(record)), None)


def why_beside(source: Source) -> str | None:
    """Return what a file is that belongs beside traces; `None` when it may be missed.

    In an archive nobody needs to be told to upload something else instead of it.
    """
    record = first_record(source)
    if not isinstance(record, dict) or not any(holds(record) for holds in _BESIDE):
        return None
    return why_no_trace(record)


def _is_job_result(record: Record) -> bool:
    return "n_total_trials" in record and isinstance(record.get("stats"), dict)


def _is_harbor_config(record: Record) -> bool:
    return ("jobs_dir" in record and "job_name" in record) or (
        "trials_dir" in record and "trial_name" in record
    )


def _is_trial_result(record: Record) -> bool:
    return "trial_name" in record and (
        "verifier_result" in record or "agent_info" in record
    )


def _is_terminal_bench_result(record: Record) -> bool:
    return "trial_name" in record and "is_resolved" in record


def _is_terminal_bench_run(record: Record) -> bool:
    return "n_resolved" in record and isinstance(record.get("results"), list)


def _is_stage_labels(record: Record) -> bool:
    return "traj_id" in record and "stages" in record


def _is_prediction(record: Record) -> bool:
    return "model_patch" in record and "instance_id" in record


def _is_event_fixture(record: Record) -> bool:
    events = record.get("events")
    if not isinstance(events, list) or "description" not in record:
        return False
    return any(isinstance(one, dict) and "event" in one for one in events)


def _is_conversation_state(record: Record) -> bool:
    return "execution_status" in record and isinstance(record.get("agent"), dict)


_KNOWN: Final[tuple[tuple[Callable[[Record], bool], str], ...]] = (
    (
        _is_job_result,
        "This is the result of a Harbor job: it counts trials and holds none of their "
        "steps. Upload the folder of the job as a zip file.",
    ),
    (
        _is_harbor_config,
        "This is the configuration of a Harbor job or trial, without the steps of any "
        "trial. Upload the folder of the job as a zip file.",
    ),
    (
        _is_terminal_bench_result,
        "This is the result of a Terminal-Bench trial without its steps. Upload the "
        "recording of the agent.",
    ),
    (
        _is_terminal_bench_run,
        "This is the result of a Terminal-Bench run: it counts trials and holds none of "
        "their steps.",
    ),
    (
        _is_trial_result,
        "This is the result of a Harbor trial without its steps. They are read from "
        "agent/trajectory.json in a zip file of the trial's folder.",
    ),
    (
        _is_stage_labels,
        "This file holds only labels of trajectories (CodeTraceBench): which stages "
        "were annotated, but none of the steps.",
    ),
    (
        _is_prediction,
        "This file holds predictions (patches by instance), not traces: no call and no "
        "tool is recorded in it.",
    ),
    (
        _is_event_fixture,
        "This is a description with a few bare events, as test fixtures of Inspect "
        "have them, not a log of an evaluation: it names no task and no sample.",
    ),
    (
        _is_conversation_state,
        "This is the state of an OpenHands conversation without its events. Upload the "
        "folder of the conversation as a zip file, with its events.",
    ),
)

# These count or label traces that lie beside them. A trial's own result, or the state
# of a conversation, is not among them: alone it says that its steps are missing.
_BESIDE: Final = (
    _is_job_result,
    _is_harbor_config,
    _is_terminal_bench_run,
    _is_stage_labels,
    _is_prediction,
)
