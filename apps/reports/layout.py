"""From a report document to its outline: what comes first, and in which words."""

from __future__ import annotations

from typing import Any

import msgspec

from apps.reports.agent_blocks import agents, leading
from apps.reports.alone_blocks import alone
from apps.reports.cards import card_of
from apps.reports.chance_blocks import checks_answered, findings
from apps.reports.contract_blocks import contracts
from apps.reports.document import (
    CheckPart,
    CountsPart,
    DecisionPart,
    ReportDocument,
    UploadPart,
    canonical,
    read,
    sha256_of,
)
from apps.reports.inert import one_line
from apps.reports.outline import (
    Block,
    Bullets,
    Callout,
    Card,
    Cell,
    Column,
    Fact,
    Facts,
    Heading,
    Outline,
    Paragraph,
    Span,
    Table,
    Tile,
    Tiles,
    code,
    muted,
    own,
    said,
    strong,
)
from apps.reports.trial_blocks import trials
from apps.reports.words import (
    THIN,
    association,
    moment,
    number,
    percent,
    plural,
    rate,
    spaced,
)
from apps.review.transitions import DismissalReason


def outline_of(document: dict[str, Any], *, max_cards: int | None = None) -> Outline:
    """The outline of a document's JSON values; raises `UnreadableReport`.

    With `max_cards` only so many signals get a card, and the outline says how many do
    not.
    """
    report = read(document)
    digest = sha256_of(canonical(document))
    return Outline(
        title=one_line(report.title),
        project=one_line(report.project),
        generated_at=moment(report.generated_at),
        facts=_title_facts(report, digest),
        blocks=(
            *leading(report),
            _tiles(report.counts),
            *agents(report),
            *alone(report.assessment),
            *trials(report.assessment),
            *checks_answered(report.checks),
            *_decisions(report),
            *findings(report),
            *_signals(report, max_cards),
            *_not_checked(report),
            *_uploads(report),
            *contracts(report.assessment),
            *_texts(report.checks),
            *_recompute(report, digest),
        ),
    )


def _title_facts(report: ReportDocument, digest: str) -> tuple[Fact, ...]:
    return (
        Fact("Project", (*said(report.project), *muted(f" ({report.project_slug})"))),
        Fact("Frozen", own(moment(report.generated_at))),
        Fact("By", said(report.generated_by)),
        Fact("Signals shown", said(report.filter_words)),
        Fact("Counts are of", said(report.scope_words)),
        Fact("Made with", own(f"Evalsite {report.product_version}")),
        Fact("SHA-256", code(digest)),
    )


def _tiles(counts: CountsPart) -> Tiles:
    outcomes = counts.outcomes
    repeated = f"{plural(counts.trials, 'trial')} of {plural(counts.tasks, 'task')}"
    return Tiles(
        (
            Tile(
                "traces", number(counts.traces), f"{plural(counts.uploads, 'upload')}"
            ),
            Tile(
                "steps", number(counts.steps), f"{number(counts.errors)} with an error"
            ),
            Tile("tasks", number(counts.tasks), repeated),
            Tile("outcome pass", number(outcomes.get("pass", 0)), "as recorded"),
            Tile("outcome fail", number(outcomes.get("fail", 0)), "as recorded"),
            Tile("outcome a score", number(outcomes.get("score", 0)), "as recorded"),
            Tile("outcome unknown", number(outcomes.get("unknown", 0)), "not a pass"),
            Tile(
                "usage recorded",
                number(counts.usage_known),
                f"of {plural(counts.model_calls, 'model call')}",
            ),
        )
    )


_DECISION_COLUMNS = (
    Column("Check", 1.7),
    Column("Signals", 0.8, is_number=True),
    Column("No decision", 0.9, is_number=True),
    Column("Confirmed", 1.0, is_number=True),
    Column("Dismissed", 1.0, is_number=True),
    Column("Unclear", 0.8, is_number=True),
    Column("Confirmed of decided", 2.3),
)


def _decisions(report: ReportDocument) -> tuple[Block, ...]:
    labels = {check.slug: check.label for check in report.checks}
    rows = tuple(_decision_row(part, labels) for part in report.decisions)
    reasons = report.decisions[0].reasons if report.decisions else {}
    superseded = report.decisions[0].superseded if report.decisions else 0
    blocks: list[Block] = [
        Heading(2, "What people decided"),
        Table(_DECISION_COLUMNS, rows),
        Paragraph(
            muted(
                f"Intervals are Wilson score intervals, 95{THIN}%. “Unclear” counts needs "
                "experiment and cannot tell; they are no part of the share."
            )
        ),
    ]
    if superseded:
        sentence = (
            f"{plural(superseded, 'superseded signal')} that no check queues any more: "
            "in no count here."
        )
        blocks.append(Paragraph(muted(sentence)))
    if reasons:
        words = "; ".join(
            f"{_reason_label(name)} {number(count)}"
            for name, count in sorted(reasons.items(), key=lambda i: (-i[1], i[0]))
        )
        blocks.append(Paragraph(own(f"Reasons of dismissal: {words}.")))
    return tuple(blocks)


def _reason_label(name: str) -> str:
    known = name in DismissalReason.values
    return str(DismissalReason(name).label) if known else spaced(name)


def _decision_row(part: DecisionPart, labels: dict[str, str]) -> tuple[Cell, ...]:
    name = said(labels.get(part.check, part.check)) if part.check else strong("All")
    return (
        name,
        own(number(part.signals)),
        own(number(part.open)),
        own(number(part.confirmed)),
        own(number(part.dismissed)),
        own(number(part.needs_experiment + part.cannot_tell)),
        own(rate(part.precision)),
    )


def _signals(report: ReportDocument, max_cards: int | None) -> tuple[Block, ...]:
    labels = {check.slug: check.label for check in report.checks}
    shown = report.signals if max_cards is None else report.signals[:max_cards]
    head = (Heading(2, "Signals"), Paragraph(_selected(report)))
    if not report.signals:
        sentence = (
            "The filter selects no signal. This says what these checks saw in what "
            "they could read; it does not say that the traces are without fault."
        )
        return (*head, Callout("notice", "No signals", own(sentence)))
    notes: list[Block] = []
    cut = len(report.signals) - len(shown)
    if cut:
        sentence = (
            f"Cut at {plural(len(shown), 'signal')}: {number(cut)} more are in the "
            "markdown and in the JSON of this report."
        )
        notes.append(Callout("notice", "Not all signals are shown here", own(sentence)))
    cards: tuple[Card, ...] = tuple(
        card_of(signal, labels.get(signal.check, signal.check)) for signal in shown
    )
    return (*head, *notes, *cards)


def _selected(report: ReportDocument) -> Cell:
    count = plural(report.signals_selected, "signal")
    return (Span(f"{count}: "), *said(report.filter_words), Span("."))


_GAP_COLUMNS = (
    Column("Check", 1.3),
    Column("Not applicable because", 1.3),
    Column("Times", 0.6, is_number=True),
    Column("of", 0.6, is_number=True),
    Column("For example", 3.2),
)


def _not_checked(report: ReportDocument) -> tuple[Block, ...]:
    rows = tuple(
        (
            (*said(check.label), *muted(f" v{check.version}")),
            said(spaced(reason.code)),
            own(number(reason.count)),
            own(number(check.applicable + check.not_applicable)),
            said(reason.example),
        )
        for check in report.checks
        for reason in check.reasons
        if reason.answer == "not_applicable"
    )
    blocks: list[Block] = [
        Heading(2, "What was not checked, and why"),
        Paragraph(own("Not checked is not passed.")),
        Bullets(tuple(said(s) for s in (*report.not_checked, *report.left_out))),
    ]
    if rows:
        blocks.append(Table(_GAP_COLUMNS, rows))
    return tuple(blocks)


_UPLOAD_COLUMNS = (
    Column("Upload", 3.2),
    Column("Format", 1.2),
    Column("Traces", 0.8, is_number=True),
    Column("Steps", 0.9, is_number=True),
    Column("Usage recorded", 1.2, is_number=True),
    Column("Rejected", 0.9, is_number=True),
    Column("Notes", 2.0),
)


def _uploads(report: ReportDocument) -> tuple[Block, ...]:
    if not report.uploads:
        return (Heading(2, "Uploads"), Paragraph(own("There is no upload in scope.")))
    return (
        Heading(2, "Uploads"),
        Table(_UPLOAD_COLUMNS, tuple(_upload_row(upload) for upload in report.uploads)),
    )


def _upload_row(upload: UploadPart) -> tuple[Cell, ...]:
    version = f" reader v{upload.reader_version}" if upload.reader_version else ""
    notes = [*upload.notes]
    if upload.failure:
        notes.insert(0, upload.failure)
    if upload.duplicates:
        notes.append(f"{plural(upload.duplicates, 'trace')} already here")
    state = "" if upload.state == "done" else f" · {upload.state}"
    return (
        (
            *said(upload.name),
            *muted(
                f" · {plural(upload.size, 'byte')} · {moment(upload.received_at)}{state} · "
            ),
            *code(upload.sha256),
        ),
        (*said(upload.format), *muted(version)),
        own(number(upload.traces)),
        own(number(upload.steps)),
        own(f"{number(upload.usage_known)} of {number(upload.model_calls)}"),
        own(number(upload.rejected)),
        said(" · ".join(notes)) if notes else muted("none"),
    )


def _texts(checks: tuple[CheckPart, ...]) -> tuple[Block, ...]:
    blocks: list[Block] = [Heading(2, "Appendix: the checks in full")]
    for check in checks:
        parameters = msgspec.json.encode(check.parameters, order="sorted").decode()
        blocks += [
            Heading(3, f"{check.label}, version {check.version}"),
            Facts(
                (
                    Fact("What is observed", said(check.observes)),
                    Fact("Why it is unusual", said(check.null_model)),
                    Fact("What makes it material", said(check.material_when)),
                    Fact("What happens next", said(check.next_step)),
                    Fact("Level", own(spaced(check.level) or "not recorded")),
                    Fact("Basis", own(_BASES.get(check.basis, "not recorded"))),
                    Fact("Parameters", code(parameters)),
                    Fact("Answers", own(_answers(check))),
                    Fact(
                        "Outcome of traces in scope",
                        own(association(check.association)),
                    ),
                )
            ),
        ]
    return tuple(blocks)


_BASES = {
    "statistic": "a statistic with a null model",
    "fact": "a fact without a null model",
}


def _answers(check: CheckPart) -> str:
    if not check.reasons:
        return "none in scope"
    return "; ".join(
        f"{spaced(reason.answer)}: {spaced(reason.code)} {number(reason.count)}"
        for reason in check.reasons
    )


def _recompute(report: ReportDocument, digest: str) -> tuple[Block, ...]:
    known = report.counts.usage_known
    share = (
        percent(known / report.counts.model_calls)
        if report.counts.model_calls
        else "0 of 0"
    )
    return (
        Heading(2, "Appendix: how to recompute this"),
        Paragraph(
            (
                Span(
                    "Every signal names its check, version, parameters, input hash and "
                    "upload. The upload with that SHA-256, read by the same reader "
                    "version and screened by the same check version, gives the same "
                    f"signal. Usage was recorded on {share} of the model calls. "
                    f"Document format {report.format_version}; SHA-256 of its JSON: "
                ),
                *code(digest),
                Span("."),
            )
        ),
    )
