"""How often each check gives each answer in each folder of the shared collection.

`python -m tests.formats.checks_by_format --write` renews the table that a test compares
with what the checks say now, so that any change of a rule or a reader shows as a
difference of counts. It holds names of folders and counts, and nothing of the files.
"""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from apps.engine.check import Answer, Check, Level, Screening
from apps.engine.checks import CHECKS
from apps.engine.format import UnreadableTrace
from apps.engine.formats import read_file
from apps.engine.trace import Trace
from tests.formats.index import DATA

TABLE = Path(__file__).with_suffix(".tsv")
RENEW = "python -m tests.formats.checks_by_format --write"
HEADINGS = (
    *("format", "check", "version", "traces", "fired_review", "fired_telemetry"),
    *("quiet", "not_applicable"),
)


def table(data: Path = DATA, checks: Iterable[Check] = CHECKS) -> str:
    """The table as text: a line for each folder that holds traces, and check."""
    rows = ["\t".join(HEADINGS)]
    for folder in sorted(path for path in data.iterdir() if path.is_dir()):
        rows += counted(folder.name, traces_below(folder), tuple(checks))
    return "\n".join(rows) + "\n"


def counted(name: str, traces: Iterable[Trace], checks: tuple[Check, ...]) -> list[str]:
    """The lines of one folder; none where it holds no trace."""
    answers: dict[str, Counter[str]] = {check.slug: Counter() for check in checks}
    number = 0
    for trace in traces:
        number += 1
        for check in checks:
            answers[check.slug].update(kind(one) for one in check.run(trace))
    if not number:
        return []
    return [
        "\t".join(
            [name, check.slug, str(check.version), str(number)]
            + [str(answers[check.slug][column]) for column in HEADINGS[4:]]
        )
        for check in checks
    ]


def kind(one: Screening) -> str:
    """The column in which an answer is counted."""
    if one.answer is not Answer.SIGNAL:
        return one.answer.value
    is_queued = one.level is Level.REVIEW_SIGNAL
    return "fired_review" if is_queued else "fired_telemetry"


def traces_below(folder: Path) -> Iterator[Trace]:
    """Every trace of the files below a folder; what cannot be read holds none."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            with path.open("rb") as file:
                items = read_file(file, name=path.name)
                yield from (item for item in items if isinstance(item, Trace))
        except UnreadableTrace:
            continue


def difference(before: str, now: str) -> str:
    """What changed, one line for each changed count; nothing where nothing did."""
    lines = difflib.unified_diff(
        *(before.splitlines(), now.splitlines()),
        *("the table", "the checks now"),
        n=0,
        lineterm="",
    )
    return "\n".join(line for line in lines if not line.startswith("@@"))


def main() -> int:
    """Print what differs, and with --write renew the table; 1 when something does."""
    if not DATA.is_dir():
        print("The shared trace files lie outside of the repository and are absent.")
        return 2
    now = table()
    found = difference(TABLE.read_text() if TABLE.exists() else "", now)
    print(found or "Nothing changed.")
    if "--write" in sys.argv[1:]:
        TABLE.write_text(now)
        return 0
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
