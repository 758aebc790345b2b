"""Traces out of OpenHands events: of a list, of a conversation, of an evaluation row."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import msgspec

from apps.engine.reading.json_gate import RefusedRecord
from apps.engine.reading.local_times import told_ns
from apps.engine.reading.openhands.calls import Calls
from apps.engine.reading.openhands.events import Events, is_event
from apps.engine.reading.openhands.sdk_events import SdkEvents, is_sdk_event
from apps.engine.reading.openhands.usage import Metrics
from apps.engine.reading.recorded import mapping, remark_unread
from apps.engine.reading.rewards import outcome_of_reward
from apps.engine.reading.text_limits import LABEL, NAME, Remarks, clip
from apps.engine.reading.transcript import Transcript
from apps.engine.reading.unique_ids import unique_id
from apps.engine.trace import UNKNOWN_OUTCOME, Outcome, Trace

_VERDICTS: Final = (
    ("test_result", "report", "resolved"),
    ("report", "resolved"),
    ("test_result", "resolved"),
    ("test_result", "score"),
    ("test_result", "result"),
    ("resolved",),
    ("success",),
)
_LABELS: Final = ("instance", "test_result", "report", "result_explanation", "issue")
_KEPT: Final = ("error", "git_patch", "model_patch", "attempt", "status")
_TOLD_OF_RUN: Final = (
    "agent_class", "max_iterations", "dataset", "data_split", "eval_note", "start_time",
    "git_commit",
)  # fmt: skip
_NO_EVENT: Final = "Entries of the history that are no events, not read: {n}."
_NO_EVENTS: Final = "The history holds no event of OpenHands."


class Beside(msgspec.Struct, kw_only=True):
    """What stands beside the events: an evaluation row, or a conversation's state."""

    row: dict[str, Any] = {}
    state: dict[str, Any] = {}
    number: int = 1


def is_any_event(value: Any) -> bool:
    """Whether a value is an event of OpenHands or of its SDK."""
    return is_event(value) or is_sdk_event(value)


def events_of_row(row: dict[str, Any]) -> list[Any]:
    """Return the events of an evaluation row.

    Rows from before 2025 hold pairs of an action and its observation. Raises
    `RefusedRecord` where there is no history.
    """
    history = row.get("history")
    if not isinstance(history, list) or not history:
        raise RefusedRecord(
            "This row of an evaluation has no history, so it holds no steps.",
            "$.history",
        )
    flat: list[Any] = []
    for one in history:
        flat.extend(one if isinstance(one, list) else [one])
    if not any(map(is_any_event, flat)):
        raise RefusedRecord(_NO_EVENTS, "$.history")
    return flat


def trace_of_events(events: list[Any], beside: Beside) -> Trace:
    """Return the trace of the events of one run; `RefusedRecord` for what is none."""
    remarks = Remarks()
    made = Transcript(remarks)
    metrics = Metrics()
    calls = Calls(made, metrics, remarks)
    _take_metrics(events, beside, metrics)
    about = mapping(beside.row.get("metadata"))
    calls.model = _model(events, beside)
    made.invocations[0].agent = _agent(about, beside.state)
    unread = _add(events, calls)
    metrics.compare(remarks)
    remark_unread(remarks, "Events", unread)
    steps, invocations, order = made.finished()
    task = _task(beside.row, remarks)
    conversation = clip(beside.state.get("id"), LABEL, remarks)
    name = clip(task or conversation, NAME, remarks)
    return Trace(
        name=name or f"run {beside.number}",
        steps=steps,
        invocations=invocations,
        native_id=unique_id(conversation),
        session=conversation,
        start_ns=told_ns(_first(events).get("timestamp"), Remarks()),
        end_ns=told_ns(_last(events).get("timestamp"), Remarks()),
        order=order,
        outcome=_outcome(beside.row),
        task=task,
        metadata=_metadata(beside.row, about, beside.state),
        labels={
            key: beside.row[key] for key in _LABELS if beside.row.get(key) is not None
        },
        notes=remarks.sentences(),
    )


def _add(events: list[Any], calls: Calls) -> dict[str, int]:
    """Add all events; return the kinds that make no step, with how many there are."""
    older, newer = Events(calls), SdkEvents(calls)
    for event in events:
        if is_sdk_event(event):
            newer.add(event)
        elif is_event(event):
            older.add(event)
        else:
            calls.remarks.add(_NO_EVENT)
    return Counter(older.unread) + Counter(newer.unread)


def _take_metrics(events: list[Any], beside: Beside, metrics: Metrics) -> None:
    """Take all usage that is listed anywhere, before the calls are made."""
    for event in events:
        if isinstance(event, dict) and event.get("key") in ("stats", "full_state"):
            value = mapping(event.get("value"))
            stats = value.get("stats") if event["key"] == "full_state" else value
            metrics.take_stats(stats, _usage_id(value))
    metrics.take_stats(beside.state.get("stats"), _usage_id(beside.state))
    metrics.take(beside.row.get("metrics"))


def _usage_id(state: dict[str, Any]) -> Any:
    return mapping(mapping(state.get("agent")).get("llm")).get("usage_id")


def _model(events: list[Any], beside: Beside) -> Any:
    """Return the model that the run was set up with, else the only one it names."""
    told = [mapping(event) for event in events]
    whole = [one for one in told if one.get("key") == "full_state"]
    states = [beside.state, *(mapping(one.get("value")) for one in whole)]
    for state in states:
        model = mapping(mapping(state.get("agent")).get("llm")).get("model")
        if model:
            return model
    about = mapping(beside.row.get("metadata"))
    model = mapping(about.get("llm_config") or about.get("llm")).get("model")
    return model or _only_model(told)


def _only_model(events: list[dict[str, Any]]) -> Any:
    """Return the model of all responses, so that a call without one is no other's."""
    told = [mapping(event.get("tool_call_metadata")) for event in events]
    models = {
        model
        for model in (mapping(one.get("model_response")).get("model") for one in told)
        if isinstance(model, str)
    }
    return next(iter(models)) if len(models) == 1 else None


def _agent(about: dict[str, Any], state: dict[str, Any]) -> Any:
    told = about.get("agent_class") or mapping(state.get("agent")).get("kind")
    return told if isinstance(told, str) else None


def _task(row: dict[str, Any], remarks: Remarks) -> str | None:
    told = clip(row.get("instance_id"), LABEL, remarks)
    issue = mapping(row.get("issue"))
    number = clip(issue.get("number"), LABEL // 4, remarks)
    if told or not number:
        return told
    owner = clip(issue.get("owner"), LABEL // 4, remarks)
    repo = clip(issue.get("repo"), LABEL // 4, remarks)
    return f"{owner}/{repo}#{number}" if owner and repo else f"issue {number}"


def _outcome(row: dict[str, Any]) -> Outcome:
    """Return the first verdict that a row records."""
    for path in _VERDICTS:
        value: Any = row
        for key in path:
            value = mapping(value).get(key)
        found = outcome_of_reward(value, ".".join(path))
        if found is not UNKNOWN_OUTCOME:
            return found
    return UNKNOWN_OUTCOME


def _metadata(
    row: dict[str, Any], about: dict[str, Any], state: dict[str, Any]
) -> dict[str, Any]:
    told = {key: about[key] for key in _TOLD_OF_RUN if about.get(key) is not None}
    told |= {key: row[key] for key in _KEPT if row.get(key) is not None}
    if state.get("execution_status") is not None:
        told["execution_status"] = state["execution_status"]
    return told


def _first(events: list[Any]) -> dict[str, Any]:
    return mapping(events[0]) if events else {}


def _last(events: list[Any]) -> dict[str, Any]:
    return mapping(events[-1]) if events else {}
