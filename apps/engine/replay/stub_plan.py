"""How the tools of an agent are answered in a replay, as plain values people write.

Decoding names the field that is wrong in a sentence. A plan has no live tools: what it
does not know is a miss, and a miss has a declared answer too.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, TypeVar

import msgspec

from apps.engine.bodies.offers import plain_name
from apps.engine.contracts.expressions import BadExpression
from apps.engine.replay.stub_expressions import Computed

_Kind = TypeVar("_Kind")

MOST_TOOLS: Final = 500
LONGEST_NAME: Final = 200


class BadPlan(ValueError):
    """A plan that is not used: `field` names the place, the message says why."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class StubKind(StrEnum):
    """What answers a call.

    `recorded` needs the arguments of a recording, `in_order` takes the recordings of
    the tool one after another whatever the arguments are.
    """

    RECORDED = "recorded"
    IN_ORDER = "in_order"
    STATIC = "static"
    EXPRESSION = "expression"
    HANDLER = "handler"


class Again(StrEnum):
    """What happens once the recordings of a call are used up.

    `last` gives the last of them again, `miss` makes it a miss.
    """

    LAST = "last"
    MISS = "miss"


class MissPolicy(StrEnum):
    """What a call that no stub knows is answered: an error, nothing, or the end."""

    ERROR = "error"
    EMPTY = "empty"
    STOP = "stop"


class ToolStub(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one tool is answered.

    `again` is of recordings; `value` is the result of a static stub, or `error` its
    failure; `expression` is CEL that gives the result; `handler` is a name on the
    operator's allow-list. `writes` says that the tool changes something; `null` leaves
    it to the recording and to the name of the tool.
    """

    kind: StubKind = StubKind.RECORDED
    again: Again = Again.LAST
    value: Any = None
    error: str = ""
    expression: str = ""
    handler: str = ""
    writes: bool | None = None


class StubPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How each tool is answered: `tools` by name, `default` for the rest, and misses."""

    tools: dict[str, ToolStub] = {}
    default: ToolStub = ToolStub()
    misses: MissPolicy = MissPolicy.ERROR

    def of(self, tool: str) -> ToolStub:
        """How a tool of this name is answered, as far as providers rename tools."""
        own = self.tools.get(tool)
        if own is not None:
            return own
        plain = plain_name(tool)
        same = (one for name, one in self.tools.items() if plain_name(name) == plain)
        return next(same, self.default)

    @property
    def handlers(self) -> tuple[str, ...]:
        """The names of handlers that it asks for, each once."""
        stubs = (*self.tools.values(), self.default)
        return tuple(dict.fromkeys(one.handler for one in stubs if one.handler))


AS_RECORDED: Final = StubPlan()
"""What is used where nobody wrote a plan: strict recordings, and misses are errors."""

_FIELDS: Final = {
    StubKind.RECORDED: frozenset({"again"}),
    StubKind.IN_ORDER: frozenset({"again"}),
    StubKind.STATIC: frozenset({"value", "error"}),
    StubKind.EXPRESSION: frozenset({"expression"}),
    StubKind.HANDLER: frozenset({"handler"}),
}
_EVERY_KIND: Final = frozenset({"kind", "writes"})
_NOTHING: Final = ToolStub()


def decoded_plan(value: Any) -> StubPlan:
    """The plan in a JSON value; raises `BadPlan` with field and sentence."""
    tools = value.get("tools") if isinstance(value, dict) else None
    for name, one in tools.items() if isinstance(tools, dict) else ():
        _converted(one, ToolStub, f"tools.{name}")
    plan = _converted(value, StubPlan, "")
    if len(plan.tools) > MOST_TOOLS:
        raise BadPlan(f"A plan may name at most {MOST_TOOLS} tools.", field="tools")
    seen: dict[str, str] = {}
    for name, stub in plan.tools.items():
        if not 0 < len(name.strip()) <= LONGEST_NAME:
            raise BadPlan(
                f"The name of a tool has 1 to {LONGEST_NAME} characters.", field="tools"
            )
        other = seen.setdefault(plain_name(name), name)
        if other != name:
            raise BadPlan(
                f"“{other}” and “{name}” are one tool to a model provider, which sends "
                "other characters as “_”.",
                field=f"tools.{name}",
            )
        _refuse(stub, f"tools.{name}")
    _refuse(plan.default, "default")
    return plan


def encoded_plan(plan: StubPlan) -> dict[str, Any]:
    """The one encoding of a plan as a JSON value, every field in it."""
    value: dict[str, Any] = msgspec.to_builtins(plan)
    return value


def _converted(value: Any, kind: type[_Kind], at: str) -> _Kind:
    try:
        return msgspec.convert(value, kind)
    except RecursionError:
        raise BadPlan("The plan is nested too deep.", field=at) from None
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        field = f"{at}.{place.strip('`.').strip()}".strip(".")
        where = f" in “{field}”" if field else ""
        raise BadPlan(f"{what.rstrip('.')}{where}.", field=field) from None


def _refuse(stub: ToolStub, field: str) -> None:
    taken = _FIELDS[stub.kind] | _EVERY_KIND
    for name in ToolStub.__struct_fields__:
        if name not in taken and getattr(stub, name) != getattr(_NOTHING, name):
            raise BadPlan(f"“{stub.kind}” takes no “{name}”.", field=f"{field}.{name}")
    if stub.kind is StubKind.STATIC and stub.error and stub.value is not None:
        raise BadPlan(
            "A static answer has a value or an error, not both.", field=f"{field}.error"
        )
    if stub.kind is StubKind.HANDLER and not stub.handler.strip():
        raise BadPlan("Name the handler.", field=f"{field}.handler")
    if stub.kind is StubKind.EXPRESSION:
        try:
            Computed(stub.expression)
        except BadExpression as error:
            raise BadPlan(str(error), field=f"{field}.expression") from None
