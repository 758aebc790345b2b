"""What readers do not know is noted or refused, and never lost, doubled or guessed."""

import json

import pytest

from apps.engine.reading.unique_ids import is_unique
from apps.engine.trace import OutcomeKind, StepKind, StepStatus
from tests.formats import agent_samples as agents
from tests.formats import framework_samples as frameworks
from tests.formats import langfuse_files, otlp_files, stream_samples
from tests.formats import test_langsmith as langsmith
from tests.formats import test_session_logs as sessions
from tests.formats.all_samples import FILES
from tests.formats.changed_files import places, read_safely, replaced
from tests.formats.reading import (
    as_json,
    items_of,
    lines,
    messages,
    notes_of,
    rejected_of,
    traces_of,
)
from tests.formats.transcript_parts import calls, one, outputs, tools

HUGE = 10**400


@pytest.mark.parametrize("slug", FILES)
def test_a_whole_number_of_hundreds_of_digits_may_stand_anywhere(slug):
    for data in FILES[slug][:2]:
        try:
            value = json.loads(data)
        except ValueError:
            continue
        for path in places(value):
            read_safely(as_json(replaced(value, path, HUGE)), slug)


def test_a_double_of_hundreds_of_digits_is_not_recorded():
    usage = {"key": "gen_ai.usage.output_tokens", "value": {"doubleValue": HUGE}}
    span = otlp_files.call(1) | {"attributes": [usage]}
    assert len(traces_of(otlp_files.as_json(span))) == 1


def test_all_nested_runs_are_read_however_many_stand_beside_each_other():
    root = langsmith.run(1, None, "chain")
    root["child_runs"] = []
    for number in range(2, 1203):
        child = langsmith.run(number, root, "chain")
        child["child_runs"] = [langsmith.llm(number + 5000, child, 7)]
        root["child_runs"].append(child)
    [trace] = traces_of(as_json([root]), "langsmith")
    assert sum(step.kind is StepKind.MODEL_CALL for step in trace.steps) == 1201


def test_an_id_that_is_not_random_makes_no_two_traces_one():
    for own_id in ("trace-1", "1", "0" * 31 + "g"):
        [trace] = traces_of(
            otlp_files.as_json(otlp_files.call(1) | {"traceId": own_id})
        )
        assert trace.native_id is None
    [trace] = traces_of(otlp_files.as_json(otlp_files.call(1)))
    assert trace.native_id == otlp_files.TRACE


@pytest.mark.parametrize(
    ("own_id", "expected"),
    [
        ("0e0f0a0b-1c1d-4e1f-8a8b-2c2d2e2f3a3b", True),
        ("trace_" + "ab" * 16, True),
        ("00000000-0000-0000-0000-000000000000", False),
        ("0" * 32, False),
        ("CXc85b4rqinB7s5J52TRYb", True),
        ("customersupportbenchma", False),
        ("RefundTaskWithTwoAgent", False),
        ("session-1", False),
        ("", False),
    ],
)
def test_only_random_ids_are_unique_in_the_world(own_id, expected):
    assert is_unique(own_id) is expected


def test_an_event_of_a_message_whose_beginning_is_missing_is_refused():
    events = stream_samples.ANTHROPIC_STREAM
    first = next(n for n, one in enumerate(events) if one["type"] == "message_start")
    items = items_of(lines(events[first + 1], *events), "anthropic-messages")
    [rejected] = rejected_of(items)
    assert "message_start" in rejected.reason


def test_usage_that_comes_after_the_end_of_a_run_is_not_a_call_of_its_own():
    end = sessions.CLAW[-1]
    again = sessions.claw("llm.usage", 90, inputTokens=9, outputTokens=7)
    new = [
        sessions.claw("agent.start", 91, prompt="and now?"),
        sessions.claw("llm.usage", 92, inputTokens=9, outputTokens=5),
    ]
    assert end["type"] == "agent.end"
    [before] = traces_of(lines(end))
    [after] = traces_of(lines(end, again, *new))
    assert outputs(after) == [*outputs(before), 5]
    assert any("not counted again: 1." in note for note in after.notes)


def test_messages_and_events_of_openclaw_that_are_not_known_are_noted():
    end = sessions.CLAW[-1]
    strange = {"role": "oracle", "content": "hm"}
    end = end | {"messages": [*end["messages"], strange]}
    items = items_of(lines(end, sessions.claw("agent.nap", 91)))
    [trace] = [item for item in items if type(item).__name__ == "Trace"]
    assert "Messages of unknown roles, not read: 1." in trace.notes
    note = notes_of(items)["openclaw_events_not_read"]
    assert "agent.nap" in note.sentence


def test_an_event_of_adk_without_an_author_names_no_agent():
    session = frameworks.ADK_SESSION
    events = [*session["events"], {"content": {"parts": [{"text": "?"}]}}, "junk"]
    trace = one(session | {"events": events})
    assert "Events without an author, not read: 2." in trace.notes
    assert "None" not in {held.agent for held in trace.invocations}


def test_a_result_of_adk_without_a_status_has_no_outcome():
    results = json.loads(as_json(stream_samples.ADK_RESULTS))
    for result in results["eval_case_results"]:
        for key in ("final_eval_status", "finalEvalStatus"):
            result.pop(key, None)
    for trace in traces_of(as_json(results)):
        assert trace.outcome.kind is OutcomeKind.UNKNOWN
        assert trace.outcome.label is None


def test_words_of_gemini_beside_another_part_are_both_shown():
    image = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    content = {"role": "model", "parts": [{"text": "look"}, image]}
    answer = {"candidates": [{"content": content, "finishReason": "STOP"}]}
    [step] = one([answer]).steps
    assert step.body.output == [{"text": "look"}, image]


def test_a_result_inside_a_call_of_gemini_cli_belongs_to_that_call():
    first = {"name": "a", "args": {}, "status": "validating"}
    second = {"name": "b", "args": {}, "status": "success", "resultDisplay": "done"}
    message = {
        "id": "m9",
        "type": "gemini",
        "content": "x",
        "toolCalls": [first, second],
    }
    trace = one(sessions.GEMINI | {"messages": [message]})
    assert [(tool.name, tool.body.output) for tool in tools(trace)] == [
        ("a", None),
        ("b", "done"),
    ]
    assert [tool.status for tool in tools(trace)] == [StepStatus.UNSET, StepStatus.OK]


def test_parts_of_a_vercel_stream_of_unknown_kinds_are_noted():
    stream = [*stream_samples.VERCEL_5, {"type": "dream", "text": "?"}]
    note = notes_of(items_of(as_json(stream)))["stream_parts_not_read"]
    assert (note.count, "dream" in note.sentence) == (1, True)


def test_events_of_crewai_that_make_no_step_are_counted():
    trace = one([*agents.CREW, agents.crew_event(99, "memory_dreamt")])
    assert any("memory_dreamt" in note for note in trace.notes)


def test_parts_of_pydantic_ai_of_unknown_kinds_are_counted():
    history = json.loads(as_json(frameworks.PYDANTIC))
    answer = next(held for held in history if held["kind"] == "response")
    answer["parts"].append({"part_kind": "file", "content": {"data": "AA=="}})
    assert "Parts of kinds that are not read: 1 (file)." in one(history).notes


def test_entries_of_a_langgraph_state_that_are_no_messages_are_counted():
    update = {"agent": {"messages": [frameworks.LC_MESSAGES[0], {"odd": 1}]}}
    assert any("are no messages" in note for note in one([update]).notes)


def test_files_in_an_answer_of_opencode_are_counted():
    session = json.loads(as_json(sessions.OPENCODE))
    answer = next(m for m in session["messages"] if m["info"]["role"] == "assistant")
    answer["parts"] += [{"type": "file", "url": "x"}, "junk"]
    [note] = [note for note in one(session).notes if "not read" in note]
    assert "file" in note
    assert "part that is no object" in note


def test_expected_answers_in_metadata_are_labels():
    about = {"ground_truth": "42", "expectedOutput": "x", "model": "m"}
    [trace] = traces_of(as_json({"messages": messages("a", "b"), "metadata": about}))
    assert trace.labels == {"ground_truth": "42", "expectedOutput": "x"}
    assert trace.metadata == {"model": "m"}
    row = langfuse_files.download(langfuse_files.billing(), metadata=about)
    [trace] = traces_of(as_json(row))
    assert trace.labels["ground_truth"] == "42"
    assert not {"ground_truth", "expectedOutput"} & trace.metadata.keys()


def test_a_duration_beyond_all_time_gives_no_end():
    for duration in ("P99999999999999999D", 9 * 10**18):
        span = {"span_id": "ab" * 8, "trace_id": "ab" * 16, "child_spans": [],
                "span_name": "x", "timestamp": "2026-01-01T10:00:00Z",
                "duration": duration}  # fmt: skip
        [trace] = traces_of(as_json({"trace_id": "ab" * 16, "spans": [span]}))
        assert trace.steps[0].end_ns is None


def test_one_repeated_key_among_very_many_is_found_in_one_pass():
    keys = ", ".join(f'"k{n}": 1' for n in range(200_000))
    chat = json.dumps(messages("a", "b"))
    data = f'{{"messages": {chat}, "odd": {{{keys}, "k199999": 2}}}}'.encode()
    assert notes_of(items_of(data))["duplicate_keys"].count == 1


def test_a_turn_of_codex_without_its_input_says_so():
    turn = {"type": "turn.completed", "usage": {"output_tokens": 5}}
    said = {"type": "item.completed", "item": {"id": "1", "type": "agent_message",
                                               "text": "x"}}  # fmt: skip
    trace = one([{"type": "thread.started", "thread_id": "t"}, said, turn])
    assert any(
        "an unknown number of input and 5 output" in note for note in trace.notes
    )
    assert not any("None" in note for note in trace.notes)


def test_executions_in_a_log_of_autogen_go_to_the_calls_that_asked():
    log = json.loads(as_json(agents.AUTOGEN_LOG))
    trace = one(log)
    assert calls(trace)
    assert all(tool.body.output is not None for tool in tools(trace))
