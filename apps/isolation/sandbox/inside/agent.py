"""Calling an agent that is a Python callable, and what it is given.

An agent is `def agent(replay)`, with `async` or with `yield` or with both. It gives
back a JSON value, its output; a mapping with "output" and nothing else than perhaps
"state" gives back both. The pieces of a generator are collected: the last mapping with
"output" wins, else texts are joined, else the list of pieces is the output.

An agent with a memory is a class with `start(state)`, `turn(text)` and `state()`, each
with or without `async`. It is made with the replay if it takes one. Asked once, its
input is the text of its only turn.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import site
import sys
import threading
from typing import Any, Callable, Iterator  # noqa: UP035 - also read by Python 3.9

from .channel import Channel, TooLarge, encoded
from .watching import Watch

_LENGTH = 500
_GIVEN = ("input", "messages", "context", "tools")
# Pools keep these waiting for work; they hold nothing up.
_POOLED = ("ThreadPoolExecutor", "asyncio_", "AnyIO worker")


class ToolFailed(Exception):
    """A tool answered with an error; its text is what the stub says."""


class NotAnswered(Exception):
    """The agent did not come to an answer: why, as a kind and a sentence."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


class Tool:
    """One tool of the agent. Calling it asks the stub and gives back its result.

    Takes arguments by name that are JSON. Raises `ToolFailed` where the stub answers
    with an error.
    """

    def __init__(self, name: str, offer: dict[str, Any], asks: Watched) -> None:
        self.name = self.__name__ = name
        self.description = self.__doc__ = str(offer.get("description") or "")
        self.parameters: dict[str, Any] = offer.get("parameters") or {}
        self._asks = asks

    def __call__(self, **arguments: Any) -> Any:
        answer = self._asks({"ask": "tool", "tool": self.name, "arguments": arguments})
        if answer.get("error"):
            raise ToolFailed(answer["error"])
        return answer.get("result")


class Tools:
    """The tools by name, and in their order. A name nobody offered is a miss."""

    def __init__(self, offers: list[dict[str, Any]], asks: Watched) -> None:
        self._asks = asks
        self._tools = {one["name"]: Tool(one["name"], one, asks) for one in offers}

    def __getitem__(self, name: str) -> Tool:
        return self._tools.get(name) or Tool(name, {}, self._asks)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools


class Watched:
    """Asks the parent, and lets the watch know that there was an event."""

    def __init__(self, channel: Channel, watch: Watch) -> None:
        self._channel = channel
        self._watch = watch

    def __call__(self, question: dict[str, Any]) -> dict[str, Any]:
        answer = self._channel.ask(question)
        self._watch.next_event()
        return dict(answer)


class Replay:
    """What an agent is given: its frozen input and stubs of its tools.

    `state` may be changed or set anew; `input`, `messages` and `context` are looked at
    afterwards, and a change of them is a breach.
    """

    ToolFailed = ToolFailed

    def __init__(self, given: dict[str, Any], asks: Watched) -> None:
        self.input = given.get("input")
        self.messages: list[Any] = given.get("messages") or []
        self.state = given.get("state")
        self.context: dict[str, Any] = given.get("context") or {}
        self.model_url: str = given.get("model_url") or ""
        self.model: str = given.get("model") or ""
        self.temperature: float | None = given.get("temperature")
        self.seed: int | None = given.get("seed")
        self.case_name: str = given.get("case_name") or ""
        self.tools = Tools(given.get("tools") or [], asks)
        self._offers = given.get("tools") or []
        self._asks = asks

    def say(self, content: Any, role: str = "assistant") -> None:
        """Write a message down that belongs to the run, such as a thought."""
        self._asks({"ask": "message", "role": role, "content": content})

    def held(self) -> dict[str, Any]:
        """What the process holds of its input now."""
        values = (self.input, self.messages, self.context, self._offers)
        return dict(zip(_GIVEN, values))  # noqa: B905 - Python 3.9 has no strict


def run(plan: dict[str, Any], channel: Channel) -> None:
    """Call the agent and send what came of it; ends the process."""
    for folder in reversed(plan["code"]):
        sys.path.insert(0, folder)
    if plan["with_site"]:
        site.main()
    sys.argv = ["agent"]
    sys.dont_write_bytecode = True
    watch = Watch(plan, channel.note)
    replay = Replay(plan["given"], Watched(channel, watch))
    watch.begin()
    try:
        told = _answer(plan, channel, replay)
    except BaseException as error:  # noqa: BLE001 - whatever it raises, it is told
        told = _told_of(error, plan)
    _finish(channel, told, replay)


def _answer(plan: dict[str, Any], channel: Channel, replay: Replay) -> dict[str, Any]:
    """Output and state, or the turns until there are no more."""
    target = _load(plan["name"])
    with_turns = isinstance(target, type) and hasattr(target, "turn")
    if plan["with_turns"]:
        if not with_turns:
            raise NotAnswered(
                "target", f"{plan['name']} is no class with start, turn and state."
            )
        return _turns(plan["name"], target, channel, replay)
    if with_turns:
        remembering = _Remembering(plan["name"], target, replay)
        output = remembering.turn(replay.input)
        return {"output": output, "state": remembering.state()}
    value = _collected(_called(plan["name"], target, replay))
    if (
        isinstance(value, dict)
        and "output" in value
        and set(value) <= {"output", "state"}
    ):
        return {"output": value["output"], "state": value.get("state", replay.state)}
    return {"output": value, "state": replay.state}


def _load(name: str) -> Any:
    """The callable of `module:name`; the modules are imported here and only here."""
    module_name, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise NotAnswered(
            "target", f"{name} cannot be imported: {_words(error)}."
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise NotAnswered("target", f"{module_name} has no {path}.")
        found = getattr(found, part)
    if not callable(found):
        raise NotAnswered("target", f"{name} is no function and no class.")
    return found


def _called(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call it; says so where it is the call itself that does not fit."""
    try:
        return function(*arguments)
    except TypeError as error:
        within = error.__traceback__.tb_next if error.__traceback__ else None
        if within is not None or not hasattr(function, "__code__"):
            raise
        raise NotAnswered(
            "target", f"{name} does not take what it is given: {error}."
        ) from error


def _collected(value: Any) -> Any:
    """The value itself, awaited or gathered from its pieces where it has such."""
    if hasattr(value, "__await__"):
        return _waited(value)
    if hasattr(value, "__aiter__"):
        return _joined(_waited(_gather(value)))
    if hasattr(value, "__next__"):
        return _joined(list(value))
    return value


def _waited(value: Any) -> Any:
    """What an awaitable gives; one loop serves a whole run."""
    return _loop().run_until_complete(value)


_LOOPS: list[Any] = []


def _loop() -> Any:
    if not _LOOPS:
        asyncio = importlib.import_module("asyncio")
        _LOOPS.append(asyncio.new_event_loop())
        asyncio.set_event_loop(_LOOPS[0])
    return _LOOPS[0]


async def _gather(pieces: Any) -> list[Any]:
    return [piece async for piece in pieces]


def _joined(pieces: list[Any]) -> Any:
    for piece in reversed(pieces):
        if isinstance(piece, dict) and "output" in piece:
            return piece
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    return pieces


class _Remembering:
    """An agent that is a class, made and started."""

    def __init__(self, name: str, target: type, replay: Replay) -> None:
        self._name = name
        code = getattr(getattr(target, "__init__", None), "__code__", None)
        takes_one = code is not None and code.co_argcount > 1
        self._agent: Any = target(replay) if takes_one else target()
        for method in ("start", "state"):
            if not callable(getattr(self._agent, method, None)):
                raise NotAnswered("target", f"{name} has no method {method}.")
        _collected(_called(f"{name}.start", self._agent.start, replay.state))

    def turn(self, text: Any) -> Any:
        """The answer to one turn."""
        return _collected(_called(f"{self._name}.turn", self._agent.turn, text))

    def state(self) -> Any:
        """What it remembers now."""
        return _collected(_called(f"{self._name}.state", self._agent.state))


def _turns(name: str, target: type, channel: Channel, replay: Replay) -> dict[str, Any]:
    """Answer turn after turn until the parent says that there are no more."""
    remembering = _Remembering(name, target, replay)
    channel.send({"started": True})
    output = None
    while True:
        asked = channel.receive()
        if "turn" in asked:
            output = remembering.turn(asked["turn"])
            channel.send({"turned": output})
        elif "state" in asked:
            channel.send({"remembered": remembering.state()})
        else:
            return {"output": output, "state": remembering.state()}


def _words(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - its text is the agent's code too
        text = "an error without a text"
    return text[:_LENGTH].rstrip(".")


def _told_of(error: BaseException, plan: dict[str, Any]) -> dict[str, Any]:
    """Why there is no answer, as a kind and a sentence."""
    if isinstance(error, NotAnswered):
        return {"error": [error.kind, str(error)]}
    name = plan["name"]
    if isinstance(error, MemoryError):
        most = plan["limits"]["memory"] // 1024**2
        return {"error": ["limit", f"{name} needed more memory than {most:,} MB."]}
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        most = plan["limits"]["file"] // 1024**2
        return {"error": ["limit", f"{name} wrote a file of more than {most:,} MB."]}
    if isinstance(error, EOFError) and not error.__cause__ and "ended" in str(error):
        return {"error": ["stopped", "The run was ended."]}
    kind = "target" if isinstance(error, Exception) else "crashed"
    if isinstance(error, TooLarge):
        kind = "too_large"
    print_of(error)
    words = _words(error)
    what = type(error).__name__ + (f": {words}" if words else "")
    return {"error": [kind, f"{name} raised {what}."]}


def print_of(error: BaseException) -> None:
    """Print where it was raised, for whoever wrote the agent."""
    # Its outputs may be closed or gone.
    with contextlib.suppress(Exception):
        importlib.import_module("traceback").print_exception(
            type(error), error, error.__traceback__, limit=20
        )


def _finish(channel: Channel, told: dict[str, Any], replay: Replay) -> None:
    """Send the last line and end, whatever threads are still running."""
    told = _within(told, channel.most)
    held: Any = replay.held()
    whole = {**told, "held": None if _not_json(held) else held, "threads": _threads()}
    try:
        channel.send({"final": whole})
    except (OSError, TooLarge):
        os._exit(4)
    _flush()
    os._exit(0)


def _within(told: dict[str, Any], most: int) -> dict[str, Any]:
    """What is told, or why it cannot be."""
    size = 0
    for part in ("output", "state"):
        try:
            size += len(encoded(told.get(part)))
        except RecursionError:
            why = "it is nested too deeply"
            return {"error": ["bad_answer", f"The {part} is no JSON: {why}."]}
        except Exception as error:  # noqa: BLE001 - its classes are the agent's code
            why = _words(error)
            return {"error": ["bad_answer", f"The {part} is no JSON: {why}."]}
    if size > most:
        why = f"{size:,} bytes, more than {most:,}"
        return {"error": ["too_large", f"The answer is too large: {why}."]}
    return told


def _flush() -> None:
    # They may be closed, or be anything else by now.
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()


def _not_json(value: Any) -> bool:
    try:
        encoded(value)
    except Exception:  # noqa: BLE001 - its classes are the agent's code
        return True
    return False


def _threads() -> list[str]:
    """Threads that were still at work when the agent had answered."""
    own = threading.current_thread()
    return [
        thread.name
        for thread in threading.enumerate()
        if thread is not own
        and not thread.daemon
        and not thread.name.startswith(_POOLED)
    ][:20]
