"""Reader of tau-bench results: a list of {task_id, trial, reward, info, traj}.

The trajectories are chat messages without usage and without times, so every model
call has missing usage and the order is the order of the file. `info.task` is ground
truth: it goes into the labels, never into a step. The user is a simulator whose
messages are user messages here, not model calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.messages import Conversation, is_message
from apps.engine.reading.rewards import outcome_of_reward
from apps.engine.reading.text_limits import LABEL, Remarks, clip
from apps.engine.reading.token_counts import whole_number
from apps.engine.trace import (
    UNKNOWN_OUTCOME,
    OrderSource,
    Trace,
)

_READ: Final = frozenset({"task_id", "trial", "reward", "info", "traj"})


class TauBench:
    """The format `tau-bench`."""

    slug = "tau-bench"
    label = "tau-bench results"
    version = 1
    description = (
        "A JSON list of results with task_id, trial, reward, info and traj (chat "
        "messages), as tau-bench writes them. Token usage is never recorded."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first record has a task id and a trajectory or a reward."""
        record = first_record(source)
        return (
            isinstance(record, dict)
            and "task_id" in record
            and ("traj" in record or {"reward", "info"} <= record.keys())
        )

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each result; raise `UnreadableTrace` when there is none."""
        return demand_a_trace(
            read_each(source, _traces, unroll=True),
            nothing="The file holds no tau-bench result: its list is empty.",
        )


def _traces(record: Record) -> Iterator[Item]:
    yield trace_of(record.value)


def trace_of(result: Any) -> Trace:
    """Return the trace of one result; raise `RefusedRecord` for what is none."""
    if not isinstance(result, dict):
        raise RefusedRecord("A tau-bench result is an object.", "$")
    if result.get("task_id") is None:
        raise RefusedRecord("The result names no task_id.", "$.task_id")
    messages = result.get("traj")
    if not isinstance(messages, list):
        raise RefusedRecord("The result has no list of messages.", "$.traj")
    remarks = Remarks()
    conversation = Conversation(remarks)
    for index, message in enumerate(messages):
        if not is_message(message):
            raise RefusedRecord("This is not a chat message.", f"$.traj[{index}]")
        conversation.add(message)
    steps, invocations = conversation.finished()
    task = f"task {clip(result['task_id'], LABEL - 5, remarks) or '(unnamed)'}"
    trial = whole_number(result.get("trial"))
    outcome = outcome_of_reward(result.get("reward"), "reward")
    if outcome is UNKNOWN_OUTCOME and result.get("reward") is not None:
        remarks.add("The reward is not a number and was not used.")
    return Trace(
        name=task,
        steps=steps,
        invocations=invocations,
        order=OrderSource.FILE,
        outcome=outcome,
        task=task,
        trial=trial,
        metadata=_metadata(result),
        labels=_labels(result.get("info")),
        notes=remarks.sentences(),
    )


def _metadata(result: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: item for key, item in result.items() if key not in _READ}
    info = result.get("info")
    if isinstance(info, dict):
        metadata |= {
            key: item
            for key, item in info.items()
            if key not in {"task", "reward_info"}
        }
    return metadata


def _labels(info: Any) -> dict[str, Any]:
    if not isinstance(info, dict):
        return {}
    return {key: info[key] for key in ("task", "reward_info") if key in info}
