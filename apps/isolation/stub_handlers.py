"""Handlers of stubs: code that the operator listed, asked in the sandbox.

A handler is a callable as an agent is one: `replay.input` has the `tool` and its
`arguments`, and what it returns is the result. Each call is a process of its own, so a
handler keeps nothing from one call to the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from apps.engine.replay.case import Case
from apps.engine.replay.run import AnswerSource, ToolAnswer
from apps.isolation.local_code import LocalOrder, run_callable
from apps.isolation.sandbox import SandboxOrder

Handler = Callable[[str, Any], Any]


class HandlerFailed(Exception):
    """A handler gave no result; the message is a sentence."""


def handler_in_sandbox(sandbox: SandboxOrder) -> Handler:
    """What asks the handler that is the target of `sandbox`; raises `HandlerFailed`."""

    def asked(tool: str, arguments: Any) -> Any:
        case = Case(agent=tool, input={"tool": tool, "arguments": arguments})
        ran = run_callable(
            LocalOrder(case=case, sandbox=sandbox),
            answer=_no_tools,
            stop=lambda: False,
            clock_ns=time.time_ns,
        )
        if ran.error is not None:
            raise HandlerFailed(ran.error.sentence)
        return msgspec.to_builtins(ran.output)

    return asked


def _no_tools(tool: str, arguments: Any) -> ToolAnswer:  # noqa: ARG001
    return ToolAnswer(source=AnswerSource.MISS, error="A handler has no tools.")
