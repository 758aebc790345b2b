"""Where an agent asks a user for what the user had told under the same name.

Only declared wordings in English count: “my order number is 84920”, then “could you
provide your order number?”, then 84920 once more. A question that asks to confirm, or
that follows a failed use of the value, is none.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from apps.engine.bodies.texts import said_in
from apps.engine.memory.stated import Reading
from apps.engine.memory.values import tokens_in
from apps.engine.sequences import once_per_trace, steps_in_order
from apps.engine.trace import Step, StepKind, Trace

_LONGEST: Final = 20_000
_THINGS: Final = (
    "order|user|account|reservation|booking|confirmation|customer|ticket|invoice|case|"
    "membership|member|policy|tracking|contract|serial|reference|flight|passport"
)
_NOUN: Final = (
    rf"(?:(?:{_THINGS}) (?:id|number|code|reference)|e-?mail address|e-?mail|"
    "phone number|zip code|postal code|post code)"
)
_TOLD: Final = re.compile(
    rf"\b(?:my|our|the) ({_NOUN})(?: (?:is|was))?[ :=]{{1,3}}[#\"']?"
    r"([A-Za-z0-9][A-Za-z0-9_.@+-]{1,80})",
    re.IGNORECASE,
)
_ASKED: Final = re.compile(
    r"\b(?:what(?:'s| is)|may i have|i(?:'ll)? (?:will )?need|(?:provide|share|give|tell|"
    r"send)(?: me| us)?(?: with)?) (?:your|the) "
    rf"({_NOUN})\b",
    re.IGNORECASE,
)
_CHECKS: Final = re.compile(
    r"\b(?:confirm|verif\w*|again|correct\w*|double|re-?enter|valid\w*|not found|"
    r"couldn't find|could not find|unable to find|different|another|other|new)\b",
    re.IGNORECASE,
)


class AskedAgain(msgspec.Struct, frozen=True):
    """A value told in one step and asked for in a later one (`seq`), and its noun."""

    noun: str
    value: str
    told: int
    asking: int


def asked_again(trace: Trace, reading: Reading) -> list[AskedAgain]:
    """The values that a user had to tell twice, at most once each. Linear in the texts."""
    if len(reading.turns) < 2:
        return []
    failed = {use.value for use in reading.uses if use.failed}
    told: dict[tuple[str, str], int] = {}
    found: dict[tuple[str, str], AskedAgain] = {}
    questions = _questions(trace)
    for turn in reading.turns:
        question = questions.get(turn.step)
        said = turn.asked[:_LONGEST]
        if question is not None and told:
            for again in _again(question, said, told):
                if again.value not in failed:
                    found.setdefault((again.noun, again.value), again)
        for match in _TOLD.finditer(said):
            for value in tokens_in(match.group(2)):
                told.setdefault((_plain(match.group(1)), value), turn.step)
    return list(found.values())


def _again(
    question: Step, said: str, told: dict[tuple[str, str], int]
) -> list[AskedAgain]:
    text = said_in(None if question.body is None else question.body.output)[:_LONGEST]
    text = text.replace("\u2019", "'")
    if "?" not in text and "please" not in text.lower():
        return []
    if _CHECKS.search(text):
        return []
    nouns = {_plain(match.group(1)) for match in _ASKED.finditer(text)}
    if not nouns:
        return []
    known, repeated = set(tokens_in(text)), set(tokens_in(said))
    return [
        AskedAgain(noun, value, step, question.seq)
        for (noun, value), step in told.items()
        if noun in nouns and value in repeated and value not in known
    ]


@once_per_trace
def _questions(trace: Trace) -> dict[int, Step]:
    """For each message of a user, the last model call before it that says something."""
    last: Step | None = None
    found = {}
    for step in steps_in_order(trace):
        if step.kind is StepKind.USER_MESSAGE and last is not None:
            found[step.seq] = last
        elif step.kind is StepKind.MODEL_CALL and _says(step):
            last = step
    return found


def _says(step: Step) -> bool:
    return step.body is not None and bool(said_in(step.body.output))


def _plain(noun: str) -> str:
    return " ".join(noun.lower().replace("-", "").split())
