"""Agents with planted defects: each is contained, and named in its record."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from apps.isolation.sandbox import Level, probe
from tests.isolation.sandbox.planted.defects import OUTSIDE
from tests.isolation.sandbox.runs import SMALL, WALLED, of_kind, ran

# Of each agent how it ends, words of its error, and the effects by kind and words.
EFFECTS = [
    ("writes_a_file", "file_write", f"write {OUTSIDE}", 1),
    ("opens_a_socket", "socket", "connect to 203.0.113.7:443", 2),
    ("looks_up_a_name", "name_lookup", "look up exfil.example.com", 0),
    ("starts_a_program", "process", "start /bin/ls /", 0),
    ("forks", "process", "start a copy of itself", 0),
    ("runs_a_shell", "process", "start echo hello", 0),
    ("calls_the_kernel", "socket", "make a socket (IPv4, datagram)", 0),
    ("calls_the_kernel", "signal", "signal 9 to process 1", 0),
    ("reads_the_product", "file_read", "read /proc/1/environ", 0),
    ("signals_others", "signal", "signal 9 to process", 0),
    ("changes_its_input", "input_changed", "changed the input", 0),
    ("replaces_its_messages", "input_changed", "changed the input", 0),
    ("prints_a_secret", "leak", "gave out a secret", 0),
]
ENDINGS = [
    ("sleeps", "timed_out", "timed_out", "had not answered after 0.7 s and was killed"),
    ("ignores_being_ended", "timed_out", "timed_out", "was killed"),
    ("swallows_everything", "timed_out", "timed_out", "was killed"),
    ("exits", "failed", "crashed", "ended its process with exit code 7"),
    ("leaves", "failed", "crashed", "raised SystemExit: enough"),
    ("interrupts", "failed", "crashed", "raised KeyboardInterrupt"),
    ("crashes", "failed", "crashed", "was ended by the signal SIGSEGV"),
    ("recurses", "failed", "target", "raised RecursionError"),
    ("raises", "failed", "target", "raised ValueError: no such customer"),
    ("raises_something_odd", "failed", "target", "raised Odd: an error without a text"),
    ("gives_an_object", "failed", "bad_answer", "Object of type object is not JSON"),
    ("gives_nan", "failed", "bad_answer", "Out of range float values"),
    ("gives_itself", "failed", "bad_answer", "Circular reference"),
    ("gives_too_deep", "failed", "bad_answer", "nested too deeply"),
    ("gives_too_much", "failed", "too_large", "bytes, more than 1,048,576"),
    ("takes_nothing", "failed", "target", "does not take what it is given"),
    ("prints_an_answer", "failed", "crashed", "exit code 0 before it answered"),
    ("writes_a_wrong_line", "failed", "bad_answer", "a line that is no JSON object"),
    ("fills_its_folder", "failed", "limit", "wrote more than 8 MB in its folder"),
    ("number", "failed", "target", "is no function and no class"),
    ("not_there", "failed", "target", "defects has no not_there"),
]
SECRET = "planted-key-0123456789"


@pytest.fixture(scope="module", params=WALLED)
def level(request):
    if not probe(request.param).level.is_at_least(request.param):
        pytest.skip(f"The level {request.param} is not reached on this machine.")
    return request.param


@pytest.mark.parametrize(("name", "kind", "words", "after"), EFFECTS)
def test_what_it_tried_is_named_with_the_event_it_came_after(
    level, name, kind, words, after
):
    found = ran(
        f"defects:{name}",
        at_most=level,
        env={"PLANTED_KEY": SECRET},
        secrets=(SECRET,),
    )
    assert found.ending == "finished", found.error
    effects = [one for one in of_kind(found, kind) if words in one.what]
    assert [(one.after, one.is_breach, one.was_stopped) for one in effects] == [
        (after, True, True)
    ]
    assert not Path(OUTSIDE).exists()
    assert SECRET not in msgspec.json.encode(found).decode()


@pytest.mark.parametrize(("name", "ending", "kind", "words"), ENDINGS)
def test_however_it_ends_there_is_a_sentence_for_it(name, ending, kind, words):
    waits = kind == "timed_out" or name == "writes_a_wrong_line"
    found = ran(f"defects:{name}", seconds=0.7 if waits else None)
    assert (found.ending, found.error.kind) == (ending, kind), found.error
    assert words in found.error.sentence
    assert found.output is None
    assert found.end_ns > found.start_ns


HINT = "reads its standard input to the end waits for ever"


@pytest.mark.parametrize(
    ("script", "is_hinted"),
    [
        ("x=$(cat)", True),
        ("echo hello; x=$(cat)", False),
        ('echo \'{"ask": "tool", "tool": "look"}\'; x=$(cat)', False),
    ],
)
def test_a_command_that_is_silent_until_it_is_killed_is_told_what_it_may_wait_for(
    script, is_hinted
):
    found = ran(("/bin/sh", "-c", script), seconds=0.7)
    assert found.ending == "timed_out"
    assert "had not answered after 0.7 s and was killed." in found.error.sentence
    assert (HINT in found.error.sentence) is is_hinted


def test_a_callable_that_sleeps_is_given_no_hint_on_standard_input():
    assert HINT not in ran("defects:sleeps", seconds=0.7).error.sentence


def test_a_module_that_is_not_there_is_named():
    found = ran("no_such_module_here:agent")
    assert found.error.kind == "target"
    assert "no_such_module_here:agent cannot be imported" in found.error.sentence


def test_a_thread_that_never_ends_does_not_hold_the_run_up():
    found = ran("defects:leaves_a_thread")
    assert (found.ending, found.output) == ("finished", "done")
    assert [(one.what, one.is_breach) for one in of_kind(found, "left_running")] == [
        ("left the thread counter running", False)
    ]


def test_a_flood_is_cut_and_what_is_unseen_is_shown():
    flood = ran("defects:floods")
    assert flood.output == "done"
    assert len(flood.printed) < SMALL.printed_bytes + 100
    assert flood.printed.endswith("more bytes]")
    odd = ran("defects:prints_control_characters")
    assert odd.printed.startswith("a\\x1b[31mred\\x00\\u202e\\u200bÿ")
    assert "\x1b" not in odd.printed


def test_memory_that_was_asked_for_is_named_and_is_no_breach():
    found = ran("defects:eats_memory")
    assert (found.ending, found.error.kind) == ("failed", "limit")
    assert "needed more memory than 512 MB" in found.error.sentence
    assert [one.is_breach for one in of_kind(found, "memory")] == [False]
    assert found.peak_bytes < 600 * 1024**2


def test_half_a_character_is_replaced_and_a_zero_is_kept():
    assert ran("defects:gives_half_a_character").output == "a?b\x00"


def test_threads_without_end_are_held_by_their_limit():
    found = ran("defects:makes_no_end_of_threads", at_most=Level.NAMESPACES)
    if os.geteuid() == 0 or found.reached.level == Level.NAMESPACES:
        assert found.output < SMALL.processes
    assert found.ending == "finished"


def test_the_environment_is_clean(monkeypatch):
    monkeypatch.setenv("EVALSITE_SECRET_KEY", "canary-in-the-environment")
    found = ran("defects:tells_its_environment", env={"DECLARED": "yes"})
    assert set(found.output) <= {
        *("PATH", "LANG", "HOME", "TMPDIR", "DECLARED", "PWD", "LC_CTYPE", "SHLVL")
    }
    assert found.output["DECLARED"] == "yes"
    assert "canary" not in str(found.output)
