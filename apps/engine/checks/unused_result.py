"""Unused results: nothing of what a tool gave back shows up in anything said later.

It does not say that the result was ignored: an agent may act on what it does not
repeat.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from apps.engine.bodies import CalledTool, tool_lanes
from apps.engine.bodies.answers import said_by_models
from apps.engine.bodies.calls import calls_absent
from apps.engine.bodies.effects import is_write
from apps.engine.bodies.numerals import none_has
from apps.engine.bodies.texts import MOST_TEXT, texts_of
from apps.engine.bodies.tokens import in_pieces, telling_words
from apps.engine.check import (
    Answer,
    Basis,
    Evidence,
    Judgement,
    Level,
    Parameter,
    Screening,
    hash_of_inputs,
    percent,
)
from apps.engine.rules import Rule, nothing_to_compare
from apps.engine.trace import StepStatus, Trace

_NOT_MODELLED: Final = (
    "Acting on a result without repeating any of it.",
    "The same thing in other words, rounded, or in another language.",
)
_OF_ONE_RESULT: Final = 8_192
_OF_ALL_RESULTS: Final = 4 * MOST_TEXT
_SHOWN: Final = 50


class _Judged(msgspec.Struct, frozen=True):
    """One result that could be judged."""

    step: int
    name: str
    is_used: bool


@dataclass(frozen=True)
class UnusedResult(Rule):
    """Counts results of tools of which no telling word is said later in the trace.

    `words` (1 to 100): a result with fewer telling words is not judged. Raises
    `ValueError` outside this range.
    """

    words: int = 3

    slug = "unused-result"
    label = "Unused result"
    version = 1
    level = Level.TELEMETRY
    basis = Basis.FACT
    needs_bodies = True
    limits = (Parameter("words", "Telling words of a result", 1, 100, unit="words"),)
    observes = (
        "For each result of a tool: whether any of its telling words (ids, numbers, "
        "words of at least 5 letters) stands in a later answer, in later reasoning or "
        "in the arguments of a later call, of any agent of the trace."
    )
    null_model = (
        "None: that two texts share no word is a fact, not a statistic. Texts that "
        "share one may do so by chance, so the count is a lower bound."
    )
    next_step = (
        "Nothing is queued. A tool whose results are never used over a whole source "
        "costs time and context for nothing."
    )

    @property
    def material_when(self) -> str:
        """What is counted, with the value of the parameter."""
        return (
            f"At least one result with {self.words} or more telling words, none of "
            "which is said later. Failed calls, calls that write, and results after "
            "which nothing is said are left out. Up to 8,192 characters of a result "
            "and 65,536 of what is said are read; what was cut is not judged."
        )

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer about the whole trace."""
        lanes = tool_lanes(trace)
        calls = sorted(
            [call for lane in lanes for call in lane.calls], key=lambda call: call.step
        )
        absent = calls_absent(trace)
        if absent is not None and absent.code != "no_arguments":
            yield nothing_to_compare(absent, self.slug)
            return
        spoken = said_by_models(trace)
        hashed = hash_of_inputs(
            self.slug,
            [(lane.scope, lane.fingerprint) for lane in lanes],
            [one.text for one in spoken],
        )
        reader = _Reader(self.words)
        reader.read(calls, [(one.step, one.text) for one in spoken])
        results = sorted(reader.judged, key=lambda one: one.step)
        yield _answer(len(calls), results).with_evidence(
            _evidence(len(calls), results), hashed
        )


class _Reader:
    """Reads a trace from its end, so that at each result all that follows is known.

    What cannot be known is not judged: results before a model call whose words are not
    kept, and everything before the place where the limit of text was reached.
    """

    def __init__(self, words: int) -> None:
        self.judged: list[_Judged] = []
        self._words = words
        self._later: set[str] = set()
        self._is_followed = False
        self._said_left = MOST_TEXT
        self._results_left = _OF_ALL_RESULTS

    def read(
        self, calls: list[CalledTool], spoken: list[tuple[int, str | None]]
    ) -> None:
        """Judge every result that can be judged. Both lists are in order."""
        waiting = list(spoken)
        for call in reversed(calls):
            while waiting and waiting[-1][0] > call.step:
                text = waiting.pop()[1]
                if text is None or self._said_left <= 0:
                    return
                self._hear(text)
            if self._results_left <= 0:
                return
            self._judge(call)
            if call.arguments is not None:
                self._hear(call.arguments)

    def _hear(self, text: str) -> None:
        self._is_followed = self._is_followed or bool(text and not text.isspace())
        self._later |= telling_words(text[: max(self._said_left, 0)])
        self._said_left -= len(text)

    def _judge(self, call: CalledTool) -> None:
        if not self._is_followed or not _is_candidate(call):
            return
        own = telling_words(call.arguments or "")
        told = 0
        for piece in in_pieces(texts_of(call.result, _OF_ONE_RESULT), _OF_ONE_RESULT):
            self._results_left -= len(piece)
            words = telling_words(piece) - own
            told += len(words)
            if not words.isdisjoint(self._later):
                self.judged.append(_Judged(call.step, call.name, is_used=True))
                return
        is_whole = len(call.result or "") <= _OF_ONE_RESULT
        if is_whole and told >= self._words:
            self.judged.append(_Judged(call.step, call.name, is_used=False))


def _is_candidate(call: CalledTool) -> bool:
    return (
        bool(call.result)
        and not call.failed
        and call.status is not StepStatus.UNFINISHED
        and not is_write(call.name)
    )


def _answer(n: int, results: list[_Judged]) -> Judgement:
    known = len(results)
    if not known:
        return Judgement(
            Answer.NOT_APPLICABLE,
            "no_results_to_judge",
            "No result that could be judged",
            none_has(n, "tool call", "a result with enough telling words")
            + " after which something is said.",
        )
    unused = [one for one in results if not one.is_used]
    all_of = "the only result judged" if known == 1 else f"each of {known} results"
    if not unused:
        return Judgement(
            Answer.QUIET,
            "all_used",
            f"Something of {all_of} is said later",
            f"Of {all_of}, at least one telling word is said later in the trace.",
        )
    some_of = all_of if known == 1 else f"{len(unused)} of {known} results"
    return Judgement(
        Answer.SIGNAL,
        "unused",
        f"Nothing of {some_of} is said later",
        f"Of {some_of} ({percent(len(unused) / known)}) no id, number or longer word "
        "stands in anything that is said later.",
    )


def _evidence(n: int, results: list[_Judged]) -> Evidence:
    unused = [one for one in results if not one.is_used]
    facts = {
        "unused": [{"step": one.step, "tool": one.name} for one in unused[:_SHOWN]]
    }
    return Evidence(
        scope="trace",
        length=len(results),
        effect=len(unused) / len(results) if results else None,
        steps=tuple([one.step for one in unused]),
        not_modelled=_NOT_MODELLED,
        facts={"tool_calls": n} | (facts if unused else {}),
    )
