"""`manage.py screen`, which needs no settings and no servers.

Where a start of its own shows nothing new it is called inside of this process.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import zipfile

import pytest

from apps.engine.checks import CHECKS
from apps.engine.formats.evalsite_writer import dump
from tests.conftest import ROOT
from tests.evalsite.calling import call_here
from tests.evalsite.screening import file_of, screened
from tests.evalsite.test_describe import call, environment, stop_listening
from tests.factories import CHAT, chat_bytes, decay_trace, tools_trace
from tests.formats.benchmark_files import harbor_job

TAU = "tau_bench_results/gpt-4o-airline.json"
DECAY = ("--check", "output-decay")
FIELDS = {
    *("file", "member", "format", "trace", "trace_id", "check", "version", "answer"),
    *("level", "headline", "reason", "reason_code", "scope", "agent", "length"),
    *("first", "last", "usage_missing", "order", "boundary", "steps", "p", "expected"),
    "input_hash",
}


@pytest.fixture
def falling(tmp_path):
    return file_of(tmp_path, decay_trace(100, 90, 80, 70, 60, name="run 1"))


@pytest.fixture
def calm(tmp_path):
    return file_of(tmp_path, decay_trace(60, 90, 80, 70, 100), name="calm.jsonl")


def test_a_signal_is_a_line_with_every_field(falling):
    [found], code, said = screened(falling, *DECAY)
    assert code == 1
    assert set(found) == FIELDS
    chance = found.pop("p")
    assert (chance["numerator"], chance["denominator"]) == (1, 120)
    assert chance["value"] == pytest.approx(1 / 120)
    assert set(chance) == {"numerator", "denominator", "value", "method"}
    assert found["expected"] == pytest.approx(1 / 120)
    assert found["boundary"] == {
        "began": "start of the agent invocation",
        "ended": "end of the agent invocation",
    }
    assert found["file"] == str(falling)
    assert (found["trace"], found["trace_id"]) == ("run 1", "1")
    assert (found["answer"], found["level"]) == ("signal", "review_signal")
    assert (found["agent"], found["length"]) == ("planner", 5)
    assert (found["first"], found["last"], found["usage_missing"]) == (100, 60, 0)
    assert found["steps"] == [0, 1, 2, 3, 4]
    assert "output-decay: 1 signal from 1 applicable sequence; chance alone" in said
    assert "about 0.0083 (95 %: 0 to 0), and 1 or more with probability 0.0083." in said


def test_silence_and_what_was_not_checked_are_lines_too(tmp_path, calm):
    short = file_of(tmp_path, decay_trace(784, 700, 646), name="short.jsonl")
    found, code, said = screened(calm, short, *DECAY)
    assert code == 0
    quiet, not_applicable = found
    assert (quiet["answer"], quiet["level"]) == ("quiet", "telemetry")
    assert not_applicable["answer"] == "not_applicable"
    assert not_applicable["p"] is None
    assert "3 serial calls, needs 5" in not_applicable["reason"]
    assert "0 signals in 2 traces" in said


def test_when_nothing_could_be_checked_the_summary_says_so(tmp_path):
    short = file_of(tmp_path, decay_trace(784, 700, 646))
    done = call("screen", short, *DECAY)
    assert done.returncode == 0
    assert "not applicable, 1 of 1 times. Nothing was checked." in done.stderr
    # Chance gives no 0 of what was not checked.
    [row] = [line for line in done.stdout.splitlines() if "output-decay" in line]
    assert row.split() == ["output-decay", "1", "0", "0", "0", "1", "-"]


RARE, TIED, UNEVEN = (100, 90, 80, 70, 60), (9, 9, 9, 9, 5), (100, 90, 95, 70, 60)


@pytest.mark.parametrize(
    ("lengths", "level", "code"),
    [
        pytest.param(RARE, "review_signal", 1, id="at the level"),
        pytest.param(RARE, "telemetry", 1, id="above the level"),
        pytest.param(RARE, "never", 0, id="never"),
        pytest.param(TIED, "review_signal", 0, id="below the level"),
        pytest.param(TIED, "telemetry", 1, id="at telemetry"),
        pytest.param(UNEVEN, "telemetry", 0, id="no signal"),
    ],
)
def test_the_exit_code_follows_the_level(tmp_path, lengths, level, code):
    path = file_of(tmp_path, decay_trace(*lengths))
    done = call_here("screen", path, *DECAY, "--fail-on", level, "--quiet")
    assert (done.returncode, done.stdout) == (code, "")


def test_a_file_that_cannot_be_read_counts_more_than_a_signal(tmp_path, falling):
    bad = tmp_path / "bad.json"
    bad.write_bytes(b"<html><body>Hi</body></html>")
    found, code, said = screened(bad, falling, tmp_path / "gone.json")
    assert code == 3
    assert {one["file"] for one in found} == {str(falling)}
    assert f"{bad}: " in said
    assert "web page" in said
    assert "gone.json: This file cannot be opened: No such file" in said
    assert call("screen", bad, "--fail-on", "never").returncode == 3


def test_a_record_that_was_not_read_is_named_and_the_others_are_screened(tmp_path):
    path = tmp_path / "cut.jsonl"
    path.write_bytes(chat_bytes(CHAT) + b'{"messages": [{"ro\n')
    found, code, said = screened(path, *DECAY)
    assert code == 0
    assert [one["trace_id"] for one in found] == ["1"]
    assert f"{path}, line 2" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param([], "usage: manage.py screen", id="no file"),
        pytest.param(["a", "--jsn"], "usage: manage.py screen", id="no such option"),
        pytest.param(["a", "--json", "--sarif"], "not allowed with", id="two shapes"),
        pytest.param(["a", "--check", "luck"], "There is no check “luck”.", id="check"),
        pytest.param(["a", "--skip", "luck"], "There is no check “luck”.", id="skip"),
        pytest.param(
            ["a", *DECAY, "--skip", DECAY[1]], "No check is left to run.", id="none"
        ),
        pytest.param(["a", "--set", "luck"], "is no change of a parameter", id="set"),
        pytest.param(
            ["a", "--set", "output-decay.luck=3"],
            "has no parameter “luck”",
            id="no such parameter",
        ),
        pytest.param(
            ["a", "--set", "tool-drift.window=99"], "must be at least", id="too large"
        ),
        pytest.param(
            ["a", "--set", "tool-drift.window=NaN"], "must be a number", id="no number"
        ),
        pytest.param(
            ["a", "--set", "tool-drift.window=1e999"], "must be a number", id="infinite"
        ),
        pytest.param(
            ["a", "--skip", "tool-drift", "--set", "tool-drift.window=5"],
            "the check tool-drift does not run",
            id="a change without effect",
        ),
    ],
)
def test_a_wrong_call_ends_with_two_and_a_sentence(words, sentence):
    done = call_here("screen", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_changed_parameter_changes_the_answer(tmp_path):
    path = file_of(tmp_path, tools_trace(*"abcabb"))
    words = ("--check", "tool-drift")
    [before], _, _ = screened(path, *words)
    [after], _, _ = screened(path, *words, "--set", "tool-drift.window=3")
    assert before["answer"] == "not_applicable"
    assert after["answer"] == "signal"


def test_skipped_checks_give_no_line(falling):
    found, _, _ = screened(falling, "--skip", "output-decay", "--skip", "tool-drift")
    assert {one["check"] for one in found} == {one.slug for one in CHECKS} - {
        "output-decay",
        "tool-drift",
    }


def test_each_check_answers_at_least_once_for_each_trace(tmp_path):
    path = file_of(tmp_path, decay_trace(9, 8), tools_trace(*"ab"))
    found, _, _ = screened(path)
    answered = {(one["trace_id"], one["check"]) for one in found}
    assert answered == {(n, one.slug) for n in ("1", "2") for one in CHECKS}


def test_traces_with_one_id_are_told_apart(tmp_path):
    traces = [decay_trace(9, 8, name="run", native_id=one) for one in ("ab", "ab", "b")]
    found, _, _ = screened(file_of(tmp_path, *traces), *DECAY)
    assert [one["trace_id"] for one in found] == ["ab", "ab (2)", "b"]


def test_it_screens_the_members_of_an_archive_and_names_them(tmp_path):
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a/one.jsonl", dump(decay_trace(*RARE)))
        packed.writestr("b/chat.jsonl", chat_bytes(CHAT))
        packed.writestr("broken.jsonl", b'{"messages": [{"ro')
    found, code, said = screened(path, *DECAY)
    assert code == 1
    assert [(one["member"], one["trace_id"], one["answer"]) for one in found] == [
        ("a/one.jsonl", "1", "signal"),
        ("b/chat.jsonl", "2", "not_applicable"),
    ]
    assert f"{path}, broken.jsonl" in said


def test_a_folder_is_one_file_and_with_each_it_is_many(tmp_path):
    folder = harbor_job(tmp_path / "job")
    found, code, said = screened(folder, "--check", "missing-usage")
    assert (len(found), code) == (1, 0)
    assert found[0]["member"] == "a__b"
    assert "Left out as hidden" in said
    found, code, _ = screened(folder, "--each", "--check", "missing-usage")
    assert (len(found), code) == (2, 3)


@pytest.mark.parametrize("words", [[], ["--each"]], ids=["together", "each"])
def test_an_empty_folder_is_no_clean_bill(tmp_path, words):
    found, code, said = screened(tmp_path, *words)
    assert (found, code) == ([], 3)
    assert "no files." in said or "There is nothing to screen." in said


def test_the_table_shows_what_is_for_review_and_counts_the_rest(tmp_path, falling):
    traces = [decay_trace(*TIED, name="tied"), decay_trace(9, 8, 9, 8, 9)]
    tied = file_of(tmp_path, *traces, decay_trace(9), name="\x1b[31mtied.jsonl")
    done = call("screen", falling, tied, *DECAY)
    lines = done.stdout.splitlines()
    assert lines[0] == str(falling)
    assert lines[1].split() == ["trace", "check", "level", "chance", "agent", "signal"]
    assert "1: run 1" in lines[2]
    assert "tied" not in done.stdout
    assert lines[-1].split() == ["output-decay", "1", "1", "1", "1", "1", "0.21"]
    done = call("screen", tied, *DECAY, "--fail-on", "telemetry")
    assert "1: tied" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_reader_that_stops_listening_ends_it_quietly(tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_bytes(chat_bytes(*[CHAT] * 5_000))
    assert stop_listening("screen", "--json", path, path) in {0, 1}


def processor_seconds() -> float:
    """Of all processes that were waited for; what others do here is not in it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_small_file_is_screened_in_under_a_second(calm):
    taken = []
    for _ in range(3):
        start = processor_seconds()
        assert call("screen", "--json", calm, "--fail-on", "never").returncode == 0
        taken.append(processor_seconds() - start)
    assert min(taken) < 1, taken


_PEAK = """
import sys
from evalsite.management.commands.screen import Command
try:
    Command().run_from_argv(["manage.py", "screen", sys.argv[1], "--quiet"])
except SystemExit:
    print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""


def peak_of(path) -> int:
    """Peak memory in bytes of screening a file, without printing."""
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, path],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout) * 1024


def test_more_traces_take_no_more_memory(tmp_path):
    chat = [*CHAT, *[{"role": "assistant", "content": "word " * 200}] * 20]
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    small.write_bytes(chat_bytes(*[chat] * 100))
    large.write_bytes(chat_bytes(*[chat] * 1_500))
    assert large.stat().st_size > 30_000_000
    assert peak_of(large) - peak_of(small) < 8_000_000


@pytest.fixture(scope="module")
def airline(shared_data):
    """Answers, exit code and summary of the published results file."""
    return screened(shared_data / TAU)


class TestTheAirlineFile:
    """What the published file says, and what chance alone says of it."""

    def of(self, airline, check: str, *answers: str) -> list[dict]:
        lines = [one for one in airline[0] if one["check"] == check]
        return [one for one in lines if not answers or one["answer"] in answers]

    def test_22_of_61_narrow_and_only_the_rare_ones_are_for_review(self, airline):
        drift = self.of(airline, "tool-drift", "signal", "quiet")
        signals = self.of(airline, "tool-drift", "signal")
        assert (len(drift), len(signals)) == (61, 22)
        queued = [one for one in signals if one["level"] == "review_signal"]
        assert queued
        for one in signals:
            assert (one in queued) is (one["p"]["value"] <= 0.05)
        assert sum(one["expected"] for one in drift) == pytest.approx(19.31, abs=0.01)

    def test_each_probability_is_a_fraction_with_its_method(self, airline):
        for one in self.of(airline, "tool-drift", "signal", "quiet"):
            chance = one["p"]
            exact = chance["numerator"] / chance["denominator"]
            assert exact == pytest.approx(chance["value"])
            assert chance["method"].startswith("exact")
            assert one["boundary"] == {
                "began": "start of the agent invocation",
                "ended": "end of the agent invocation",
            }

    def test_output_decay_can_answer_for_none_because_usage_is_missing(self, airline):
        decay = self.of(airline, "output-decay")
        assert len(decay) == 200
        assert {one["answer"] for one in decay} == {"not_applicable"}
        assert all(one["usage_missing"] == one["length"] > 0 for one in decay)

    def test_the_summary_stands_beside_chance(self, airline):
        _, code, said = airline
        assert code == 1
        assert "tool-drift: 22 signals (" in said
        assert (
            "from 61 applicable sequences; chance alone would give about 19 (" in said
        )
        assert "and 22 or more with probability 0.2" in said
        assert "; that is within what chance gives." in said
        assert "output-decay: not applicable, 200 of 200 times" in said


def test_it_screens_every_real_file_without_a_crash(shared_data):
    found, code, said = screened("--each", shared_data)
    assert code == 3, "some traps cannot be read"
    assert "broke" not in said
    assert {one["answer"] for one in found} == {"signal", "quiet", "not_applicable"}
    assert all(set(one) == FIELDS for one in found)
