"""What a report leads with: masking, the verdict of each agent beside the outcome, gaps."""

from __future__ import annotations

from typing import Final

from apps.engine.masking import OUTCOME_WORDS, WORDS, Colour, OutcomeColour
from apps.reports.assessment import (
    AgentPart,
    AssessmentPart,
    CasePart,
    OutcomesPart,
    StandingPart,
)
from apps.reports.document import ReportDocument
from apps.reports.outline import (
    Block,
    Bullets,
    Callout,
    Cell,
    Column,
    Heading,
    Paragraph,
    Span,
    Table,
    muted,
    own,
    said,
    strong,
)
from apps.reports.rates import rate_of
from apps.reports.words import THIN, moment, number, plural, short_rate

_TONES: Final = {"masked": "red", "none": "notice"}
_STRONG: Final = frozenset({Colour.RED.value, Colour.UNSTABLE.value})
INTERVALS: Final = (
    f"Brackets hold the share and its 95{THIN}% Wilson interval. It takes the n as "
    "independent; trials of one task are not, so the true interval is rather wider."
)


def leading(report: ReportDocument) -> tuple[Block, ...]:
    """The first blocks of a report: how current it is, and the headline of masking."""
    head = report.headline
    callout = Callout(
        tone=_TONES.get(head.status, "unknown"),
        title=head.title,
        cell=own(head.sentence),
    )
    found = report.assessment
    if found is None:
        return (callout,)
    if head.status != "not_assessed":
        callout = Callout(callout.tone, callout.title, said(head.sentence))
    behind = _behind(found.standing, report.counts.traces)
    return (*behind, callout, *_maskings(found))


def _behind(standing: StandingPart, traces: int) -> tuple[Block, ...]:
    if not standing.is_behind:
        return ()
    waits = "Tasks and verdicts were being brought up to date when this was frozen."
    if standing.left:
        waits = (
            f"{plural(standing.left, 'trace')} of the project "
            f"{'was' if standing.left == 1 else 'were'} not scored yet by what is asked "
            f"now when this was frozen (the report counts {number(traces)} in scope)."
        )
    since = (
        f" Verdicts are as they were settled at {moment(standing.settled_at)}."
        if standing.settled_at
        else " No verdict was settled before."
    )
    cell = own(f"{waits}{since} Freeze it again for final numbers.")
    return (Callout("unknown", "What is said of agents is not final", cell),)


def _maskings(found: AssessmentPart) -> tuple[Block, ...]:
    items = tuple(
        (*said(one.sentence), Span(f" {one.reasons[0] if one.reasons else ''}"))
        for one in found.maskings
    )
    return (Bullets(items),) if items else ()


_AGENT_COLUMNS: Final = (
    Column("Agent", 1.5),
    Column("Verdict", 1.1),
    Column("Contracts held", 1.5),
    Column("Tasks stable", 1.5),
    Column("Memory recalled", 1.3),
    Column("Findings", 0.95, is_number=True),
    Column("Masked, of what passed", 1.7),
    Column("Why", 4.0),
)


def agents(report: ReportDocument) -> tuple[Block, ...]:
    """The verdict of each agent beside that of the whole; the mirror of masking."""
    found = report.assessment
    if found is None or not found.sentence:
        return ()
    blocks: list[Block] = [Heading(2, "Agents beside the outcome"), *_of_whole(report)]
    rows = tuple(_agent_row(one) for one in found.agents)
    if rows:
        blocks += [Table(_AGENT_COLUMNS, rows), Paragraph(muted(INTERVALS))]
    left_out = found.agent_count - len(found.agents)
    if left_out > 0:
        more = f"{plural(left_out, 'more agent')} not listed, the best ones."
        blocks.append(Paragraph(muted(more)))
    return (*blocks, *_mirror(found))


def _of_whole(report: ReportDocument) -> tuple[Block, ...]:
    found = report.assessment
    if found is None:
        return ()
    notes = "Contracts, agreement and memory make a verdict, never prose. "
    notes += "Unknown is not green, and agreement alone is not correctness."
    if report.filter.get("upload"):
        notes = f"This part is about the whole project, not one upload. {notes}"
    outcomes = (
        Span("End to end: ", "strong"),
        Span(f"{outcomes_words(found.traces, 'trace')} "),
        Span(outcomes_words(found.tasks, "task")),
    )
    return (Paragraph(muted(notes)), Paragraph(outcomes))


def outcomes_words(found: OutcomesPart, noun: str) -> str:
    """`84 of 200 traces with a known outcome passed (42 %; …), 116 failed.` or that none is known."""
    known = found.n - found.unknown
    if not known:
        return f"No {noun} of {number(found.n)} has a known outcome."
    rate = short_rate(rate_of(found.passed, known), "none")
    _, _, bracket = rate.partition(" (")
    rest = [f"{number(found.failed)} failed"]
    if noun == "task":
        rest.append(f"{number(found.mixed)} mixed")
    if found.unknown:
        rest.append(f"{number(found.unknown)} unknown")
    return (
        f"{number(found.passed)} of {plural(known, noun)} with a known outcome passed "
        f"({bracket}, {', '.join(rest)}."
    )


def verdict_words(colour: str) -> str:
    """The word of a verdict: `red`, `unstable`, `unknown`, `green`."""
    return WORDS[Colour(colour)].label


def outcome_words(colour: str) -> str:
    """The word of an outcome: `passed`, `failed`, `mixed`, `outcome unknown`."""
    return OUTCOME_WORDS[OutcomeColour(colour)].label


def _verdict(colour: str) -> Cell:
    words = verdict_words(colour)
    return strong(words) if colour in _STRONG else own(words)


def _agent_row(one: AgentPart) -> tuple[Cell, ...]:
    exercised = f"{plural(one.traces, 'trace')}, {plural(one.tasks, 'task')}"
    return (
        (*said(one.name), *muted(f" · {exercised}")),
        _verdict(one.colour),
        own(_held(one)),
        own(short_rate(one.stable, "no task scored")),
        own(short_rate(one.recalled, "no fact probed")),
        own(number(one.findings)),
        own(_masked(one)),
        own(" ".join(one.reasons)) if one.reasons else muted("none recorded"),
    )


def _held(one: AgentPart) -> str:
    if one.undecided and one.undecided == one.held.of:
        # A share of 0 % would say that contracts broke.
        return f"none of {number(one.undecided)} could be decided"
    return short_rate(one.held, "none applied" if one.contracts else "no contract")


def _masked(one: AgentPart) -> str:
    traces = short_rate(one.masked_traces, "")
    if not traces:
        return "none passed"
    if not one.masked_tasks.hits:
        return f"traces {traces}"
    return f"traces {traces}; tasks {short_rate(one.masked_tasks, 'none')}"


def _mirror(found: AssessmentPart) -> tuple[Block, ...]:
    heading = Heading(3, "Failures that no contract sees")
    sentences = [
        f"Every agent is green in {short_rate(rate_of(of.all_green, of.failed), '')} of "
        f"the {noun} that failed."
        for of, noun in ((found.traces, "traces"), (found.tasks, "tasks"))
        if of.all_green
    ]
    if not sentences:
        if not found.traces.failed:
            return (heading, Paragraph(own("No trace is known to have failed.")))
        words = (
            f"In {plural(found.traces.failed, 'failed trace')} at least one agent is "
            "not green, so none of them shows a gap in the contracts."
        )
        return (heading, Paragraph(own(words)))
    words = " ".join([*sentences, "That is a gap in the contracts, not a pass."])
    return (heading, Paragraph(own(words)), *_cases(found))


def _cases(found: AssessmentPart) -> tuple[Block, ...]:
    mirror = found.mirror
    items = [(Span("Trace "), *_case(one)) for one in mirror.traces]
    items += [(Span("Task "), *said(one.name)) for one in mirror.tasks]
    more = found.traces.all_green + found.tasks.all_green - len(items)
    if more > 0:
        items.append(own(f"and {number(more)} more"))
    return (Bullets(tuple(items)),) if items else ()


def _case(one: CasePart) -> Cell:
    task = (Span(" of task "), *said(one.task)) if one.task else ()
    return (*said(one.name), *task)
