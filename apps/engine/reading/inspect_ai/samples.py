"""Traces out of the samples of an Inspect log, in one file or in a folder of many."""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.inspect_ai.events import SampleEvents
from apps.engine.reading.inspect_ai.scores import Scorers
from apps.engine.reading.inspect_ai.texts import Texts
from apps.engine.reading.json_gate import RefusedRecord
from apps.engine.reading.local_times import told_ns
from apps.engine.reading.messages import Conversation, is_message
from apps.engine.reading.recorded import mapping, remark_unread
from apps.engine.reading.run_totals import remark_total
from apps.engine.reading.text_limits import LABEL, NAME, Remarks, clip
from apps.engine.reading.token_counts import whole_number
from apps.engine.reading.transcript import Transcript
from apps.engine.reading.unique_ids import unique_id
from apps.engine.trace import AgentInvocation, OrderSource, Step, Trace

_TOLD_OF_LOG: Final = (
    "task", "task_id", "eval_id", "run_id", "created", "model", "solver",
    "task_args", "tags", "packages",
)  # fmt: skip
_TOLD_OF_SAMPLE: Final = (
    "total_time", "working_time", "limit", "turn_count", "model_usage", "role_usage",
)  # fmt: skip
_LABELS: Final = ("target", "choices", "scores", "metadata")
_NO_EVENTS: Final = (
    "The log holds the messages of this sample but no events, so usage and times are "
    "not recorded."
)
_EARLIER: Final = "Earlier attempts at this sample that ended in an error: {n}."
_Built = tuple[tuple[Step, ...], tuple[AgentInvocation, ...], OrderSource]


class Log:
    """What a log says of all its samples: its header, or what it began with."""

    def __init__(self, header: dict[str, Any]) -> None:
        self.evaluation = mapping(header.get("eval"))
        self.status = header.get("status")
        self.scorers = Scorers(header)


def is_log(value: Any) -> bool:
    """Whether a value is a log or the header of one."""
    evaluation = value.get("eval") if isinstance(value, dict) else None
    return isinstance(evaluation, dict) and "task" in evaluation


def is_sample(value: Any) -> bool:
    """Whether a value is one sample of a log."""
    return (
        isinstance(value, dict) and {"id", "epoch", "input", "target"} <= value.keys()
    )


def trace_of_sample(sample: Any, log: Log) -> Trace:
    """Return the trace of one sample; raise `RefusedRecord` for what is none."""
    if not isinstance(sample, dict) or "id" not in sample:
        raise RefusedRecord("A sample is an object with an id.", "$")
    remarks = Remarks()
    steps, invocations, order = _built(sample, remarks)
    task = clip(log.evaluation.get("task"), LABEL // 2, remarks)
    own_id = clip(sample.get("id"), LABEL // 2 - 1, remarks) or "(unnamed)"
    key = f"{task}/{own_id}" if task else own_id
    epoch = whole_number(sample.get("epoch"))
    retries = sample.get("error_retries")
    if isinstance(retries, list) and retries:
        remarks.add(_EARLIER, len(retries))
    metadata = {
        name: log.evaluation[name]
        for name in _TOLD_OF_LOG
        if log.evaluation.get(name) is not None
    }
    metadata |= {
        name: sample[name] for name in _TOLD_OF_SAMPLE if sample.get(name) is not None
    }
    dataset = mapping(log.evaluation.get("dataset")).get("name")
    if dataset is not None:
        metadata["dataset"] = dataset
    if log.status is not None:
        metadata["status"] = log.status
    return Trace(
        name=clip(key if epoch is None else f"{key}, epoch {epoch}", NAME, remarks)
        or key,
        steps=steps,
        invocations=invocations,
        native_id=unique_id(sample.get("uuid")),
        start_ns=told_ns(sample.get("started_at"), remarks),
        end_ns=told_ns(sample.get("completed_at"), remarks),
        order=order,
        outcome=log.scorers.outcome(sample.get("scores"), remarks),
        task=key,
        trial=epoch,
        metadata=metadata,
        labels={name: sample[name] for name in _LABELS if sample.get(name)},
        notes=remarks.sentences(),
    )


def _built(sample: dict[str, Any], remarks: Remarks) -> _Built:
    texts = Texts(sample, remarks)
    events = sample.get("events")
    if not isinstance(events, list) or not events:
        events = mapping(sample.get("transcript")).get("events")
    if not isinstance(events, list) or not events:
        return _from_messages(sample, texts, remarks)
    made = Transcript(remarks)
    walk = SampleEvents(made, texts, remarks)
    walk.add_all(events)
    if sample.get("error") and not walk.has_error:
        walk.add_error(sample["error"], {"event": "error"})
    remark_unread(remarks, "Events", walk.unread)
    _compare(sample.get("model_usage"), walk.output_tokens, remarks)
    return made.finished(by_time=True)


def _from_messages(sample: dict[str, Any], texts: Texts, remarks: Remarks) -> _Built:
    messages = sample.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RefusedRecord("The sample holds neither events nor messages.", "$.events")
    remarks.add(_NO_EVENTS)
    conversation = Conversation(remarks)
    for index, message in enumerate(messages):
        if not is_message(message):
            raise RefusedRecord("This is not a message.", f"$.messages[{index}]")
        conversation.add(texts.resolved(message))
    return conversation.ordered()


def _compare(usage: Any, output: int, remarks: Remarks) -> None:
    """Remark on totals of the sample that are not the sum of its calls."""
    counts = [
        whole_number(mapping(one).get("output_tokens"))
        for one in mapping(usage).values()
    ]
    known = [count for count in counts if count is not None]
    if known:
        remark_total(remarks, "sample", "output tokens", told=sum(known), found=output)
