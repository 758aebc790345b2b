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
from tests.formats.archives import zstd_zip_of

SCRIPT = ROOT / "static" / "tools" / "strip_trace.py"
LONGEST_KEPT = 64
LONGEST_NAME = 100
# Written by people or models: more words than are ever kept.
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
            | st.dictionaries(
                st.sampled_from(["label", "id", "content", "value", "x"]), inner
            )
        ),
        max_leaves=8,
    )
)
@settings(deadline=None)
def test_no_long_text_survives_under_any_key(value):
    assert "\u2764" not in json.dumps(stripper()(value), ensure_ascii=False)


@pytest.mark.parametrize("key", ["name", "agent", "agent_name", "task", "task_id"])
@given(st.text(min_size=LONGEST_NAME + 1).map(lambda t: "\u2764" + t))
@settings(deadline=None)
def test_no_name_of_more_than_a_hundred_characters_survives(key, text):
    assert "\u2764" not in json.dumps(stripper()({key: text}), ensure_ascii=False)


@pytest.mark.parametrize("key", ["name", "agent", "agent_name", "task", "task_id"])
def test_a_name_of_six_words_stays_and_one_of_seven_goes(key):
    strip = stripper()
    six = "Senior reviewer of all refund requests"
    assert strip({key: six}) == {key: six}
    seven = f"{six} here"
    assert strip({key: seven}) == {key: f"[text of {len(seven)}]"}
    assert strip({"arguments": {key: six}}) == {"arguments": {key: "[text of 38]"}}


@pytest.mark.parametrize("value", ["C", "I", "P", "N", True, 0.5, "passed", "false"])
def test_a_verdict_of_a_score_stays(value):
    scores = {"scores": {"match": {"value": value, "answer": "ANSWER: Jane"}}}
    kept = stripper()(scores)["scores"]["match"]
    assert kept == {"value": value, "answer": "[text of 12]"}


def test_another_word_under_a_score_goes():
    assert stripper()({"value": "Jane"}) == {"value": "[text of 4]"}


def test_the_outcomes_of_real_logs_of_inspect_survive(tmp_path, shared_data):
    logs = shared_data / "inspect_eval_json"
    assert run(logs, "--into", tmp_path).returncode == 0
    kinds: Counter[str] = Counter()
    for path in sorted(logs.glob("*.json")):
        before = outcomes(path)
        assert outcomes(tmp_path / path.name) == before, path.name
        kinds.update(kind for kind, _ in before)
    assert kinds["pass"]
    assert kinds["fail"]


def outcomes(path: Path) -> list[tuple[str, float | None]]:
    try:
        with path.open("rb") as file:
            items = list(read_file(file, name=path.name))
    except UnreadableTrace:
        return []
    traces = [one.outcome for one in items if isinstance(one, Trace)]
    return [(one.kind.value, one.score) for one in traces]


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
        assert "1 bad line left out" in done.stderr
        assert len((tmp_path / "a.stripped.jsonl").read_text().splitlines()) == 2

    def test_a_file_that_is_not_there_is_one_sentence_and_ends_with_two(self, tmp_path):
        done = run(tmp_path / "gone.json")
        assert done.returncode == 2
        said = "gone.json: cannot be opened or written: No such file or directory.\n"
        assert done.stderr.endswith(said)
        assert len(done.stderr.splitlines()) == 1

    def test_it_says_where_each_file_was_written(self, tmp_path):
        (tmp_path / "runs").mkdir()
        for name in ("a.json", "b.json"):
            (tmp_path / "runs" / name).write_text(json.dumps(CHAT))
        done = run(tmp_path / "runs")
        made = tmp_path / "runs.stripped"
        assert [
            line.split(", written to ")[1] for line in done.stderr.splitlines()
        ] == [
            str(made / "a.json"),
            str(made / "b.json"),
        ]

    def test_a_second_run_over_a_folder_leaves_out_what_the_first_has_made(
        self, tmp_path
    ):
        path = tmp_path / "runs" / "a.json"
        path.parent.mkdir()
        path.write_text(json.dumps(CHAT))
        inside = tmp_path / "runs" / "out"
        assert run(path).returncode == 0
        assert run(path.parent, "--into", inside).returncode == 0
        assert run(path.parent, "--into", tmp_path / "again").returncode == 0
        made = sorted(
            p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.json")
        )
        assert made == [
            "again/a.json", "again/out/a.json", "runs/a.json",
            "runs/a.stripped.json", "runs/out/a.json",
        ]  # fmt: skip

    def test_what_is_there_already_hides_no_other_file_of_the_folder(self, tmp_path):
        (tmp_path / "runs").mkdir()
        (tmp_path / "out").mkdir()
        for name in ("a.json", "b.json"):
            (tmp_path / "runs" / name).write_text(json.dumps(CHAT))
        (tmp_path / "out" / "a.json").write_text("mine")
        assert run(tmp_path / "runs", "--into", tmp_path / "out").returncode == 0
        assert (tmp_path / "out" / "a.json").read_text() == "mine"
        assert (tmp_path / "out" / "b.json").exists()

    def test_a_log_packed_with_zstandard_says_once_what_to_do(self, tmp_path):
        path = tmp_path / "log.eval"
        path.write_bytes(zstd_zip_of("samples/1.json", json.dumps(CHAT).encode()))
        done = run(path)
        if sys.version_info >= (3, 14):
            assert done.returncode == 0
            return
        assert done.returncode == 1
        [line] = done.stderr.splitlines()
        assert line.startswith(f"{path}: Files left out, because this Python cannot")
        assert "inspect log convert LOG.eval --to json" in line

    def test_damaged_gzip_is_left_out_with_a_sentence(self, tmp_path):
        path = tmp_path / "a.json.gz"
        path.write_bytes(gzip.compress(json.dumps(CHAT).encode())[:12] + b"\xff" * 40)
        done = run(path)
        assert done.returncode == 1
        assert "a.json.gz: left out, because " in done.stderr
        assert "Traceback" not in done.stderr

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
