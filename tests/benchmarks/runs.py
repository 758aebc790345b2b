"""Made runs of an agent that every format's benchmark file is written from.

Same seed, same runs: a long prompt, a question, and turns of one model call with one
tool call each, in the sizes of the tau-bench corpus.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

from tests.benchmarks.corpus import TOOLS, WORDS

START_NS = 1_796_008_524_000_000_000
SECOND = 1_000_000_000


@dataclass(frozen=True)
class Turn:
    """One model call and the tool call it asked for; `at_ns` is when it began."""

    number: int
    at_ns: int
    text: str
    tool: str
    call_id: str
    arguments: str
    result: str
    output_tokens: int


@dataclass(frozen=True)
class Run:
    """One run; its number is unique in a file."""

    number: int
    prompt: str
    question: str
    turns: tuple[Turn, ...]


def _words(source: random.Random, count: int) -> str:
    return " ".join(source.choices(WORDS, k=count))


def _turn(source: random.Random, run: int, number: int) -> Turn:
    return Turn(
        number=number,
        at_ns=START_NS + (run * 60 + number * 2) * SECOND,
        text=_words(source, 40),
        tool=source.choice(TOOLS),
        call_id=f"call_{run}_{number}",
        arguments=json.dumps({"id": source.randrange(10**6)}),
        result=_words(source, 120),
        output_tokens=source.randrange(10, 900),
    )


def made_runs(count: int, *, seed: int = 7) -> list[Run]:
    """`count` runs of 12 turns."""
    source = random.Random(seed)
    prompt = _words(source, 400)
    return [
        Run(
            number=number,
            prompt=prompt,
            question=_words(source, 20),
            turns=tuple(_turn(source, number, turn) for turn in range(12)),
        )
        for number in range(count)
    ]


def iso(at_ns: int) -> str:
    """A moment as `2026-11-30T03:15:24Z` plus seconds, without a calendar."""
    seconds = (at_ns - START_NS) // SECOND
    hours, rest = divmod(seconds, 3600)
    return f"2026-11-{hours // 24 % 28 + 1:02}T{hours % 24:02}:{rest // 60:02}:{rest % 60:02}Z"


def as_lines(values: list[object]) -> bytes:
    """JSON values, one a line."""
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)
