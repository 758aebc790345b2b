"""The card of one signal: what was observed, how likely by chance, what people said.

The document keeps steps as they are stored, from 0; a card counts them from 1.
"""

from __future__ import annotations

import msgspec

from apps.engine.check import Series
from apps.figures.series_svg import is_lanes, series_svg
from apps.reports.chance_words import q_in_words
from apps.reports.document import (
    ChancePart,
    EvidencePart,
    HistoryPart,
    SeriesPart,
    SignalPart,
    TracePart,
)
from apps.reports.inert import one_line, visible
from apps.reports.outline import (
    Bullets,
    Card,
    Cell,
    Chart,
    Fact,
    Facts,
    Heading,
    Paragraph,
    Quote,
    Span,
    code,
    muted,
    outside,
    own,
    said,
)
from apps.reports.second_looks import lines_of
from apps.reports.words import chance, moment, number, percent, plural, spaced
from apps.review.transitions import DismissalReason, FailureKind, Verdict

CardBlock = Facts | Quote | Chart | Paragraph | Bullets | Heading

_MAX_VALUES_SHOWN = 60
_MAX_STEPS_SHOWN = 40
_MAX_SHORT = 60
_TONES = {
    Verdict.CONFIRM: "red",
    Verdict.DISMISS: "mute",
    Verdict.NEEDS_EXPERIMENT: "amber",
    Verdict.CANNOT_TELL: "amber",
}


def card_of(signal: SignalPart, check_label: str) -> Card:
    """The card of a signal, complete without the product."""
    evidence = signal.evidence
    blocks: list[CardBlock] = [Paragraph(said(evidence.reason))]
    if evidence.series is not None:
        blocks.append(_chart(evidence.series))
    facts = (*_sequence_facts(evidence), *_standing_facts(signal))
    short = tuple(fact for fact in facts if _is_short(fact))
    long = tuple(fact for fact in facts if not _is_short(fact))
    blocks.append(Facts(short, columns=2))
    blocks.append(Facts((*long, *_long_facts(signal))))
    blocks += _decisions(signal)
    return Card(
        title=f"Signal {signal.id} · {check_label}",
        state=state_in_words(signal),
        tone=_TONES.get(Verdict(signal.verdict), "open") if signal.verdict else "open",
        headline=one_line(signal.headline),
        blocks=tuple(blocks),
    )


def _standing_facts(signal: SignalPart) -> tuple[Fact, ...]:
    is_finding = signal.standing != "signal"
    words = signal.standing_words if is_finding else "a signal, not a finding"
    return (
        Fact("Corrected (q)", own(q_in_words(signal.q))),
        Fact("Standing", said(words)),
    )


def _is_short(fact: Fact) -> bool:
    return sum(len(span.text) for span in fact.cell) <= _MAX_SHORT


def state_in_words(signal: SignalPart) -> str:
    """`Open`, `Confirmed`, `Dismissed: normal convergence` and so on."""
    if not signal.verdict:
        return _UNDECIDED.get(signal.state, "No decision yet")
    words = _VERDICT_WORDS.get(signal.verdict, spaced(signal.verdict))
    return f"{words}: {_reason(signal.reason)}" if signal.reason else words


_UNDECIDED = {
    "claimed": "Claimed, no decision",
    "superseded": "Superseded, no decision",
}
_VERDICT_WORDS = {
    "confirm": "Confirmed",
    "dismiss": "Dismissed",
    "needs_experiment": "Needs experiment",
    "cannot_tell": "Cannot tell",
}


def _reason(code_of_reason: str) -> str:
    if code_of_reason in DismissalReason.values:
        return str(DismissalReason(code_of_reason).label).lower()
    return spaced(code_of_reason)


def _chart(series: SeriesPart) -> Chart:
    drawn = Series(
        unit=series.unit,
        steps=series.steps,
        values=series.values,
        labels=series.labels,
        threshold=series.threshold,
    )
    return Chart(series_svg(drawn, gap_after=series.gap_after))


def _sequence_facts(evidence: EvidencePart) -> tuple[Fact, ...]:
    unit = f" {evidence.series.unit}" if evidence.series else ""
    facts = [
        Fact("Agent", code(evidence.agent)),
        Fact("Model", code(evidence.model)),
        Fact("Provider", code(evidence.provider)),
        Fact("Scope", said(evidence.scope)),
        Fact("Began", said(evidence.began)),
        Fact("Ended", said(evidence.ended)),
        Fact("Order from", said(evidence.order)),
        Fact("Length", _amount(evidence.length, "")),
        *_size_facts(evidence, unit),
        Fact("Chance of this shape", own(chance(evidence.chance))),
        Fact("Usage recorded", own(usage_in_words(evidence))),
    ]
    return tuple(facts)


def _size_facts(evidence: EvidencePart, unit: str) -> list[Fact]:
    """First and last value and the effect; a check without a series has none of them."""
    if evidence.first is None and evidence.effect is None:
        return []
    return [
        Fact("First", _amount(evidence.first, unit)),
        Fact("Last", _amount(evidence.last, unit)),
        Fact("Last of first", own(percent(evidence.ratio))),
        Fact("Effect", _effect(evidence)),
    ]


def _amount(value: float | None, unit: str) -> Cell:
    if value is None:
        return muted("not recorded")
    return (Span(number(value)), *((outside(unit, "said"),) if unit.strip() else ()))


def _effect(evidence: EvidencePart) -> Cell:
    if evidence.effect is None:
        return muted("not recorded")
    bound = evidence.effect_bound
    return own(
        number(evidence.effect)
        + (f", bound {number(bound)}" if bound is not None else "")
    )


def usage_in_words(evidence: EvidencePart) -> str:
    """`6 of 6 calls`, `0 of 5 calls (5 missing)`, or that nothing says."""
    known, missing = evidence.usage_known, evidence.usage_missing
    if known is None or missing is None:
        return "does not matter to this check" if known is missing else "not recorded"
    words = f"{number(known)} of {plural(known + missing, 'call')}"
    return f"{words} ({number(missing)} missing)" if missing else words


def _long_facts(signal: SignalPart) -> tuple[Fact, ...]:
    evidence = signal.evidence
    facts = [*_chance_facts(evidence.chance, evidence.chance_of_signal)]
    if evidence.not_modelled:
        facts.append(Fact("Not modelled", said(" · ".join(evidence.not_modelled))))
    if evidence.series:
        facts.append(Fact("Values", values_in_words(evidence.series)))
    for name, value in evidence.facts.items():
        facts += _further(name, value)
    if evidence.steps:
        facts.append(Fact("Rests on steps", own(_steps(evidence.steps))))
    facts += _trace_facts(signal.trace)
    facts.append(Fact("Parameters", code(_json(evidence.parameters))))
    facts.append(
        Fact(
            "Input hash",
            (
                outside(signal.input_hash, "code"),
                Span(
                    f" · {signal.check} version {signal.check_version}, "
                    f"signal since {moment(signal.created_at)}",
                    "muted",
                ),
            ),
        )
    )
    return tuple(facts)


def _chance_facts(part: ChancePart | None, of_signal: float | None) -> list[Fact]:
    if part is None:
        return []
    words = f"{part.value:.6g}"
    if part.numerator is not None and part.denominator is not None:
        words = f"{part.numerator} / {part.denominator} = {words}"
    if part.standard_error:
        words += f", standard error {part.standard_error:.2g}"
    if part.floor is not None:
        words += f"; smallest attainable here {part.floor:.4g}"
    if of_signal is not None:
        words += f"; the check gives a signal by chance in {percent(of_signal)} of such cases"
    return [
        Fact("Probability", own(words)),
        Fact("Null model", said(part.model)),
        Fact("Method", said(part.method)),
        Fact("Assumes", said(part.assumptions)),
    ]


def values_in_words(series: SeriesPart) -> Cell:
    """The values in order: `112, 104, ?, 43 tokens`, or the labels for lanes.

    More than 60 are shown as the first and last 30, and the number left out is said.
    """
    if is_lanes(series.values, series.labels):
        items: list[Span] = [outside(label or "?", "code") for label in series.labels]
    else:
        items = [Span("?" if v is None else number(v)) for v in series.values]
    hidden = max(0, len(items) - _MAX_VALUES_SHOWN) + series.left_out
    if hidden:
        half = _MAX_VALUES_SHOWN // 2
        middle = Span(f"… {number(hidden)} more …", "muted")
        items = [*items[:half], middle, *items[-half:]]
    cell: list[Span] = []
    for item in items:
        cell += [Span(", "), item] if cell else [item]
    missing = sum(value is None for value in series.values)
    note = f" ({number(missing)} not recorded, shown as ?)" if missing else ""
    unit = "" if is_lanes(series.values, series.labels) else f" {series.unit}"
    return (*cell, outside(unit, "said"), Span(note, "muted")) if unit else tuple(cell)


def _further(name: str, value: object) -> list[Fact]:
    """A further figure of the check: in words where they are known, else as it is."""
    lines = [] if name.endswith("_removed") else lines_of(name, value)
    if not lines:
        return [Fact(one_line(spaced(name)).capitalize(), _fact(name, value))]
    return [Fact(label, said(text)) for label, text in lines]


def _fact(name: str, value: object) -> Cell:
    """A further fact; lists of calls that were left out are steps, so from 1."""
    if not (name.endswith("_removed") and isinstance(value, list)):
        return code(_json(value))
    steps = [str(item + 1) if isinstance(item, int) else str(item) for item in value]
    return code(f"{'step' if len(steps) == 1 else 'steps'} {', '.join(steps)}")


def _steps(steps: tuple[int, ...]) -> str:
    shown = ", ".join(str(step + 1) for step in steps[:_MAX_STEPS_SHOWN])
    hidden = len(steps) - _MAX_STEPS_SHOWN
    return f"{shown} and {plural(hidden, 'further step')}" if hidden > 0 else shown


def _json(value: object) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value, order="sorted").decode()


def _trace_facts(trace: TracePart) -> list[Fact]:
    repeat = muted("the file names no task")
    if trace.task is not None:
        trial = f", trial {trace.trial}" if trace.trial is not None else ""
        repeat = (*code(trace.task), Span(trial))
    native = (
        (Span(" · id ", "muted"), outside(trace.native_id, "code"))
        if trace.native_id
        else ()
    )
    source = (
        (Span(" from ", "muted"), outside(trace.outcome_source, "code"))
        if trace.outcome_source
        else ()
    )
    return [
        Fact(
            "Trace", (*said(trace.name), Span(f" (trace {trace.id})", "muted"), *native)
        ),
        Fact("Task", repeat),
        Fact("Outcome", (*said(trace.outcome_words), *source)),
        Fact("Upload", said(trace.upload)),
        Fact("Upload SHA-256", code(trace.upload_sha256)),
        Fact("Trace hash", code(trace.content_hash)),
    ]


def _decisions(signal: SignalPart) -> list[CardBlock]:
    if not signal.history:
        return [Heading(4, "Decisions"), Paragraph(muted("No decision yet."))]
    blocks: list[CardBlock] = [Heading(4, "Decisions")]
    if signal.history_left_out:
        older = plural(signal.history_left_out, "older entry")
        blocks.append(
            Paragraph(muted(f"{older} left out.".replace("entrys", "entries")))
        )
    for entry in signal.history:
        blocks.append(Paragraph(_entry(entry)))
        if entry.note.strip():
            blocks.append(Quote(visible(entry.note)))
    return blocks


def _entry(entry: HistoryPart) -> Cell:
    start = (
        Span(moment(entry.at), "muted"),
        Span(" · "),
        outside(entry.by, "said"),
        Span(" · "),
    )
    if entry.act == "undone":
        return (*start, Span("took the decision back"))
    if entry.act == "rescreened":
        return (*start, Span("ran again over the changed trace"))
    words = _VERDICT_WORDS.get(entry.verdict, spaced(entry.verdict))
    if entry.reason:
        words += f": {_reason(entry.reason)}"
    spans = [*start, Span(words, "strong")]
    if entry.failure_kind in FailureKind.values:
        label = str(FailureKind(entry.failure_kind).label).lower()
        spans.append(Span(f" · kind of failure: {label}"))
    if entry.where_agent:
        spans += [Span(" · agent "), outside(entry.where_agent, "code")]
    if entry.where_step is not None:
        spans.append(Span(f" · step {entry.where_step + 1}"))
    return tuple(spans)
