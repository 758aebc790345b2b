"""Any change of what a check says about a real file shows in a table of counts."""

from __future__ import annotations

from apps.engine.checks import by_slug
from tests.engine.traces import outputs_trace, tools_trace
from tests.formats.checks_by_format import (
    HEADINGS,
    RENEW,
    TABLE,
    counted,
    difference,
    table,
)

DECAY = (by_slug("output-decay"),)


def test_the_table_says_what_the_checks_say_of_the_real_files(shared_data):
    found = difference(TABLE.read_text(), table(shared_data))
    assert not found, (
        f"Answers about real files changed:\n{found}\nIf they shall: {RENEW}"
    )


def test_the_table_names_folders_and_counts_only():
    first, *rows = [line.split("\t") for line in TABLE.read_text().splitlines()]
    assert tuple(first) == HEADINGS
    assert len(rows) > 100
    for name, check, *counts in rows:
        assert name.replace("_", "").isalnum()
        assert by_slug(check).slug == check
        assert all(count.isdigit() for count in counts)


def test_answers_are_counted_by_what_they_are():
    traces = [
        outputs_trace(100, 90, 80, 70, 60),
        outputs_trace(9, 9, 9, 9, 5),
        outputs_trace(1, 2, 3, 4, 5),
        outputs_trace(3, 2, 1),
        tools_trace("a"),
    ]
    [row] = counted("made", traces, DECAY)
    version = str(DECAY[0].version)
    assert row.split("\t") == [
        *("made", "output-decay", version, "5", "1", "1", "1", "2")
    ]
    assert counted("made", [], DECAY) == []


def test_a_changed_count_is_shown_with_both_values():
    before = "format\tcheck\na\tx\t1\nb\tx\t2\n"
    assert difference(before, before) == ""
    found = difference(before, before.replace("b\tx\t2", "b\tx\t3"))
    assert found.splitlines()[2:] == ["-b\tx\t2", "+b\tx\t3"]


def test_what_cannot_be_read_adds_no_row(tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/page.json").write_text("<html></html>")
    assert table(tmp_path, DECAY).splitlines() == ["\t".join(HEADINGS)]
