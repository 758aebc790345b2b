"""Handlers of stubs run in the sandbox, one process a call."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.engine.replay.run import Limits
from apps.isolation.sandbox import Allowed, SandboxOrder
from apps.isolation.stub_handlers import HandlerFailed, handler_in_sandbox

CODE = """
import os

def lookup(replay):
    asked = replay.input
    return {"tool": asked["tool"], "number": asked["arguments"]["number"] * 2}

def leaves(replay):
    open("/etc/evalsite-was-here", "w").write("x")

def sleeps(replay):
    import time
    time.sleep(60)

def asks(replay):
    return replay.tools["other"]()
"""


@pytest.fixture
def sandbox(tmp_path):
    (tmp_path / "desk_handlers.py").write_text(CODE)

    def of(name: str, *, allowed: str = "", seconds: float = 20) -> SandboxOrder:
        return SandboxOrder(
            target=f"desk_handlers:{name}",
            allowed=Allowed(callables=frozenset({f"desk_handlers:{allowed or name}"})),
            limits=Limits(seconds=seconds),
            code=(tmp_path,),
        )

    return of


def test_a_handler_is_given_the_call_and_gives_the_result(sandbox):
    asked = handler_in_sandbox(sandbox("lookup"))
    assert asked("get_order", {"number": 7}) == {"tool": "get_order", "number": 14}


@pytest.mark.parametrize(
    ("name", "allowed", "said"),
    [
        ("lookup", "other", "not"),
        ("leaves", "", "raised"),
        ("sleeps", "", "not answered after 2 s"),
        ("asks", "", "A handler has no tools"),
        ("nowhere", "", "has no nowhere"),
    ],
)
def test_what_a_handler_may_not_do_fails_in_words(sandbox, name, allowed, said):
    asked = handler_in_sandbox(sandbox(name, allowed=allowed, seconds=2))
    with pytest.raises(HandlerFailed, match=said):
        asked("get_order", {"number": 7})
    assert not Path("/etc/evalsite-was-here").exists()
