"""Traces out of ATIF trajectories, alone or with the result of their Harbor trial."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from apps.engine.reading.atif.steps import Files, TrajectorySteps
from apps.engine.reading.json_gate import RefusedRecord
from apps.engine.reading.local_times import told_ns
from apps.engine.reading.rewards import outcome_of_reward
from apps.engine.reading.text_limits import IDENTIFIER, LABEL, NAME, Remarks, clip
from apps.engine.reading.transcript import Draft, Transcript
from apps.engine.reading.unique_ids import unique_id
from apps.engine.trace import (
    UNKNOWN_OUTCOME,
    Outcome,
    StepKind,
    StepStatus,
    Trace,
)

_SCHEMA: Final = "ATIF-v"
_KEPT: Final = (
    "trial_name", "source", "task_checksum", "task_id", "agent_info", "agent_result",
    "started_at", "finished_at", "agent_execution", "verifier",
)  # fmt: skip
_SEVERAL_REWARDS: Final = (
    "The verifier gave several rewards and none that is named reward, so the outcome "
    "is not known."
)


class Trial(msgspec.Struct):
    """What stands beside a trajectory: the trial's result, other files, its number."""

    result: dict[str, Any] = {}
    files: Files = {}
    number: int | None = None


def is_trajectory(value: Any) -> bool:
    """Whether a value is a trajectory, by the name of its schema."""
    schema = value.get("schema_version") if isinstance(value, dict) else None
    return isinstance(schema, str) and schema.startswith(_SCHEMA)


def trace_of_trajectory(
    trajectory: Any, *, number: int = 1, trial: Trial | None = None
) -> Trace:
    """Return the trace of one trajectory; `RefusedRecord` for what is none.

    `number` names a trajectory without any id; `trial` is what stands beside it.
    """
    if not is_trajectory(trajectory):
        raise RefusedRecord(
            "This is not an ATIF trajectory: it names no schema_version ATIF-v1.x.", "$"
        )
    trial = trial or Trial()
    result = trial.result
    remarks = Remarks()
    made = Transcript(remarks)
    agent = trajectory.get("agent")
    agent = agent if isinstance(agent, dict) else {}
    made.invocations[0].agent = agent.get("name")
    steps = TrajectorySteps(made, remarks, trial.files)
    steps.add(trajectory, 0, "$")
    steps.sums.compare(trajectory.get("final_metrics"), remarks)
    _add_exception(made, result.get("exception_info"))
    ordered, invocations, order = made.finished()
    task = clip(result.get("task_name"), LABEL, remarks)
    name = result.get("trial_name") or task or trajectory.get("session_id")
    return Trace(
        name=clip(name, NAME, remarks) or f"trajectory {number}",
        steps=ordered,
        invocations=invocations,
        native_id=unique_id(result.get("id"))
        or unique_id(trajectory.get("trajectory_id")),
        session=clip(trajectory.get("session_id"), IDENTIFIER, remarks),
        start_ns=told_ns(result.get("started_at"), remarks),
        end_ns=told_ns(result.get("finished_at"), remarks),
        order=order,
        outcome=_outcome(result.get("verifier_result"), remarks),
        task=task,
        trial=trial.number,
        metadata=_metadata(trajectory, agent, result),
        labels={"verifier_result": result["verifier_result"]}
        if result.get("verifier_result") is not None
        else {},
        notes=remarks.sentences(),
    )


def _add_exception(made: Transcript, exception: Any) -> None:
    """Add what the harness caught while the trial ran, as a step of its own."""
    if not isinstance(exception, dict):
        return
    moment = told_ns(exception.get("occurred_at"), made.remarks)
    made.add(
        Draft(
            kind=StepKind.SYSTEM,
            name="exception of the trial",
            start_ns=moment,
            status=StepStatus.ERROR,
            error_type=exception.get("exception_type"),
            error_message=exception.get("exception_message"),
            native_kind="exception_info",
            output=exception.get("exception_traceback"),
        )
    )


def _outcome(verdict: Any, remarks: Remarks) -> Outcome:
    rewards = verdict.get("rewards") if isinstance(verdict, dict) else None
    if not isinstance(rewards, dict) or not rewards:
        return UNKNOWN_OUTCOME
    if "reward" in rewards:
        return outcome_of_reward(rewards["reward"], "verifier_result.rewards.reward")
    if len(rewards) > 1:
        remarks.add(_SEVERAL_REWARDS)
        return UNKNOWN_OUTCOME
    [(key, reward)] = rewards.items()
    return outcome_of_reward(reward, f"verifier_result.rewards.{key}"[:LABEL])


def _metadata(
    trajectory: dict[str, Any], agent: dict[str, Any], result: dict[str, Any]
) -> dict[str, Any]:
    told = {
        "schema_version": trajectory["schema_version"],
        "agent": {key: agent[key] for key in agent if key != "tool_definitions"},
    }
    told |= {
        key: trajectory[key]
        for key in ("notes", "final_metrics", "extra", "trajectory_id")
        if trajectory.get(key) is not None
    }
    return told | {key: result[key] for key in _KEPT if result.get(key) is not None}
