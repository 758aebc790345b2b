"""The parts of a report that set signals beside chance, and findings apart from them."""

from __future__ import annotations

from apps.reports.chance_words import (
    INTERVAL_MEANS,
    Q_MEANS,
    comparison,
    expected_with_interval,
)
from apps.reports.document import CheckPart, ReportDocument, SignalPart
from apps.reports.outline import (
    Block,
    Bullets,
    Cell,
    Column,
    Heading,
    Paragraph,
    Table,
    muted,
    own,
    said,
    strong,
)
from apps.reports.words import expected, number, percent, plural
from apps.review.findings import RULE

_CHECK_COLUMNS = (
    Column("Check", 2.2),
    Column("Signals", 0.8, is_number=True),
    Column("of applicable", 1.0, is_number=True),
    Column("Expected by chance", 1.9),
    Column("Group p", 0.8, is_number=True),
    Column("Queued", 0.8, is_number=True),
    Column("Quiet", 0.7, is_number=True),
    Column("Not applicable", 1.1, is_number=True),
)


def checks_answered(checks: tuple[CheckPart, ...]) -> tuple[Block, ...]:
    """What each check answered, beside what chance alone would give."""
    said_of = tuple(
        own(f"{check.label}: {comparison(check.by_chance)}.")
        for check in checks
        if check.by_chance and check.signals
    )
    blocks: list[Block] = [
        Heading(2, "What the checks answered"),
        Paragraph(
            own(
                "A signal asks for a look; it is not a finding. “Expected by chance” is "
                "how many signals the null model alone would give over the same "
                f"sequences, under its assumptions. {INTERVAL_MEANS} “Group p” is how "
                "often chance alone gives as many signals or more."
            )
        ),
        Table(_CHECK_COLUMNS, tuple(_check_row(check) for check in checks)),
    ]
    if said_of:
        blocks.append(Bullets(said_of))
    return tuple(blocks)


def _check_row(check: CheckPart) -> tuple[Cell, ...]:
    return (
        (*said(check.label), *muted(f" v{check.version}")),
        strong(number(check.signals)) if check.signals else own("0"),
        own(number(check.applicable)),
        _expected_cell(check),
        own(percent(check.by_chance.p)) if check.by_chance else muted("none"),
        own(number(check.queued)),
        own(number(check.quiet)),
        own(number(check.not_applicable)),
    )


def _expected_cell(check: CheckPart) -> Cell:
    if not check.applicable:
        return muted("applied to nothing")
    if check.by_chance is None:
        return own(expected(check.expected))
    cell = own(expected_with_interval(check.by_chance))
    if check.by_chance.tested < check.applicable:
        cell += muted(f" over {number(check.by_chance.tested)}")
    return cell


_FINDING_COLUMNS = (
    Column("Signal", 0.8, is_number=True),
    Column("Check", 1.5),
    Column("What was observed", 3.0),
    Column("q", 0.9),
    Column("Standing", 2.2),
    Column("Trace", 1.8),
)


def findings(report: ReportDocument) -> tuple[Block, ...]:
    """The signals that are findings, apart from all the others."""
    labels = {check.slug: check.label for check in report.checks}
    found = [signal for signal in report.signals if signal.standing != "signal"]
    blocks: list[Block] = [Heading(2, "Findings"), Paragraph(own(RULE))]
    if not found:
        blocks.append(
            Paragraph(own("None of the signals in this report is a finding."))
        )
        return tuple(blocks)
    plain = len(report.signals) - len(found)
    blocks += [
        Table(
            _FINDING_COLUMNS,
            tuple(_finding_row(signal, labels) for signal in found),
        ),
        Paragraph(
            muted(
                f"{plural(plain, 'signal')} of this report beside these: no findings. "
                f"{Q_MEANS}"
            )
        ),
    ]
    return tuple(blocks)


def _finding_row(signal: SignalPart, labels: dict[str, str]) -> tuple[Cell, ...]:
    return (
        own(number(signal.id)),
        said(labels.get(signal.check, signal.check)),
        said(signal.headline),
        own(percent(signal.q) if signal.q is not None else "a fact"),
        said(signal.standing_words),
        said(signal.trace.name),
    )
