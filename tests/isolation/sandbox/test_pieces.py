"""The filter for both kinds of machines, and the order of what is written down."""

from __future__ import annotations

import errno
import os
import struct
import time

import pytest

from apps.engine.replay.run import EffectKind
from apps.isolation.sandbox import probing
from apps.isolation.sandbox.inside import policy, seccomp
from apps.isolation.sandbox.inside.syscalls import ARCHITECTURES, names_on, number_of
from apps.isolation.sandbox.ledger import Ledger
from apps.isolation.sandbox.levels import Level, Way
from apps.isolation.sandbox.scratch import new_folder, remove_abandoned

OWN = 4_321
ASKED, ALLOWED = seccomp.ASK, seccomp.ALLOW
DENIED = seccomp.fails(errno.EPERM)


def answer(program: bytes, arch: int, number: int, arguments=()) -> int:
    """What a BPF program answers to a call: the machine of the kernel, in small."""
    whole = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=iIQ6Q", number, arch, 0, *whole)
    lines = [
        struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)
    ]
    at = held = 0
    while True:
        code, yes, no, value = lines[at]
        at += 1
        if code == 0x20:
            held = struct.unpack_from("=I", data, value)[0]
        elif code == 0x54:
            held &= value
        elif code == 0x06:
            return value
        else:
            holds = {0x15: held == value, 0x25: held > value, 0x45: held & value != 0}
            at += yes if holds[code] else no


# The call, its arguments, and the answer to a callable and to a command.
CALLS = [
    ("socket", (2, 1 | 0o2000000, 6), ALLOWED, ALLOWED),
    ("socket", (1, 1, 0), ALLOWED, ALLOWED),
    ("socket", (2, 2, 0), ASKED, ASKED),
    ("socket", (2, 1, 132), ASKED, ASKED),
    ("socket", (16, 3, 0), DENIED, DENIED),
    ("socket", (40, 1, 0), ASKED, ASKED),
    ("socketpair", (1, 1, 0), ALLOWED, ALLOWED),
    ("socketpair", (1, 2, 0), ASKED, ASKED),
    ("connect", (3, 1, 16), ASKED, ASKED),
    ("sendto", (3, 1, 1, 0, 0, 0), ALLOWED, ALLOWED),
    ("sendto", (3, 1, 1, 0, 1 << 40, 16), ASKED, ASKED),
    ("sendto", (3, 1, 1, 0x20000000, 0, 0), ASKED, ASKED),
    ("sendmsg", (3, 1, 0x20000000), ASKED, ASKED),
    ("clone", (0x3D0F00,), ALLOWED, ALLOWED),
    ("clone", (17,), ASKED, ALLOWED),
    ("clone", (0x10000000 | 17,), DENIED, DENIED),
    ("clone3", (0,), seccomp.ABSENT, seccomp.ABSENT),
    ("execve", (1, 1, 1), ASKED, ASKED),
    ("kill", (OWN, 9), ALLOWED, ASKED),
    ("kill", (1, 9), ASKED, ASKED),
    ("kill", ((1 << 32) - 1, 9), ASKED, ASKED),
    ("prlimit64", (0, 7, 1), ALLOWED, ALLOWED),
    ("prlimit64", (99, 7, 0), ALLOWED, ALLOWED),
    ("prlimit64", (99, 7, 1), ASKED, ASKED),
    ("mmap", (0, 1 << 29), ALLOWED, ALLOWED),
    ("mmap", (0, (1 << 29) + 1), ASKED, ASKED),
    ("mmap", (0, 1 << 33), ASKED, ASKED),
    ("fcntl", (3, 8, 1), DENIED, DENIED),
    ("fcntl", (3, 4, 1), ALLOWED, ALLOWED),
    ("ioctl", (0, 0x5412, 0), DENIED, DENIED),
    ("ioctl", (0, 0x8912, 0), DENIED, DENIED),
    ("ioctl", (0, 0x5401, 0), ALLOWED, ALLOWED),
    ("ptrace", (), ASKED, ASKED),
    ("io_uring_setup", (), seccomp.ABSENT, seccomp.ABSENT),
    ("setsockopt", (3, 1, 13), DENIED, DENIED),
    ("setsockopt", (3, 6, 13), ALLOWED, ALLOWED),
    ("prctl", (1, 0), DENIED, DENIED),
    ("prctl", (4, 0), DENIED, DENIED),
    ("prctl", (15, 1), ALLOWED, ALLOWED),
    ("memfd_create", (), seccomp.ABSENT, seccomp.ABSENT),
    ("fchmodat", (), ASKED, ASKED),
    ("truncate", (), ASKED, ASKED),
]


def _rules(*, is_command: bool, landlock: int = 1, has_mounts: bool = False):
    return policy.rules(
        OWN,
        is_command=is_command,
        memory=1 << 29,
        landlock=landlock,
        has_mounts=has_mounts,
    )


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("is_command", [False, True])
def test_the_filter_answers_each_call_as_the_policy_says(machine, is_command):
    arch = ARCHITECTURES[machine][1]
    program = seccomp.program(_rules(is_command=is_command), machine)
    for name, arguments, alone, command in CALLS:
        number = number_of(name, machine)
        if number is None:
            continue
        wanted = command if is_command and name != "kill" else alone
        found = answer(program, arch, number, arguments)
        assert found == wanted, (name, arguments, hex(found))
    known = set(names_on(machine))
    others = [number for number in range(500) if number not in known]
    assert {answer(program, arch, number) for number in others} == {ALLOWED}
    assert answer(program, 0x40000003, 1) == seccomp.KILL


def test_nobody_is_asked_where_nobody_can_be():
    for is_command in (False, True):
        plain = policy.without_asking(
            _rules(is_command=is_command), is_command=is_command
        )
        answers = {last for _, last in plain.values()}
        answers |= {to for clauses, _ in plain.values() for _, to in clauses}
        assert ASKED not in answers
        assert plain["connect"][1] == DENIED
        assert plain["execve"][1] == (ALLOWED if is_command else DENIED)
        assert plain["mmap"][0][0][1] == seccomp.NO_MEMORY


def test_what_is_mounted_apart_needs_less_of_the_filter():
    apart = _rules(is_command=True, landlock=7, has_mounts=True)
    assert not {"fchmodat", "truncate", "kill"} & set(apart)
    assert "kill" in _rules(is_command=True, landlock=5)
    assert "kill" not in _rules(is_command=True, landlock=6)


def test_the_x32_calls_do_not_exist():
    program = seccomp.program(_rules(is_command=False), "x86_64")
    arch = ARCHITECTURES["x86_64"][1]
    assert answer(program, arch, 0x40000000 | 42) == seccomp.ABSENT


class TestLedger:
    """What the watch says and what the wall says is one attempt, and no other is lost."""

    def told(self, *said):
        ledger = Ledger()
        for who, kind, what, after in said:
            ledger.after = after
            if who == "watch":
                ledger.told(EffectKind(kind), what, was_stopped=True)
            else:
                ledger.held_back(EffectKind(kind), what)
        return [(one.what, one.after) for one in ledger.all()]

    @pytest.mark.parametrize(
        ("said", "listed"),
        [
            (
                [
                    ("watch", "socket", "connect to a:1", 0),
                    ("wall", "socket", "connect to a:1", 0),
                    ("wall", "socket", "connect to b:1", 0),
                ],
                ["connect to a:1", "connect to b:1"],
            ),
            (
                [
                    ("watch", "name_lookup", "look up a", 0),
                    ("wall", "socket", "make a socket (IPv4, datagram)", 0),
                    ("wall", "socket", "make a socket (IPv6, datagram)", 0),
                    ("wall", "process", "start a copy of itself", 0),
                ],
                ["look up a", "start a copy of itself"],
            ),
            (
                [
                    ("watch", "process", "start ls", 0),
                    *[("wall", "process", "start a copy of itself", 0)] * 2,
                    ("wall", "process", "start a copy of itself", 1),
                ],
                ["start ls", "start a copy of itself"],
            ),
            (
                [
                    ("watch", "file_read", "read /a", 0),
                    ("watch", "file_read", "read /a", 0),
                    ("watch", "file_read", "read /a", 1),
                ],
                ["read /a", "read /a"],
            ),
        ],
    )
    def test_it_lists_each_attempt_once(self, said, listed):
        assert [what for what, _ in self.told(*said)] == listed

    def test_what_the_watch_calls_harmless_is_so_for_programs_and_probes_alone(self):
        ledger = Ledger()
        for kind, what in (
            ("socket", "connect to a:1"),
            ("socket", "listen on ::1:0"),
            ("process", "start uname"),
        ):
            ledger.told(EffectKind(kind), what, was_stopped=True, is_breach=False)
            ledger.held_back(EffectKind(kind), what)
        breaches = [one.what for one in ledger.all() if one.is_breach]
        assert breaches == ["connect to a:1"]

    def test_a_flood_of_attempts_is_counted(self):
        flood = [("watch", "file_read", f"read /{n}", 0) for n in range(600)]
        assert self.told(*flood)[-1][0] == "100 more attempts that are not listed"


def test_the_folder_of_a_killed_worker_is_removed_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ours = new_folder()
    assert ours.stat().st_mode & 0o777 == 0o700
    gone, foreign = tmp_path / "evalsite-run-999999999-x", tmp_path / "evalsite-run-x-y"
    for folder in (gone, foreign):
        (folder / "kept").mkdir(parents=True)
    remove_abandoned()
    assert gone.exists()
    remove_abandoned(now=time.time() + 7_200)
    assert {path.name for path in tmp_path.iterdir()} == {ours.name, foreign.name}
    assert str(os.getpid()) in ours.name


def test_what_killed_workers_left_is_looked_for_before_runs_and_not_each_time(
    monkeypatch,
):
    looked: list[str] = []
    monkeypatch.setattr(probing, "_KNOWN", {Level.NONE: Way(level=Level.NONE)})
    monkeypatch.setattr(probing, "_TIDIED", {})
    monkeypatch.setattr(probing, "remove_abandoned", lambda: looked.append("looked"))
    for _ in range(3):
        probing.best_way(Level.NONE)
    assert len(looked) == 1
    monkeypatch.setattr(probing, "_TIDIED", {"again_at": 0.0})
    probing.best_way(Level.NONE)
    assert len(looked) == 2


def test_a_wall_that_a_busy_machine_was_too_slow_for_is_tried_again(monkeypatch):
    best, next_best = Way(level=Level.NAMESPACES), Way(level=Level.LANDLOCK_SECCOMP)
    tried: list[Way] = []

    def works(way: Way) -> bool:
        tried.append(way)
        if len(tried) == 1:
            raise TimeoutError
        return True

    monkeypatch.setattr(probing, "_KNOWN", {})
    monkeypatch.setattr(probing, "_ways", lambda _at_most: iter([best, next_best]))
    monkeypatch.setattr(probing, "_works", works)
    found = [probing.best_way(Level.NAMESPACES) for _ in range(3)]
    assert found == [next_best, best, best]
    assert tried == [best, next_best, best]
