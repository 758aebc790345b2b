"""What the model server can be told to do, by name; each says what else is set."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tests.model_server import answers as say
from tests.model_server.answers import Answer, as_answer
from tests.model_server.faults import MALFORMED, SHAPES

if TYPE_CHECKING:
    from tests.model_server.serving import Handler


def _deterministic(on: Handler, body: dict[str, Any]) -> None:
    """The same messages give the same text; `answer=` gives always that one."""
    given = on.told.get("answer")
    if callable(given):
        given = given(body)
    on.answer(say.deterministic(body) if given is None else as_answer(given), body)


def _scripted(on: Handler, body: dict[str, Any]) -> None:
    """`answers=[...]`: the next one for each round of tools, the last for ever."""
    script: Sequence[Any] = on.told.get("answers")
    on.answer(as_answer(script[min(say.rounds_in(body), len(script) - 1)]), body)


def _in_turn(on: Handler, body: dict[str, Any]) -> None:
    """`answers=[...]`: by the number of the call, whatever was asked."""
    script: Sequence[Any] = on.told.get("answers")
    on.answer(as_answer(script[(on.number - 1) % len(script)]), body)


def _noisy(on: Handler, body: dict[str, Any]) -> None:
    """`seed=`, `share=` of the answer `other=` (else `usual=`).

    With `only_warm=True` a request of temperature 0 gets the usual answer.
    """
    usual = as_answer(on.told.get("usual", "Decision: A"))
    other = as_answer(on.told.get("other", "Decision: B"))
    is_cold = on.told.get("only_warm") and not body.get("temperature", 1)
    share = 0.0 if is_cold else on.told.get("share", 0.4)
    seed = on.told.get("seed", 1)
    made = say.noisy(on.number, seed=seed, share=share, usual=usual, other=other)
    on.answer(made, body)


def _refusing(status: int, code: str) -> Callable[[Handler, dict[str, Any]], None]:
    def refuse(on: Handler, body: dict[str, Any]) -> None:
        """`times=` refusals with `retry_after=` (a header value or None), then well."""
        if on.number > on.told.get("times", 1):
            _deterministic(on, body)
            return
        after = on.told.get("retry_after")
        error = {"message": f"{code}: slow down", "type": code, "code": code}
        if on.told.get("returned"):
            on.answer_json({"error": error | {"code": status}})
            return
        headers = {} if after is None else {"Retry-After": str(after)}
        on.answer_json({"error": error}, status=status, headers=headers)

    return refuse


def _limited(on: Handler, body: dict[str, Any]) -> None:
    """429 while more than `at_once=` calls are there, else well after `delay=`."""
    if on.told.stats.now > on.told.get("at_once", 4):
        on.answer_json({"error": {"message": "too many at once"}}, status=429)
        return
    _deterministic(on, body)


def _hanging(on: Handler, _body: dict[str, Any]) -> None:
    """No byte ever comes."""
    on.told.closing.wait(60)
    on.close_connection = True


def _drops(prefix: bytes) -> Callable[[Handler, dict[str, Any]], None]:
    def drip(on: Handler, _body: dict[str, Any]) -> None:
        """One byte each `pause=` seconds (0.05), without end."""

        def endless() -> Iterator[bytes]:
            yield prefix
            while True:
                yield b" "

        on.raw(endless(), pause=on.told.get("pause", 0.05))

    return drip


def _endless_events(on: Handler, _body: dict[str, Any]) -> None:
    """Events that say nothing, each `pause=` seconds (0.02), without end."""

    def endless() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        while True:
            yield b'data: {"choices": [{"delta": {"content": "so "}}]}\n\n'

    on.raw(endless(), pause=on.told.get("pause", 0.02))


def _malformed(on: Handler, _body: dict[str, Any]) -> None:
    """`variant=` of MALFORMED."""
    on.raw(MALFORMED[on.told.get("variant")]())


def _shape(on: Handler, _body: dict[str, Any]) -> None:
    """`variant=` of SHAPES."""
    on.answer_json(SHAPES[on.told.get("variant")])


def _raw_json(on: Handler, _body: dict[str, Any]) -> None:
    """`value=` as JSON (or what it makes of the body) with `status=`, `headers=`."""
    value = on.told.get("value")
    value = value(_body) if callable(value) else value
    status, headers = on.told.get("status", 200), on.told.get("headers")
    on.answer_json(value, status=status, headers=headers)


def _tool_loop(on: Handler, body: dict[str, Any]) -> None:
    """Asks for `tool=` for ever, each time with another number."""
    tool = on.told.get("tool", "lookup")
    on.answer(say.call(tool, number=say.rounds_in(body) + 1), body)


def _once(asked: Callable[[Handler], Answer]) -> Callable[[Handler, Any], None]:
    def ask(on: Handler, body: dict[str, Any]) -> None:
        """Asks once in an odd way, then says what the tools answered."""
        if say.rounds_in(body):
            on.answer(say.deterministic(body), body)
        else:
            on.answer(asked(on), body)

    return ask


def _echo_key(on: Handler, _body: dict[str, Any]) -> None:
    """401 (or `status=`) and a message that holds what the client sent as its key."""
    sent = on.headers.get("Authorization", on.headers.get("api-key", ""))
    error = {"message": f"Incorrect API key provided: {sent}.", "code": "invalid_key"}
    on.answer_json({"error": error}, status=on.told.get("status", 401))


def _redirect(on: Handler, _body: dict[str, Any]) -> None:
    """`status=` 302 and `to=`; without it to itself."""
    to = on.told.get("to") or f"{on.told.origin}{on.path}"
    on.answer_json({}, status=on.told.get("status", 302), headers={"Location": to})


def _reset(on: Handler, body: dict[str, Any]) -> None:
    """The first `times=` (all) connections are reset, then well."""
    if on.number > on.told.get("times", 10**9):
        _deterministic(on, body)
        return
    on.told.stats.statuses.append(0)
    # Closing with unsent data dropped makes the kernel send a reset.
    on.connection.setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    on.close_connection = True
    on.wfile.close()
    on.rfile.close()
    on.connection.close()


MODES: dict[str, Callable[[Handler, dict[str, Any]], None]] = {
    "deterministic": _deterministic,
    "scripted": _scripted,
    "in_turn": _in_turn,
    "noisy": _noisy,
    "rate_limited": _refusing(429, "rate_limit_exceeded"),
    "overloaded": _refusing(503, "overloaded"),
    "limited": _limited,
    "hanging": _hanging,
    "dripping": _drops(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"),
    "dripping_headers": _drops(b"HTTP/1.1 200 OK\r\nX-Slow: "),
    "endless_events": _endless_events,
    "malformed": _malformed,
    "shape": _shape,
    "json": _raw_json,
    "tool_loop": _tool_loop,
    "tool_bad_arguments": _once(
        lambda on: say.calls((on.told.get("tool", "lookup"), '{"number": 7'))
    ),
    "tool_unknown": _once(lambda _: say.call("launch_missiles", target="moon")),
    "tool_twice": _once(
        lambda on: Answer(
            tools=((on.told.get("tool", "lookup"), {"number": 7}, "call_1"),) * 2
        )
    ),
    "echo_key": _echo_key,
    "redirect": _redirect,
    "reset": _reset,
}
