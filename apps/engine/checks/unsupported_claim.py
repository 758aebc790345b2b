"""Claims without support: numbers of the final answer that no source holds.

A fact about texts: a number stands in what the run was told, or follows from two
numbers that do, or not. It does not say that the number is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from apps.engine.bodies import FinalAnswer, final_answer, has_bodies
from apps.engine.bodies.amounts import Claim, claims_in
from apps.engine.bodies.heard import Heard, heard_before, told_to
from apps.engine.bodies.numerals import are, counted
from apps.engine.bodies.recorded import NO_BODIES
from apps.engine.bodies.support import Support
from apps.engine.check import (
    Answer,
    Basis,
    Evidence,
    Judgement,
    Level,
    Parameter,
    Screening,
    hash_of_inputs,
)
from apps.engine.rules import Rule, nothing_read
from apps.engine.trace import Trace

_NOT_MODELLED: Final = (
    "Arithmetic over more than two numbers, other than the total of a list or one that "
    "the answer shows step by step.",
    "Time between two dates or hours, and conversions that use a table or a rate.",
    "What the model knows by itself, and instructions that are not recorded.",
    "Short made-up numbers that follow from two others by chance: on 263 recorded "
    "answers that was so of 60 % of those with two digits (and of amounts such as "
    "42.00), 20 % with three, 3 % with four, and of 70 % of percentages with two.",
    "Arithmetic with more than the first 400 numbers of the sources.",
    "Whether a number that stands somewhere is used for the right thing.",
)
_LONGEST_ANSWER: Final = 65_536
_MOST_CLAIMS: Final = 100
_SHOWN: Final = 20
_LAST_DIGITS: Final = 4
_OF_NUMBERS: Final = "0123456789.,' "


@dataclass(frozen=True)
class UnsupportedClaim(Rule):
    """Looks up every number of the final answer in what the run was told.

    `digits` (2 to 6, zeros behind a decimal mark included) significant digits make a number worth looking up, and `claims`
    (1 to 50) of them without support make a signal. Raises `ValueError` outside these
    ranges.
    """

    digits: int = 3
    claims: int = 1

    slug = "unsupported-claim"
    label = "Claim without support"
    version = 1
    level = Level.REVIEW_SIGNAL
    basis = Basis.FACT
    needs_bodies = True
    limits = (
        Parameter("digits", "Significant digits", 2, 6, unit="digits"),
        Parameter("claims", "Numbers without support", 1, 50, unit="numbers"),
    )
    observes = (
        "The numbers of the final answer, without dates, times, ids, years, versions, "
        "list numbers and code, and all numbers of the tool results, user and system "
        "messages before it."
    )
    null_model = (
        "None: whether a number stands in a text is a fact about texts, not a "
        "statistic, and nothing is shuffled. It cannot see arithmetic over more than "
        "two numbers, nor what the model knows by itself."
    )
    next_step = (
        "Look where the number may come from: a total of several results, something "
        "the model knows, or nothing at all. Only then is it made up."
    )

    @property
    def material_when(self) -> str:
        """What makes it worth a look, with the values of the parameters."""
        numbers = "A number" if self.claims == 1 else f"At least {self.claims} numbers"
        return (
            f"{numbers} of {self.digits} or more significant digits (42.00 has four) "
            "that no source holds in any notation, rounded, as size or total of a list, or as sum, "
            "difference, product, quotient or percentage of two numbers. Only where a "
            "tool gave results and all of them are recorded as text."
        )

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer about the whole trace."""
        answer = final_answer(trace)
        unreadable = _unreadable(trace, answer)
        if unreadable is not None or answer is None:
            said = unreadable or _not_read("no_answer", "The trace holds no answer.")
            yield nothing_read(said, self.slug)
            return
        found = claims_in(_beginning(answer.text))
        # What was read does not depend on parameters: all numbers are.
        claims = [one for one in found if one.digits >= self.digits]
        if not any(one.digits > 1 for one in found):
            yield _no_numbers(answer).with_evidence(
                _evidence(answer, [], []),
                hash_of_inputs(self.slug, [one.text for one in found]),
            )
            return
        told = told_to(trace, answer)
        left = [one for one in found if one.digits > 1 and not _stands_in(one, told)]
        heard = heard_before(trace, answer) if left else None
        hashed = hash_of_inputs(
            self.slug,
            [one.text for one in found],
            told if heard is None else _read(heard),
        )
        yield self._screening(answer, claims, heard, hashed)

    def _screening(
        self, answer: FinalAnswer, claims: list[Claim], heard: Heard | None, hashed: str
    ) -> Screening:
        if not claims:
            return _no_numbers(answer).with_evidence(_evidence(answer, [], []), hashed)
        rest = _cut(answer, claims)
        claims = claims[:_MOST_CLAIMS]
        left: list[Claim] = []
        if heard is not None:
            support = Support(heard)
            left = support.not_held(claims)
            refused = _cannot_look(heard, is_cut=support.is_cut) if left else None
            if refused is not None:
                return refused.with_evidence(_evidence(answer, claims, []), hashed)
        evidence = _evidence(answer, claims, left)
        return self._judged(claims, left, rest).with_evidence(evidence, hashed)

    def _judged(self, claims: list[Claim], left: list[Claim], rest: str) -> Judgement:
        n = len(claims)
        if not left:
            return Judgement(
                Answer.QUIET,
                "supported",
                f"{counted(n, 'number')} of the answer found in its sources",
                f"What was looked up of the final answer ({counted(n, 'number')}) stands "
                "in what the run was told, or follows from two numbers that do."
                f"{rest}",
            )
        if len(left) < self.claims:
            return Judgement(
                Answer.QUIET,
                "few_not_found",
                f"{len(left)} of {counted(n, 'number')} in the answer not found, too few "
                "to queue",
                f"{len(left)} of {counted(n, 'number')} of the final answer "
                f"{are(len(left))} not found in what the run was told, and "
                f"{are(len(left))} no result of two numbers that are; a signal needs "
                f"{self.claims}.{rest}",
            )
        shown = ", ".join(claim.text for claim in left[:5])
        more = " and others" if len(left) > 5 else ""
        return Judgement(
            Answer.SIGNAL,
            "not_found",
            f"{len(left)} of {counted(n, 'number')} in the answer {_stand(len(left))} in no "
            f"source: {shown}{more}",
            f"The final answer states {shown}{more}, and no tool result, user or system "
            "message holds it, nor does it follow from two numbers that stand there. A "
            "fact about texts: a total of more numbers, or what the model knows, looks "
            f"the same.{rest}",
            Level.REVIEW_SIGNAL,
        )


def _unreadable(trace: Trace, answer: FinalAnswer | None) -> Judgement | None:
    if answer is None:
        return _not_read(
            "no_answer", "The trace holds no model call and no output of an agent."
        )
    if not has_bodies(trace):
        return _not_read("no_bodies", NO_BODIES)
    if not answer.text:
        return _not_read(
            "no_text", "The last answer of the trace has no recorded text."
        )
    return None


def _not_read(code: str, reason: str) -> Judgement:
    return Judgement(Answer.NOT_APPLICABLE, code, "No answer to look up", reason)


def _stand(number: int) -> str:
    return "stands" if number == 1 else "stand"


def _cut(answer: FinalAnswer, claims: list[Claim]) -> str:
    """A sentence about what of the answer was not looked up, nothing where all was."""
    n = len(answer.text)
    if n > _LONGEST_ANSWER:
        return f" Only the first {_LONGEST_ANSWER:,} of its {n:,} characters were read."
    if len(claims) > _MOST_CLAIMS:
        return f" Only its first {_MOST_CLAIMS} numbers were looked up."
    return ""


def _no_numbers(answer: FinalAnswer) -> Judgement:
    rest = _cut(answer, [])
    what = "beginning of the final answer" if rest else "final answer"
    return Judgement(
        Answer.QUIET,
        "no_numbers",
        f"The {what} states no number to look up",
        f"The {what} holds no amount of enough digits to say something; dates, times, "
        f"ids, years and list numbers are none.{rest}",
    )


def _cannot_look(heard: Heard, *, is_cut: bool) -> Judgement | None:
    """Why a missing number would say nothing; `None` where all sources are readable."""
    headline = "The sources cannot be searched"
    if not heard.sources:
        return Judgement(
            Answer.NOT_APPLICABLE,
            "no_sources",
            "No tool result to compare with",
            "No tool gave a result before the final answer, so its numbers come from "
            "the question or from what the model knows.",
        )
    if heard.missing:
        return Judgement(
            Answer.NOT_APPLICABLE,
            "results_missing",
            headline,
            f"{heard.missing} of {counted(heard.sources, 'result')} of tools "
            f"{are(heard.missing)} not recorded; a number may stand there.",
        )
    if heard.has_images:
        return Judgement(
            Answer.NOT_APPLICABLE,
            "images",
            headline,
            "Among the sources are images, sounds or files that are not read.",
        )
    return _too_much() if heard.is_cut or is_cut else None


def _too_much() -> Judgement:
    return Judgement(
        Answer.NOT_APPLICABLE,
        "too_much_text",
        "The sources are too long to search",
        "The sources are longer than 524,288 characters or hold more than 20,000 "
        "different numbers.",
    )


def _read(heard: Heard) -> list[Any]:
    """Everything that was read of what the run was told, for the hash."""
    return [
        heard.texts,
        heard.sizes,
        (heard.sources, heard.missing, heard.has_images, heard.is_cut),
    ]


def _beginning(text: str) -> str:
    """As much of an answer as is read, without a number that the cut goes through."""
    if len(text) <= _LONGEST_ANSWER:
        return text
    return text[:_LONGEST_ANSWER].rstrip(_OF_NUMBERS)


def _stands_in(claim: Claim, text: str) -> bool:
    """Whether a number stands in a text just as the answer writes it.

    “Ending in 1784” names a longer number by its last four digits.
    """
    digits = claim.text.removesuffix("%")
    is_ending = len(digits) == _LAST_DIGITS
    place = text.find(digits)
    while place >= 0:
        before, end = text[place - 1 : place] if place else "", place + len(digits)
        is_free = before not in {".", ","} and (is_ending or not before.isdigit())
        after = text[end : end + 2]
        goes_on = after[:1].isdigit() or (
            after[:1] in {".", ","} and after[1:].isdigit()
        )
        if is_free and not goes_on:
            return True
        place = text.find(digits, place + 1)
    return False


def _evidence(answer: FinalAnswer, claims: list[Claim], left: list[Claim]) -> Evidence:
    facts: dict[str, Any] = {"numbers": [one.text for one in claims[:_MOST_CLAIMS]]}
    if left:
        facts["without_support"] = [one.text for one in left[:_SHOWN]]
    return Evidence(
        scope="trace",
        invocation=answer.invocation,
        agent=answer.agent,
        ended="end of the trace",
        length=len(claims),
        effect=float(len(left)) if claims else None,
        steps=(answer.step,),
        not_modelled=_NOT_MODELLED,
        facts=facts if claims else {},
    )
