"""Reader of Google ADK: sessions with events, event logs, and eval sets.

An event that the model wrote is one model call; its author is the agent. An eval set
says what is expected, not what was run: it is read as a conversation without usage,
and each trace of it says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.format import Item, Source
from apps.engine.reading.answers import Answer, Asked, add_answer
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.other_answers import gemini_parts
from apps.engine.reading.recorded import (
    either,
    first_text,
    listed,
    mapping,
    time_range,
    word,
)
from apps.engine.reading.text_limits import IDENTIFIER, LABEL, NAME, Remarks, clip
from apps.engine.reading.transcript import Draft, Invoked, ToolResult, Transcript
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import (
    UNKNOWN_OUTCOME,
    Outcome,
    OutcomeKind,
    StepKind,
    StepStatus,
    Trace,
    Via,
)

_EXPECTED: Final = (
    "An eval set says what is expected of the agent; nothing in it was run, and it "
    "records no usage."
)
# The numbers of ADK's EvalStatus; 3 is "not evaluated".
_VERDICTS: Final = {
    "1": OutcomeKind.PASS, "PASSED": OutcomeKind.PASS, "PASS": OutcomeKind.PASS,
    "2": OutcomeKind.FAIL, "FAILED": OutcomeKind.FAIL, "FAIL": OutcomeKind.FAIL,
}  # fmt: skip
_NO_AUTHOR: Final = "Events without an author, not read: {n}."
_PARTIAL: Final = "Partial events of a stream, which the whole event repeats: {n}."


class GoogleADK:
    """The format `google-adk`."""

    slug = "google-adk"
    label = "Google ADK"
    version = 1
    description = (
        "Sessions and event logs of Google's Agent Development Kit (one model call for "
        "each event of a model, the author is the agent), results of evaluations with "
        "their verdict, eval sets and older test files. Eval sets hold expectations "
        "and no usage."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with a session, an event, an eval set or a test."""
        values = first_values(source)
        first = values[0] if values else None
        if isinstance(first, list):
            first = first[0] if first else None
        return (
            _is_event(first)
            or _events_in(first) is not None
            or _cases_in(first) is not None
            or _results_in(first) is not None
            or _is_turn(first)
        )

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each session or eval case; `UnreadableTrace` without."""
        return demand_a_trace(
            _items(source), nothing="The file holds no session and no eval case."
        )


def _items(source: Source) -> Iterator[Item]:
    taker = _Taker()
    yield from read_each(source, taker, unroll=True)
    yield from taker.traces()


def _is_event(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("author"), str)
        and ("content" in value or "actions" in value)
        and either(value, "invocation_id", "invocationId") is not None
    )


def _events_in(value: Any) -> list[Any] | None:
    for key in ("events", "event_logs", "eventLogs"):
        events = listed(mapping(value).get(key))
        if events and _is_event(events[0]):
            return events
    return None


def _cases_in(value: Any) -> list[Any] | None:
    if either(value, "eval_set_id", "evalSetId") is None:
        return None
    cases = either(value, "eval_cases", "evalCases")
    return cases if isinstance(cases, list) else None


def _results_in(value: Any) -> list[Any] | None:
    """Return the results of an evaluation that was run, else `None`."""
    results = either(value, "eval_case_results", "evalCaseResults")
    return results if isinstance(results, list) else None


def _is_turn(value: Any) -> bool:
    """Whether a value is a turn of an older test file."""
    return isinstance(value, dict) and "query" in value and "expected_tool_use" in value


class _Taker:
    """Takes records apart into sessions and cases."""

    def __init__(self) -> None:
        self._events: dict[str, list[dict[str, Any]]] = {}
        self._turns: list[dict[str, Any]] = []
        self._trials: Counter[str] = Counter()

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        if _is_event(value):
            session = either(value, "session_id", "sessionId") or "events"
            self._events.setdefault(str(session), []).append(value)
        elif _is_turn(value):
            self._turns.append(value)
        elif (events := _events_in(value)) is not None:
            yield _session(events, value, f"session {record.number}")
        elif (results := _results_in(value)) is not None:
            yield from self._evaluated(results)
        elif (cases := _cases_in(value)) is not None:
            for number, case in enumerate(cases, 1):
                yield _case(mapping(case), number)
        else:
            raise RefusedRecord("This is no session, event or eval case.", "$")

    def _evaluated(self, results: list[Any]) -> Iterator[Item]:
        """Yield the run of each result with its verdict; repeats are trials."""
        for result in results:
            name = str(either(result, "eval_id", "evalId") or "case")
            self._trials[name] += 1
            yield _evaluated(mapping(result), name, self._trials[name])

    def traces(self) -> Iterator[Item]:
        """Yield what needed the whole file: loose events and turns."""
        for name, events in self._events.items():
            yield _session(events, {}, name)
        if self._turns:
            made = _Session()
            made.remarks.add(_EXPECTED)
            for turn in self._turns:
                made.take_turn(turn)
            yield made.trace({}, "test")


def _session(events: list[Any], facts: dict[str, Any], name: str) -> Trace:
    made = _Session()
    for event in events:
        made.take_event(mapping(event))
    return made.trace(facts, name)


def _case(case: dict[str, Any], number: int) -> Trace:
    made = _Session()
    made.remarks.add(_EXPECTED)
    for invocation in listed(case.get("conversation")):
        made.take_invocation(mapping(invocation))
    if not made.transcript.drafts:
        raise RefusedRecord("The eval case has no conversation.", "$.conversation")
    name = either(case, "eval_id", "evalId")
    facts = {"eval_id": name} if name else {}
    return made.trace(facts, f"case {number}")


def _evaluated(result: dict[str, Any], name: str, trial: int) -> Trace:
    """Return what was run for an eval case: its session, else its invocations."""
    made = _Session()
    session = mapping(either(result, "session_details", "sessionDetails"))
    for event in listed(session.get("events")):
        made.take_event(mapping(event))
    per_turn = either(
        result, "eval_metric_result_per_invocation", "evalMetricResultPerInvocation"
    )
    for turn in listed(per_turn) if not made.transcript.drafts else ():
        made.take_invocation(
            mapping(either(turn, "actual_invocation", "actualInvocation"))
        )
    status = either(result, "final_eval_status", "finalEvalStatus")
    trace = made.trace({**session, "eval_id": name}, name)
    return msgspec.structs.replace(
        trace,
        trial=trial,
        session=trace.session
        or clip(either(result, "session_id", "sessionId"), IDENTIFIER, made.remarks),
        outcome=UNKNOWN_OUTCOME
        if status is None
        else Outcome(
            kind=_VERDICTS.get(str(status), OutcomeKind.UNKNOWN),
            label=str(status)[:LABEL],
            source="final_eval_status",
        ),
    )


class _Session:
    """One session or eval case while it is being read."""

    def __init__(self) -> None:
        self.remarks = Remarks()
        self.transcript = Transcript(self.remarks)
        self._agents: dict[tuple[str, str], int] = {}
        self._root: str | None = None

    def take_event(self, event: dict[str, Any]) -> None:
        """Add one event: the user's words, a model's answer, or results of tools."""
        if event.get("partial") is True:
            self.remarks.add(_PARTIAL)
            return
        parts = _parts(event.get("content"))
        time = any_time_ns(event.get("timestamp"))
        author = word(event.get("author"))
        if not author:
            self.remarks.add(_NO_AUTHOR)
            return
        invocation = 0 if author == "user" else self._agent(author, event)
        results = [part for part in parts if _response(part)]
        for part in results:
            self.transcript.give(_result(_response(part), time))
        said = [part for part in parts if not _response(part)]
        if author == "user":
            if said:
                self._say(said, time)
        elif said or either(event, "error_code", "errorCode"):
            self._answer(event, said, invocation)

    def _agent(self, author: str, event: dict[str, Any]) -> int:
        """Return the invocation of an agent within one invocation of the runner."""
        key = (str(either(event, "invocation_id", "invocationId")), author)
        if key not in self._agents:
            if not self._agents:
                self._agents[key] = 0
                self.transcript.invocations[0].agent = author
            else:
                self._agents[key] = self.transcript.invoke(
                    Invoked(agent=author, parent=0, via=Via.MANAGED, native_id=key[0])
                )
        return self._agents[key]

    def _answer(
        self, event: dict[str, Any], parts: list[dict[str, Any]], invocation: int
    ) -> None:
        error = either(event, "error_code", "errorCode")
        answer = gemini_parts(parts)
        answer.finish = either(event, "finish_reason", "finishReason")
        answer.model = either(event, "model_version", "modelVersion")
        answer.counts = usage_counts(
            either(event, "usage_metadata", "usageMetadata"), "usage_metadata"
        )
        answer.start_ns = any_time_ns(event.get("timestamp"))
        if error is not None:
            answer.error_type = str(error)
            answer.error_message = either(event, "error_message", "errorMessage")
        draft = add_answer(self.transcript, answer, invocation)
        draft.native_id = event.get("id")

    def take_invocation(self, invocation: dict[str, Any]) -> None:
        """Add one turn of an eval case: what was said, the tools used, the answer."""
        time = any_time_ns(
            either(invocation, "creation_timestamp", "creationTimestamp")
        )
        self._say(_parts(either(invocation, "user_content", "userContent")), time)
        between = either(invocation, "intermediate_data", "intermediateData")
        for held in listed(either(between, "invocation_events", "invocationEvents")):
            self.take_event({"author": "agent", **mapping(held)})
        uses = listed(either(between, "tool_uses", "toolUses"))
        final = _parts(either(invocation, "final_response", "finalResponse"))
        answer = gemini_parts(final)
        answer.start_ns = time
        answer.asked += [
            Asked(use.get("name"), use.get("id"), use.get("args"))
            for use in uses
            if isinstance(use, dict)
        ]
        add_answer(self.transcript, answer)
        for held in listed(either(between, "tool_responses", "toolResponses")):
            self.transcript.give(_result(mapping(held), time))

    def take_turn(self, turn: dict[str, Any]) -> None:
        """Add one turn of an older test file."""
        self._say(turn.get("query"), None)
        answer = Answer(text=turn.get("reference"), role="model")
        for use in listed(turn.get("expected_tool_use")):
            held = mapping(use)
            arguments = held.get("tool_input", held.get("args"))
            answer.asked.append(
                Asked(held.get("tool_name") or held.get("name"), None, arguments)
            )
        add_answer(self.transcript, answer)

    def _say(self, content: Any, time: int | None) -> None:
        self.transcript.add(
            Draft(
                kind=StepKind.USER_MESSAGE,
                native_kind="user",
                start_ns=time,
                output=content,
            )
        )

    def trace(self, facts: dict[str, Any], name: str) -> Trace:
        """Return the trace; `name` is used where nothing names it."""
        remarks = self.remarks
        steps, invocations, order = self.transcript.finished()
        start, end = time_range(steps)
        metadata = {
            key: facts[key] for key in ("app_name", "appName", "user_id", "userId", "state")
            if facts.get(key)
        }  # fmt: skip
        return Trace(
            name=first_text(facts, ("eval_id", "id"), NAME, remarks) or name,
            steps=steps,
            invocations=invocations,
            session=clip(facts.get("id"), IDENTIFIER, remarks),
            start_ns=start,
            end_ns=end,
            order=order,
            task=clip(facts.get("eval_id"), LABEL, remarks),
            metadata=metadata,
            notes=remarks.sentences(),
        )


def _parts(content: Any) -> list[dict[str, Any]]:
    return [
        part for part in listed(mapping(content).get("parts")) if isinstance(part, dict)
    ]


def _response(part: dict[str, Any]) -> dict[str, Any]:
    return mapping(either(part, "function_response", "functionResponse"))


def _result(response: dict[str, Any], time: int | None) -> ToolResult:
    """Return a tool result; ADK writes a failure as {"error": ...}."""
    output = response.get("response")
    error = mapping(output).get("error")
    return ToolResult(
        output=output,
        call_id=response.get("id"),
        status=StepStatus.ERROR if error else StepStatus.UNSET,
        error_message=error if isinstance(error, str) else None,
        end_ns=time,
        native_kind="function_response",
    )
