"""What a memory test shows, in sentences for a person who decides on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from apps.engine.check import percent
from apps.engine.memory.recall import Place
from apps.engine.memory_tests.burial import (
    Burial,
    Curve,
    DepthPoint,
    Standing,
)
from apps.engine.memory_tests.judging import NOT_JUDGED
from apps.engine.memory_tests.trend import ASSUMES
from apps.engine.nulls.intervals import Interval

PLACE_WORDS: Final = {
    Place.NEVER_STORED: "never stored",
    Place.DROPPED_BY_SUMMARISER: "dropped by the summariser",
    Place.NOT_RETRIEVED: "stored and not retrieved",
    Place.IGNORED: "given to the model and ignored",
    Place.CANNOT_TELL: "not known where",
}


def sentences_of(burial: Burial) -> tuple[str, ...]:
    """What to read first, then what it rests on, then what was not judged."""
    return tuple(_sentences(burial))


def rule_of(burial: Burial) -> str:
    """By which rule recall counts as certain at a depth."""
    return (
        "Recall counts as certain at a depth where the lower end of its 95 % interval "
        f"is at least {percent(burial.certain_from)}. That takes {burial.needed} "
        "trials without a lapse."
    )


def counted(point: DepthPoint) -> str:
    """A depth in words: `3 of 5 (23 % to 88 %)`, or that nothing is known of it."""
    if point.standing is Standing.UNANSWERED:
        return f"no answer in {point.trials}"
    if point.interval is None:
        return "not tested"
    return f"{point.recalled} of {point.trials} ({between(point.interval)})"


def between(interval: Interval) -> str:
    """The ends of an interval of a rate in words."""
    return f"{percent(interval.low)} to {percent(interval.high)}"


def _sentences(burial: Burial) -> Iterator[str]:
    tested = [one for one in burial.whole.points if one.trials]
    if not tested:
        yield "Not tested: no trial was run."
        yield from _uncounted(burial)
        return
    if burial.is_unanswered:
        yield _why_unanswered(burial)
        yield from _untested(burial)
        yield from _uncounted(burial)
        return
    yield _headline(burial.whole)
    yield from _scope(burial)
    yield rule_of(burial)
    yield from _too_few(burial, tested)
    yield from _places(burial)
    yield from _broken(burial)
    yield from _stored(burial)
    yield from _by_fact(burial)
    yield from _shape(burial)
    yield from _uncounted(burial)
    yield "Not judged: " + "; ".join(NOT_JUDGED) + "."


def _headline(curve: Curve) -> str:
    first, before = curve.first_uncertain, curve.last_before
    if first is None:
        deepest = [one for one in curve.points if one.trials][-1]
        lapse = curve.first_lapse
        if lapse is None:
            return (
                f"Nothing was lost down to depth {deepest.depth}, the deepest that was "
                f"tested: {counted(deepest)} there."
            )
        return (
            f"Recall stays certain down to depth {deepest.depth}, the deepest that was "
            f"tested, though the first lapse is at depth {lapse}."
        )
    point = next(one for one in curve.points if one.depth == first)
    said = (
        f"Recall is no longer certain from depth {first} on, where it is "
        f"{counted(point)}"
    )
    if before is None:
        return f"{said}; nothing less deep was tested."
    last = next(one for one in curve.points if one.depth == before)
    return (
        f"{said}; at depth {before} it is {counted(last)}. If recall only gets worse "
        f"with depth, these trials put the limit between {before} and {first} turns."
    )


def _scope(burial: Burial) -> Iterator[str]:
    if len(burial.facts) > 1:
        yield (
            f"A trial counts as recalled where all its {len(burial.facts)} facts were, "
            "since facts of one conversation are no independent trials."
        )
    yield from _untested(burial)


def _untested(burial: Burial) -> Iterator[str]:
    untested = [str(one.depth) for one in burial.whole.points if not one.trials]
    if untested:
        yield f"Not tested: depth {', '.join(untested)}."


def _why_unanswered(burial: Burial) -> str:
    """What most of the questions without an answer say of it."""
    of = len(burial.probed)
    questions = "1 question has" if of == 1 else f"all {of} questions have"
    [(why, count)] = Counter([one.sentence for one in burial.probed]).most_common(1)
    often = "" if count == of else f"Most often ({count} of {of}): "
    return (
        f"No trial came to an answer: {questions} none, so that nothing is known of "
        f"what is remembered. {often}{why}"
    )


def _too_few(burial: Burial, tested: list[DepthPoint]) -> Iterator[str]:
    few = [one for one in tested if one.standing is Standing.TOO_FEW]
    if few:
        depths = ", ".join([str(one.depth) for one in few])
        most = max(few, key=lambda one: one.trials)
        low = 0.0 if most.interval is None else most.interval.low
        yield (
            f"At depth {depths} everything was recalled, and {most.trials} trials show "
            f"no more than a rate of at least {percent(low)}; {burial.needed} are "
            f"needed for {percent(burial.certain_from)}."
        )


def _places(burial: Burial) -> Iterator[str]:
    gone = [one for one in burial.probed if one.place is not None]
    if not gone:
        return
    counts = Counter([one.place for one in gone])
    parts = [
        f"{counts[place]} {PLACE_WORDS[place]}" for place in Place if counts[place]
    ]
    noun = "1 fact was" if len(gone) == 1 else f"{len(gone)} facts were"
    yield f"{noun} lost or contradicted: {', '.join(parts)}."


def _broken(burial: Burial) -> Iterator[str]:
    counts: Counter[str] = Counter()
    for one in burial.probed:
        counts[one.recollection.value] += 1
    if counts["failed"]:
        yield (
            f"{counts['failed']} of {len(burial.probed)} questions have no answer, "
            "because the turn or the trial failed; they count as not recalled."
        )
    if counts["ambiguous"]:
        yield (
            f"{counts['ambiguous']} of {len(burial.probed)} answers name several "
            "candidates; they count as not recalled."
        )


def _stored(burial: Burial) -> Iterator[str]:
    known = [one for one in burial.probed if one.held is not None]
    if not known:
        yield (
            "No state was given out before the questions, so that it is not known "
            "what was kept."
        )
        return
    held = [one for one in known if one.held]
    recalled = sum(one.is_recalled for one in held)
    yield (
        f"The state before the question names the fact in {len(held)} of {len(known)} "
        f"cases where one was given out; {recalled} of these {len(held)} were recalled."
    )


def _by_fact(burial: Burial) -> Iterator[str]:
    for curves in (burial.facts, burial.positions):
        if len(curves) < 2:
            continue
        parts = []
        for curve in curves:
            recalled = sum([one.recalled for one in curve.points])
            trials = sum([one.trials for one in curve.points])
            parts.append(f"{curve.name} {recalled} of {trials}")
        what = "By fact" if curves is burial.facts else "By place among the facts"
        yield f"{what}: {', '.join(parts)}."


def _shape(burial: Burial) -> Iterator[str]:
    if burial.trend is not None:
        yield (
            "Where depth does not matter, a fall at least this strong has the "
            f"probability {burial.trend.p:.3g} (the smallest possible here is "
            f"{burial.trend.floor:.2g}; {burial.trend.method}). {ASSUMES}"
        )
    if burial.middle is not None:
        middle = burial.middle
        low, high = middle.interval.low, middle.interval.high
        yield (
            "In conversations of equal length, recall at the least and the greatest "
            f"depth is {middle.ends[0]} of {middle.ends[1]}, in between "
            f"{middle.middle[0]} of {middle.middle[1]} (difference, 95 % interval: "
            f"{100 * low:+.0f} to {100 * high:+.0f} percentage points)."
        )


def _uncounted(burial: Burial) -> Iterator[str]:
    if burial.untried:
        noun = "1 trial was" if burial.untried == 1 else f"{burial.untried} trials were"
        yield f"{noun} cancelled or stopped for the cost, and count nowhere."
    if burial.renamed:
        noun = "1 trial" if burial.renamed == 1 else f"{burial.renamed} trials"
        yield (
            f"In {noun} the agent itself named a fact again in between, so that it lay "
            "less deep there than planned."
        )
