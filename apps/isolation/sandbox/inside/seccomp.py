"""A filter of system calls, written as BPF and put in place with ctypes.

Source of the machine: seccomp(2) and the classic BPF of Linux. The filter is a list of
sections, one a call; each ends in an answer, so that none runs into the next.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from typing import Any

from .syscalls import ARCHITECTURES, SECCOMP, number_of

ALLOW = 0x7FFF0000
KILL = 0x80000000
ASK = 0x7FC00000
"""The parent is asked: it writes the attempt down and answers with an error."""


def fails(number: int) -> int:
    """The answer that makes a call fail with this error."""
    return 0x00050000 | number


DENY = fails(errno.EPERM)
ABSENT = fails(errno.ENOSYS)
NO_MEMORY = fails(errno.ENOMEM)

# ld word, jeq, jgt, jset, ret; `seccomp_data` is nr, arch, ip, six arguments.
_LOAD, _EQUAL, _GREATER, _ANY_BIT, _MASK, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000
_WHEN_FAILED, _WHEN_PASSED = -1, -2

Test = tuple[str, int, int, int]
Clause = tuple[list[Test], int]
Rules = dict[str, tuple[list[Clause], int]]
"""Of each call the clauses in order, and the answer when none of them holds."""
_Line = tuple[int, int, int, int]


def equals(argument: int, value: int) -> Test:
    """The low 32 bits of an argument are `value`."""
    return ("equals", argument, value, 0)


def has_any(argument: int, bits: int) -> Test:
    """An argument has at least one of the bits (of its low 32)."""
    return ("has_any", argument, bits, 0)


def masked(argument: int, mask: int, value: int) -> Test:
    """The low 32 bits of an argument under a mask are `value`."""
    return ("masked", argument, mask, value)


def over(argument: int, value: int) -> Test:
    """An argument of 64 bits is greater than `value`."""
    return ("over", argument, value, 0)


def _lines_of(test: Test) -> list[_Line]:
    """The instructions of a test; negative jumps are put in place by `_clause`."""
    kind, argument, first, second = test
    low = _ARGUMENTS + 8 * argument
    load: _Line = (_LOAD, 0, 0, low)
    if kind == "equals":
        return [load, (_EQUAL, 0, _WHEN_FAILED, first)]
    if kind == "has_any":
        return [load, (_ANY_BIT, 0, _WHEN_FAILED, first)]
    if kind == "masked":
        return [load, (_MASK, 0, 0, first), (_EQUAL, 0, _WHEN_FAILED, second)]
    high_value, low_value = first >> 32, first & 0xFFFFFFFF
    return [
        (_LOAD, 0, 0, low + 4),
        (_GREATER, _WHEN_PASSED, 0, high_value),
        (_EQUAL, 0, _WHEN_FAILED, high_value),
        load,
        (_GREATER, 0, _WHEN_FAILED, low_value),
    ]


def _clause(clause: Clause) -> list[_Line]:
    """All tests of a clause and its answer; jumps past its end when one fails."""
    tests, answer = clause
    blocks = [_lines_of(test) for test in tests]
    whole = sum(len(block) for block in blocks) + 1
    lines: list[_Line] = []
    for block in blocks:
        end_of_block = len(lines) + len(block)
        for code, yes, no, value in block:
            here = len(lines)
            to = {_WHEN_FAILED: whole - here - 1, _WHEN_PASSED: end_of_block - here - 1}
            lines.append((code, to.get(yes, yes), to.get(no, no), value))
    return [*lines, (_RETURN, 0, 0, answer)]


def program(rules: Rules, machine: str) -> bytes:
    """The filter as BPF for one machine (`x86_64` or `aarch64`), 8 bytes a line.

    What no rule names is allowed. A process of another architecture is killed, the
    x32 calls of x86_64 do not exist. Raises `ValueError` where a call's rules are too
    long to be jumped over.
    """
    lines: list[_Line] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, ARCHITECTURES[machine][1]),
        (_RETURN, 0, 0, KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        lines += [(_GREATER, 0, 1, _X32 - 1), (_RETURN, 0, 0, ABSENT)]
    for name, (clauses, otherwise) in rules.items():
        number = number_of(name, machine)
        if number is None:
            continue
        section = [line for clause in clauses for line in _clause(clause)]
        section.append((_RETURN, 0, 0, otherwise))
        if len(section) > 255:
            raise ValueError(f"The rules of {name} are too long.")
        lines += [(_EQUAL, 0, len(section), number), *section]
    lines.append((_RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("lines", ctypes.c_void_p)]


def install(filter_lines: bytes, machine: str, *, asks: bool) -> int:
    """Put the filter on this process for good; no new privileges must be set before.

    With `asks` it comes back with the file descriptor on which the parent is asked,
    else with 0. Raises `OSError`.
    """
    libc: Any = ctypes.CDLL(None, use_errno=True)
    held = ctypes.create_string_buffer(filter_lines, len(filter_lines))
    whole = _Program(len(filter_lines) // 8, ctypes.cast(held, ctypes.c_void_p))
    set_filter, new_listener = 1, 1 << 3
    flags = new_listener if asks else 0
    found = libc.syscall(SECCOMP[machine], set_filter, flags, ctypes.byref(whole))
    if found < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return int(found)
