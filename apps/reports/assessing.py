"""Reading what is said of agents and trials, once, and the headline of a report.

It claims no more than was scored: where scoring is behind, the headline says so first.
"""

from __future__ import annotations

from typing import Final

from apps.engine.masking import Colour, OutcomeCounts
from apps.reports.agent_parts import (
    agent_part,
    colours_of,
    definition_parts,
    maskings_of,
    worst_verdicts,
)
from apps.reports.alone_parts import alones_of
from apps.reports.assessment import AssessmentPart, ConsistencyPart, OutcomesPart
from apps.reports.document import HeadlinePart
from apps.reports.found_parts import memories_of, patterns_of
from apps.reports.inert import one_line
from apps.reports.standing import standing_part
from apps.reports.trial_parts import (
    forks_of,
    least_stable,
    mirror_of,
    notes_of,
    task_counts,
)
from apps.reports.words import number, plural
from apps.verdicts.models import ProjectVerdict
from apps.verdicts.progress import Progress

_NO_TRACE: Final = "There is no trace yet, so no agent could be judged."
_NOT_SCORED: Final = (
    "No trace was scored when this was frozen, so nothing is known of any agent. "
    "Nothing here is evidence that every agent works."
)


def assessment_of(project_id: int) -> AssessmentPart:
    """Everything that is said of agents and trials: about 35 queries, always as many.

    Where agents were run alone, ten more, and one for each of ten memory tests.

    It is of the whole project, whatever the report is narrowed to.
    """
    progress = Progress(project_id)
    verdict = progress.verdict
    rows = worst_verdicts(project_id)
    definitions, left_out = definition_parts(
        progress.asked.definitions, rows, is_behind=progress.is_behind
    )
    tasks, consistency = task_counts(project_id)
    colours = colours_of(project_id)
    notes, notes_left_out = notes_of(project_id)
    found, unstable = least_stable(project_id, with_agents=sum(colours.values()) != 1)
    return AssessmentPart(
        standing=standing_part(progress),
        sentence="" if verdict is None else _sentence(verdict),
        traces=OutcomesPart() if verdict is None else _traces(verdict),
        tasks=tasks,
        maskings=() if verdict is None else maskings_of(verdict),
        agent_count=sum(colours.values()),
        colours=colours,
        agents=tuple(agent_part(row) for row in rows),
        mirror=mirror_of(project_id),
        consistency=ConsistencyPart(
            tasks=consistency.tasks,
            by_verdict=consistency.by_verdict,
            stable_but_wrong=consistency.stable_but_wrong,
            unstable=unstable,
            least_stable=found,
        ),
        forks=forks_of(project_id, tasks.mixed),
        memory=memories_of(project_id),
        alone=alones_of(
            project_id,
            names=progress.asked.definitions.names,
            agents=progress.asked.definitions.agents,
        ),
        patterns=patterns_of(
            project_id, None if verdict is None else verdict.settled_at
        ),
        notes=notes,
        notes_left_out=notes_left_out,
        definitions=definitions,
        definitions_left_out=left_out,
        unread=tuple(
            one_line(said, limit=600) for said in progress.asked.unread_of_whole
        ),
    )


def _sentence(verdict: ProjectVerdict) -> str:
    return one_line(verdict.detail["report"]["headline"])


def _traces(verdict: ProjectVerdict) -> OutcomesPart:
    found = verdict.detail["traces"]
    counts = OutcomeCounts(**found["counts"])
    return OutcomesPart(
        n=found["n"],
        passed=counts.passed,
        failed=counts.failed,
        unknown=found["n"] - counts.passed - counts.failed,
        all_green=counts.all_green,
    )


def headline_of(found: AssessmentPart, *, traces: int) -> HeadlinePart:
    """What the report leads with; `traces` are those of the project."""
    if not found.sentence:
        sentence = _NOT_SCORED if traces else _NO_TRACE
        return HeadlinePart("not_assessed", "Masking: not assessed", sentence)
    if found.maskings:
        masked = plural(len(found.maskings), "agent")
        title = f"Masking: {masked} red or unstable behind outcomes that passed"
        return HeadlinePart("masked", title, found.sentence)
    unknown = found.colours.get(Colour.UNKNOWN.value, 0)
    if not found.traces.passed or unknown == found.agent_count:
        return HeadlinePart(
            "unseen",
            "Masking: it would not be seen",
            f"{found.sentence} {_rests(found)}",
        )
    title = (
        "Masking: none in what could be judged"
        if unknown
        else "Masking: none was found"
    )
    return HeadlinePart("none", title, f"{found.sentence} {_rests(found)}")


def _rests(found: AssessmentPart) -> str:
    """What "nothing is masked" rests on, in numbers."""
    unknown = found.colours.get(Colour.UNKNOWN.value, 0)
    judged = found.agent_count - unknown
    contracts = sum(one.contracts for one in found.agents)
    applied = sum(one.held.of for one in found.agents)
    return (
        f"This rests on {number(judged)} of {plural(found.agent_count, 'agent')} with a "
        f"verdict, {plural(contracts, 'contract')} that applied {number(applied)} times, "
        f"and {plural(found.traces.passed, 'trace')} that passed of "
        f"{number(found.traces.n)}."
    )
