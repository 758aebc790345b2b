"""Signals beside chance and findings apart from them, in every form of a report."""

from __future__ import annotations

import re

import pytest

from apps.reports import markdown
from apps.reports.chance_blocks import checks_answered, findings
from apps.reports.document import read
from apps.reports.outline import Bullets, Paragraph, Table
from apps.reports.words import amount, expected
from apps.review.findings import RULE
from tests.reports import documents

THIN = "\u202f"


def words(cell) -> str:
    return "".join(span.text for span in cell).replace(THIN, " ")


def table(blocks) -> list[list[str]]:
    [found] = [block for block in blocks if isinstance(block, Table)]
    return [[words(cell) for cell in row] for row in found.rows]


def made(**changes):
    return documents.document(**changes)


def with_standing(*standings):
    signals = tuple(
        documents.decay_signal(
            id=number, q=0.04, standing=kind, standing_words=f"finding: {kind} by test"
        )
        for number, kind in enumerate(standings, start=1)
    )
    return read(made(signals=signals, signals_selected=len(signals)))


def test_each_check_stands_beside_what_chance_gives():
    rows = table(checks_answered((documents.DECAY, documents.DRIFT)))
    assert rows[1][:5] == [
        "Tool drift v1",
        "22",
        "61",
        "about 19.3 (12 to 27)",
        "26.9 %",
    ]


def test_no_more_than_chance_is_said_in_words():
    blocks = checks_answered((documents.DECAY, documents.DRIFT))
    [said] = [block for block in blocks if isinstance(block, Bullets)]
    assert [words(item) for item in said.items] == [
        "Output decay: within what chance gives.",
        "Tool drift: within what chance gives.",
    ]


def test_a_report_of_before_that_knows_no_interval_is_still_drawn():
    document = made()
    for check in document["checks"]:
        check.pop("by_chance", None)
    rows = table(checks_answered(read(document).checks))
    assert rows[0][3] == "about 0.07"
    assert rows[0][4] == "none"


def test_findings_stand_apart_with_what_made_them_one():
    blocks = findings(with_standing("signal", "confirmed", "supported"))
    rows = table(blocks)
    assert [row[0] for row in rows] == ["2", "3"]
    assert [row[4] for row in rows] == [
        "finding: confirmed by test",
        "finding: supported by test",
    ]
    assert rows[0][3] == "4 %"
    told = [words(block.cell) for block in blocks if isinstance(block, Paragraph)]
    assert told[0] == RULE.replace(THIN, " ")
    assert told[1].startswith("1 signal of this report beside these: no findings.")


def test_without_a_finding_it_says_so_and_calls_no_signal_one():
    blocks = findings(with_standing("signal"))
    assert not [block for block in blocks if isinstance(block, Table)]
    assert words(blocks[-1].cell) == "None of the signals in this report is a finding."
    text = markdown.render(made())
    assert "## Findings" in text
    card = text[text.index("## Signals") :]
    for found in re.finditer(r"\bfinding\b", card):
        assert card[: found.start()].endswith("not a "), card[found.start() - 60 :][:90]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "none"),
        (0.004, "less than 0.01"),
        (0.347, "about 0.35"),
        (9.999, "about 10"),
        (19.34, "about 19.3"),
        (12345.6, f"about 12{THIN}346"),
    ],
)
def test_an_expected_number_is_about_what_it_is(value, said):
    assert amount(value) == expected(value) == said


def test_without_a_null_model_nothing_is_expected():
    assert expected(None) == "no null model"
