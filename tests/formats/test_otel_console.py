"""Spans as SDKs print them, between whatever else a program prints."""

from __future__ import annotations

import json

import pytest

from apps.engine.sequences import serial_sequences
from apps.engine.trace import StepKind, StepStatus
from tests.formats import index
from tests.formats.reading import counts_of, items_of, rejected_of, slug_of, traces_of

TRACE = "0x0123456789abcdef0123456789abcdef"


def printed(number, parent=None, name="chat m", **attributes):
    """A span as Python's console exporter prints it; `__` in a name is a dot."""
    return {
        "name": name,
        "context": {
            "trace_id": TRACE,
            "span_id": f"0x{number:016x}",
            "trace_state": "[]",
        },
        "kind": "SpanKind.INTERNAL",
        "parent_id": f"0x{parent:016x}" if parent else None,
        "start_time": f"2026-11-30T03:00:{number:02}.000001Z",
        "end_time": f"2026-11-30T03:00:{number if parent else number + 40:02}.5Z",
        "status": {"status_code": "UNSET"},
        "attributes": {
            key.replace("__", "."): item for key, item in attributes.items()
        },
        "events": [],
        "links": [],
        "resource": {"attributes": {"service.name": "support"}, "schema_url": ""},
    }


def call(number, output):
    return printed(number, 1, gen_ai__operation__name="chat",
                   gen_ai__request__model="m", gen_ai__usage__output_tokens=output)  # fmt: skip


FAILED = printed(3, 1, "execute_tool look", gen_ai__operation__name="execute_tool",
                 gen_ai__tool__name="look") | {
    "status": {"status_code": "ERROR", "description": "KeyError: 'A'"},
    "events": [{"name": "exception", "timestamp": "2026-11-30T03:00:03.1Z",
                "attributes": {"exception.type": "KeyError"}}],
}  # fmt: skip
SPANS = [
    call(2, 30),
    FAILED,
    call(4, 20),
    printed(1, None, "invoke_agent billing", gen_ai__operation__name="invoke_agent",
            gen_ai__agent__name="billing"),
]  # fmt: skip


def console(*spans):
    return "".join(json.dumps(span, indent=4) + "\n" for span in spans).encode()


def check(trace):
    assert trace.native_id == TRACE[2:]
    [sequence] = serial_sequences(trace)
    assert (sequence.agent, sequence.outputs) == ("billing", (30, 20))
    [tool] = [step for step in trace.steps if step.kind is StepKind.TOOL_CALL]
    assert (tool.name, tool.status) == ("look", StepStatus.ERROR)
    assert (tool.error_type, tool.error_message) == ("KeyError", "KeyError: 'A'")
    assert trace.metadata["resource"] == {"service.name": "support"}


def test_it_reads_objects_that_follow_one_another():
    [trace] = traces_of(console(*SPANS))
    check(trace)
    assert trace.start_ns % 10**9 == 1_000


def test_it_reads_the_same_spans_as_a_list_and_as_lines():
    [first] = traces_of(console(*SPANS))
    assert traces_of(json.dumps(SPANS).encode()) == [first]
    in_lines = "".join(json.dumps(span) + "\n" for span in SPANS).encode()
    assert traces_of(in_lines) == [first]


def test_it_lists_what_the_program_printed_between_the_spans():
    data = b"starting up\n" + console(*SPANS[:2]) + b"INFO done\n" + console(*SPANS[2:])
    items = items_of(data)
    [trace] = traces_of(data)
    check(trace)
    assert [one.excerpt.split("\n")[0] for one in rejected_of(items)] == [
        "starting up",
        "INFO done",
    ]


def test_it_reads_older_resources_and_parents_that_are_objects():
    older = [dict(span) for span in SPANS]
    for span in older:
        span["resource"] = {"service.name": "support"}
        span["parent"] = span.pop("parent_id") and {
            "span_id": span["context"]["span_id"]
        }
    older[0]["parent"] = older[1]["parent"] = older[2]["parent"] = {
        "span_id": SPANS[3]["context"]["span_id"]
    }
    [trace] = traces_of(console(*older))
    check(trace)


def typed(value):
    kind = "INT64" if isinstance(value, int) else "STRING"
    return {"Type": kind, "Value": value}


def go_span(span):
    ids = span["context"]
    return {
        "Name": span["name"],
        "SpanContext": {"TraceID": ids["trace_id"][2:], "SpanID": ids["span_id"][2:]},
        "Parent": {
            "TraceID": "0" * 32,
            "SpanID": (span["parent_id"] or "0x" + "0" * 16)[2:],
        },
        "SpanKind": 1,
        "StartTime": span["start_time"],
        "EndTime": span["end_time"],
        "Attributes": [
            {"Key": key, "Value": typed(item)}
            for key, item in span["attributes"].items()
        ],
        "Events": [
            {"Name": event["name"], "Time": event["timestamp"],
             "Attributes": [{"Key": "exception.type", "Value": typed("KeyError")}]}
            for event in span["events"]
        ],
        "Status": {
            "Code": span["status"]["status_code"].capitalize(),
            "Description": span["status"].get("description", ""),
        },
        "Resource": [{"Key": "service.name", "Value": typed("support")}],
        "InstrumentationScope": {"Name": "x"},
    }  # fmt: skip


def test_it_reads_what_go_prints_as_what_python_prints():
    [trace] = traces_of(console(*map(go_span, SPANS)))
    check(trace)


@pytest.mark.parametrize(
    "data",
    [
        console(*SPANS),
        b"hello\n" + console(*SPANS),
        json.dumps(SPANS).encode(),
        console(go_span(SPANS[0])),
    ],
)
def test_it_recognises_printed_spans(data):
    assert slug_of(data) == "otel-console"


def test_it_rejects_a_span_without_ids_and_reads_the_others():
    broken = call(5, 1)
    broken["context"]["trace_id"] = "0x" + "0" * 32
    items = items_of(console(broken, *SPANS))
    [rejected] = rejected_of(items)
    assert rejected.reason == "The span has no trace id or no span id."


@pytest.mark.parametrize("row", index.rows("otel_console_json"))
def test_it_finds_the_counts_of_the_index(row):
    traces = traces_of((index.DATA / row["path"]).read_bytes())
    assert counts_of(traces) == index.expected(row)


WHOLE = (112, 100, 86, 78, 70, 43)
SILENT = (None,) * 6


@pytest.mark.parametrize(
    ("run", "sequences"),
    [
        ("openinference_openai_agents__chat_handoff",
         [("Triage Agent", WHOLE[:1]), ("Billing Agent", WHOLE[1:])]),
        ("openinference_openai_agents__chat_no_usage",
         [("Triage Agent", SILENT[:1]), ("Billing Agent", SILENT[1:])]),
        ("pydantic_ai__chat_length",
         [("triage_agent", WHOLE), *[("billing_agent", WHOLE)] * 5]),
        ("traceloop__no_usage", [("billing_agent", SILENT)]),
        ("traceloop__normal_3runs", [("billing_agent", WHOLE)] * 3),
        ("traceloop_old033__no_usage", [("billing_agent", SILENT)]),
    ],
)  # fmt: skip
def test_it_gives_each_call_to_the_agent_that_made_it(run, sequences, shared_data):
    data = (shared_data / f"otel_console_json/{run}.console.json").read_bytes()
    found = [
        (one.agent, one.outputs)
        for trace in traces_of(data)
        for one in serial_sequences(trace)
    ]
    assert found == sequences


def test_it_reads_a_run_as_its_otlp_export_is_read(shared_data):
    """The same run in two encodings: identical steps, usage and sequences."""
    name = "openinference_smolagents__no_usage"
    printed_run = shared_data / f"otel_console_json/{name}.console.json"
    exported = shared_data / f"otlp_json/{name}.otlp.json"
    [first] = traces_of(printed_run.read_bytes())
    [second] = traces_of(exported.read_bytes())
    assert counts_of([first]) == counts_of([second])
    assert [step.kind for step in first.steps] == [step.kind for step in second.steps]
