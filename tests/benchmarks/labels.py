"""How often signals point at the agent and the step that people have labelled wrong.

Reads the labelled sets beside the checkout. A signal is no answer to the question who
failed and when; this says how far it is from one, beside rules that read nothing. The
labels themselves are no certainty: people reach about 60 % for the agent and 35 % for
the exact step.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from apps.engine.check import Answer, Check, Level
from apps.engine.checks import CHECKS
from apps.engine.formats import read_file
from apps.engine.trace import Step, Trace
from tests.benchmarks.pointing import (
    Case,
    Pointer,
    by_signals,
    first_step,
    last_step,
    longest_output,
    most_active_agent,
    rows,
)

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
REVIEW = frozenset({Level.REVIEW_SIGNAL})
ANY = frozenset(Level)
EVERYWHERE = "missing-usage"
CEILING = "People reach about 60 % for the agent and 35 % for the exact step."
CONSTANT: dict[str, Pointer] = {
    "always the first step": first_step,
    "always the last step": last_step,
    "always the longest output": longest_output,
    "always the most active agent": most_active_agent,
}


def traces_in(folder: Path) -> list[Trace]:
    """Every trace of the JSON files of a folder, in order of their names."""
    return [
        item
        for path in sorted(folder.glob("*.json"))
        for item in read_file(io.BytesIO(path.read_bytes()))
        if isinstance(item, Trace)
    ]


def case_of(trace: Trace, labels: dict[str, Any]) -> Case:
    """A transcript with the labels of Who&When: a place in the history, and a name."""
    owners = {
        step.seq: agent
        for step in trace.steps
        if (agent := _agent_of(trace, step)) is not None
    }
    return Case(
        steps=tuple(sorted(owners)),
        wrong=frozenset({int(labels["mistake_step"])}),
        owners=owners,
        agent=labels["mistake_agent"],
        lengths={step.seq: len(_said(step)) for step in trace.steps},
        trace=trace,
    )


def _agent_of(trace: Trace, step: Step) -> str | None:
    if step.invocation is None:
        return None
    return trace.invocations[step.invocation].agent


def _said(step: Step) -> str:
    if step.body is None or step.body.output is None:
        return ""
    said = step.body.output
    return said if isinstance(said, str) else json.dumps(said)


def labelled(traces: Sequence[Trace]) -> list[Case]:
    """The traces that carry their own labels."""
    return [case_of(one, one.labels) for one in traces if "mistake_step" in one.labels]


def same_runs(cases: Sequence[Case], traces: Sequence[Trace]) -> list[Case]:
    """`traces` with the labels of those of `cases` that say the same, word for word."""
    known = {_words(case.trace): case for case in cases if case.trace is not None}
    found = []
    for trace in traces:
        case = known.get(_words(trace))
        if case is not None and case.trace is not None:
            found.append(case_of(trace, case.trace.labels))
    return found


def _words(trace: Trace) -> tuple[str, ...]:
    return tuple([_said(step).strip() for step in trace.steps])


def label_only(content: bytes) -> list[Case]:
    """The traces of a label file of CodeTraceBench that have an incorrect step."""
    found = []
    for one in json.loads(content):
        wrong = {
            step
            for stage in one["incorrect_stages"]
            for step in stage["incorrect_step_ids"]
        }
        if wrong:
            steps = tuple(range(1, one["step_count"] + 1))
            found.append(Case(steps=steps, wrong=frozenset(wrong)))
    return found


def report(
    title: str, cases: Sequence[Case], checks: Sequence[Check] = CHECKS
) -> Iterator[str]:
    """Yield the lines about one labelled set."""
    yield f"{title}: {len(cases)} labelled traces"
    if not cases:
        return
    if all(case.trace is not None for case in cases):
        yield from _of_signals(cases, [one for one in checks if one.slug != EVERYWHERE])
    else:
        yield "  The traces are not at hand, only their labels: no check could be asked."
    needs_owners = {longest_output, most_active_agent}
    for name, pointer in CONSTANT.items():
        if cases[0].owners or pointer not in needs_owners:
            yield from (row.in_words() for row in rows(cases, name, pointer))
    yield ""


def _of_signals(cases: Sequence[Case], checks: Sequence[Check]) -> Iterator[str]:
    """The lines of all checks together, and of each that fired somewhere."""
    yield f"  Without {EVERYWHERE}, which points at every call where none is recorded."
    for name, levels in (("signals for review", REVIEW), ("all signals", ANY)):
        pointer = by_signals(checks, levels=levels)
        yield from (row.in_words() for row in rows(cases, name, pointer))
    silent: dict[bool, list[str]] = {True: [], False: []}
    for check in checks:
        found = list(rows(cases, f"- {check.slug}", by_signals([check], levels=ANY)))
        if found[0].pointing:
            yield from (row.in_words() for row in found)
        else:
            silent[_is_applicable(check, cases)].append(check.slug)
    for applies, words in ((True, "Quiet throughout"), (False, "Applicable nowhere")):
        if silent[applies]:
            yield f"  {words}: {', '.join(silent[applies])}."


def _is_applicable(check: Check, cases: Sequence[Case]) -> bool:
    """Whether the check could answer for any of the traces."""
    return any(
        one.answer is not Answer.NOT_APPLICABLE
        for case in cases
        if case.trace is not None
        for one in check.run(case.trace)
    )


def main() -> int:
    """Print the lines of every labelled set that lies beside the checkout."""
    if not DATA.is_dir():
        print(f"The labelled traces lie outside of the repository: {DATA} is absent.")
        return 0
    print(CEILING)
    print(
        "pointer, traces at which it points, target, hits with their Wilson interval; "
        "then as many picks at random, and how often they hit as much\n"
    )
    by_hand = labelled(traces_in(DATA / "label_who_and_when/hand_crafted"))
    made = labelled(traces_in(DATA / "label_who_and_when/algorithm_generated"))
    transcripts = traces_in(DATA / "label_agentrx/magentic")
    same = same_runs(by_hand, transcripts)
    codes = (DATA / "label_codetracebench/tangle_input-labels.json").read_bytes()
    for title, cases in (
        ("Who&When, generated by an algorithm", made),
        ("Who&When, made by hand", by_hand),
        ("Who&When, both", [*made, *by_hand]),
        ("CodeTraceBench", label_only(codes)),
    ):
        for line in report(title, cases):
            print(line)
    print(
        f"AgentRx: {len(transcripts)} transcripts without labels of their own; "
        f"{len(same)} are word for word runs of Who&When made by hand, and are not "
        "counted twice."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
