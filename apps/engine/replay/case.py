"""Cases: one frozen input of one agent, with what its tools answered when recorded.

A case never changes. It does not claim that what was frozen is all that the agent knew
in its trace: what was not recorded is not in it.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from apps.engine.bodies.canonical import canonical


class ToolOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the agent may call; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class RecordedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call of the recorded trace and what the tool answered.

    `error` is "" where it succeeded. `writes` says that the tool changes something, so
    that a repeat is an intended act. `step` is its place in the trace.
    """

    tool: str
    arguments: Any = None
    result: Any = None
    error: str = ""
    writes: bool = False
    step: int | None = None


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent is given in a replay. All values are JSON values.

    `input` is what it is asked, `messages` the messages of its first model call as they
    were sent (system prompt and upstream context included; empty where not recorded),
    `state` what it remembers from before, `context` what else came from upstream.
    `calls` are the recorded tool calls in order. `model` and `parameters` are those of
    the recorded calls, `name` is for people.
    """

    agent: str
    name: str = ""
    input: Any = None
    messages: tuple[dict[str, Any], ...] = ()
    tools: tuple[ToolOffer, ...] = ()
    calls: tuple[RecordedCall, ...] = ()
    state: Any = None
    context: dict[str, Any] = {}
    model: str = ""
    parameters: dict[str, Any] = {}


def case_hash(case: Case) -> str:
    """SHA-256 (64 hex digits) of everything in a case but its name."""
    return hash_of(msgspec.to_builtins(msgspec.structs.replace(case, name="")))


def hash_of(value: Any) -> str:
    """SHA-256 (64 hex digits) of a JSON value; the order of keys does not matter."""
    return hashlib.sha256(canonical(value).encode("utf-8", "replace")).hexdigest()
