"""A comparison as markdown: the figures of the page, names of strangers made inert."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apps.reports.markdown import code_span, escaped
from apps.traces.comparing import Q_MEANS, Compared, SideFigures
from apps.web.pages.compare import metric_lines
from apps.web.words import number_in_words, percent_in_words


def comparison_markdown(found: Compared) -> str:
    """The whole comparison as markdown."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Compared) -> Iterator[str]:
    yield "# Two sets of traces side by side"
    yield ""
    yield from _side("First", found.first)
    yield from _side("Second", found.second)
    yield ""
    for note in (*found.result.notes, *found.notes, Q_MEANS):
        yield f"- {escaped(note)}"
    yield ""
    yield "## Figures"
    yield ""
    yield from _table(
        ("Figure", "First", "Second", "Difference", "95 % interval",
         "Within tasks", "p", "q"),
        [
            (line.label, f"{line.first} ({line.first_known})".strip(),
             f"{line.second} ({line.second_known})".strip(), line.difference,
             line.interval or "—", line.tested or "—", line.chance, line.q)
            for line in metric_lines(found.result)
        ],
    )  # fmt: skip
    for metric in found.result.metrics:
        yield f"- {escaped(metric.sentence)}"
    if found.result.tools:
        yield from _tools(found)


def _side(words: str, one: SideFigures) -> Iterator[str]:
    yield (
        f"- {words}: {code_span(one.side.label)}, "
        f"{number_in_words(len(one.found.figures))} traces compared, "
        f"{number_in_words(one.passed)} passed, {number_in_words(one.failed)} failed, "
        f"{number_in_words(one.others)} neither. Passed: {escaped(one.pass_rate.words)}"
    )


def _tools(found: Compared) -> Iterator[str]:
    yield ""
    yield "## Tool mix"
    yield ""
    yield "| Tool | First | Share | Second | Share |"
    yield "|---|---|---|---|---|"
    for row in found.result.tools:
        yield (
            f"| {code_span(row.name or '(no name)', in_table=True)} | {row.first} | "
            f"{percent_in_words(row.first_share)} | {row.second} | "
            f"{percent_in_words(row.second_share)} |"
        )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(escaped, row)) + " |"
    yield ""
