"""`manage.py describe`, which needs no settings and no servers.

Where a start of its own shows nothing new it is called inside of this process.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
import zipfile

import pytest

from apps.engine.formats.evalsite_writer import dump
from apps.engine.trace import Outcome, OutcomeKind, Step, StepKind, StepStatus
from evalsite.packing import packed
from tests.conftest import ROOT
from tests.evalsite.calling import call_here
from tests.factories import (
    CHAT,
    chat_bytes,
    model_call,
    tool_call,
    trace_of,
)
from tests.formats.benchmark_files import harbor_job

STATES = {
    "reported",
    "partial",
    "missing",
    "zero_suspect",
    "vendor_estimate",
    "aggregate_only",
}
# Settings that would stop every command that reads them.
USELESS = {"DATABASE_URL": "nowhere", "EVALSITE_LEASE_SECONDS": "soon"}


def environment() -> dict[str, str]:
    named = {k: v for k, v in os.environ.items() if not k.startswith("DJANGO")}
    return {**named, **USELESS}


def call(*words: object, **options):
    return subprocess.run(
        [sys.executable, "manage.py", *map(str, words)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def stop_listening(*words: object) -> int:
    """The exit code of a command of whose output only ten bytes are read."""
    with subprocess.Popen(
        [sys.executable, "manage.py", *map(str, words)],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        return process.wait(timeout=60)


def described(*words: object) -> tuple[list[dict], int]:
    done = call_here("describe", "--json", *words)
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode


def rich_trace():
    failed = Step(
        seq=3, kind=StepKind.OTHER, invocation=0, status=StepStatus.ERROR, name="parse"
    )
    handoff = Step(seq=4, kind=StepKind.HANDOFF, invocation=0, name="handoff to b")
    steps = [
        model_call(0, 7),
        tool_call(1, "search"),
        model_call(2, None),
        failed,
        handoff,
    ]
    return trace_of(
        steps,
        name="run 1",
        native_id="ab12",
        task="refund",
        trial=2,
        session="s1",
        outcome=Outcome(kind=OutcomeKind.SCORE, score=3.0, out_of=4.0),
    )


@pytest.fixture
def rich(tmp_path):
    path = tmp_path / "rich.jsonl"
    path.write_bytes(dump(rich_trace()))
    return path


def test_it_names_every_fact_of_a_trace(rich):
    [found], code = described(rich)
    assert code == 0
    assert found["file"] == str(rich)
    assert found["format"] == "evalsite-jsonl"
    assert (found["error"], found["rejected"]) == (None, [])
    [trace] = found["traces"]
    usage = trace.pop("usage")
    assert set(usage) == STATES
    assert (usage["reported"], usage["missing"], sum(usage.values())) == (1, 1, 2)
    assert trace == {
        "id": "ab12",
        "name": "run 1",
        "task": "refund",
        "trial": 2,
        "session": "s1",
        "outcome": "score",
        "score": 3.0,
        "out_of": 4.0,
        "agents": ["planner"],
        "models": ["gpt-4o"],
        "steps": 5,
        "model_calls": 2,
        "tool_calls": 2,
        "errors": 1,
        "order": "time",
        "notes": [],
        "member": None,
        "format": "evalsite-jsonl",
    }


def test_it_reads_packed_files_and_says_what_it_did_not_read(tmp_path):
    path = tmp_path / "chat.jsonl.gz"
    path.write_bytes(gzip.compress(chat_bytes(CHAT) + b'{"messages": [{"ro\n'))
    [found], code = described(path)
    assert code == 0
    assert found["trace_count"] == len(found["traces"]) == 1
    assert found["rejected_count"] == 1
    [rejected] = found["rejected"]
    assert rejected["place"].startswith("line 2")
    assert rejected["reason"].endswith(".")
    assert rejected["excerpt"].startswith('{"messages"')
    assert any("gzip" in note["sentence"] for note in found["warnings"])


def test_it_reads_the_members_of_an_archive_and_names_them(tmp_path):
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a/rich.jsonl", dump(rich_trace()))
        packed.writestr("b/chat.jsonl", chat_bytes(CHAT))
        packed.writestr("broken.jsonl", b'{"messages": [{"ro')
    [found], code = described(path)
    assert (code, found["format"]) == (0, "archive")
    assert [(one["member"], one["format"]) for one in found["traces"]] == [
        ("a/rich.jsonl", "evalsite-jsonl"),
        ("b/chat.jsonl", "openai-chat"),
    ]
    assert found["rejected"][0]["place"].startswith("broken.jsonl")


def test_a_name_of_any_bytes_is_described(tmp_path):
    path = tmp_path / os.fsdecode(b"\xff\xfe.jsonl")
    path.write_bytes(chat_bytes(CHAT))
    os.mkfifo(tmp_path / "pipe.jsonl")
    [found], code = described("--each", tmp_path)
    assert code == 0
    assert found["file"].endswith("\ufffd\ufffd.jsonl")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(b"", "no bytes", id="empty"),
        pytest.param(b"<html><body>Hi</body></html>", "web page", id="page"),
        pytest.param(b'{"a": 1}', ".", id="json"),
        pytest.param(b"\x00\x01\x02" * 50, ".", id="binary"),
    ],
)
def test_what_it_cannot_read_it_says_in_a_sentence_and_ends_with_one(
    tmp_path, rich, content, sentence
):
    path = tmp_path / "what.json"
    path.write_bytes(content)
    (bad, good), code = described(path, rich)
    assert code == 1
    assert (bad["format"], bad["traces"]) == (None, [])
    assert sentence in bad["error"]
    assert good["format"] == "evalsite-jsonl"


def test_a_file_that_is_not_there_is_one_sentence_and_not_a_crash(tmp_path):
    [found], code = described(tmp_path / "gone.json")
    assert code == 1
    assert "No such file" in found["error"]


def test_a_folder_is_read_as_its_zip_would_be(tmp_path):
    folder = harbor_job(tmp_path / "job")
    path = tmp_path / "job.zip"
    with packed(folder, say=lambda _: None) as made:
        path.write_bytes(made.read())
    (as_folder, as_zip), code = described(folder, path)
    assert code == 0
    assert as_folder["file"] == str(folder)
    assert as_folder["trace_count"] == 1
    assert as_folder["traces"][0]["outcome"] == "pass"
    assert as_folder["traces"][0]["member"] == "a__b"
    left_out, *rest = as_folder["warnings"]
    assert left_out["sentence"].endswith(": .git/, node_modules/.")
    assert as_folder["rejected"] == []
    changed = {"file": as_zip["file"], "warnings": rest}
    assert as_folder | changed == as_zip


def test_each_reads_the_files_of_a_folder_one_by_one(tmp_path):
    folder = harbor_job(tmp_path / "job")
    found, code = described("--each", folder)
    assert code == 1
    assert len(found) == 7
    assert [one["trace_count"] for one in found].count(1) == 2


@pytest.mark.parametrize("name", ["", ".hidden/a.json"])
def test_a_folder_without_files_says_so(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    if name:
        (tmp_path / name).write_text("{}")
    [found], code = described(tmp_path)
    assert code == 1
    assert found["error"] == "The folder holds no files."


def test_a_folder_is_walked_in_order_without_what_is_hidden(tmp_path):
    for name in ("b/two.jsonl", "a/one.jsonl", ".git/three.jsonl", ".hidden.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(chat_bytes(CHAT))
    found, code = described("--each", tmp_path)
    assert code == 0
    assert [one["file"] for one in found] == [
        str(tmp_path / "a/one.jsonl"),
        str(tmp_path / "b/two.jsonl"),
    ]


def test_a_format_named_by_hand_is_used_instead_of_the_recognised_one(rich):
    [found], code = described(rich, "--format", "openai-chat")
    assert code == 1
    assert found["error"].endswith(".")


@pytest.mark.parametrize("words", [[], ["a", "--format", "xml"], ["a", "--jsn"]])
def test_a_wrong_call_ends_with_two_and_how_to_call_it(words):
    done = call_here("describe", *words)
    assert done.returncode == 2
    assert "usage: manage.py describe" in done.stderr


def test_without_json_it_prints_a_table_that_steers_no_terminal(tmp_path):
    path = tmp_path / "red.jsonl"
    path.write_bytes(dump(trace_of([model_call(0, 5)], name="a\x1b[31mred")))
    done = call("describe", path)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    heading, row = (line.split() for line in done.stdout.splitlines()[1:3])
    assert heading[:4] == ["trace", "task", "trial", "outcome"]
    assert "pass" in row
    assert "planner" in row


def test_a_reader_that_stops_listening_ends_it_quietly(tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_bytes(chat_bytes(*[CHAT] * 20_000))
    assert stop_listening("describe", "--json", path, path) == 0


def test_a_small_file_is_described_in_under_a_second(rich):
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        assert call("describe", "--json", rich).returncode == 0
        taken.append(time.perf_counter() - start)
    assert min(taken) < 1, taken


def test_it_describes_every_real_file_without_a_crash(shared_data):
    found, code = described("--each", shared_data)
    assert code == 1, "some traps cannot be read"
    assert len(found) > 200
    for one in found:
        assert (one["format"] is None) == (one["traces"] == [])
        assert one["error"] is None or one["error"].endswith(".")
        assert "reader broke" not in (one["error"] or ""), one["file"]
        for trace in one["traces"]:
            assert set(trace["usage"]) == STATES
            assert sum(trace["usage"].values()) == trace["model_calls"]
