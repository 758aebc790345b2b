"""`manage.py compare` as a process of its own: codes, tables, broken files, size."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.desks import desk_trace
from tests.evalsite.comparing import (
    MEMORY,
    compare,
    compare_here,
    desk_in,
    document,
    run,
    text_in,
    write,
)
from tests.evalsite.test_describe import environment, stop_listening
from tests.evalsite.test_screen import processor_seconds


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return desk_in(tmp_path_factory.mktemp("desk"))


@pytest.fixture
def contracts(tmp_path):
    return text_in(tmp_path / "agents.yaml", MEMORY)


@pytest.fixture
def calm(tmp_path):
    return write(tmp_path / "calm.jsonl", [run(1), run(2), run(3)])


def test_the_table_leads_with_masking_and_fits_on_a_screen(runs, contracts):
    code, printed, said = compare(runs, "--agents", contracts)
    assert (code, said) == (1, "")
    lines = printed.splitlines()
    assert lines[0].startswith("memory is red in 12 of 12 traces that passed")
    assert max(map(len, lines)) <= 100
    parts = [line.split("  ")[0] for line in lines if line[:1].isupper()]
    assert parts == ["AGENTS", "TASKS", "GAPS", "PATTERNS"]
    assert lines[3] == "  x memory: red. 12 traces, 4 tasks."
    assert "12 of 12 (100 %; 95 % interval 75.8 % to 100 %)" in printed
    assert "delayed parcel Z-5520: mixed, 3 of 5 (23.1 % to 88.2 %) passed" in printed
    assert "Decisive fork, 1 of 1, at steps 5, 5, 5, 5, 5 of trials 1, 2, 3" in printed


def test_json_is_the_same_document_and_exit_zero_is_zero(runs, contracts):
    words = (runs, "--agents", contracts, "--json")
    code, printed, _ = compare_here(*words, "--exit-zero")
    assert code == 0
    assert json.loads(printed) == document(runs, agents=contracts)


def test_nothing_masked_ends_with_zero_from_standard_input_too(calm):
    code, printed, _ = compare("-", "--json", input=calm.read_text())
    assert code == 0
    found = json.loads(printed)
    assert found["tasks"][0]["trials"][0]["id"] == "-: ticket 1, trial 1"
    assert found["traces"] == 3


def test_a_red_agent_behind_a_failed_outcome_ends_with_one(tmp_path):
    trace = desk_trace(
        ("memory", [("says", "No notes.")]), outcome=run(1).outcome, trial=1
    )
    path = write(tmp_path / "a.jsonl", [trace])
    asked = text_in(tmp_path / "agents.yaml", MEMORY)
    assert compare_here(path, "--agents", asked)[0] == 1


def test_what_cannot_be_read_is_named_and_the_rest_is_compared(tmp_path, calm):
    page = text_in(tmp_path / "page.json", "<html><body>Hi</body></html>")
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(calm.read_bytes() + b'{"evalsite": 1, "na\n')
    code, printed, said = compare_here(page, cut, tmp_path / "gone.json", "--json")
    assert code == 3
    found = json.loads(printed)
    assert found["traces"] == 3
    assert {one["file"]: one["place"] for one in found["unread"]} == {
        str(page): None,
        str(cut): "line 4, column 20",
        str(tmp_path / "gone.json"): None,
    }
    assert f"{cut}, line 4, column 20: " in said
    assert "Traceback" not in said
    assert compare_here(cut)[0] == 0, (
        "a record that was not read is named, as in screen"
    )


@pytest.mark.parametrize(
    ("text", "words", "code", "sentences"),
    [
        pytest.param("", ["--jsn"], 2, ["usage: manage.py compare"], id="option"),
        pytest.param(
            "evalsite: 2\n", [], 2, ["must say “evalsite: 1”"], id="other version"
        ),
        pytest.param(
            "evalsite: 1\nagents:\n  a: {contracts: [{name: b, kind: luck}]}\n"
            "tasks: {c: {expect: share}}\n",
            [],
            2,
            ["Agent “a”, contract 1 (“b”)", "“share” needs “at_least”"],
            id="two problems",
        ),
        pytest.param("", ["--task", "x" * 501], 2, ["at most 500"], id="long name"),
        pytest.param(MEMORY, ["--task", "x"], 3, ["no task has such"], id="no task"),
    ],
)
def test_a_wrong_call_is_told_in_sentences(
    tmp_path, calm, text, words, code, sentences
):
    if text:
        words = [*words, "--agents", text_in(tmp_path / "agents.yaml", text)]
    ended, printed, said = compare_here(calm, *words)
    assert (ended, printed) == (code, "")
    assert "Traceback" not in said
    for sentence in sentences:
        assert sentence in said


def test_a_file_of_contracts_that_is_not_there_is_told(tmp_path, calm):
    code, _, said = compare_here(calm, "--agents", tmp_path / "no.yaml")
    assert code == 2
    assert "no.yaml cannot be opened: No such file or directory." in said


def test_names_cannot_steer_a_terminal(tmp_path):
    traces = [run(n, task="\x1b[31mred\x07") for n in (1, 2)]
    _, printed, _ = compare_here(write(tmp_path / "\x1b[2J.jsonl", traces))
    assert "\x1b" not in printed
    assert "\x07" not in printed


def test_a_reader_that_stops_listening_ends_it_quietly(tmp_path):
    traces = [run(1, task=f"task {n}") for n in range(400)]
    path = write(tmp_path / "many.jsonl", traces)
    assert stop_listening("compare", "--json", path) in {0, 1}


def test_a_small_file_is_compared_in_about_a_second_of_processor_time(calm):
    taken = []
    while len(taken) < 3 and (not taken or taken[-1] >= 1.2):
        start = processor_seconds()
        assert compare("--json", calm)[0] == 0
        taken.append(processor_seconds() - start)
    assert taken[-1] < 1.2, taken


_PEAK = """
import os, sys
from evalsite.management.commands.compare import Command
sys.stdout = open(os.devnull, "w")
try:
    Command().run_from_argv(["manage.py", "compare", sys.argv[1], "--json"])
except SystemExit:
    status = open("/proc/self/status").read()
    print(status.split("VmHWM:")[1].split()[0], file=sys.stderr)
"""


def peak(path) -> int:
    """The most memory that a call took, in MB."""
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(path)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stderr.split()[-1]) // 1024


@pytest.mark.skipif(
    sys.platform != "linux", reason="Linux tells the peak of a process."
)
def test_only_scores_are_kept_of_large_traces(tmp_path):
    long = "word " * 60_000
    few = write(tmp_path / "few.jsonl", [run(n, asked=long) for n in range(4)])
    many = write(tmp_path / "many.jsonl", [run(n, asked=long) for n in range(140)])
    assert many.stat().st_size > 40_000_000
    assert peak(many) - peak(few) < 25


def test_an_answer_that_cannot_be_written_is_no_finding(calm):
    """A crash ends with 1 too, which would say that an agent is masked."""
    streams = {"compare": ("stdin", "stdout", "stderr"), "screen": ("stdout",)}
    for word, some in streams.items():
        for closed in some:
            assert _without(closed, word, calm, calm.with_name("none")) == (3, "")
        if Path("/dev/full").exists():
            code, said = _to_full(word, calm)
            assert code == 3
            assert "could not be written: No space left on device." in said
            assert "Traceback" not in said


def _without(stream: str, *words: object) -> tuple[int, str]:
    """The exit code with a standard stream closed, and what went wrong inside."""
    number = ("stdin", "stdout", "stderr").index(stream)
    sign = "<" if number == 0 else ">"
    line = shlex.join([sys.executable, "manage.py", *map(str, words)])
    done = subprocess.run(
        ["sh", "-c", f"{line} {number}{sign}&-"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, "Traceback" if "Traceback" in done.stderr else ""


def _to_full(*words: object) -> tuple[int, str]:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "manage.py", *map(str, words)],
            cwd=ROOT,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    return done.returncode, done.stderr
