"""Peak memory of reading large files: each in a fresh process, made on the spot.

The peak is that of the whole process (`VmHWM`); what the interpreter and the readers
take before the first byte is printed beside it. No database takes part.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apps.engine.formats import read_file
from apps.engine.trace import Trace
from tests.benchmarks.corpus import WORDS

ROOT = Path(__file__).resolve().parents[2]
MB = 1000 * 1000
SPANS_PER_TRACE = 12


def _words(source: random.Random, count: int) -> str:
    return " ".join(source.choices(WORDS, k=count))


def _span(source: random.Random, trace: int, number: int) -> dict[str, Any]:
    start = 1_700_000_000_000_000_000 + trace * 10**9 + number * 10**6
    said = json.dumps([{"role": "user", "parts": [_words(source, 150)]}])
    pairs = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.input.messages": said,
        "gen_ai.output.messages": _words(source, 60),
    }
    return {
        "traceId": f"{trace + 1:032x}",
        "spanId": f"{trace * 1000 + number + 1:016x}",
        "parentSpanId": f"{trace * 1000 + 1:016x}" if number else "",
        "name": f"step {number}",
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 900_000),
        "attributes": [
            *({"key": key, "value": {"stringValue": text}} for key, text in pairs.items()),
            {"key": "gen_ai.usage.output_tokens",
             "value": {"intValue": str(source.randrange(10, 900))}},
        ],
    }  # fmt: skip


def _spans() -> Iterator[dict[str, Any]]:
    """Spans of ever more traces, of which ten are always being written at once."""
    source = random.Random(7)
    first = 0
    while True:
        for number in range(SPANS_PER_TRACE):
            for trace in range(first, first + 10):
                yield _span(source, trace, number)
        first += 10


_BEGINNING = (
    '{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name",'
    '"value":{"stringValue":"shop"}}]},"scopeSpans":[{"scope":{"name":"bench"},"spans":['
)
_END = "]}]}]}"


def collector_lines(path: Path, size: int) -> None:
    """Requests as the collector's file exporter writes them, a few spans a line."""
    spans = _spans()
    with path.open("w") as file:
        while file.tell() < size:
            some = ",".join(json.dumps(next(spans)) for _ in range(8))
            file.write(f"{_BEGINNING}{some}{_END}\n")


def one_document(path: Path, size: int) -> None:
    """One request with all spans of one scope in one list."""
    spans = _spans()
    with path.open("w") as file:
        file.write(_BEGINNING + json.dumps(next(spans)))
        while file.tell() < size:
            file.write("," + json.dumps(next(spans)))
        file.write(_END)


def chat_lines(path: Path, size: int) -> None:
    """Conversations of forty messages, one a line."""
    source = random.Random(7)
    roles = ("user", "assistant")
    with path.open("w") as file:
        while file.tell() < size:
            said = [
                {"role": roles[turn % 2], "content": _words(source, 60)}
                for turn in range(40)
            ]
            file.write(json.dumps({"messages": said}) + "\n")


FILES = (
    ("OTLP lines 200 MB", collector_lines, 200 * MB),
    ("chat lines 200 MB", chat_lines, 200 * MB),
    ("OTLP document 50 MB", one_document, 50 * MB),
)


def _peak() -> float:
    """Peak resident set of this process in MB, without that of who started it."""
    status = Path("/proc/self/status").read_text()
    [kilobytes] = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kilobytes) * 1024 / MB


def read(path: Path) -> None:
    """Read one file in this process and print what it took."""
    before, started = _peak(), time.perf_counter()
    traces = steps = 0
    with path.open("rb") as file:
        for item in read_file(file):
            if isinstance(item, Trace):
                traces += 1
                steps += len(item.steps)
    seconds = time.perf_counter() - started
    print(
        f"{path.stem:<20} {traces:>6} traces {steps:>7} steps {seconds:>6.1f} s  "
        f"peak {_peak():>5.0f} MB ({before:.0f} MB before the first byte)"
    )


def main() -> None:
    """Make each file, read it in a process of its own, and drop it."""
    with tempfile.TemporaryDirectory(prefix="evalsite-bench-") as folder:
        for label, make, size in FILES:
            path = Path(folder) / f"{label}.json"
            make(path, size)
            words = [sys.executable, "-m", "tests.benchmarks.memory", str(path)]
            subprocess.run(words, cwd=ROOT, check=True)
            path.unlink()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        read(Path(sys.argv[1]))
    else:
        main()
