"""What the stubs of one run answer over HTTP, whoever serves it: one POST, one answer.

    POST <stub_base>/tools/get_order     {"id": 7}
    200  {"result": "paid"}              what the stub of the tool gives
    200  {"error": "No such order."}     the tool failed: the agent is to see that
    400  {"error": "..."}                this is no JSON object of arguments

The MCP server below `<stub_base>/mcp` is in `mcp_door`. Nothing real is behind either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

from apps.engine.replay.answer_gate import AnswerGate, BadAnswer, text_of
from apps.engine.replay.case import ToolOffer
from apps.engine.replay.run import ToolAnswer

LARGEST_REQUEST: Final = 2 * 1024**2
LONGEST_NAME: Final = 300


class Stubs(Protocol):
    """The stubs of one run."""

    def offered(self) -> Sequence[ToolOffer]:
        """The tools that the agent may call, in order."""
        ...

    def answer(self, tool: str, arguments: Any) -> ToolAnswer:
        """The answer to one call, also of a tool that is not offered: that is a miss."""
        ...


class Reply(msgspec.Struct, frozen=True):
    """The answer to one request: status and JSON. Without `has_body` it is empty."""

    status: int
    body: Any = None
    has_body: bool = True


class BadRequestBody(Exception):
    """What was sent cannot be taken; the message is a sentence."""


def json_in(body: bytes) -> Any:
    """The JSON value of a request, by the rules for what targets answer.

    Raises `BadRequestBody`.
    """
    if len(body) > LARGEST_REQUEST:
        raise BadRequestBody(
            f"A request to a stub has at most {LARGEST_REQUEST // 1024**2} MiB."
        )
    try:
        return AnswerGate().value(text_of(body))
    except BadAnswer as error:
        raise BadRequestBody(str(error).replace("he answer", "he request")) from None


def answered_tool(stubs: Stubs, name: str, body: bytes) -> Reply:
    """What a POST of arguments to the address of a tool is answered.

    An empty body is a call without arguments. Raises what `stubs` does.
    """
    if not 0 < len(name) <= LONGEST_NAME:
        return Reply(404, {"error": "No tool has such a name."})
    try:
        arguments = json_in(body) if body.strip() else {}
    except BadRequestBody as error:
        return Reply(400, {"error": str(error)})
    if not isinstance(arguments, dict):
        return Reply(
            400, {"error": 'Send the arguments as one JSON object, such as {"id": 7}.'}
        )
    return Reply(200, told(stubs.answer(name, arguments)))


def told(answer: ToolAnswer) -> dict[str, Any]:
    """What the agent is told of an answer: its result, or that the tool failed.

    A failure that came with a result has both, as it was recorded.
    """
    if not answer.error:
        return {"result": answer.result}
    said: dict[str, Any] = {"error": answer.error}
    return said if answer.result is None else {**said, "result": answer.result}
