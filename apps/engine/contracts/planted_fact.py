"""Planted fact lost: a value that was told, needed later, and not given back.

It reads whether the answer of the turn that needs the value names it. It does not say
why it is missing, nor whether the answer is right in anything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from apps.engine.bodies import has_bodies
from apps.engine.bodies.recorded import NO_BODIES
from apps.engine.check import (
    Answer,
    Evidence,
    Judgement,
    Screening,
    hash_of_inputs,
)
from apps.engine.contracts.conversation import Turn, turns
from apps.engine.contracts.defined import DefinedCheck
from apps.engine.contracts.fact_spec import FactSpec
from apps.engine.contracts.mentions import (
    Mention,
    Normaliser,
    alike,
    mentions,
    normalised,
)
from apps.engine.contracts.patterns import passage
from apps.engine.trace import Trace


class Memory(StrEnum):
    """What an answer did with a fact."""

    RECALLED = "recalled"
    LOST = "lost"
    CONTRADICTED = "contradicted"
    AMBIGUOUS = "ambiguous"


MOST_PROBES: Final = 20
_MOST_SHOWN: Final = 10
_NOT_MODELLED: Final = (
    "paraphrases of the value",
    "negation other than in English and next to the value",
    "a tool result that told the value again",
)


def remembered(answer: str, fact: FactSpec) -> tuple[Memory, list[str]]:
    """What `answer` did with the fact, and the other candidates that it names.

    Candidates are the decoys, and values that look like the fact. A value that is
    denied counts as not named.
    """
    own = mentions(answer, fact.value, fact.normaliser)
    others = _candidates(answer, fact)
    is_named = any(not mention.is_denied for mention in own)
    if is_named and others:
        return Memory.AMBIGUOUS, others
    if is_named:
        return Memory.RECALLED, []
    if own or others:
        return Memory.CONTRADICTED, others
    return Memory.LOST, []


def _candidates(answer: str, fact: FactSpec) -> list[str]:
    found: list[Mention] = alike(answer, fact.value, fact.normaliser)
    for decoy in fact.decoys:
        found += mentions(answer, decoy, fact.normaliser)
    own = normalised(fact.value, fact.normaliser)
    seen: dict[str, str] = {}
    for mention in sorted(found, key=lambda each: each.start):
        key = normalised(mention.text, fact.normaliser)
        # Where capitals count, another spelling is no recall but no rival either.
        is_other = key.casefold() != own.casefold()
        if is_other and not mention.is_denied:
            seen.setdefault(key, mention.text)
    return list(seen.values())


@dataclass(frozen=True)
class PlantedFact(DefinedCheck[FactSpec]):
    """Whether a fact that a message tells is given back where a later one needs it."""

    kind = "fact"
    needs_bodies = True
    null_model = "None: whether an answer names a value is a fact, not a statistic."
    next_step = (
        "Read the message that told the fact and the answer that should have named it. "
        "Confirm the signal if the system should have known it; dismiss it if the "
        "answer says the same in other words."
    )

    @property
    def observes(self) -> str:
        """The fact, and where it is needed."""
        return (
            f"Whether the value “{self.spec.value}”, once a message has told it, is "
            f"named in the answer to a later message with “{self.spec.probe}”."
        )

    @property
    def material_when(self) -> str:
        """When the fact counts as lost."""
        return (
            "The answer does not name the value as a whole "
            f"({_SAME[self.spec.normaliser]}), denies it, or names another candidate "
            "in its place. An answer that names several candidates is left undecided."
        )

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer for each turn that needs the fact, or why there is none."""
        if not has_bodies(trace):
            yield _not_applicable("bodies_missing", "No texts are recorded", NO_BODIES)
            return
        spoken = turns(trace)
        planted = self._planted(spoken)
        if planted is None:
            yield _not_applicable(
                "not_planted",
                "The fact is not told here",
                f"No message of the trace tells “{self.spec.value}”, so there is "
                "nothing to remember.",
            )
            return
        probe = passage(self.spec.probe)
        needing = [
            turn
            for turn in spoken[planted + 1 :]
            if turn.asked and probe.fullmatch(turn.asked)
        ]
        for number, turn in enumerate(needing[:MOST_PROBES], 1):
            yield self._answer(spoken[planted], turn, number)
        if not needing:
            yield _not_applicable(
                "not_needed",
                "Nothing asks for the fact",
                f"“{self.spec.value}” is told in step {spoken[planted].step + 1}, but "
                f"no later message holds “{self.spec.probe}”.",
                planted=spoken[planted],
            )

    def _planted(self, spoken: tuple[Turn, ...]) -> int | None:
        """The place of the first turn that tells the fact."""
        mark = passage(self.spec.plant)
        for place, turn in enumerate(spoken):
            if not any(
                not mention.is_denied
                for mention in mentions(
                    turn.told, self.spec.value, self.spec.normaliser
                )
            ):
                continue
            if not self.spec.plant or mark.fullmatch(turn.told):
                return place
        return None

    def _answer(self, planted: Turn, turn: Turn, number: int) -> Screening:
        scope = "trace" if number == 1 else f"probe {number}"
        inputs = hash_of_inputs(
            "planted-fact",
            planted.step,
            planted.told,
            turn.step,
            turn.asked,
            turn.answers,
        )
        facts: dict[str, Any] = {
            "value": self.spec.value,
            "told_in_step": planted.step + 1,
            "needed_in_step": turn.step + 1,
        }
        steps = (planted.step, turn.step, *turn.steps)
        if mentions(turn.asked, self.spec.value, self.spec.normaliser):
            said = _leading()
        elif not turn.is_answered and not turn.answers:
            said = _unanswered()
        else:
            memory, others = remembered("\n".join(turn.answers), self.spec)
            facts |= {"memory": memory.value, "other_candidates": others[:_MOST_SHOWN]}
            said = self._judged(memory, others, planted, turn)
        evidence = Evidence(
            scope=scope,
            began="the message that told the fact",
            ended="the answer that needs it",
            length=len(steps),
            steps=steps,
            not_modelled=_NOT_MODELLED,
            facts=facts,
        )
        return said.with_evidence(evidence, inputs)

    def _judged(
        self, memory: Memory, others: list[str], planted: Turn, turn: Turn
    ) -> Judgement:
        told = (
            f"“{self.spec.value}” was told in step {planted.step + 1} and needed in "
            f"step {turn.step + 1}. "
        )
        named = ", ".join(f"“{other}”" for other in others[:3])
        if memory is Memory.RECALLED:
            return Judgement(
                Answer.QUIET, "recalled", "The fact is recalled", f"{told}It is named."
            )
        if memory is Memory.AMBIGUOUS:
            return Judgement(
                Answer.NOT_APPLICABLE,
                "ambiguous",
                "The answer names several candidates",
                f"{told}The answer names it, and also {named}: which of them it gives "
                "as the fact cannot be read off.",
            )
        if memory is Memory.LOST:
            return Judgement(
                Answer.SIGNAL,
                "lost",
                "The fact is not in the answer",
                f"{told}The answer does not name it.",
                self.spec.level,
            )
        why = f"names {named} in its place" if others else "denies it"
        return Judgement(
            Answer.SIGNAL,
            "contradicted",
            "The answer contradicts the fact",
            f"{told}The answer {why}.",
            self.spec.level,
        )


_SAME: Final = {
    Normaliser.EXACT: "letter by letter",
    Normaliser.CASE: "in capitals or not",
    Normaliser.SPACE: "in capitals or not, with any white space between its words",
    Normaliser.NUMBER: "as the same number, however it is written",
    Normaliser.ID: "in capitals or not, with or without separators",
}


def _leading() -> Judgement:
    return Judgement(
        Answer.NOT_APPLICABLE,
        "leading_probe",
        "The question names the fact itself",
        "The message that needs the fact also tells it, so an answer shows no memory.",
    )


def _unanswered() -> Judgement:
    return Judgement(
        Answer.NOT_APPLICABLE,
        "no_answer",
        "No answer is recorded",
        "The message that needs the fact has no recorded answer.",
    )


def _not_applicable(
    code: str, headline: str, reason: str, planted: Turn | None = None
) -> Screening:
    read = (planted.step, planted.told) if planted else None
    said = Judgement(Answer.NOT_APPLICABLE, code, headline, reason)
    evidence = Evidence(
        scope="trace", length=0, steps=(planted.step,) if planted else ()
    )
    return said.with_evidence(evidence, hash_of_inputs("planted-fact", code, read))
