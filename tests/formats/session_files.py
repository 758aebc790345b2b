"""What the tests of session logs share: counts against the index, changed files."""

from __future__ import annotations

from apps.engine.trace import ModelCall, Step, StepKind, Trace
from tests.formats.index import DATA, expected
from tests.formats.reading import counts_of, traces_of


def found_and_expected(
    row: dict[str, str], differences: dict[str, dict[str, int]]
) -> tuple[dict[str, int], dict[str, int]]:
    """The counts of a real file and those it must have.

    For session logs the index counts a tool that failed once, `counts_of` twice: as a
    failed step and as a failed tool.
    """
    found = counts_of(traces_of((DATA / row["path"]).read_bytes()))
    wanted = expected(row)
    wanted["errors"] *= 2
    return found, wanted | differences.get(row["path"], {})


def calls_of(trace: Trace) -> list[Step]:
    return [step for step in trace.steps if isinstance(step.call, ModelCall)]


def tools_of(trace: Trace) -> list[Step]:
    return [step for step in trace.steps if step.kind is StepKind.TOOL_CALL]


def outputs_of(trace: Trace) -> list[int | None]:
    return [step.call.usage.output_total for step in calls_of(trace)]
