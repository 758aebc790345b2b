"""The stubs of one run as an MCP server over streamable HTTP: one POST, one JSON answer.

Both ways to speak are understood: with the handshake of `initialize` (up to 2025-11-25)
and without any (2026-07-28), where each request says its version. No session is kept,
no stream is opened and nothing is sent by itself, all of which the protocol allows.
Source: https://modelcontextprotocol.io/specification (Base Protocol, Transports, Tools)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from apps.engine.replay.case import ToolOffer
from apps.engine.replay.run import ToolAnswer
from apps.engine.replay.stub_door import (
    LONGEST_NAME,
    BadRequestBody,
    Reply,
    Stubs,
    json_in,
)
from apps.engine.replay.turns import result_text

WITH_HANDSHAKE: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
WITHOUT: Final = ("2026-07-28",)
VERSIONS: Final = (*WITH_HANDSHAKE, *WITHOUT)
MOST_IN_A_BATCH: Final = 50
_META: Final = "io.modelcontextprotocol/"
_SERVER: Final = {"name": "evalsite-stubs", "version": "1"}
_OFFERS: Final[dict[str, Any]] = {"tools": {}}
_INSTRUCTIONS: Final = (
    "Every answer is a recording or a stub of one replay; nothing real is done."
)
_UNREADABLE, _INVALID, _UNKNOWN, _PARAMS = -32700, -32600, -32601, -32602
_OTHER_HEADER, _VERSION = -32020, -32022
_STATUSES: Final = {
    _UNREADABLE: 400,
    _INVALID: 400,
    _PARAMS: 400,
    _OTHER_HEADER: 400,
    _VERSION: 400,
    _UNKNOWN: 404,
}
"""Statuses of errors where each request stands for itself; with a handshake it is 200."""


class _Refused(Exception):
    """A request that is answered with an error of JSON-RPC."""

    def __init__(self, code: int, sentence: str, data: Any = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.data = data


def answered_mcp(stubs: Stubs, body: bytes, headers: Mapping[str, str]) -> Reply:
    """What a POST to the MCP server is answered; `headers` have names in small letters.

    Raises what `stubs` does.
    """
    try:
        sent = json_in(body)
    except BadRequestBody as error:
        return Reply(400, _error(None, _Refused(_UNREADABLE, str(error))))
    said = headers.get("mcp-protocol-version", "")
    if said and said not in VERSIONS:
        return Reply(400, _error(_id_in(sent), _unsupported(said)))
    if isinstance(sent, list):
        return _batch(stubs, sent, is_single=said in WITHOUT)
    if said in WITHOUT or _version_in(sent) is not None:
        return _stateless(stubs, sent, headers)
    answer = _answered(sent, _Handshake(stubs))
    return _NOTHING if answer is None else Reply(_status(sent, answer), answer)


_NOTHING: Final = Reply(202, has_body=False)


def _status(sent: Any, answer: dict[str, Any]) -> int:
    """A message that is no request at all is refused by HTTP too."""
    is_no_request = answer.get("error", {}).get("code") == _INVALID
    return 400 if is_no_request or not isinstance(sent, dict) else 200


def _batch(stubs: Stubs, sent: list[Any], *, is_single: bool) -> Reply:
    """Several messages at once, as version 2025-03-26 has it."""
    if is_single or not 0 < len(sent) <= MOST_IN_A_BATCH:
        sentence = (
            "This version takes one message at a time."
            if is_single
            else f"A batch holds 1 to {MOST_IN_A_BATCH} messages."
        )
        return Reply(400, _error(None, _Refused(_INVALID, sentence)))
    server = _Handshake(stubs)
    answers = [answer for one in sent if (answer := _answered(one, server)) is not None]
    return Reply(200, answers) if answers else _NOTHING


def _stateless(stubs: Stubs, sent: Any, headers: Mapping[str, str]) -> Reply:
    """A request that says its version itself, or a notification."""
    answer = _answered(sent, _Stateless(stubs, headers))
    if answer is None:
        return _NOTHING
    code = answer.get("error", {}).get("code", 0)
    return Reply(_STATUSES.get(code, 200), answer)


def _version_in(sent: Any) -> Any:
    """The version that a request says in its own envelope, `None` for none."""
    params = sent.get("params") if isinstance(sent, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(f"{_META}protocolVersion") if isinstance(meta, dict) else None


_Method = Callable[[dict[str, Any]], dict[str, Any]]


class _Server:
    """What is the same in all versions: the tools."""

    methods: Mapping[str, _Method]

    def __init__(self, stubs: Stubs) -> None:
        self._stubs = stubs

    def result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request; raises `_Refused`."""
        found = self.methods.get(method)
        if found is None:
            raise _Refused(_UNKNOWN, f"“{method[:80]}” is not served here.")
        return found(params)

    def _list(self, _params: dict[str, Any]) -> dict[str, Any]:
        return {"tools": [_tool(one) for one in self._stubs.offered()]}

    def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
            raise _Refused(_PARAMS, "“name” is the name of the tool.")
        if arguments is not None and not isinstance(arguments, dict):
            raise _Refused(_PARAMS, "“arguments” is a JSON object.")
        return _result(self._stubs.answer(name, arguments or {}))


class _Handshake(_Server):
    """Versions in which a client introduces itself first."""

    def __init__(self, stubs: Stubs) -> None:
        super().__init__(stubs)
        self.methods = {
            "initialize": self._initialize,
            "ping": lambda _params: {},
            "tools/list": self._list,
            "tools/call": self._call,
        }

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, str):
            raise _Refused(_PARAMS, "“protocolVersion” is missing.")
        # A version that is not known is answered with the newest that is.
        agreed = wanted if wanted in WITH_HANDSHAKE else WITH_HANDSHAKE[-1]
        return {
            "protocolVersion": agreed,
            "capabilities": _OFFERS,
            "serverInfo": _SERVER,
            "instructions": _INSTRUCTIONS,
        }


class _Stateless(_Server):
    """Versions in which each request says all about itself."""

    def __init__(self, stubs: Stubs, headers: Mapping[str, str]) -> None:
        super().__init__(stubs)
        self._headers = headers
        self.methods = {
            "server/discover": self._discover,
            "tools/list": self._list,
            "tools/call": self._call,
        }

    def result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result with what this version wants in each; raises `_Refused`."""
        self._check(method, params)
        found = super().result(method, params)
        if method != "tools/call":
            # What is offered may change with the next run, and is this run's alone.
            found = {**found, "ttlMs": 0, "cacheScope": "private"}
        meta = {f"{_META}serverInfo": _SERVER}
        return {**found, "resultType": "complete", "_meta": meta}

    def _check(self, method: str, params: dict[str, Any]) -> None:
        """The envelope of a request beside its headers."""
        meta = params.get("_meta")
        needed = [
            f"{_META}{name}" for name in ("protocolVersion", "clientCapabilities")
        ]
        held = meta if isinstance(meta, dict) else {}
        if missing := [name for name in needed if name not in held]:
            raise _Refused(_PARAMS, f"“params._meta” lacks “{missing[0]}”.")
        version = held[needed[0]]
        self._same("mcp-protocol-version", version, needed=True)
        self._same("mcp-method", method)
        if version not in WITHOUT:
            raise _unsupported(version)

    def _same(self, header: str, value: Any, *, needed: bool = False) -> None:
        said = self._headers.get(header)
        if said != value and (needed or said is not None):
            raise _Refused(
                _OTHER_HEADER, f"The header “{header}” is not what the request says."
            )

    def _discover(self, _params: dict[str, Any]) -> dict[str, Any]:
        return {
            "supportedVersions": list(VERSIONS),
            "capabilities": _OFFERS,
            "instructions": _INSTRUCTIONS,
        }


def _unsupported(version: Any) -> _Refused:
    shown = version if isinstance(version, str) else ""
    return _Refused(
        _VERSION,
        "This version of the protocol is not served.",
        {"supported": list(VERSIONS), "requested": shown[:80]},
    )


def _answered(message: Any, server: _Server) -> dict[str, Any] | None:
    """The answer to one message; `None` for what wants none."""
    if isinstance(message, dict) and "method" not in message and "id" in message:
        # An answer to a question that was never asked.
        return None
    try:
        method, params = _parts(message)
        if "id" not in message:
            return None
        number = _needed_id(message)
        result = server.result(method, params)
    except _Refused as refused:
        return _error(_id_in(message), refused)
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _parts(message: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise _Refused(_INVALID, "This is no message of JSON-RPC 2.0.")
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str):
        raise _Refused(_INVALID, "“method” is a text.")
    if params is not None and not isinstance(params, dict):
        raise _Refused(_PARAMS, "“params” is a JSON object.")
    return method, params or {}


def _id_in(message: Any) -> str | int | None:
    found = message.get("id") if isinstance(message, dict) else None
    is_id = isinstance(found, str | int) and not isinstance(found, bool)
    return found if is_id else None


def _needed_id(message: dict[str, Any]) -> str | int:
    number = _id_in(message)
    if number is None:
        raise _Refused(_INVALID, "“id” is a text or a whole number.")
    return number


def _error(number: str | int | None, refused: _Refused) -> dict[str, Any]:
    error: dict[str, Any] = {"code": refused.code, "message": str(refused)}
    if refused.data is not None:
        error["data"] = refused.data
    return {"jsonrpc": "2.0", "id": number, "error": error}


def mcp_failure(sentence: str) -> dict[str, Any]:
    """An error of JSON-RPC that answers no request in particular."""
    return _error(None, _Refused(-32000, sentence))


def _tool(offer: ToolOffer) -> dict[str, Any]:
    """A tool as MCP describes it; its schema is always one of an object."""
    schema = dict(offer.parameters)
    schema["type"] = "object"
    return {
        "name": offer.name,
        "description": offer.description,
        "inputSchema": schema,
    }


def _result(answer: ToolAnswer) -> dict[str, Any]:
    """An answer as the result of a call.

    A recorded result that is a list of texts as MCP has them is given as it is.
    """
    value = answer.result
    said: dict[str, Any] = {"isError": bool(answer.error)}
    if isinstance(value, dict):
        said["structuredContent"] = value
    texts = _texts(value)
    said["content"] = texts or [{"type": "text", "text": result_text(answer)}]
    return said


class _Text(msgspec.Struct, forbid_unknown_fields=True, tag="text", tag_field="type"):
    text: str


def _texts(value: Any) -> list[dict[str, Any]]:
    """The value where it is a list of texts of MCP already, else nothing."""
    try:
        msgspec.convert(value, list[_Text])
    except (msgspec.ValidationError, TypeError):
        return []
    return list(value)
