"""How trials agree and where they part, what memory kept, patterns, notes of reviewers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from apps.engine.consistency import LABELS, RULE, Stability
from apps.reports.agent_blocks import outcome_words
from apps.reports.assessment import (
    AnswerPart,
    AssessmentPart,
    ForkPart,
    ForksPart,
    LossPart,
    MemoryPart,
    NotePart,
    PatternPart,
    RulePart,
    UnstablePart,
)
from apps.reports.outline import (
    Block,
    Bullets,
    Cell,
    Column,
    Heading,
    Paragraph,
    Quote,
    Span,
    Table,
    muted,
    own,
    said,
)
from apps.reports.rates import rate_of
from apps.reports.words import (
    expected,
    moment,
    number,
    percent,
    plural,
    short_rate,
    spaced,
)

_PLACES: Final = {
    "never_stored": "never stored",
    "dropped_by_summariser": "dropped by the summariser",
    "not_retrieved": "not retrieved",
    "ignored": "at hand, and ignored",
    "cannot_tell": "where cannot be told",
}
_SOURCES: Final = {"declared": "declared", "detected": "by exact reuse"}
_NOTED: Final = {"sound_but_wrong": "Sound but wrong", "right_by_luck": "Right by luck"}
_ASKED: Final = {
    "unstable": "Unstable runs",
    "failing": "Failing runs",
    "signalled": "Runs with a signal",
}


def trials(found: AssessmentPart | None) -> tuple[Block, ...]:
    """Everything between the agents and the signals; nothing before a first score."""
    if found is None or not found.sentence:
        return ()
    return (
        *_consistency(found),
        *_forks(found),
        *_memory(found),
        *_patterns(found.patterns),
        *_notes(found),
    )


_INPUTS: Final = (
    "In round brackets the number of trials; in square ones why trials decided nothing. "
    "Where inputs are distinct, a difference may come from upstream."
)
_STABILITY_COLUMNS: Final = (Column("Tasks, end to end", 2.0), Column("How many", 2.0))
_UNSTABLE_COLUMNS: Final = (
    Column("Task", 1.7),
    Column("Who", 1.1),
    Column("Verdict", 1.55),
    Column("Same decision", 1.5),
    Column("Decisions, with their trials", 4.0),
)


def _consistency(found: AssessmentPart) -> tuple[Block, ...]:
    of = found.consistency
    heading = Heading(2, "Consistency of repeated trials")
    if not of.tasks:
        return (heading, Paragraph(own("No trace is a trial of a task.")))
    rows = [
        (own(LABELS[one]), own(_share(of.by_verdict.get(one.value, 0), of.tasks)))
        for one in Stability
    ]
    stable = of.by_verdict.get(Stability.STABLE.value, 0)
    wrong = short_rate(rate_of(of.stable_but_wrong, stable), "none is stable")
    rows.append((own("of the stable: wrong all the same"), own(wrong)))
    blocks: list[Block] = [
        heading,
        Paragraph(muted(RULE)),
        Table(_STABILITY_COLUMNS, tuple(rows)),
    ]
    if not of.least_stable:
        words = "Nobody is unstable on any task with enough trials."
        return (*blocks, Paragraph(own(words)))
    blocks += [
        Heading(3, "Least stable"),
        Table(_UNSTABLE_COLUMNS, tuple(_unstable_row(one) for one in of.least_stable)),
        Paragraph(muted(_INPUTS)),
    ]
    more = of.unstable - len(of.least_stable)
    if more > 0:
        blocks.append(Paragraph(muted(f"And {number(more)} more like these.")))
    return tuple(blocks)


def _share(k: int, n: int) -> str:
    return short_rate(rate_of(k, n), "none")


def _unstable_row(one: UnstablePart) -> tuple[Cell, ...]:
    more = one.distinct - sum(answer.is_decision for answer in one.answers)
    spans: list[Span] = []
    for answer in one.answers:
        spans += [Span("; ")] if spans else []
        spans += _answer(answer)
    if more > 0:
        spans.append(Span(f"; {plural(more, 'more decision')}", "muted"))
    if one.distinct_inputs is not None and one.distinct_inputs > 1:
        words = f" · {number(one.distinct_inputs)} distinct inputs"
        spans.append(Span(words, "muted"))
    return (
        said(one.task),
        said(one.agent) if one.agent else own("end to end"),
        own(LABELS[Stability(one.verdict)]),
        own(short_rate(one.agreement, "none")),
        tuple(spans),
    )


def _answer(one: AnswerPart) -> Cell:
    count = Span(f" ({number(one.count)})")
    if not one.is_decision:
        return (Span(f"[{one.words}]", "muted"), count)
    return (*said(one.words), count)


_FORK_COLUMNS: Final = (
    Column("Task", 1.5),
    Column("Passed", 1.4),
    Column("Where they part", 3.4),
    Column("Ways, with those of them that passed", 3.6),
)


def _by_chance(of: ForksPart) -> str:
    if of.expected is None:
        return "With few trials chance alone can do that."
    return (
        "Dealing the outcomes of each task to its trials at random gives "
        f"{expected(of.expected)} ({of.low:,} to {of.high:,})."
    )


def _forks(found: AssessmentPart) -> tuple[Block, ...]:
    of = found.forks
    heading = Heading(2, "Branch points of tasks with mixed outcomes")
    if not of.mixed:
        return (heading, Paragraph(own("No task has trials that passed and failed.")))
    decisive = _share(of.decisive, of.mixed)
    words = (
        f"{plural(of.mixed, 'task')} with trials that passed and trials that failed; in "
        f"{decisive} the outcomes go with one fork, the decisive one. "
        f"{_by_chance(of)} p is Fisher's exact test of that fork alone. A fork says "
        "where to look, not why a trial failed."
    )
    rows = tuple(_fork_row(one) for one in of.listed)
    blocks: list[Block] = [heading, Paragraph(own(words)), Table(_FORK_COLUMNS, rows)]
    more = of.mixed - len(of.listed)
    if more > 0:
        blocks.append(Paragraph(muted(f"And {plural(more, 'more such task')}.")))
    return tuple(blocks)


def _fork_row(one: ForkPart) -> tuple[Cell, ...]:
    return (
        said(one.task),
        own(short_rate(one.passed, "none known")),
        (*_where(one), *said(one.sentence)),
        _branches(one),
    )


def _where(one: ForkPart) -> Cell:
    if not one.is_decisive:
        return ()
    of = f", of {plural(one.forks, 'fork')}"
    if one.first_step is None or one.last_step is None:
        return (Span(f"At the end{of}. ", "muted"),)
    first, last = number(one.first_step + 1), number(one.last_step + 1)
    where = f"Step {first}" if first == last else f"Steps {first} to {last}"
    return (Span(f"{where}{of}. ", "muted"),)


def _branches(one: ForkPart) -> Cell:
    spans: list[Span] = []
    for branch in one.branches:
        spans += [Span("; ")] if spans else []
        spans += said(branch.words)
        passed = short_rate(branch.passed, "outcome unknown")
        spans.append(Span(f": {plural(branch.trials, 'trial')}, passed {passed}"))
    if one.branches_left_out:
        spans.append(Span(f"; {plural(one.branches_left_out, 'more way')}", "muted"))
    return tuple(spans) or muted("none")


_MEMORY_COLUMNS: Final = (
    Column("Fact", 2.2),
    Column("Recalled", 1.7),
    Column("Lost", 0.7, is_number=True),
    Column("Contradicted", 1.1, is_number=True),
    Column("Where it was lost", 2.2),
    Column("Not decided", 2.2),
)
_LOSS_COLUMNS: Final = (
    Column("Trace", 1.5),
    Column("Fact", 1.6),
    Column("What became of it", 3.2),
    Column("Where it went", 3.4),
)


def _memory(found: AssessmentPart) -> tuple[Block, ...]:
    of = found.memory
    heading = Heading(2, "Memory")
    if not of.facts:
        words = (
            "No fact was declared and no value was told early and used again later, so "
            "memory was not tested by these traces."
        )
        return (heading, Paragraph(own(words)))
    words = (
        f"Facts that were told and needed again: decided in {plural(of.traces, 'trace')}. "
        "Declared facts are part of verdicts. The others were found by exact reuse of a "
        "value: they show that it was kept or told again, never all that was lost."
    )
    blocks: list[Block] = [
        heading,
        Paragraph(own(words)),
        Table(_MEMORY_COLUMNS, tuple(_memory_row(one) for one in of.facts)),
    ]
    if of.facts_left_out:
        left = f"And {plural(of.facts_left_out, 'more fact')}."
        blocks.append(Paragraph(muted(left)))
    if of.losses:
        blocks.append(Heading(3, "Facts that were lost or contradicted"))
        blocks.append(Table(_LOSS_COLUMNS, tuple(_loss_row(one) for one in of.losses)))
        more = sum(one.lost + one.contradicted for one in of.facts) - len(of.losses)
        if more > 0:
            blocks.append(Paragraph(muted(f"And {number(more)} more.")))
    return tuple(blocks)


def _memory_row(one: MemoryPart) -> tuple[Cell, ...]:
    name = (
        (*muted("declared: "), *said(one.fact))
        if one.fact
        else own("found by exact reuse")
    )
    return (
        name,
        own(short_rate(one.recalled, "none decided")),
        own(number(one.lost)),
        own(number(one.contradicted)),
        _counted(one.places, _PLACES),
        _counted(one.others, {}),
    )


def _counted(counts: Mapping[str, int], words: Mapping[str, str]) -> Cell:
    said_of = [
        f"{words.get(name, spaced(name))} {number(count)}"
        for name, count in counts.items()
    ]
    return own("; ".join(said_of)) if said_of else muted("none")


def _loss_row(one: LossPart) -> tuple[Cell, ...]:
    place = _PLACES.get(one.place, spaced(one.place))
    why = (Span(f"{place}. ", "strong"),) if place else ()
    return (
        said(one.trace),
        (*said(one.fact), *muted(f" · {_SOURCES.get(one.source, one.source)}")),
        said(one.sentence),
        (*why, *(said(one.why) if one.why else ())) or muted("not localised"),
    )


def _patterns(searches: tuple[PatternPart, ...]) -> tuple[Block, ...]:
    blocks: list[Block] = [Heading(2, "Patterns")]
    if not searches:
        words = "No search for patterns was made yet over these scores."
        return (*blocks, Paragraph(own(words)))
    note = (
        "A rule says where runs are unstable, fail or have a signal more often than "
        "chance accounts for, counting all rules that were tried; it does not say why."
    )
    blocks.append(Paragraph(muted(note)))
    for one in searches:
        stale = (
            ()
            if one.is_current
            else muted(f" From earlier scores, searched {moment(one.made_at)}.")
        )
        label = Span(f"{_ASKED.get(one.target, spaced(one.target))}. ", "strong")
        blocks.append(Paragraph((label, Span(one.sentence), *stale)))
        if one.rules:
            blocks.append(Bullets(tuple(_rule(rule) for rule in one.rules)))
    return tuple(blocks)


def _rule(one: RulePart) -> Cell:
    sign = "≤" if one.is_smallest_p else "="
    near = (
        (Span(" Nearly the same runs: ", "muted"), *said("; ".join(one.near)))
        if one.near
        else ()
    )
    return (
        Span("Where "),
        *said(one.words),
        Span(
            f": {short_rate(one.inside, 'none')}, elsewhere "
            f"{short_rate(one.outside, 'none')}; lift {one.lift:.2g}, corrected p {sign} "
            f"{percent(one.p)}, {plural(one.tasks, 'task')}."
        ),
        *near,
    )


def _notes(found: AssessmentPart) -> tuple[Block, ...]:
    heading = Heading(2, "What reviewers noted on trials")
    if not found.notes:
        words = "Nobody noted on a trial that it was sound but wrong, or right by luck."
        return (heading, Paragraph(own(words)))
    blocks: list[Block] = [heading]
    for one in found.notes:
        blocks.append(Paragraph(_note(one)))
        if one.note.strip():
            blocks.append(Quote(one.note))
    if found.notes_left_out:
        more = f"And {plural(found.notes_left_out, 'older note')}."
        blocks.append(Paragraph(muted(more)))
    return tuple(blocks)


def _note(one: NotePart) -> Cell:
    task = (Span(" of task "), *said(one.trace.task)) if one.trace.task else ()
    step = f" · step {one.step + 1}" if one.step is not None else ""
    return (
        Span(_NOTED.get(one.kind, spaced(one.kind)), "strong"),
        Span(f" ({outcome_words(one.outcome)}){step} · "),
        *said(one.trace.name),
        *task,
        Span(f" · {moment(one.at)} · ", "muted"),
        *said(one.by),
    )
