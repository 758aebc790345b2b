"""One turn with a model, in one shape for the APIs that it may be asked through.

A dialect turns messages into a request, and an answer into what was said and which
tools are asked for. It executes nothing and does not judge what it reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, Protocol

import msgspec

from apps.engine.reading.answer_parts import Answer, Asked
from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.json_values import embedded
from apps.engine.reading.recorded import plain_text
from apps.engine.reading.token_counts import usage_of
from apps.engine.replay.case import ToolOffer
from apps.engine.replay.run import ToolAnswer
from apps.engine.trace import MISSING, FinishReason, Usage

_WIRE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_ON_THE_WIRE: Final = re.compile(r"[^A-Za-z0-9_-]")
_NO_ARGUMENTS: Final = {"type": "object", "properties": {}}


class Api(StrEnum):
    """How a model is asked."""

    CHAT_COMPLETIONS = "chat_completions"
    RESPONSES = "responses"


class NoAnswer(Exception):
    """Well-formed JSON that holds no answer; the message is a sentence for a person."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into every request of a run beside the messages.

    `parameters` have the names of chat completions, or are the target's own and sent
    as they are. `temperature` and `seed` are not sent where they are `None`.
    """

    model: str
    max_tokens: int
    tools: tuple[ToolOffer, ...] = ()
    parameters: Mapping[str, Any] = {}
    own: Mapping[str, Any] = {}
    temperature: float | None = None
    seed: int | None = None
    is_streamed: bool = False


class AskedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that the model asks for.

    `arguments` is an object, or whatever was sent instead; `call_id` is unique among
    the calls of one answer.
    """

    tool: str
    call_id: str
    arguments: Any

    @property
    def has_arguments(self) -> bool:
        """Whether the arguments are an object, as they should be."""
        return isinstance(self.arguments, dict)


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What one answer holds; `text` is `None` where it only asks for tools."""

    text: str | None = None
    reasoning: Any = None
    asked: tuple[AskedCall, ...] = ()
    finish: FinishReason = FinishReason.UNKNOWN
    finish_raw: str | None = None
    model: str = ""
    response_id: str | None = None
    usage: Usage = MISSING


class Dialect(Protocol):
    """One API: `path` is appended to the base address of the endpoint."""

    path: str

    def begin(self, messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages of chat completions in the form of this API."""

    def request(self, asking: Asking, history: list[dict[str, Any]]) -> dict[str, Any]:
        """The body of a request."""

    def answer(self, value: Any, names: WireNames) -> ModelAnswer:
        """What an answer holds; raises `NoAnswer`."""

    def onward(
        self, value: Any, answer: ModelAnswer, results: Iterable[str]
    ) -> list[dict[str, Any]]:
        """What is added to the history after an answer that asked for tools."""


class WireNames:
    """Names of tools as the APIs take them: letters, digits, "_" and "-", at most 64.

    Recorded names may hold dots, spaces or more; what the model asks for is given back
    under the recorded name.
    """

    def __init__(self, tools: Iterable[ToolOffer]) -> None:
        self._sent: dict[str, str] = {}
        self._recorded: dict[str, str] = {}
        every = [tool.name for tool in tools]
        # Names that are in order keep themselves, whatever the others become.
        for name in sorted(every, key=lambda one: not _WIRE_NAME.fullmatch(one)):
            self._add(name)

    def _add(self, name: str) -> None:
        plain = _NOT_ON_THE_WIRE.sub("_", name)[:64] or "tool"
        number, sent = 1, plain
        while sent in self._recorded:
            number += 1
            sent = f"{plain[:60]}_{number}"
        if name not in self._sent:
            self._sent[name] = sent
            self._recorded[sent] = name

    def sent(self, name: str) -> str:
        """The name under which a tool is offered."""
        return self._sent.get(name, name)

    def recorded(self, name: str) -> str:
        """The recorded name of what a model asks for; unknown names as they are."""
        return self._recorded.get(name, name)


def schema_of(tool: ToolOffer) -> dict[str, Any]:
    """The JSON Schema of its arguments; an object without properties where unknown."""
    return tool.parameters or dict(_NO_ARGUMENTS)


def read_answer(found: Answer, names: WireNames) -> ModelAnswer:
    """The facts of an answer; raises `NoAnswer` where it says and asks nothing.

    An answer that was cut or filtered before it said anything is no such case: why it
    ended says more.
    """
    text = plain_text(found.text)
    text = text if isinstance(text, str) else None
    finish, finish_raw = finish_of(found.finish)
    asked = _asked(found.asked, names)
    is_explained = finish in {FinishReason.LENGTH, FinishReason.CONTENT_FILTER}
    if not text and not asked and not is_explained:
        raise NoAnswer("There is no text in the answer.")
    return ModelAnswer(
        text=text,
        reasoning=found.reasoning,
        asked=asked,
        finish=finish,
        finish_raw=finish_raw,
        model=found.model if isinstance(found.model, str) else "",
        response_id=found.response_id if isinstance(found.response_id, str) else None,
        usage=usage_of(found.counts),
    )


def _asked(found: Iterable[Asked], names: WireNames) -> tuple[AskedCall, ...]:
    made: list[AskedCall] = []
    taken: set[str] = set()
    for number, one in enumerate(found, start=1):
        plain = one.call_id if isinstance(one.call_id, str) and one.call_id else "call"
        again, call_id = 1, plain if plain != "call" else f"call_{number}"
        while call_id in taken:
            again += 1
            call_id = f"{plain}_{again}"
        taken.add(call_id)
        name = names.recorded(one.name) if isinstance(one.name, str) else ""
        made.append(
            AskedCall(tool=name, call_id=call_id, arguments=_arguments(one.arguments))
        )
    return tuple(made)


def _arguments(given: Any) -> Any:
    if given is None:
        return {}
    if isinstance(given, str):
        return embedded(given.strip()) if given.strip() else {}
    return given


def as_sent(arguments: Any) -> str:
    """Arguments as the text in which they are sent back."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def result_text(answer: ToolAnswer) -> str:
    """What the model is told of a tool's answer: a text as it is, else as JSON.

    A failed call says its error; a result that came with it is what is told.
    """
    if answer.error and answer.result is None:
        return answer.error
    if isinstance(answer.result, str):
        return answer.result
    return json.dumps(answer.result, ensure_ascii=False)
