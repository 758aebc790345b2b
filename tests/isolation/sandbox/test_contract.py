"""What a callable and a command may be, and what they are given."""

from __future__ import annotations

import sys
import time

import msgspec
import pytest

from apps.engine.replay.run import Ending, ErrorKind, RunError
from apps.isolation.sandbox import (
    RELAY_URL,
    Allowed,
    Level,
    Refused,
    RelayResponse,
    SandboxOrder,
    StopRun,
    run_program,
)
from tests.isolation.sandbox.runs import PLANTED, SMALL, WALLED, of_kind, ordered, ran

GIVEN = {
    "input": {"amount": 5},
    "messages": [{"role": "user", "content": "hello"}],
    "state": {"seen": 1},
    "tools": [
        {"name": "look_up", "description": "Looks.", "parameters": {"type": "object"}}
    ],
    "case_name": "the first",
    "model_url": RELAY_URL,
}


def doubled(question):
    if question["ask"] == "message":
        return {}
    number = question["arguments"]["number"]
    return {"result": 2 * number} if number else {"error": "no such number"}


FORMS = [
    ("plain", {"found": 14, "input": {"amount": 5}, "case": "the first"}),
    ("waiting", 14),
    ("in_pieces", "ab"),
    ("in_pieces_with_output", {"decision": "A"}),
    ("waiting_in_pieces", "ab"),
    ("knows_its_tools", [["look_up", "Looks.", ["type"]]]),
    ("sees_a_failure", "failed: no such number"),
    ("Remembers", "heard 2"),
]


@pytest.mark.parametrize(("name", "output"), FORMS)
def test_a_callable_may_have_any_form(name, output):
    given = {**GIVEN, "state": ["before"]} if name == "Remembers" else GIVEN
    found = ran(f"good:{name}", given=given, ask=doubled)
    assert (found.ending, found.error, found.output) == ("finished", None, output)
    assert found.effects == ()
    assert found.input_after == found.input_before != ""


def test_its_state_is_its_own_copy_and_comes_back():
    found = ran("good:with_state", given=GIVEN)
    assert (found.output, found.state) == (GIVEN["messages"], {"seen": 2})
    assert GIVEN["state"] == {"seen": 1}


def test_many_threads_may_ask_at_once():
    found = ran("good:from_many_threads", given=GIVEN, ask=doubled)
    assert found.output == [2 * one for one in range(1, 9)]


@pytest.mark.parametrize("level", WALLED)
def test_it_reaches_its_model_endpoint_and_nothing_else(level):
    asked = []

    def relay(request):
        asked.append(request)
        pieces = (b'{"choices"', b": []}")
        return RelayResponse(
            status=200, headers={"Content-Type": "application/json"}, body=pieces
        )

    found = ran("good:asks_its_model", given=GIVEN, relay=relay, at_most=level)
    assert (found.output, found.effects) == ('{"choices": []}', ())
    assert [(one.method, one.path, one.body) for one in asked] == [
        ("POST", "/v1/chat/completions", b'{"model": "m"}')
    ]
    without = ran("good:asks_its_model", given=GIVEN, at_most=level)
    assert without.error.kind == "target"
    assert [one.what for one in of_kind(without, "socket")] == [
        "connect to 127.0.0.1:4180"
    ]


def test_whoever_answers_may_end_the_run_and_whoever_watches_too():
    def ask(_question):
        error = RunError(kind=ErrorKind.STOPPED, sentence="No recording fits.")
        raise StopRun(Ending.STOPPED, error)

    found = ran("good:plain", given=GIVEN, ask=ask)
    assert (found.ending, found.error.sentence) == ("stopped", "No recording fits.")
    began = time.monotonic()
    found = ran("defects:sleeps", stop=lambda: time.monotonic() > began + 0.3)
    assert (found.ending, found.error.kind) == ("cancelled", "cancelled")
    assert time.monotonic() - began < 5


SHELL = "/bin/sh"
COMMANDS = [
    ('read line; echo "$line" >&2; echo plain words', "finished", "plain words"),
    (
        'read l; echo \'{"ask": "tool", "tool": "t", "arguments": {"number": 4}, '
        '"id": 9}\'; read a; echo "{\\"output\\": $a}"',
        "finished",
        {"id": 9, "result": 8},
    ),
    ("echo some words; exit 3", "failed", "ended with exit code 3"),
    ("kill -9 $$", "failed", "ended by the signal SIGKILL"),
    ('echo \'{"output": "early"}\'; exec sleep 600', "finished", "early"),
    ("head -c 3000000 /dev/zero", "failed", "printed more than 1,048,576 bytes"),
]


@pytest.mark.parametrize(("script", "ending", "found"), COMMANDS)
def test_a_command_reads_and_writes_lines(script, ending, found):
    run = ran((SHELL, "-c", script), given=GIVEN, ask=doubled)
    assert run.ending == ending, run.error
    if ending == "finished":
        assert run.output == found
    else:
        assert found in run.error.sentence
    if "exec sleep" in script:
        assert [one.what for one in of_kind(run, "left_running")] == [
            "/bin/sh ran on after its answer"
        ]


REFUSED = [
    ({"target": "os:system", "allowed": Allowed()}, "list of callables"),
    ({"target": "good:plain.__globals__"}, "list of callables"),
    ({"target": "good;import os:x"}, "is no name like package.module:name"),
    ({"target": ("/bin/sh",), "allowed": Allowed()}, "list of commands"),
    ({"target": ()}, "An empty command is not on"),
    ({"code": (PLANTED / "nowhere",)}, "is not there"),
    ({"never": (PLANTED.parent,)}, "is never to be read"),
    ({"never": (PLANTED / "data",)}, "is never to be read"),
    (
        {"at_most": Level.LANDLOCK_SECCOMP, "least": Level.NAMESPACES},
        "isolated by Landlock and seccomp at best, and namespaces is the least",
    ),
    ({"at_most": Level.NONE}, "isolated by none at best"),
    (
        {
            "at_most": Level.NONE,
            "least": Level.NONE,
            "relay": lambda _: RelayResponse(),
        },
        "no way to a model endpoint",
    ),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_what_may_not_run_is_refused_in_a_sentence_before_it_begins(changes, words):
    listed = Allowed(callables=frozenset({"good:plain"}))
    order = msgspec.structs.replace(
        ordered("good:plain"), **{"allowed": listed, **changes}
    )
    with pytest.raises(Refused, match=words):
        run_program(order, ask=lambda _: {}, stop=lambda: False, clock_ns=time.time_ns)
    assert "good" not in sys.modules


def test_a_large_input_is_handed_over_whole():
    given = {**GIVEN, "input": "x" * 3_000_000}
    limits = msgspec.structs.replace(SMALL, answer_bytes=4_000_000)
    found = ran("good:plain", given=given, ask=doubled, limits=limits)
    assert found.error is None
    assert len(found.output["input"]) == 3_000_000
    assert found.effects == ()


def test_an_order_has_the_least_level_that_walls():
    assert SandboxOrder(target="a:b").least == Level.LANDLOCK_SECCOMP
