"""The stand-alone script: nothing is said in its output, and everything still counts."""

from __future__ import annotations

import ast
import gzip
import json
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.format import Opened, UnreadableTrace
from apps.engine.formats import read_file
from apps.engine.formats.evalsite_writer import dump
from apps.engine.trace import ModelCall, ToolCall, Trace
from tests.conftest import ROOT
from tests.factories import decay_trace

SCRIPT = ROOT / "static" / "tools" / "strip_trace.py"
LONGEST_KEPT = 64
# Written by people or models, longer than what is ever kept.
CANARY = "canary sings of the pay, the health and the whereabouts of Jane Doe, and more"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The script alone: without site-packages, environment and this checkout."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPT), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def facts(path: Path) -> tuple[str, list[object]] | None:
    """The format and, of each trace, its calls and the states of their usage."""
    slug, traces = "", []
    try:
        with path.open("rb") as file:
            for item in read_file(file, name=path.name):
                if isinstance(item, Opened):
                    slug = slug or item.format
                elif isinstance(item, Trace):
                    traces.append(_counts(item))
    except UnreadableTrace:
        return None
    return (slug, sorted(traces)) if traces else None


def _counts(trace: Trace) -> tuple[int, int, list[tuple[str, int]]]:
    calls = [s.call for s in trace.steps if isinstance(s.call, ModelCall)]
    tools = sum(isinstance(s.call, ToolCall) for s in trace.steps)
    states = Counter(call.usage.state.value for call in calls)
    return len(calls), tools, sorted(states.items())


CHAT = {
    "messages": [
        {"role": "user", "content": CANARY},
        {
            "role": "assistant",
            "content": CANARY,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {
                        "name": "find_order",
                        "arguments": json.dumps({"q": CANARY, "name": CANARY}),
                    },
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": json.dumps([CANARY])},
        {"role": "assistant", "content": [{"type": "text", "text": CANARY}]},
    ]
}
SPAN = {
    "resourceSpans": [
        {
            "resource": {
                "attributes": [{"key": "x", "value": {"stringValue": CANARY}}]
            },
            "scopeSpans": [
                {
                    "scope": {"name": "s"},
                    "spans": [
                        {
                            "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                            "spanId": "00f067aa0ba902b7",
                            "name": "chat gpt-4o",
                            "startTimeUnixNano": "1772000000000000000",
                            "endTimeUnixNano": "1772000001000000000",
                            "status": {"message": CANARY},
                            "attributes": [
                                {"key": key, "value": value}
                                for key, value in (
                                    ("gen_ai.operation.name", {"stringValue": "chat"}),
                                    ("gen_ai.request.model", {"stringValue": "gpt-4o"}),
                                    ("gen_ai.usage.output_tokens", {"intValue": "43"}),
                                    ("gen_ai.input.messages", {"stringValue": CANARY}),
                                    ("name.of.mine", {"stringValue": CANARY}),
                                )
                            ],
                        }
                    ],
                }
            ],
        }
    ]
}
FIXTURES = {
    "chat.json": json.dumps(CHAT).encode(),
    "chats.jsonl": b"\n".join([json.dumps(CHAT).encode()] * 3),
    "spans.json": json.dumps(SPAN, indent=1).encode(),
    "own.jsonl": dump(decay_trace(100, 90, 80)),
    "packed.jsonl.gz": gzip.compress(json.dumps(CHAT).encode() + b"\n"),
}


@pytest.mark.parametrize("name", FIXTURES)
def test_our_own_files_count_the_same_and_say_nothing(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FIXTURES[name])
    done = run(path, "--into", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    made = tmp_path / "out" / name
    assert facts(made) == facts(path)
    assert facts(made) is not None
    data = made.read_bytes()
    text = gzip.decompress(data) if name.endswith(".gz") else data
    assert b"canary" not in text
    assert b"prompt 0" not in text


def test_every_real_file_is_still_the_same_run(tmp_path, shared_data):
    done = run(shared_data, "--into", tmp_path)
    assert done.returncode == 0, done.stderr
    compared = 0
    for path in sorted(p for p in shared_data.rglob("*") if p.is_file()):
        made = tmp_path / path.relative_to(shared_data)
        before = facts(path) if made.exists() else None
        if before is None:
            continue
        assert facts(made) == before, path.relative_to(shared_data)
        compared += 1
    assert compared > 100


def positions(value: object) -> list[list[object]]:
    """The paths of all texts in a JSON value."""
    if isinstance(value, str):
        return [[]]
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [[key, *rest] for key, item in pairs for rest in positions(item)]


def planted(value, path, text):
    if not path:
        return text
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = planted(value[path[0]], path[1:], text)
    return copy


def stripper():
    space: dict[str, object] = {"__name__": "strip_trace"}
    exec(compile(SCRIPT.read_text(), str(SCRIPT), "exec"), space)  # noqa: S102
    return space["strip"]


@pytest.mark.parametrize("document", [CHAT, SPAN], ids=["chat", "spans"])
def test_a_text_of_a_body_survives_in_no_position(document):
    strip = stripper()
    for path in positions(document):
        for text in (CANARY, json.dumps({"name": CANARY}), repr({"name": CANARY})):
            stripped = strip(planted(document, path, text))
            assert "canary" not in json.dumps(stripped), path


@given(
    st.recursive(
        st.text(min_size=LONGEST_KEPT + 1, max_size=90).map(lambda t: "\u2764" + t),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["name", "id", "content", "x"]), inner)
        ),
        max_leaves=8,
    )
)
@settings(deadline=None)
def test_no_long_text_survives_under_any_key(value):
    assert "\u2764" not in json.dumps(stripper()(value), ensure_ascii=False)


class TestCommand:
    def test_it_changes_no_file_that_is_there(self, tmp_path):
        path = tmp_path / "a.json"
        path.write_text(json.dumps(CHAT))
        there = tmp_path / "a.stripped.json"
        there.write_text("mine")
        done = run(path)
        assert done.returncode == 1
        assert "is there already" in done.stderr
        assert there.read_text() == "mine"
        assert json.loads(path.read_text()) == CHAT

    def test_it_reads_folders_and_archives(self, tmp_path):
        folder = tmp_path / "runs" / "deep"
        folder.mkdir(parents=True)
        (folder / "a.json").write_text(json.dumps(CHAT))
        with zipfile.ZipFile(tmp_path / "runs" / "b.zip", "w") as archive:
            archive.writestr("x/b.json", json.dumps(CHAT))
        assert run(tmp_path / "runs").returncode == 0
        made = tmp_path / "runs.stripped"
        assert "canary" not in (made / "deep" / "a.json").read_text()
        with zipfile.ZipFile(made / "b.zip") as archive:
            assert b"canary" not in archive.read("x/b.json")

    def test_what_it_cannot_read_is_left_out_and_never_copied(self, tmp_path):
        (tmp_path / "note.txt").write_text(CANARY)
        (tmp_path / "half.json").write_text('{"messages": [{"content": "' + CANARY)
        (tmp_path / "raw.bin").write_bytes(b"\0\1" + CANARY.encode())
        done = run(tmp_path, "--into", tmp_path / "out")
        assert done.returncode == 1
        assert done.stderr.count("left out") == 3
        assert "canary" not in done.stderr
        assert not (tmp_path / "out").exists()

    def test_a_bad_line_is_counted_and_the_others_are_kept(self, tmp_path):
        path = tmp_path / "a.jsonl"
        line = json.dumps(CHAT)
        path.write_text(f"{line}\n{line[:40]}\n{line}\n")
        done = run(path)
        assert "1 bad lines left out" in done.stderr
        assert len((tmp_path / "a.stripped.jsonl").read_text().splitlines()) == 2

    def test_a_table_is_stripped_cell_by_cell(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text(f'id,name,input\n7,chat,"{CANARY}"\n')
        assert run(path).returncode == 0
        text = (tmp_path / "t.stripped.csv").read_text()
        assert text == f"id,name,input\n7,chat,[text of {len(CANARY)}]\n"


def test_it_is_short_and_asks_for_nothing_outside_python():
    source = SCRIPT.read_text()
    assert len(source.splitlines()) < 400
    imported = {
        line.split()[1] for line in source.splitlines() if line.startswith("import ")
    }
    assert imported <= set(sys.stdlib_module_names)
    assert not imported & {"socket", "urllib", "http", "subprocess", "ssl", "ctypes"}
    compile(source, "strip_trace.py", "exec", flags=0, dont_inherit=True)
    ast.parse(source, feature_version=(3, 8))
