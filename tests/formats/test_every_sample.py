"""Every real file, whole, cut off and shuffled: nothing crashes, nothing is invented."""

from __future__ import annotations

import csv
import io
import json
import random
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest

from apps.engine.format import Item, Opened, UnreadableTrace
from apps.engine.formats import read_file
from apps.engine.trace import StepKind, ToolCall, Trace, UsageState
from tests.formats.index import DATA, rows
from tests.formats.reading import as_json, lines, traces_of

FOLDERS = sorted(path.name for path in DATA.iterdir()) if DATA.is_dir() else []
INT64 = range(-(2**63), 2**63)
COUNTS = (
    "input_total", "input_cached", "input_cache_write", "output_total",
    "output_reasoning", "total",
)  # fmt: skip
# Files in which each step has an id of its own, or stands on lines of its own. Not
# Claude's stream: there a later line takes back an answer that is given again.
BY_STEP = {
    "claude-code", "codex", "codex-exec", "grok-build",
    "langfuse", "langsmith", "mlflow", "openai-agents", "openclaw-telemetry",
    "otel-console", "otlp-json", "otlp-protobuf", "phoenix", "pi",
}  # fmt: skip


@cache
def whole(path: str) -> tuple[tuple[str, ...], tuple[Item, ...]]:
    return read((DATA / path).read_bytes())


def read(data: bytes) -> tuple[tuple[str, ...], tuple[Item, ...]]:
    """The formats that were opened and what they yielded before they refused."""
    formats: list[str] = []
    items: list[Item] = []
    refusal = None
    try:
        for item in read_file(io.BytesIO(data)):
            if isinstance(item, Opened):
                formats.append(item.format)
            else:
                items.append(item)
    except UnreadableTrace as error:
        refusal = str(error)
    assert refusal is None or refusal.endswith(".")
    return tuple(formats), tuple(items)


def traces_in(items: tuple[Item, ...]) -> list[Trace]:
    return [item for item in items if isinstance(item, Trace)]


# Storable


@pytest.mark.parametrize("row", rows(*FOLDERS))
def test_every_trace_of_a_real_file_can_be_stored(row):
    for trace in traces_in(whole(row["path"])[1]):
        check_storable(trace)


def check_storable(trace: Trace) -> None:
    """What the tables, their constraints and PostgreSQL's texts demand of a trace."""
    count, agents = len(trace.steps), len(trace.invocations)
    assert [step.seq for step in trace.steps] == list(range(count))
    assert [one.number for one in trace.invocations] == list(range(agents))
    for invocation in trace.invocations:
        assert invocation.parent is None or 0 <= invocation.parent < agents
        check_times(invocation)
    for step in trace.steps:
        assert step.parent is None or 0 <= step.parent < count
        assert step.invocation is None or 0 <= step.invocation < agents
        assert (step.kind is StepKind.MODEL_CALL) == hasattr(step.call, "usage")
        check_times(step)
        check_call(step.call, count)
    check_times(trace)
    encoded = msgspec.json.encode(trace)
    assert json.loads(encoded, parse_constant=refused) is not None
    assert b"\\u0000" not in encoded.replace(b"\\\\", b"")
    repr(trace).encode()


def check_times(timed: Any) -> None:
    for time in (timed.start_ns, timed.end_ns):
        assert time is None or (type(time) is int and time in INT64)


def check_call(call: Any, count: int) -> None:
    if isinstance(call, ToolCall):
        assert call.requested_by is None or 0 <= call.requested_by < count
    elif call is not None:
        usage = call.usage
        told = [getattr(usage, name) for name in COUNTS]
        assert call.retry_of is None or 0 <= call.retry_of < count
        assert all(one is None or (one >= 0 and one in INT64) for one in told)
        if usage.state in {UsageState.MISSING, UsageState.ZERO_SUSPECT}:
            assert set(told) == {None}


def refused(word: str) -> None:
    raise AssertionError(f"{word} is no JSON.")


# Cut off


def cuts(data: bytes, path: str) -> list[int]:
    """Where a file is cut off: at fixed fractions, at ends of lines, and anywhere.

    Small files are cut more often; the same file is always cut at the same places.
    """
    size = len(data)
    source = random.Random(zlib.crc32(path.encode()))
    anywhere = (
        24 if size < 3_000 else 10 if size < 30_000 else 4 if size < 300_000 else 1
    )
    places = {size // 10, size // 2, size * 9 // 10, size - 1, size - 20}
    places |= {source.randrange(size) for _ in range(anywhere)}
    after_lines = [at + 1 for at, byte in enumerate(data[:30_000]) if byte == 10]
    places |= set(source.sample(after_lines, min(3, len(after_lines))))
    return sorted(place for place in places if 0 <= place < size)


def tally(traces: list[Trace]) -> Counter[str]:
    found = Counter({"traces": len(traces)})
    for step in (step for trace in traces for step in trace.steps):
        if step.kind is StepKind.MODEL_CALL:
            found["model calls"] += 1
            found["usage"] += step.call.usage.state not in {
                UsageState.MISSING,
                UsageState.ZERO_SUSPECT,
            }
        elif step.kind in {StepKind.TOOL_CALL, StepKind.HANDOFF}:
            found["tool calls"] += 1
    return found


def told(traces: list[Trace]) -> Counter[tuple[Any, ...]]:
    """What each step says that a missing rest of the file cannot change.

    A span by its id. Else a tool call by its name and arguments and a message by its
    text; a model call may lack half of its lines and is only counted.
    """
    found: Counter[tuple[Any, ...]] = Counter()
    for step in (step for trace in traces for step in trace.steps):
        body = step.body
        if step.kind is StepKind.MODEL_CALL:
            found["model call", step.native_id and step.call.response_id] += 1
        elif isinstance(step.call, ToolCall):
            found["tool call", step.call.name, repr(body and body.input)] += 1
        elif step.native_id:
            found["step", step.native_id] += 1
        elif step.kind in {StepKind.USER_MESSAGE, StepKind.SYSTEM}:
            found[step.kind, repr(body and body.output)] += 1
    return found


@pytest.mark.parametrize("row", rows(*FOLDERS))
def test_a_file_that_was_cut_off_never_crashes_and_never_invents(row):
    path = row["path"]
    data = (DATA / path).read_bytes()
    formats, items = whole(path)
    known, all_told = tally(traces_in(items)), told(traces_in(items))
    for place in cuts(data, path) if data else []:
        cut_formats, cut_items = read(data[:place])
        found = traces_in(cut_items)
        assert tally(found) <= known, place
        if cut_formats == formats and set(formats) <= BY_STEP:
            assert told(found) <= all_told, place
        for trace in found:
            check_storable(trace)


# Shuffled


def shuffled_lists(value: Any, source: random.Random) -> Any:
    """A document with its lists of spans, scopes and observations in another order."""
    if isinstance(value, list):
        return [shuffled_lists(one, source) for one in value]
    if not isinstance(value, dict):
        return value
    new = {key: shuffled_lists(one, source) for key, one in value.items()}
    for name in SPAN_LISTS & new.keys():
        if isinstance(new[name], list):
            source.shuffle(new[name])
    return new


SPAN_LISTS = {
    "resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "spans",
    "observations",
}  # fmt: skip
SHUFFLED = (
    "otlp_json", "vs_copilot_otel_jsonl", "otel_console_json", "langfuse_batch_export",
    "langfuse_trace_ui_json", "langfuse_seed_trace_json", "langsmith_runs_jsonl",
    "langsmith_ingest_batch", "mlflow_trace_json", "traps/orphan_parents.otlp.json",
    "traps/parent_cycle.otlp.json", "traps/base64_ids.otlp.json",
    "traps/snake_case.otlp.json", "traps/timestamps_in_ms.otlp.json",
    "traps/unfinished_spans.otlp.json", "traps/usage_minus_one.otlp.json",
)  # fmt: skip


def shuffled(data: bytes, source: random.Random) -> bytes:
    """The same file with its spans, and its lines or rows, in another order."""
    text = data.decode()
    if text[0] not in "[{":
        head, *cells = csv.reader(io.StringIO(text, newline=""))
        source.shuffle(cells)
        table = io.StringIO(newline="")
        # A quoted null is a text and a bare one is nothing: the file quotes them all.
        csv.writer(table, quoting=csv.QUOTE_ALL).writerows([head, *cells])
        return table.getvalue().encode()
    values = list(documents(text))
    if len(values) == 1 and isinstance(values[0], list):
        [listed] = values
        source.shuffle(listed)
        return as_json(shuffled_lists(listed, source))
    source.shuffle(values)
    return lines(*shuffled_lists(values, source))


def documents(text: str) -> Iterator[Any]:
    """The JSON values that follow one another in a text."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield value
        at += len(text[at:]) - len(text[at:].lstrip())


def by_id(traces: list[Trace]) -> list[Trace]:
    return sorted(traces, key=lambda trace: trace.native_id or "")


@pytest.mark.parametrize("row", rows(*SHUFFLED))
def test_spans_in_any_order_give_the_same_traces(row):
    data = (DATA / row["path"]).read_bytes()
    expected = by_id(traces_in(whole(row["path"])[1]))
    assert len(expected) == int(row["n_traces"])
    for seed in range(3):
        found = by_id(traces_in(read(shuffled(data, random.Random(seed)))[1]))
        assert found == expected


@pytest.mark.parametrize("row", rows("phoenix_spans_export"))
def test_rows_of_a_parquet_file_give_the_same_traces_as_shuffled_lines(row):
    parquet = pytest.importorskip("pyarrow.parquet")
    spans = parquet.read_table(DATA / row["path"]).to_pylist()
    random.Random(1).shuffle(spans)
    told_in_lines = "\n".join(json.dumps(span, default=str) for span in spans)
    expected = by_id(traces_in(whole(row["path"])[1]))
    assert by_id(traces_of(told_in_lines.encode())) == expected


# What the cuts above found.


def test_a_prompt_that_openclaw_logs_twice_is_one_message_before_the_run_has_ended():
    start = {"type": "agent.start", "sessionKey": "s", "agentId": "main",
             "prompt": "Look for mail.", "seq": 1, "ts": 1772831320907}  # fmt: skip
    again = {**start, "messages": [], "seq": 2, "ts": 1772831320931}
    other = {**start, "prompt": "And the calendar?", "seq": 3, "ts": 1772831330000}
    [trace] = traces_of(lines(start, again, other))
    said = [step.body.output for step in trace.steps]
    assert said == ["Look for mail.", "And the calendar?"]
