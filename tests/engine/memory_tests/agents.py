"""Agents whose memory fails in one known way, and the tests that are driven over them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from apps.engine.memory_tests import (
    ChatConversation,
    MemoryTest,
    Said,
    TurnFailed,
    decoded_memory_test,
)
from apps.engine.replay.run import ErrorKind, RunError

PROBE = "Which code opens my locker?"
LOCKER = {
    "slug": "locker",
    "value": "X9-4417",
    "telling": "By the way, my locker has the code {value}.",
    "probe": PROBE,
    "normaliser": "id",
    "decoys": [{"value": "X9-4418", "telling": "Marta's bicycle lock has {value}."}],
}
COLOUR = {
    "slug": "colour",
    "value": "green",
    "telling": "My favourite colour is {value}.",
    "probe": "Which colour do I like best?",
}
NUMBER = {
    "slug": "order",
    "value": "84920",
    "telling": "My order number is {value}.",
    "probe": "What was the number of my order?",
}


def spec(*facts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"facts": list(facts or (LOCKER,)), "depths": [0, 2, 5]} | fields


def a_test(*facts: dict[str, Any], **fields: Any) -> MemoryTest:
    return decoded_memory_test(spec(*facts, **fields))


def knows(facts: MemoryTest, handed: list[str], asked: str) -> str:
    """The model of all these agents: it answers from what it is handed and nothing else."""
    for fact in facts.facts:
        if fact.probe == asked:
            told = [text for text in handed if fact.value in text]
            return f"It is {fact.value}." if told else "I do not know that."
    return "Gladly."


class Agent:
    """Keeps a log of what it was told, and hands the model a choice of it.

    `keeps` decides what is added to the log, `shortens` what is left of it after each
    turn, `hands` what of it the model is given; `says` may answer otherwise.
    """

    def __init__(
        self,
        test: MemoryTest,
        *,
        keeps: Callable[[str], bool] = lambda text: True,
        shortens: Callable[[list[str]], list[str]] = lambda log: log,
        hands: Callable[[list[str]], list[str]] = lambda log: log,
        says: Callable[[str, str], Any] = lambda asked, answer: answer,
        shows: str = "state handed",
    ) -> None:
        self.test, self.keeps, self.shortens = test, keeps, shortens
        self.hands, self.says, self.shows = hands, says, shows
        self.log: list[str] = []

    def restart(self) -> None:
        self.log = []

    def turn(self, text: str) -> Any:
        handed = [*self.hands(self.log), text]
        answer = self.says(text, knows(self.test, handed, text))
        if self.keeps(text):
            self.log = self.shortens([*self.log, text])
        return Said(answer=answer, handed=handed if "handed" in self.shows else None)

    def state(self) -> Any:
        return {"notes": list(self.log)} if "state" in self.shows else None


def last(number: int) -> Callable[[list[str]], list[str]]:
    return lambda log: log[len(log) - number :] if len(log) > number else log


def at_a_probe(test: MemoryTest, answer: Any) -> Callable[[str, str], Any]:
    probes = {fact.probe for fact in test.facts}
    return lambda asked, said: answer if asked in probes else said


def chat(test: MemoryTest, *, summary: Callable[[str], bool], **fields: Any):
    """A model with a summariser that keeps the sentences that `summary` takes."""

    def answer(messages: list[dict[str, Any]]) -> str:
        texts = [message["content"] for message in messages]
        return knows(test, texts[:-1], texts[-1])

    def summarised(messages: list[dict[str, Any]]) -> str:
        lines = [line for m in messages[:-1] for line in m["content"].splitlines()]
        return "\n".join(line for line in lines if summary(line)) or "Small talk."

    return ChatConversation(answer, summariser=summarised, **fields)


class Forgetful(Agent):
    """Recalls with a probability that depends on the number of turns since its start."""

    def __init__(self, test: MemoryTest, rates: dict[int, float], seed: int) -> None:
        super().__init__(test, shows="")
        self.rates, self.chance, self.turns = rates, Random(seed), 0

    def restart(self) -> None:
        self.turns = 0

    def turn(self, text: str) -> Any:
        fact = self.test.facts[0]
        if text != fact.probe:
            self.turns += 1
            return "Gladly."
        is_known = self.chance.random() < self.rates[self.turns - 1]
        return f"It is {fact.value}." if is_known else "I do not know that."


class Breaking(Agent):
    """Fails at one text, or where it is started anew or asked for its state."""

    def __init__(self, test: MemoryTest, at: str, kind: ErrorKind) -> None:
        super().__init__(test)
        self.at, self.kind = at, kind

    def _break(self, at: str) -> None:
        if at == self.at:
            raise TurnFailed(RunError(kind=self.kind, sentence=f"It broke at {at}."))

    def restart(self) -> None:
        self._break("restart")
        super().restart()

    def state(self) -> Any:
        self._break("state")
        return super().state()

    def turn(self, text: str) -> Any:
        self._break(text)
        return super().turn(text)


def as_json(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))
