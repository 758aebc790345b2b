"""The table of attacks, at each level, as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import msgspec
import pytest

from apps.isolation.sandbox import Level, probe
from tests.conftest import ROOT
from tests.isolation.sandbox import attacking
from tests.isolation.sandbox.planted.attacks import ATTACKS
from tests.isolation.sandbox.runs import WALLED, ended_within, processes_with, ran

NOBODY = 65_534
NAMED = {
    "read": ("file_read", "secret"),
    "read_environ": ("file_read", "environ"),
    "write": ("file_write", "outside"),
    "change_mode": ("file_write", "secret"),
    "remove": ("file_write", "secret"),
    "tcp": ("socket", "connect to 127.0.0.1:"),
    "udp": ("socket", "make a socket (IPv4, datagram)"),
    "unix": ("socket", "/socket"),
    "abstract_unix": ("socket", "@evalsite-"),
    "signal_parent": ("signal", "signal 0 to process"),
    "end_warden": ("signal", "signal 19 to process"),
    "memory": ("memory", "bytes of memory at once"),
    "large_file": ("file_write", "filled a file"),
    "forks": ("process", "start a copy of itself"),
    "native_call": ("process", "start a copy of itself"),
}


def _as_root(level: Level) -> dict:
    if os.geteuid() != 0:
        pytest.skip("The tests do not run as root.")
    return _kept(level)


@cache
def _kept(level: Level) -> dict:
    return json.loads(msgspec.json.encode(attacking.attacked(level)))


@cache
def _of_nobody() -> dict | str:
    """The same by an ordinary account; why not, where that cannot be."""
    if os.geteuid() != 0:
        return {level: _kept(level) for level in WALLED}
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin")
    site = Path(msgspec.__file__).parents[1]
    if python is None:
        return "There is no Python here that an ordinary account could run."
    found = subprocess.run(
        [python, attacking.__file__],
        capture_output=True,
        text=True,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        env={"PYTHONPATH": f"{ROOT}:{site}", "PATH": "/usr/bin:/bin"},
        cwd="/",
        check=False,
    )
    if "ModuleNotFoundError" in found.stderr or "ImportError" in found.stderr:
        return "The Python of this system cannot load what this one uses."
    return json.loads(found.stdout) if found.returncode == 0 else found.stderr


def _by(account: str, level: Level) -> dict:
    if not probe(level).level.is_at_least(level):
        pytest.skip(f"The level {level} is not reached on this machine.")
    if account == "root":
        return _as_root(level)
    found = _of_nobody()
    if isinstance(found, str):
        if found.startswith("T"):
            pytest.skip(found)
        pytest.fail(found)
    return found[level]


levels = pytest.mark.parametrize("level", WALLED)
accounts = pytest.mark.parametrize("account", ["root", "nobody"])


@levels
@accounts
class TestAttacks:
    """None of them reaches anything, and each is named where it happened."""

    def test_it_holds_every_attack_of_a_callable(self, account, level):
        told = _by(account, level)
        assert told["level"] == level
        assert isinstance(told["attacks"], dict), told["attacks"]
        assert set(told["attacks"]) == set(ATTACKS)
        escaped = {
            name for name, how in told["attacks"].items() if not how.startswith("block")
        }
        assert escaped == set()

    def test_it_names_each_attempt_with_the_event_it_came_after(self, account, level):
        effects = _by(account, level)["effects"]
        for place, name in enumerate(ATTACKS):
            kind, words = NAMED[name]
            found = [one for one in effects if one[0] == kind and words in one[1]]
            # The file is seen from outside, at some later moment.
            places = {one[2] for one in found}
            assert place in places or (name == "large_file" and places), (name, effects)

    def test_it_holds_every_attack_of_a_command(self, account, level):
        told = _by(account, level)
        assert isinstance(told["of_command"], dict), told["of_command"]
        outcomes = dict(told["of_command"])
        started = outcomes.pop("started")
        assert 0 < started < 60
        assert all(how.startswith("blocked") for how in outcomes.values()), outcomes
        assert told["left"] == ["left sleep running"]
        assert told["are_gone"]

    def test_nothing_outside_was_reached_or_changed(self, account, level):
        told = _by(account, level)
        assert told["reached"] == [False] * 4
        assert told["files"] == {"secret": 0o666, "socket": 0o777}


def test_it_is_the_wall_that_holds_and_not_the_watch():
    """Without a wall the same agent gets through, and is written down all the same."""
    told = _kept(Level.NONE)
    for name in ("read", "write", "tcp", "udp", "unix", "abstract_unix", "forks"):
        assert told["attacks"][name] == "escaped", name
    kinds = {one[0] for one in told["effects"]}
    assert {"file_read", "file_write", "socket", "process", "left_running"} <= kinds
    assert told["reached"][0] is True
    assert told["are_gone"]


@pytest.mark.parametrize(
    ("target", "ending"),
    [("stops_its_warden", "finished"), ("kills_its_warden", "failed")],
)
def test_without_a_wall_an_agent_may_end_its_warden_and_is_ended_all_the_same(
    target, ending
):
    mark = f"evalsite-test-{os.getpid()}-{target}"
    found = ran(
        f"attacks:{target}", at_most=Level.NONE, least=Level.NONE, env={"MARK": mark}
    )
    assert found.ending == ending
    assert ("signal", True) in {(one.kind, one.is_breach) for one in found.effects}
    assert found.effects[0].was_stopped is None
    assert ended_within(mark)


BEGINS = """
import sys, time
from apps.isolation.sandbox import Level
from tests.isolation.sandbox.runs import ran
def ask(question):
    print("begun", flush=True)
    return {}
script = "read l; sleep $MARK & echo '{\\"ask\\": \\"message\\"}'; sleep $MARK"
ran(("/bin/sh", "-c", script), at_most=sys.argv[1], least=sys.argv[1], ask=ask,
    env={"MARK": sys.argv[2]})
"""


@pytest.mark.parametrize("level", Level)
def test_nothing_is_left_of_a_run_whose_worker_was_killed(level, tmp_path):
    if not probe(level).level.is_at_least(level):
        pytest.skip(f"The level {level} is not reached on this machine.")
    mark = f"32{os.getpid()}"
    begins = BEGINS.replace("sys.argv[1]", f"Level.{level.name}")
    with subprocess.Popen(
        [sys.executable, "-c", begins, level, mark],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as worker:
        assert worker.stdout.readline() == b"begun\n"
        assert processes_with(mark)
        worker.kill()
    assert ended_within(mark, 5)
