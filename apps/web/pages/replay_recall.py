"""What the results of a memory test need: the curve, its table, where facts were lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from apps.engine.memory.recall import Place as LostAt
from apps.engine.memory_tests import (
    PLACE_WORDS,
    MemoryTest,
    Recollection,
    rule_of,
    sentences_of,
)
from apps.engine.memory_tests.probes import Probed
from apps.figures.burial import BurialRow, burial_figure, burial_rows
from apps.replays.batch_queries import judged_runs
from apps.replays.models import Batch, Run
from apps.replays.results import burial_of_batch, memory_test_of, probed_of
from apps.web.words import number_in_words

MOST_TRIALS: Final = 500
WORDS: Final = {
    Recollection.RECALLED: ("recalled", "circle-check", "green"),
    Recollection.LOST: ("lost", "circle-x", "red"),
    Recollection.CONTRADICTED: ("contradicted", "circle-x", "red"),
    Recollection.AMBIGUOUS: ("several candidates", "circle-help", "amber"),
    Recollection.FAILED: ("no answer", "triangle-alert", "amber"),
}


class TrialLine(msgspec.Struct, frozen=True):
    """One fact in one trial: what became of it, and where it went."""

    run: Run
    probed: Probed
    word: str
    icon: str
    tone: str
    place: str


class RecallPart(msgspec.Struct, frozen=True):
    """The results of a memory test so far.

    `wrong` says why a stored test cannot be read. `sentences` begin with the first depth
    at which recall is no longer certain; `places` count where facts were lost.
    """

    wrong: str = ""
    has_results: bool = False
    headline: str = ""
    sentences: list[str] = []
    rule: str = ""
    figure: dict[str, Any] | None = None
    rows: list[BurialRow] = []
    has_facts: bool = False
    has_states: bool = False
    places: list[tuple[str, int]] = []
    trials: list[TrialLine] = []
    more_trials: int = 0
    test: MemoryTest | None = None
    depths: str = ""


def recall_part(batch: Batch) -> RecallPart:
    """What a memory test shows so far. One query, whatever its size."""
    try:
        test = memory_test_of(batch)
    except ValueError as error:
        return RecallPart(wrong=str(error))
    runs = judged_runs(batch)
    lines = [line for run in runs for line in trial_lines_of(run)]
    if not lines:
        return RecallPart(test=test, depths=_depths(test))
    burial = burial_of_batch(batch, runs)
    rule = rule_of(burial)
    # Its own place is below the others.
    said = [one for one in sentences_of(burial) if one != rule]
    rows = list(burial_rows(burial))
    return RecallPart(
        has_results=True,
        headline=said[0] if said else "",
        sentences=said[1:],
        rule=rule,
        figure=burial_figure(burial),
        rows=rows,
        has_facts=any(row.facts for row in rows),
        has_states=any(row.stored for row in rows),
        places=_places(lines),
        trials=lines[:MOST_TRIALS],
        more_trials=max(0, len(lines) - MOST_TRIALS),
        test=test,
        depths=_depths(test),
    )


def _depths(test: MemoryTest) -> str:
    return ", ".join(number_in_words(one) for one in test.depths)


def trial_lines_of(run: Run) -> list[TrialLine]:
    """What one run of a memory test shows of each fact, in words."""
    return [_line(run, one) for one in probed_of(run)]


def _line(run: Run, one: Probed) -> TrialLine:
    word, icon, tone = WORDS[one.recollection]
    place = "" if one.place is None else PLACE_WORDS[one.place]
    return TrialLine(run, one, word, icon, tone, place)


def _places(lines: Sequence[TrialLine]) -> list[tuple[str, int]]:
    counts = Counter(
        [one.probed.place for one in lines if one.probed.place is not None]
    )
    return [(PLACE_WORDS[place], counts[place]) for place in LostAt if counts[place]]
