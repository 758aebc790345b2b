"""Agents that try to fool, to stall or to fill whoever runs them."""

from __future__ import annotations

import os
import resource
import tempfile
import time

import msgspec
import pytest

from apps.engine.replay.case import Case
from apps.engine.replay.run import ToolAnswer
from apps.isolation.local_code import (
    LocalOrder,
    run_callable,
    run_command,
    run_stateful,
)
from apps.isolation.sandbox import RelayResponse, probe
from apps.isolation.sandbox.folders import SYSTEM, of_interpreter
from apps.isolation.sandbox.inside.family import descendants
from apps.isolation.sandbox.printed import HIDDEN
from apps.isolation.sandbox.scratch import new_folder, remove_folder
from tests.isolation.sandbox.runs import SMALL, WALLED, of_kind, ordered, ran

SECRET = "planted-key-0123456789"


@pytest.fixture(autouse=True)
def _scratch(tmp_path, monkeypatch):
    """Nothing may be left of any of them, no folder and no process."""
    tmp_path.chmod(0o711)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = {one for one, _ in descendants(os.getpid())}
    yield
    assert list(tmp_path.glob("evalsite-run-*")) == []
    assert {one for one, _ in descendants(os.getpid())} <= before


def recorded(target, *, case=None, run=run_callable, **changes):
    """The record of a run, whose tools always answer 1."""
    hooks = {
        "answer": lambda *_: ToolAnswer(source="static", result=1),
        "stop": lambda: False,
        "clock_ns": time.time_ns,
    }
    case = case or Case(agent="a", input=1)
    return run(LocalOrder(case=case, sandbox=ordered(target, **changes)), **hooks)


@pytest.mark.parametrize("level", WALLED)
def test_a_flood_of_lines_does_not_keep_it_alive_beyond_its_time(level):
    if not probe(level).level.is_at_least(level):
        pytest.skip(f"The level {level} is not reached on this machine.")
    began = time.monotonic()
    found = ran(
        "hostile:floods_its_line_while_the_kernel_asks", seconds=0.7, at_most=level
    )
    assert found.ending == "timed_out"
    assert time.monotonic() - began < 6


def test_whatever_it_tries_at_the_same_time_its_answer_is_heard():
    """What the watch says and what the kernel asks come at once, and in any order."""
    began = time.monotonic()
    for _ in range(4):
        found = ran("hostile:tries_again_and_again")
        assert (found.error, found.output) == (None, "done")
        assert len({one.what for one in of_kind(found, "socket")}) == 240
    assert time.monotonic() - began < 5


def test_a_breach_stays_one_whatever_the_agent_says_of_it():
    found = ran("hostile:calls_a_breach_harmless")
    effects = [one for one in of_kind(found, "socket") if one.is_breach]
    assert [one.what for one in effects] == ["connect to 203.0.113.7:443"]
    found = ran("hostile:hides_a_breach_behind_many")
    assert found.ending == "finished"
    assert any(one.is_breach for one in found.effects), found.effects[-2:]
    assert "breaches among them" in found.effects[-1].what


FINALS = [
    ({"error": {"a": 1}}, "target", "says nothing"),
    ({"error": 5}, "target", "says nothing"),
    ({"error": ["made up", "x"]}, "target", "says nothing"),
    ({"error": ["target", "a\u202eb" + "x" * 5_000]}, "target", "a\\u202ebx"),
    ({"output": [[[0] * 3]], "threads": 5, "held": 7}, None, ""),
    ({"output": 1, "threads": ["\u202e"] * 900}, None, ""),
]


@pytest.mark.parametrize(("final", "kind", "words"), FINALS)
def test_a_last_line_of_any_shape_is_a_record(final, kind, words):
    found = ran("hostile:ends_with", given={"input": final})
    assert (found.error and found.error.kind) == kind
    sentence = found.error.sentence if found.error else ""
    assert words in sentence
    assert len(sentence) <= 1_010
    assert len(found.effects) < 25
    assert "\u202e" not in repr([one.what for one in found.effects])


LIMITED = [
    ("gives_deep", "bad_answer", "nested more than 128 levels"),
    ("gives_many_values", "bad_answer", "JSON object of at most 500,0"),
    ("writes_messages_without_end", "too_large", "asked with more than"),
    ("makes_many_files", "limit", "made more than 10,000 files in its folder"),
    ("writes_into_nameless_files", "limit", "wrote more than 8 MB in its folder"),
]


@pytest.mark.parametrize(("name", "kind", "words"), LIMITED)
def test_what_has_no_bound_by_itself_gets_one(name, kind, words):
    limits = msgspec.structs.replace(SMALL, answer_bytes=3 * 1024**2)
    found = recorded(f"hostile:{name}", limits=limits)
    assert (found.error.kind, found.output) == (kind, None), found.error
    assert words in found.error.sentence


def test_replies_that_nobody_waits_for_are_not_kept():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = recorded("hostile:tells_turns_without_end", seconds=0.5)
    assert found.ending == "timed_out"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


def test_a_question_that_is_too_deep_is_an_error_of_the_tool():
    found = recorded("hostile:asks_too_deep")
    assert (found.output, found.events) == ("It is nested more than 128 levels.", ())


@pytest.mark.parametrize("name", ["digs", "shuts_folders"])
def test_no_folder_is_too_deep_or_too_shut_to_be_removed(name):
    assert ran(f"hostile:{name}").ending in {"finished", "failed"}


@pytest.mark.parametrize("level", WALLED)
def test_no_run_reads_what_another_one_keeps_at_the_same_time(level):
    if not probe(level).level.is_at_least(level):
        pytest.skip(f"The level {level} is not reached on this machine.")

    def other(question):
        given = {"input": question["arguments"]}
        found = ran("hostile:reads_another_run", at_most=level, given=given)
        return {"result": [found.output, len(of_kind(found, "file_write"))]}

    found, writes = ran("hostile:keeps_a_file", at_most=level, ask=other).output
    assert set(found) <= {"PermissionError", "FileNotFoundError"}, found
    assert (len(found), writes) == (5, 1)


def test_removing_a_folder_follows_no_link(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    kept.chmod(0o755)
    ours = new_folder()
    (ours / "link").symlink_to(kept)
    (ours / "deep").mkdir()
    (ours / "deep" / "up-0").mkdir()
    (ours / "up-0").mkdir()
    (ours / "deep" / "link").symlink_to(kept / "file")
    ours.chmod(0)
    remove_folder(ours)
    assert not ours.exists()
    link = tmp_path / "evalsite-run-1-x"
    link.symlink_to(kept)
    remove_folder(link)
    assert (kept / "file").exists()
    assert kept.stat().st_mode & 0o777 == 0o755
    link.unlink()


def test_it_cannot_outlive_its_parent_hide_from_it_or_make_it_wait():
    found = ran("hostile:stands_apart")
    assert found.output == [-1, -1, -1, "blocked"]


def test_a_secret_is_hidden_in_effects_and_in_conversations_too():
    more = {"env": {"PLANTED_KEY": SECRET}, "secrets": (SECRET,)}
    found = ran("hostile:leaks_in_an_effect", **more)
    assert [one.what for one in of_kind(found, "file_read")] == [f"read /{HIDDEN}"]
    assert of_kind(found, "leak")

    def drive(conversation):
        return conversation.turn("Hello").answer, conversation.state()

    ran_, said = recorded(
        "hostile:LeaksInATurn",
        run=lambda order, **hooks: run_stateful(order, drive, **hooks),
        **more,
    )
    assert said == (HIDDEN, {HIDDEN: 1})
    assert SECRET not in repr((ran_, ordered("good:plain", **more)))
    assert "leak" in {one.kind for one in ran_.effects}


def test_connections_to_the_model_are_bound_and_their_lengths_are_read_strictly(capfd):
    def relay(_request):
        return RelayResponse(body=b"yes")

    case = Case(agent="a", input=1)
    found = recorded("hostile:opens_many_connections", case=case, relay=relay)
    assert found.output == [32, 28]
    found = recorded("hostile:sends_odd_lengths", case=case, relay=relay)
    assert found.output == ["HTTP/1.1 413"] * 4
    assert "Traceback" not in capfd.readouterr().err


def test_a_command_that_prints_many_lines_is_read_in_time():
    script = "yes '' | head -c 900000; echo end"
    began = time.monotonic()
    found = ran(("/bin/sh", "-c", script), seconds=20)
    assert found.output == "end"
    assert time.monotonic() - began < 5


def test_after_the_end_nothing_more_is_answered_or_written_down():
    """Asked for five things at once, of which the first ends the run."""
    asks = '{"ask": "tool", "tool": "look", "arguments": {}}'
    wait = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
    script = f"for n in 1 2 3 4 5; do echo '{asks}'; {wait}; done; sleep 9"
    asked = []

    def run(order, **hooks):
        def answer(*_):
            asked.append(1)
            time.sleep(0.3)
            return ToolAnswer(source="miss", stops=True, note="No more.")

        return run_command(order, **{**hooks, "answer": answer})

    found = recorded(("/bin/sh", "-c", script), run=run)
    assert (found.ending, len(found.events), asked) == ("stopped", 1, [1])


def test_a_command_has_no_other_way_in_than_its_own():
    script = "ls -l /proc/self/fd"
    found = ran(("/bin/sh", "-c", script), limits=SMALL)
    assert "socket:" not in found.output
    assert "pipe:" in found.output


def test_the_keys_of_this_machine_and_whole_homes_are_not_among_what_may_be_read(
    tmp_path,
):
    private = {"/etc/ssl", "/etc/pki", "/etc/pki/tls", "/etc/ssl/private"}
    assert not private & set(SYSTEM)
    home = tmp_path / "home"
    for name in ("bin", "lib", "mail"):
        (home / name).mkdir(parents=True)
    (home / "bin" / "python3").touch()
    found = of_interpreter(home / "bin" / "python3")
    assert set(found) == {home / "bin", home / "lib"}
