"""The arguments of a tool call as a decision."""

from __future__ import annotations

from typing import Any

from apps.engine.bodies.calls import CalledTool
from apps.engine.bodies.canonical import opened
from apps.engine.bodies.patterns import names, valid_text
from apps.engine.conduct import InvocationConduct


class ToolNames:
    """Which tools a pattern of names takes; each name is looked at once."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._compiled = names(pattern or "*")
        self._known: dict[str, bool] = {}

    def take(self, name: str) -> bool:
        """Whether `name` is one of them."""
        known = self._known.get(name)
        if known is None:
            known = self._compiled.fullmatch(valid_text(name)) is not None
            if len(self._known) < 10_000:
                self._known[name] = known
        return known

    def last(self, one: InvocationConduct) -> CalledTool | None:
        """The last call of such a tool in an invocation."""
        for call in reversed(one.calls):
            if self.take(call.name):
                return call
        return None

    def words(self) -> str:
        """The tools in a sentence: `a tool named “refund”`, `any tool`."""
        return f"a tool named “{self.pattern}”" if self.is_one else "any tool"

    @property
    def is_one(self) -> bool:
        """Whether certain tools are named, and not any."""
        return bool(self.pattern.strip("* "))

    def why_none(self) -> str:
        """A sentence for an invocation that called no such tool."""
        named = f" named “{self.pattern}”" if self.is_one else ""
        return f"It called no tool{named}."


def arguments_of(one: InvocationConduct, call: CalledTool) -> Any:
    """The arguments of a call as a JSON value; `None` where they are not recorded."""
    step = _step(one, call)
    return None if step is None or step.body is None else opened(step.body.input)


def result_of(one: InvocationConduct, call: CalledTool) -> Any:
    """The result of a call as a JSON value; `None` where none is recorded."""
    step = _step(one, call)
    return None if step is None or step.body is None else opened(step.body.output)


def _step(one: InvocationConduct, call: CalledTool) -> Any:
    return next((step for step in one.steps if step.seq == call.step), None)
