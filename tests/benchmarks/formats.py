"""Reading each format, beside the bare parse of the same bytes, in one run.

For each format a file is made (no shared file takes part). The reader and the bare
parsers take turns; quote the ratios, the absolute figures drift with the machine. What
the reader does beyond the parse: it finds the format, joins spans or messages into
traces, reads usage, times and agents, and makes bodies.
"""

from __future__ import annotations

import gc
import importlib.util
import io
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)

from apps.engine.format import Opened
from apps.engine.formats import FORMATS, read_file
from apps.engine.trace import StepKind, Trace
from tests.benchmarks import agent_files, message_files, session_files, span_files
from tests.benchmarks.runs import Run, made_runs

MB = 1000 * 1000
RUNS = 150
ROUNDS = 5
Parser = Callable[[bytes], object]


@dataclass(frozen=True)
class Made:
    """How a format's file is made: by what, and whether it is lines of JSON."""

    slug: str
    write: Callable[[list[Run]], bytes]
    is_lines: bool = False


FILES = (
    Made("evalsite-jsonl", span_files.evalsite_jsonl, is_lines=True),
    Made("otlp-json", span_files.otlp_json, is_lines=True),
    Made("otlp-protobuf", span_files.otlp_protobuf),
    Made("otel-console", span_files.otel_console),
    Made("phoenix-spans", span_files.phoenix, is_lines=True),
    Made("phoenix-parquet", span_files.phoenix_parquet),
    Made("langfuse", span_files.langfuse, is_lines=True),
    Made("langsmith", span_files.langsmith, is_lines=True),
    Made("mlflow", span_files.mlflow, is_lines=True),
    Made("openai-agents", span_files.openai_agents, is_lines=True),
    Made("openai-chat", message_files.openai_chat, is_lines=True),
    Made("claude-code", message_files.claude_code, is_lines=True),
    Made("codex", message_files.codex, is_lines=True),
    Made("langchain-messages", message_files.langchain),
    Made("pydantic-ai-messages", message_files.pydantic_ai),
    Made("anthropic-messages", message_files.anthropic),
    Made("openai-responses", message_files.openai_responses),
    Made("request-log", message_files.request_log, is_lines=True),
    Made("tau-bench", message_files.tau_bench),
    Made("inspect-log", message_files.inspect_log),
    Made("atif", message_files.atif),
    Made("who-and-when", message_files.who_and_when),
    Made("claude-code-stream", agent_files.claude_stream, is_lines=True),
    Made("swe-agent", agent_files.swe_agent),
    Made("mini-swe-agent", agent_files.mini_swe_agent),
    Made("autogen", agent_files.autogen),
    Made("crewai", agent_files.crewai, is_lines=True),
    Made("smolagents-memory", agent_files.smolagents),
    Made("vercel-ai", agent_files.vercel_ai),
    Made("google-adk", agent_files.google_adk),
    Made("tau2", agent_files.tau2),
    Made("openhands", agent_files.openhands),
    Made("gptme", agent_files.gptme, is_lines=True),
    Made("mistral-vibe", agent_files.mistral_vibe, is_lines=True),
    Made("opik", agent_files.opik, is_lines=True),
    Made("iflow", session_files.iflow, is_lines=True),
    Made("codex-exec", session_files.codex_exec, is_lines=True),
    Made("pi", session_files.pi, is_lines=True),
    Made("openclaw-telemetry", session_files.openclaw, is_lines=True),
    Made("grok-build", session_files.grok_build, is_lines=True),
    Made("gemini-cli", session_files.gemini_cli),
    Made("opencode", session_files.opencode),
    Made("deepeval", session_files.deepeval, is_lines=True),
    Made("any-agent", session_files.any_agent, is_lines=True),
    Made("trail", session_files.trail, is_lines=True),
    Made("trulens", session_files.trulens, is_lines=True),
)


def each_line(parse: Parser) -> Parser:
    """A parser of JSON lines that keeps nothing of the line before."""

    def lines(data: bytes) -> None:
        for line in data.splitlines():
            parse(line)

    return lines


def each_printed(parse: Parser) -> Parser:
    """A parser of objects that are printed one after the other with an indent."""

    def objects(data: bytes) -> None:
        for one in data.split(b"\n}\n"):
            parse(one if one.endswith(b"\n}") else one + b"\n}")

    return objects


def rows_of_parquet(data: bytes) -> object:
    """The rows of a Parquet file as Python values."""
    parquet = importlib.import_module("pyarrow.parquet")
    return parquet.read_table(io.BytesIO(data)).to_pylist()


def bare_parsers(made: Made) -> dict[str, Parser]:
    """What parses the same bytes and does nothing else."""
    if made.slug == "otlp-protobuf":
        return {"protobuf": ExportTraceServiceRequest.FromString}
    if made.slug == "phoenix-parquet":
        return {"pyarrow": rows_of_parquet}
    spread: Callable[[Parser], Parser] = lambda parse: parse  # noqa: E731
    if made.is_lines:
        spread = each_line
    elif made.slug == "otel-console":
        spread = each_printed
    return {"orjson": spread(orjson.loads), "msgspec": spread(msgspec.json.decode)}


def read(data: bytes) -> None:
    """Read a file as the worker does, and keep nothing."""
    for _ in read_file(io.BytesIO(data)):
        pass


def check(made: Made, data: bytes) -> int:
    """The number of steps that are found; every made call has to be among them."""
    items = list(read_file(io.BytesIO(data)))
    opened = {item.format for item in items if isinstance(item, Opened)}
    assert opened == {made.slug}, opened
    steps = [step for one in items if isinstance(one, Trace) for step in one.steps]
    calls = sum(step.kind is StepKind.MODEL_CALL for step in steps)
    expected = RUNS * (4 if made.slug == "request-log" else 12)
    assert calls == expected, f"{made.slug}: {calls} calls of {expected}"
    return len(steps)


def seconds(parse: Parser, data: bytes) -> float:
    """CPU seconds of one parse."""
    gc.collect()
    began = time.process_time()
    parse(data)
    return time.process_time() - began


def compare(made: Made, runs: list[Run]) -> None:
    """Measure the reader and the bare parsers in turn and print one line."""
    data = made.write(runs)
    steps = check(made, data)
    bare = bare_parsers(made)
    ours: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name in bare}
    for _ in range(ROUNDS):
        ours.append(seconds(read, data))
        for name, parse in bare.items():
            theirs[name].append(seconds(parse, data))
    usual = statistics.median(ours)
    beside = "  ".join(
        f"{name} {len(data) / MB / statistics.median(taken):5.0f} MB/s, "
        f"ratio {statistics.median(a / b for a, b in zip(ours, taken, strict=True)):4.1f}"
        for name, taken in theirs.items()
    )
    print(
        f"{made.slug:<21} {len(data) / MB:4.1f} MB {steps:>5} steps "
        f"{len(data) / MB / usual:6.1f} MB/s  {usual * 1e6 / steps:6.2f} "
        f"CPU ms per 1,000 steps  {beside}"
    )


def main() -> None:
    """Print a line for each format, and name those that cannot be measured here."""
    # As in the worker: readers make many objects and no cycles.
    gc.set_threshold(50_000, 20, 100)
    runs = made_runs(RUNS)
    has_arrow = importlib.util.find_spec("pyarrow") is not None
    files = [one for one in FILES if has_arrow or one.slug != "phoenix-parquet"]
    for made in files:
        compare(made, runs)
    measured = {made.slug for made in files}
    others = [one.slug for one in FORMATS if one.slug not in measured]
    if others:
        print(
            f"Not measured, for want of a made file or its extra: {', '.join(others)}."
        )


if __name__ == "__main__":
    sys.exit(main())
