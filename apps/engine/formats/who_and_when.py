"""Reader of labelled multi-agent transcripts: Who&When and Magentic-One (AgentRx).

Lists of {role, content} in which the role names the speaker. The labels of Who&When
(mistake_agent, mistake_step, mistake_reason, ground_truth) are kept as labels and
reach no check. Neither usage nor times are recorded.
Facts: https://github.com/mingyin1/Agents_Failure_Attribution.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.messages import ROLES
from apps.engine.reading.recorded import first_text
from apps.engine.reading.text_limits import LABEL, NAME, Remarks, clip
from apps.engine.reading.transcript import Draft, Transcript
from apps.engine.trace import ModelCall, OrderSource, StepKind, Trace

_LABELS: Final = (
    "mistake_agent", "mistake_step", "mistake_reason", "ground_truth", "is_correct",
    "is_corrected", "level",
)  # fmt: skip
_IDS: Final = ("question_ID", "question_id")
_HUMANS: Final = frozenset({"human", "user", "user_proxy"})
_EXECUTORS: Final = frozenset({"computer_terminal", "computerterminal"})
_ASIDE: Final = re.compile(r"\s*\(.*\)\s*$")
_ROLE_AS_NAME: Final = frozenset({"assistant", "user"})
_NO_USAGE: Final = (
    "The transcript names speakers, not calls: every message of an agent is taken for "
    "one model call, and no usage is recorded."
)


class WhoAndWhen:
    """The format `who-and-when`."""

    slug = "who-and-when"
    label = "Multi-agent transcript (Who&When, Magentic-One)"
    version = 1
    description = (
        "Transcripts whose roles name the speaking agents, alone or with the labels of "
        "Who&When, which are kept as labels and shown to no check. Token usage is never "
        "recorded."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with a history of speakers."""
        values = first_values(source)
        first = values[0] if values else None
        if isinstance(first, list) and first and _history_in(first[0]):
            first = first[0]
        return _history_in(first) is not None

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each transcript; `UnreadableTrace` without any."""
        values = first_values(source)
        is_one = bool(values) and _are_speeches(values[0])
        return demand_a_trace(
            read_each(source, _traces, unroll=not is_one),
            nothing="The file holds no transcript.",
        )


def _history_in(value: Any) -> list[Any] | None:
    """Return the speeches of a transcript, else `None`."""
    if isinstance(value, dict):
        history = value.get("history")
        if not isinstance(history, list) or not history:
            return None
        # In a long file the labels stand behind the part that is looked at.
        is_labelled = "mistake_agent" in value or "question_ID" in value
        return history if is_labelled or _are_speeches(history) else None
    return value if _are_speeches(value) else None


def _are_speeches(value: Any) -> bool:
    """Whether a list holds messages of which a role is none that APIs know.

    The last one may be cut off where the head of the file ends.
    """
    speeches = (value[:-1] or value) if isinstance(value, list) else []
    return all(_is_speech(one) for one in speeches) and any(
        one["role"] not in ROLES and _ASIDE.sub("", one["role"]) for one in speeches[1:]
    )


def _is_speech(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and "content" in value
        and "type" not in value
    )


def _traces(record: Record) -> Iterator[Item]:
    value = record.value
    history = _history_in(value)
    if history is None:
        raise RefusedRecord("This is no transcript of speaking agents.", "$")
    facts = value if isinstance(value, dict) else {}
    remarks = Remarks()
    remarks.add(_NO_USAGE)
    transcript = Transcript(remarks)
    for index, speech in enumerate(history):
        if not _is_speech(speech):
            raise RefusedRecord("This is no message of a speaker.", f"$[{index}]")
        _take(transcript, speech)
    steps, invocations, _ = transcript.finished()
    task = first_text(facts, _IDS, LABEL, remarks)
    yield Trace(
        name=task or clip(facts.get("question"), NAME, remarks)
        or f"transcript {record.number}",
        steps=steps,
        invocations=invocations,
        order=OrderSource.FILE,
        task=task,
        metadata={"question": facts["question"]} if "question" in facts else {},
        labels={key: facts[key] for key in _LABELS if key in facts},
        notes=remarks.sentences(),
    )  # fmt: skip


def speaker_of(speech: dict[str, Any]) -> str:
    """Return the speaker: the name, else the role without what stands in brackets."""
    role = speech["role"]
    name = speech.get("name")
    if isinstance(name, str) and name and role in _ROLE_AS_NAME:
        return name
    return _ASIDE.sub("", role) or role


def _take(transcript: Transcript, speech: dict[str, Any]) -> None:
    speaker = speaker_of(speech)
    key = speaker.casefold()
    if key in _HUMANS:
        kind, invocation = StepKind.USER_MESSAGE, 0
    else:
        kind = StepKind.OTHER if key in _EXECUTORS else StepKind.MODEL_CALL
        invocation = transcript.speaker(speaker, key=key)
    transcript.add(
        Draft(
            kind=kind,
            invocation=invocation,
            name=speaker,
            native_kind=speech["role"],
            output=speech.get("content"),
            call=ModelCall() if kind is StepKind.MODEL_CALL else None,
        )
    )
