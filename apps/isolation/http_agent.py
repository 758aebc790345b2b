"""Runs an agent that is reached over HTTP: one POST, whose tools are our stubs.

The agent runs somewhere else. It is told to use the addresses of this run's stubs for
its tools; that it uses nothing else is not in our hands, and is said on the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import httpx
import msgspec

from apps.engine.bodies.canonical import canonical
from apps.engine.memory_tests.conversation import Said
from apps.engine.reading.json_words import visible
from apps.engine.replay.agent_protocol import (
    AgentAnswer,
    answer_in,
    one_call_for_all,
    request_of,
    spent_by,
    together,
)
from apps.engine.replay.answer_gate import AnswerGate, BadAnswer, text_of
from apps.engine.replay.case import Case
from apps.engine.replay.retrying import (
    Patience,
    failure_of,
    gave_up,
    pause_before_retry,
)
from apps.engine.replay.run import (
    Effect,
    EffectKind,
    ErrorKind,
    Event,
    Limits,
    Message,
    ModelCalled,
    Ran,
    Regime,
    RunError,
    StateSeen,
    ToolCalled,
)
from apps.isolation.client import Reach, Reply, Request, exchange, secret_headers
from apps.isolation.happened import Happened, Walls
from apps.isolation.hooks import Hooks, WorstCase
from apps.isolation.masking import Mask
from apps.isolation.model_calls import LEAKED, beginning_of, masked_error
from apps.isolation.run_time import CallFailed

LEVEL: Final = "elsewhere, stubbed"
HOLDS: Final = (
    "No code of the agent runs here: it is asked over HTTP.",
    "Its tools were given to it as addresses of stubs of this run only.",
    "Its address was resolved once and checked, and the connection went to the address "
    "that was checked; no redirects, no proxies.",
    "Size and time of its answer are bound.",
)
OPEN: Final = (
    "That the input is the same before and after is said of what was kept here.",
    "The agent's process is not walled: whether it uses other tools, files or networks "
    "than the stubs cannot be seen from here.",
    "Its state is kept apart only where it takes the state that is sent to it.",
)


class HttpAgentOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One run that is ordered of an HTTP agent.

    `url` takes the POST. `stub_base` is the address below which the agent finds the
    stubs of this run, see `agent_protocol`. `secret` is sent as a bearer token, or as
    it is in another `secret_header`.
    """

    case: Case
    url: str
    run: str = ""
    regime: Regime = Regime()
    limits: Limits = Limits()
    stub_base: str = ""
    headers: dict[str, str] = {}
    secret: str = ""
    secret_header: str = "Authorization"  # noqa: S105 # the name, not the secret
    secret_prefix: str | None = None
    reach: Reach = Reach()
    patience: Patience = Patience()

    def __repr__(self) -> str:
        return f"HttpAgentOrder({self.url!r}, run={self.run!r})"


_T = TypeVar("_T")
SeenCalls = Callable[[], Sequence[ToolCalled]]
"""The calls that the stubs of the run have seen, in order."""


def _none_seen() -> Sequence[ToolCalled]:
    return ()


def run_http_agent(
    order: HttpAgentOrder,
    *,
    seen_calls: SeenCalls = _none_seen,
    hooks: Hooks | None = None,
) -> Ran:
    """The record of one run; every way to end but `NotNow` comes back as such.

    Errors that pass (rate limit, overload, connection) are tried again only while no
    stub was called: after that the stubs are no longer as they were at the beginning.
    """
    posts = _Posts(order, seen_calls, hooks or Hooks())
    return posts.happened.run(lambda: posts.answer_to(order.case))


def run_http_turns(
    order: HttpAgentOrder,
    drive: Callable[[HttpConversation], _T],
    *,
    seen_calls: SeenCalls = _none_seen,
    hooks: Hooks | None = None,
) -> tuple[Ran, _T | None]:
    """Talk with the agent: `drive` gets the conversation, turn by turn.

    Back come the record, whose output is the last answer, and what `drive` gave back,
    `None` where it did not come to its end. Raises `NotNow` where a hook did.
    """
    conversation = HttpConversation(order, seen_calls, hooks or Hooks())
    return conversation.posts.happened.run_turns(lambda: drive(conversation))


class HttpConversation:
    """A conversation with the agent: one POST for each turn, its state sent along.

    Each act raises `TurnFailed`, or `NotNow`.
    """

    def __init__(
        self, order: HttpAgentOrder, seen_calls: SeenCalls, hooks: Hooks
    ) -> None:
        self.posts = _Posts(order, seen_calls, hooks)
        self._case = order.case
        self._messages: list[dict[str, Any]] = []
        self._state: Any = None
        self._turns = 0
        self.restart()

    def turn(self, text: str) -> Said:
        """What the agent answers to the next words of the user."""
        happened = self.posts.happened
        clock = happened.hooks.clock_ns
        said = {"role": "user", "content": text}
        happened.add(Message(role="user", content=text, at_ns=clock()))
        case = msgspec.structs.replace(
            self._case,
            input=text,
            messages=(*self._messages, said),
            state=self._state,
        )
        with happened.turn() as events:
            happened.output = output = self.posts.answer_to(case)
        if happened.state is not None:
            self._state = happened.state
        self._turns += 1
        happened.add(Message(role="assistant", content=output, at_ns=clock()))
        told = output if isinstance(output, str) else canonical(output)
        self._messages += [said, {"role": "assistant", "content": told}]
        return Said(answer=output, events=tuple(events))

    def state(self) -> Any:
        """The state as the agent gave it back last; `None` where it gives none."""
        happened = self.posts.happened
        if happened.state is not None:
            now = happened.hooks.clock_ns()
            happened.add(
                StateSeen(state=happened.state, turn=max(0, self._turns - 1), at_ns=now)
            )
        return happened.state

    def restart(self) -> None:
        """Begin anew with the messages and the state of the case."""
        self._messages = list(self._case.messages)
        self._state = self._case.state
        self.posts.happened.state = None
        self._turns = 0


class _Posts:
    """The requests of one attempt."""

    def __init__(
        self, order: HttpAgentOrder, seen_calls: SeenCalls, hooks: Hooks
    ) -> None:
        self._order = order
        self._seen_calls = seen_calls
        self._known = 0
        self._mask = Mask([order.secret])
        walls = Walls(
            level=LEVEL,
            holds=HOLDS,
            open=OPEN,
            versions={"httpx": httpx.__version__},
        )
        self.happened = Happened(
            order.case, limits=order.limits, hooks=hooks, walls=walls
        )

    def answer_to(self, case: Case) -> Any:
        """The output that the agent gives to a case; raises `CallFailed`."""
        order, tries = self._order, 0
        body = request_of(
            case,
            run=order.run,
            regime=order.regime,
            limits=order.limits,
            stub_base=order.stub_base,
        )
        sent = msgspec.json.encode(body)
        while True:
            tries += 1
            outcome = self._try(sent)
            fresh = self._fresh()
            if isinstance(outcome, AgentAnswer):
                self._take(outcome, fresh)
                return outcome.output
            self.happened.events += fresh
            self._wait_or_give_up(outcome, tries, was_asked=bool(fresh))

    def _wait_or_give_up(self, error: RunError, tries: int, *, was_asked: bool) -> None:
        patience, chance = self._order.patience, self.happened.hooks.random
        seconds = pause_before_retry(
            error, tries=tries, patience=patience, chance=chance
        )
        if was_asked or seconds is None:
            raise CallFailed(gave_up(error, tries=tries, patience=patience))
        self.happened.wait(seconds)

    def _fresh(self) -> tuple[ToolCalled, ...]:
        """What the stubs have seen since the last look."""
        found = tuple(self._seen_calls())[self._known :]
        self._known += len(found)
        return found

    def _try(self, sent: bytes) -> AgentAnswer | RunError:
        happened, hooks = self.happened, self.happened.hooks
        limits = self._order.limits
        worst = WorstCase(
            input_tokens=None, output_tokens=limits.model_calls * limits.output_tokens
        )
        with happened.asking_leave():
            hooks.before_call(worst)
        seen: list[Reply] = []
        outcome: AgentAnswer | RunError
        try:
            outcome = self._exchanged(sent, seen)
        except CallFailed as failure:
            outcome = masked_error(failure.error, self._mask)
        except BadAnswer as bad:
            outcome = RunError(kind=ErrorKind.BAD_ANSWER, sentence=str(bad))
        if isinstance(outcome, RunError):
            kept = beginning_of(seen[0], self._mask) if seen else None
            content = {"failed": outcome.sentence, "answer": kept}
            happened.add(
                Message(role="target", content=content, at_ns=hooks.clock_ns())
            )
            spent = ModelCalled(request=None, error=outcome)
        else:
            spent = ModelCalled(request=None, usage=spent_by(outcome))
        with happened.asking_leave():
            hooks.after_call(spent)
        return outcome

    def _exchanged(self, sent: bytes, seen: list[Reply]) -> AgentAnswer:
        order = self._order
        headers = {"Content-Type": "application/json"} | order.headers
        headers["Accept"] = "application/json, text/plain"
        if order.secret:
            headers |= secret_headers(
                order.secret, order.secret_header, order.secret_prefix
            )
        request = Request(
            url=order.url,
            body=sent,
            headers=headers,
            answer_bytes=order.limits.answer_bytes,
        )
        reply = exchange(request, reach=order.reach, time_left=self.happened.time_left)
        seen.append(reply)
        value = self._value(reply)
        error = failure_of(
            reply.status,
            reply.headers,
            value if reply.status >= 300 else None,
            now=self.happened.hooks.clock_ns() / 1e9,
            is_model=False,
        )
        if error is not None:
            raise CallFailed(error)
        return answer_in(value)

    def _value(self, reply: Reply) -> Any:
        """The JSON of an answer, or its text; masked. Of a refusal whatever it says."""
        is_good = reply.status < 300
        try:
            raw = _read(reply)
        except BadAnswer:
            if is_good:
                raise
            raw = None
        value = self._mask.value(raw)
        if value != raw and is_good:
            self.happened.leak(LEAKED)
        return value

    def _masked(self, event: Event) -> Event:
        """Arguments that were a text may have held the key in other signs."""
        if not isinstance(event, ToolCalled):
            return event
        return msgspec.structs.replace(
            event, arguments=self._mask.value(event.arguments)
        )

    def _take(self, found: AgentAnswer, fresh: Sequence[ToolCalled]) -> None:
        happened = self.happened
        told = tuple(self._masked(event) for event in found.events)
        events, unseen = together(told, fresh)
        happened.events += events
        if (whole := one_call_for_all(found)) is not None:
            happened.add(whole)
        offered = {tool.name for tool in self._order.case.tools}
        for call in unseen:
            happened.effects.append(
                Effect(
                    kind=EffectKind.OTHER,
                    what=f"The agent tells of a call of `{call.tool}` that no stub saw; "
                    "it may have been real.",
                    after=next(
                        n for n, one in enumerate(happened.events) if one is call
                    ),
                    was_stopped=None,
                    is_breach=call.tool in offered,
                )
            )
        happened.state = found.state


def _read(reply: Reply) -> Any:
    """The JSON of an answer, or the text of a plain one."""
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    text = text_of(reply.body)
    if kind == "text/plain":
        return visible(text)
    if kind in {"", "application/json"} or kind.endswith("+json"):
        return AnswerGate().value(text)
    raise BadAnswer(f'The answer is neither JSON nor plain text ("{kind[:60]}").')
