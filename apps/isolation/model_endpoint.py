"""Runs an agent that is a model behind an OpenAI-compatible endpoint.

The recorded system prompt, messages and tools of the case are the input, and the loop
over its tools is ours: what it asks for is answered by stubs, nothing is executed. It
is the model on this input, without the code that stood around it in the system.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import httpx
import msgspec

from apps.engine.memory_tests.conversation import Said
from apps.engine.replay.case import Case
from apps.engine.replay.chat_completions import ChatCompletions
from apps.engine.replay.chat_messages import chat_of
from apps.engine.replay.responses import Responses
from apps.engine.replay.retrying import Patience
from apps.engine.replay.run import (
    AnswerSource,
    ErrorKind,
    Limits,
    Message,
    Ran,
    Regime,
    ToolAnswer,
    ToolCalled,
)
from apps.engine.replay.turns import (
    Api,
    AskedCall,
    Asking,
    Dialect,
    ModelAnswer,
    WireNames,
    result_text,
)
from apps.engine.trace import FinishReason
from apps.isolation.client import Reach, secret_headers
from apps.isolation.happened import Happened, Walls
from apps.isolation.hooks import Hooks
from apps.isolation.masking import Mask
from apps.isolation.model_calls import Endpoint, ModelCalls
from apps.isolation.run_time import failed

Answer = Callable[[str, Any], ToolAnswer]
"""What the stubs answer to a tool with these arguments."""

LEVEL: Final = "no local code"
HOLDS: Final = (
    "No code of the agent runs here: it is asked over HTTP.",
    "Tools are answered by stubs in this process; nothing that the model asks for is "
    "executed.",
    "Its address was resolved once and checked, and the connection went to the address "
    "that was checked; no redirects, no proxies.",
    "Size and time of each answer are bound.",
)
OPEN: Final = (
    "What the endpoint does on its own side is not seen: tools that it runs itself, "
    "what it stores, and whom it asks.",
    "That the input is the same before and after is said of what was kept here.",
    "Temperature 0 and a seed are asked for; whether the same input gives the same "
    "answer is up to the endpoint.",
)
_DIALECTS: Final[dict[Api, Dialect]] = {
    Api.CHAT_COMPLETIONS: ChatCompletions(),
    Api.RESPONSES: Responses(),
}
SUMMARISE: Final = (
    "Summarise our conversation so far, so that you can go on from your summary alone. "
    "Answer with the summary only."
)
SUMMARY_IS: Final = "This is your summary of our conversation so far:\n"
_T = TypeVar("_T")
_BAD_ARGUMENTS: Final = "The arguments are no JSON object; nothing was done."


class EndpointOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One run that is ordered of a model endpoint.

    `base_url` is what clients call the base address (".../v1"). `parameters` are the
    target's own and go before the recorded ones; `None` keeps one from being sent.
    The temperature of the regime and the seed go before both.
    `system` stands in for a system prompt that was not recorded. `secret` is sent as a
    bearer token, or as it is in another `secret_header`.
    """

    case: Case
    base_url: str
    regime: Regime = Regime()
    limits: Limits = Limits()
    model: str = ""
    api: Api = Api.CHAT_COMPLETIONS
    is_streamed: bool = False
    parameters: dict[str, Any] = {}
    headers: dict[str, str] = {}
    system: str = ""
    secret: str = ""
    secret_header: str = "Authorization"  # noqa: S105 # the name, not the secret
    secret_prefix: str | None = None
    seed: int | None = None
    reach: Reach = Reach()
    patience: Patience = Patience()

    def __repr__(self) -> str:
        return f"EndpointOrder({self.base_url!r}, model={self.model!r})"


def run_endpoint(
    order: EndpointOrder, *, answer: Answer, hooks: Hooks | None = None
) -> Ran:
    """The record of one run; every way to end but `NotNow` comes back as such.

    `answer` gives what a stub says to a tool; it is asked for unknown tools too, and
    not for arguments that are no object. Raises `NotNow` where a hook did.
    """
    talk = Talk(order, answer, hooks or Hooks())
    return talk.happened.run(lambda: talk.answer_to(messages_of(order)))


def run_endpoint_turns(
    order: EndpointOrder,
    drive: Callable[[EndpointConversation], _T],
    *,
    answer: Answer,
    hooks: Hooks | None = None,
) -> tuple[Ran, _T | None]:
    """Talk with the model: `drive` gets the conversation, turn by turn.

    Back come the record, whose output is the last answer, and what `drive` gave back,
    `None` where it did not come to its end. Raises `NotNow` where a hook did.
    """
    conversation = EndpointConversation(order, answer, hooks or Hooks())
    return conversation.talk.happened.run_turns(lambda: drive(conversation))


class EndpointConversation:
    """A conversation with the model in which nothing is forgotten but by `restart`.

    The messages of the case come first. Each act raises `TurnFailed`, or `NotNow`.
    """

    def __init__(self, order: EndpointOrder, answer: Answer, hooks: Hooks) -> None:
        self.talk = Talk(order, answer, hooks)
        self._first = _with_system(order, list(order.case.messages))
        self._next = list(self._first)

    def turn(self, text: str) -> Said:
        """What the model answers to the next words of the user."""
        happened = self.talk.happened
        happened.add(
            Message(role="user", content=text, at_ns=happened.hooks.clock_ns())
        )
        with happened.turn() as events:
            answer = self._asked(text)
        return Said(answer=answer, events=tuple(events))

    def state(self) -> Any:
        """An endpoint holds no state that could be inspected."""
        return None

    def restart(self) -> None:
        """Begin anew with the messages of the case."""
        self.talk.forget()
        self._next = list(self._first)

    def summarise(self) -> Said:
        """A summary in the model's own words; the conversation goes on from it alone.

        What asks for it is ours (`SUMMARISE`), so it shows how this model summarises,
        and not how the system that it is a part of does.
        """
        happened = self.talk.happened
        with happened.turn() as events:
            summary = self._asked(SUMMARISE)
        now = happened.hooks.clock_ns()
        happened.add(Message(role="summary", content=summary, at_ns=now))
        self.restart()
        self._next.append({"role": "user", "content": SUMMARY_IS + summary})
        return Said(answer=summary, events=tuple(events))

    def _asked(self, text: str) -> str:
        said = {"role": "user", "content": text}
        answer = self.talk.answer_to([*self._next, said])
        self._next = []
        return answer


def messages_of(order: EndpointOrder) -> list[dict[str, Any]]:
    """The messages with which a run begins, as those of chat completions.

    Those of the case where it has some. Else its context and state, where there are
    any, and its input: messages as such, anything else as the words of a user.
    """
    case = order.case
    return _with_system(order, list(case.messages) or list(_from_input(case)))


def _with_system(
    order: EndpointOrder, messages: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    roles = {one.get("role") for one in messages}
    if not order.system or roles & {"system", "developer"}:
        return messages
    return [{"role": "system", "content": order.system}, *messages]


def _from_input(case: Case) -> Iterator[dict[str, Any]]:
    beside = {"context": case.context, "state": case.state}
    known = {name: value for name, value in beside.items() if value}
    if known:
        told = json.dumps(known, ensure_ascii=False, indent=1)
        yield {"role": "user", "content": f"What is known so far:\n{told}"}
    if isinstance(case.input, list | dict) and (chat := chat_of(case.input)).messages:
        yield from chat.messages
    elif case.input is not None:
        is_text = isinstance(case.input, str)
        said = case.input if is_text else json.dumps(case.input, ensure_ascii=False)
        yield {"role": "user", "content": said}


class Talk:
    """The loop over a model's answers and the tools that it asks for."""

    def __init__(self, order: EndpointOrder, answer: Answer, hooks: Hooks) -> None:
        self._order = order
        self._answer = answer
        self._dialect = _DIALECTS[order.api]
        self._asking = _asking(order)
        self._history: list[dict[str, Any]] = []
        self._tool_calls = 0
        self._mask = Mask([order.secret])
        versions = {"httpx": httpx.__version__, "api": order.api.value}
        walls = Walls(level=LEVEL, holds=HOLDS, open=OPEN, versions=versions)
        self.happened = Happened(
            order.case, limits=order.limits, hooks=hooks, walls=walls
        )
        self._calls = ModelCalls(
            _endpoint(order, self._dialect),
            happened=self.happened,
            names=WireNames(order.case.tools),
            mask=self._mask,
        )

    def answer_to(self, messages: Iterable[dict[str, Any]]) -> str:
        """The text with which the model ends; raises `CallFailed` without one."""
        self._history += self._dialect.begin(messages)
        if not self._history:
            raise failed(ErrorKind.OURS, "The case holds nothing that could be asked.")
        while True:
            if self._calls.answered >= self._order.limits.model_calls:
                raise failed(
                    ErrorKind.LIMIT,
                    "It asked for tools until the limit of "
                    f"{self._order.limits.model_calls:,} model calls.",
                )
            body = self._dialect.request(self._asking, list(self._history))
            value, answer = self._calls.ask(body)
            self.happened.output = answer.text
            _check_ended(answer, self._asking.max_tokens)
            if not answer.asked:
                text = answer.text or ""
                self._history.append({"role": "assistant", "content": text})
                return text
            results = [self._tool(one) for one in answer.asked]
            self._history += self._dialect.onward(value, answer, results)

    def forget(self) -> None:
        """Begin anew; the record goes on."""
        self._history = []

    def _tool(self, one: AskedCall) -> str:
        """What the model is told of a tool that it asked for."""
        limit = self._order.limits.tool_calls
        if self._tool_calls >= limit:
            raise failed(
                ErrorKind.LIMIT, f"It reached the limit of {limit:,} tool calls."
            )
        self.happened.time_left.check()
        self._tool_calls += 1
        clock = self.happened.hooks.clock_ns
        start_ns = clock()
        # They are a text in the answer, in which a key may be written in other signs.
        arguments = self._mask.value(one.arguments)
        if one.has_arguments:
            given = self._answer(one.tool, arguments)
        else:
            given = ToolAnswer(source=AnswerSource.MISS, error=_BAD_ARGUMENTS)
        self.happened.add(
            ToolCalled(
                tool=one.tool,
                arguments=arguments,
                answer=given,
                call_id=one.call_id,
                start_ns=start_ns,
                end_ns=clock(),
            )
        )
        if given.stops:
            why = given.error or given.note or "a stub ended it"
            raise failed(ErrorKind.STOPPED, f"The run ended at `{one.tool}`: {why}")
        return result_text(given)


def _check_ended(answer: ModelAnswer, max_tokens: int) -> None:
    """An answer that was cut or filtered was not given freely."""
    if answer.finish is FinishReason.LENGTH:
        raise failed(
            ErrorKind.LIMIT,
            f"The answer was cut at the limit of {max_tokens:,} output tokens.",
        )
    if answer.finish is FinishReason.CONTENT_FILTER:
        raise failed(
            ErrorKind.TARGET, "The endpoint's content filter ended the answer."
        )


def _asking(order: EndpointOrder) -> Asking:
    case = order.case
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    wanted = [
        held.get(name) for held in (order.parameters, case.parameters) for name in names
    ]
    limits = [one for one in wanted if type(one) is int and one > 0]
    return Asking(
        model=order.model or case.model,
        max_tokens=min([order.limits.output_tokens, *limits]),
        tools=case.tools,
        parameters=case.parameters,
        own=order.parameters,
        temperature=order.regime.temperature,
        seed=order.seed,
        is_streamed=order.is_streamed,
    )


def _endpoint(order: EndpointOrder, dialect: Dialect) -> Endpoint:
    headers = dict(order.headers)
    if order.secret:
        headers |= secret_headers(
            order.secret, order.secret_header, order.secret_prefix
        )
    return Endpoint(
        url=endpoint_url(order.base_url, dialect.path),
        api=order.api,
        dialect=dialect,
        headers=headers,
        reach=order.reach,
        patience=order.patience,
        answer_bytes=order.limits.answer_bytes,
    )


def endpoint_url(base_url: str, path: str) -> str:
    """The address that is called: the base, the path of the API, the base's query."""
    base, mark, query = base_url.partition("?")
    base = base.rstrip("/")
    return (base if base.endswith(path) else base + path) + mark + query
