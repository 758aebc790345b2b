"""The made runs as spans, in the encodings of the platforms that keep spans."""

from __future__ import annotations

import base64
import importlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apps.engine.formats import read_file
from apps.engine.formats.evalsite_writer import dump
from apps.engine.trace import Trace
from tests.benchmarks.runs import SECOND, Run, Turn, as_lines, iso
from tests.formats.otlp_files import any_value, as_protobuf

TURN_NS = SECOND


@dataclass(frozen=True)
class Span:
    """One span of a run: its root, a model call or a tool call."""

    run: Run
    kind: str
    number: int
    turn: Turn | None = None

    @property
    def trace_id(self) -> str:
        return f"{self.run.number + 1:032x}"

    @property
    def span_id(self) -> str:
        return f"{self.run.number * 1000 + self.number + 1:016x}"

    @property
    def parent_id(self) -> str | None:
        return f"{self.run.number * 1000 + 1:016x}" if self.turn else None

    @property
    def name(self) -> str:
        return (
            self.turn.tool if self.turn and self.kind == "TOOL" else self.kind.lower()
        )

    @property
    def start_ns(self) -> int:
        turn = self.turn or self.run.turns[0]
        return turn.at_ns + (TURN_NS if self.kind == "TOOL" else 0)

    @property
    def end_ns(self) -> int:
        return (
            self.start_ns + TURN_NS - 1
            if self.turn
            else self.run.turns[-1].at_ns + 2 * TURN_NS
        )

    @property
    def said(self) -> list[dict[str, str]]:
        """The messages sent to the model, shortened to the first and the question."""
        return [
            {"role": "system", "content": self.run.prompt},
            {"role": "user", "content": self.run.question},
        ]


def spans_of(runs: list[Run]) -> Iterator[Span]:
    """All spans in the order in which they ended."""
    for run in runs:
        for turn in run.turns:
            yield Span(run, "LLM", 1 + turn.number * 2, turn)
            yield Span(run, "TOOL", 2 + turn.number * 2, turn)
        yield Span(run, "AGENT", 0)


def otlp_values(span: Span) -> dict[str, Any]:
    """The attributes of a span by OpenTelemetry's GenAI names."""
    turn = span.turn
    if turn is None:
        return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
    if span.kind == "TOOL":
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": turn.tool,
            "gen_ai.tool.call.id": turn.call_id,
            "gen_ai.tool.call.arguments": turn.arguments,
            "gen_ai.tool.call.result": turn.result,
        }
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m-1",
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": turn.output_tokens,
        "gen_ai.input.messages": json.dumps(span.said),
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "content": turn.text}]
        ),
    }


def _otlp(span: Span) -> dict[str, Any]:
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_id or "",
        "name": span.name,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": [
            {"key": key, "value": any_value(value)}
            for key, value in otlp_values(span).items()
        ],
    }


def otlp_json(runs: list[Run]) -> bytes:
    """Requests of one run each, one a line."""
    return as_lines(
        [
            {
                "resourceSpans": [
                    {"scopeSpans": [{"spans": [_otlp(s) for s in spans_of([run])]}]}
                ]
            }
            for run in runs
        ]
    )


def otlp_protobuf(runs: list[Run]) -> bytes:
    """One request with all spans."""
    return as_protobuf(*(_otlp(span) for span in spans_of(runs)))


def otel_console(runs: list[Run]) -> bytes:
    """Spans as the console exporter prints them, one object after the other."""
    return b"\n".join(
        json.dumps(
            {
                "name": span.name,
                "context": {
                    "trace_id": f"0x{span.trace_id}",
                    "span_id": f"0x{span.span_id}",
                    "trace_state": "[]",
                },
                "kind": "SpanKind.INTERNAL",
                "parent_id": f"0x{span.parent_id}" if span.parent_id else None,
                "start_time": iso(span.start_ns),
                "end_time": iso(span.end_ns),
                "status": {"status_code": "OK"},
                "attributes": otlp_values(span),
                "events": [],
                "links": [],
                "resource": {"attributes": {"service.name": "desk"}, "schema_url": ""},
            },
            indent=4,
        ).encode()
        for span in spans_of(runs)
    )


def _openinference(span: Span) -> dict[str, Any]:
    turn = span.turn
    if turn is None:
        return {"agent.name": "desk"}
    if span.kind == "TOOL":
        return {
            "tool.name": turn.tool,
            "tool_call.id": turn.call_id,
            "input.value": turn.arguments,
            "output.value": turn.result,
        }
    answer = {"message.role": "assistant", "message.content": turn.text}
    return {
        "llm.model_name": "m-1",
        "llm.token_count.prompt": 900.0,
        "llm.token_count.completion": float(turn.output_tokens),
        "llm.input_messages": [
            {"message.role": one["role"], "message.content": one["content"]}
            for one in span.said
        ],
        "llm.output_messages": [answer],
    }


def phoenix(runs: list[Run]) -> bytes:
    """Rows of Phoenix's data frame, one a line."""
    return as_lines([_phoenix_row(span) for span in spans_of(runs)])


def phoenix_parquet(runs: list[Run]) -> bytes:
    """The same rows in a Parquet file; lists are JSON texts, as Arrow wants one type."""
    arrow = importlib.import_module("pyarrow")
    rows = [
        {
            key: json.dumps(value) if isinstance(value, list) else value
            for key, value in _phoenix_row(span).items()
        }
        for span in spans_of(runs)
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    whole = [{name: row.get(name) for name in names} for row in rows]
    file = io.BytesIO()
    table = arrow.Table.from_pylist(whole)
    importlib.import_module("pyarrow.parquet").write_table(table, file)
    return file.getvalue()


def _phoenix_row(span: Span) -> dict[str, Any]:
    return {
        "name": span.name,
        "span_kind": span.kind,
        "parent_id": span.parent_id,
        "start_time": iso(span.start_ns),
        "end_time": iso(span.end_ns),
        "status_code": "OK",
        "status_message": "",
        "events": [],
        "context.span_id": span.span_id,
        "context.trace_id": span.trace_id,
        **{f"attributes.{key}": value for key, value in _openinference(span).items()},
    }


def langfuse(runs: list[Run]) -> bytes:
    """Observations of a batch export, one a line."""
    kinds = {"LLM": "GENERATION", "TOOL": "TOOL", "AGENT": "AGENT"}
    return as_lines([_observation(span, kinds[span.kind]) for span in spans_of(runs)])


def _observation(span: Span, kind: str) -> dict[str, Any]:
    turn = span.turn
    tokens = turn.output_tokens if turn and kind == "GENERATION" else 0
    given: Any = span.said if kind == "GENERATION" else turn and turn.arguments
    said = turn and (turn.text if kind == "GENERATION" else turn.result)
    return {
        "id": span.span_id,
        "traceId": span.trace_id,
        "type": kind,
        "name": span.name,
        "parentObservationId": span.parent_id,
        "startTime": iso(span.start_ns),
        "endTime": iso(span.end_ns),
        "level": "DEFAULT",
        "statusMessage": None,
        "input": given,
        "output": said,
        "metadata": "{}",
        "model": "m-1" if tokens else None,
        "usageDetails": {"input": 900, "output": tokens, "total": 900 + tokens}
        if tokens
        else {},
        "inputUsage": 900 if tokens else 0,
        "outputUsage": tokens,
        "totalUsage": 900 + tokens if tokens else 0,
    }


def langsmith(runs: list[Run]) -> bytes:
    """Runs as the client exports them, one a line."""
    return as_lines([_langsmith_run(span) for span in spans_of(runs)])


def _langsmith_run(span: Span) -> dict[str, Any]:
    turn = span.turn
    root = f"00000000-0000-4000-8000-{span.run.number * 1000:012x}"
    own = f"00000000-0000-4000-8000-{span.run.number * 1000 + span.number:012x}"
    order = f"20261130T000000000000Z{root}"
    made: dict[str, Any] = {
        "id": own,
        "trace_id": root,
        "parent_run_id": root if turn else None,
        "dotted_order": f"{order}.20261130T000001000000Z{own}" if turn else order,
        "name": span.name,
        "run_type": {"LLM": "llm", "TOOL": "tool", "AGENT": "chain"}[span.kind],
        "start_time": iso(span.start_ns),
        "end_time": iso(span.end_ns),
        "extra": {"metadata": {"lc_agent_name": "desk", "ls_model_name": "m-1"}},
        "error": None,
        "inputs": {"messages": span.said},
        "outputs": {"output": turn.result if turn else None},
    }
    if turn and span.kind == "LLM":
        message = {
            "type": "ai",
            "content": turn.text,
            "usage_metadata": {
                "input_tokens": 900,
                "output_tokens": turn.output_tokens,
            },
        }
        made["outputs"] = {"generations": [[{"text": turn.text, "message": message}]]}
    elif turn:
        made["inputs"] = {"input": turn.arguments}
    return made


def _base64(hex_id: str) -> str:
    return base64.b64encode(bytes.fromhex(hex_id)).decode()


def mlflow(runs: list[Run]) -> bytes:
    """Traces as MLflow's REST interface gives them, one a line."""
    return as_lines([_mlflow_trace(run) for run in runs])


def _mlflow_trace(run: Run) -> dict[str, Any]:
    spans = list(spans_of([run]))
    own_id = f"tr-{spans[0].trace_id}"
    return {
        "info": {
            "trace_id": own_id,
            "trace_location": {"type": "MLFLOW_EXPERIMENT"},
            "request_time": iso(run.turns[0].at_ns),
            "state": "OK",
            "trace_metadata": {"mlflow.trace_schema.version": "3"},
            "tags": {"mlflow.traceName": "desk"},
        },
        "data": {"spans": [_mlflow_span(span, own_id) for span in spans]},
    }


def _mlflow_span(span: Span, own_id: str) -> dict[str, Any]:
    turn = span.turn
    values: dict[str, Any] = {
        "mlflow.traceRequestId": own_id,
        "mlflow.spanType": {"LLM": "CHAT_MODEL"}.get(span.kind, span.kind),
    }
    if turn and span.kind == "LLM":
        values["mlflow.spanInputs"] = {"messages": span.said}
        values["mlflow.spanOutputs"] = {"role": "assistant", "content": turn.text}
        values["mlflow.chat.tokenUsage"] = {
            "input_tokens": 900,
            "output_tokens": turn.output_tokens,
        }
    elif turn:
        values["mlflow.spanInputs"] = json.loads(turn.arguments)
        values["mlflow.spanOutputs"] = turn.result
    return {
        "trace_id": _base64(span.trace_id),
        "span_id": _base64(span.span_id),
        "parent_span_id": span.parent_id and _base64(span.parent_id),
        "name": span.name,
        "start_time_unix_nano": span.start_ns,
        "end_time_unix_nano": span.end_ns,
        "events": [],
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": {key: json.dumps(value) for key, value in values.items()},
    }


def openai_agents(runs: list[Run]) -> bytes:
    """Traces and spans as the SDK's exporter sends them, one a line."""
    values: list[object] = []
    for run in runs:
        own_id = f"trace_{run.number + 1:032x}"
        values.append({"object": "trace", "id": own_id, "workflow_name": "desk"})
        values += [_agents_span(span, own_id) for span in spans_of([run])]
    return as_lines(values)


def _agents_span(span: Span, own_id: str) -> dict[str, Any]:
    turn = span.turn
    data: dict[str, Any] = {"type": "agent", "name": "desk", "tools": []}
    if turn and span.kind == "TOOL":
        data = {
            "type": "function",
            "name": turn.tool,
            "input": turn.arguments,
            "output": turn.result,
        }
    elif turn:
        data = {
            "type": "generation",
            "model": "m-1",
            "input": span.said,
            "output": [{"role": "assistant", "content": turn.text}],
            "usage": {"input_tokens": 900, "output_tokens": turn.output_tokens},
        }
    return {
        "object": "trace.span",
        "id": f"span_{span.span_id}",
        "trace_id": own_id,
        "parent_id": span.parent_id and f"span_{span.parent_id}",
        "started_at": iso(span.start_ns),
        "ended_at": iso(span.end_ns),
        "span_data": data,
        "error": None,
    }


def evalsite_jsonl(runs: list[Run]) -> bytes:
    """The traces of these runs in Evalsite's own lines."""
    items = read_file(io.BytesIO(otlp_json(runs)))
    return b"".join(dump(item) for item in items if isinstance(item, Trace))
