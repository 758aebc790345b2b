"""What a report must admit that it does not cover, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from apps.engine.consistency import Stability
from apps.engine.masking import Colour
from apps.reports.assessment import AgentPart, AlonesPart, AssessmentPart
from apps.reports.document import CheckPart, CountsPart, UploadPart
from apps.reports.words import number, percent, plural

_MAX_NAMES: Final = 12
_MAX_GAPS: Final = 40
NOTHING_REPLAYED: Final = (
    "Nothing was replayed: all evidence is from traces as they were recorded."
)


def not_checked(
    counts: CountsPart,
    checks: tuple[CheckPart, ...],
    uploads: tuple[UploadPart, ...],
    found: AssessmentPart,
) -> tuple[str, ...]:
    """Sentences about missing data, refused records, silent checks and what is unknown."""
    return (
        *_about_scoring(found),
        *found.unread,
        *_about_agents(found),
        *_about_tasks(found),
        *_about_usage(counts),
        *_about_outcomes(counts),
        *_about_uploads(uploads),
        *_about_checks(checks),
        *_about_replays(found.alone),
    )


def _about_scoring(found: AssessmentPart) -> Iterator[str]:
    if found.standing.left:
        yield (
            f"Traces not scored yet by what is asked now: {number(found.standing.left)}. "
            "What is said of agents and trials does not rest on them."
        )
    elif found.standing.is_behind:
        yield "Tasks and verdicts were still being brought up to date."
    stale = [one.target for one in found.patterns if not one.is_current]
    if not found.patterns:
        yield "No pattern was searched for over these scores."
    elif stale:
        yield f"Patterns of {_listed(stale)} runs are from earlier scores."


def _about_agents(found: AssessmentPart) -> Iterator[str]:
    unknown = [one for one in found.agents if one.colour == Colour.UNKNOWN]
    idle = [one.name for one in found.agents if not one.traces]
    if not found.agent_count:
        yield "Agents: none was judged."
    if unknown:
        number_unknown = found.colours.get(Colour.UNKNOWN.value, len(unknown))
        yield (
            f"Agents unknown: {number(number_unknown)} of {number(found.agent_count)}, "
            f"namely {_listed([_with_reason(one) for one in unknown], number_unknown)}. "
            "Unknown is not green."
        )
    if idle:
        yield f"Exercised by no trace and no task: {_listed(idle)}."
    yield from _about_contracts(found.agents)


def _with_reason(one: AgentPart) -> str:
    why = one.reasons[0].rstrip(".") if one.reasons else "not judged"
    return f"{one.name} ({why[:1].lower()}{why[1:]})"


def _about_contracts(agents: tuple[AgentPart, ...]) -> Iterator[str]:
    undecided = [
        f"{one.name} {number(one.undecided)} of {number(one.held.of)}"
        for one in agents
        if one.undecided
    ]
    if undecided:
        yield (
            f"Contracts that applied and could not be decided: {_listed(undecided)}. "
            "Undecided is not held."
        )
    bare = [one.name for one in agents if one.traces and not one.contracts]
    if bare:
        yield f"No contract says what they must hold: {_listed(bare)}."
    gaps = [f"{one.name}: {gap}" for one in agents for gap in one.gaps if one.contracts]
    yield from gaps[:_MAX_GAPS]
    if len(gaps) > _MAX_GAPS:
        yield f"And {plural(len(gaps) - _MAX_GAPS, 'more gap')} of agents."


def _about_tasks(found: AssessmentPart) -> Iterator[str]:
    tasks = found.consistency
    few = tasks.by_verdict.get(Stability.INSUFFICIENT.value, 0)
    if few:
        yield (
            f"Tasks insufficient: {number(few)} of {number(tasks.tasks)} have too few "
            "trials that decided anything to say how stable they are."
        )
    if found.tasks.unknown:
        yield (
            f"The outcome of {number(found.tasks.unknown)} of "
            f"{plural(found.tasks.n, 'task')} is unknown. Unknown is not a pass."
        )
    if not found.memory.facts:
        yield "Memory: no fact was declared or seen to be used again."


def _about_replays(alone: AlonesPart) -> Iterator[str]:
    """What is missing of replays: none was planned, or none of what was ever ran."""
    if not alone.batches:
        yield NOTHING_REPLAYED
    elif not alone.ran:
        batches = (
            "1 batch" if alone.batches == 1 else f"{number(alone.batches)} batches"
        )
        yield (
            f"Nothing was replayed: of {batches} with {plural(alone.runs, 'planned run')} "
            "none was executed. All evidence is from traces as they were recorded."
        )


def _listed(names: Sequence[str], total: int | None = None) -> str:
    shown = list(names[:_MAX_NAMES])
    more = (len(names) if total is None else total) - len(shown)
    return ", ".join([*shown, f"and {number(more)} more"] if more > 0 else shown)


def _about_usage(counts: CountsPart) -> tuple[str, ...]:
    missing = counts.model_calls - counts.usage_known
    if not missing:
        return ()
    return (
        f"Usage is missing on {number(missing)} of "
        f"{plural(counts.model_calls, 'model call')} "
        f"({percent(missing / counts.model_calls)}). Missing is not zero: checks that "
        "need output lengths are silent there.",
    )


def _about_outcomes(counts: CountsPart) -> tuple[str, ...]:
    unknown = counts.outcomes.get("unknown", 0)
    if not unknown:
        return ()
    return (
        f"The outcome of {number(unknown)} of {plural(counts.traces, 'trace')} is not "
        "recorded. Unknown is not a pass.",
    )


def _about_uploads(uploads: tuple[UploadPart, ...]) -> tuple[str, ...]:
    sentences = []
    for upload in uploads:
        if upload.failure:
            sentences.append(f"Upload {upload.id} was not read: {upload.failure}")
        elif upload.state != "done":
            sentences.append(f"Upload {upload.id} was still being read.")
        if upload.rejected:
            sentences.append(
                f"{plural(upload.rejected, 'record')} of upload {upload.id} "
                "could not be read and took part in no check."
            )
    return tuple(sentences)


def _about_checks(checks: tuple[CheckPart, ...]) -> tuple[str, ...]:
    silent = [check for check in checks if not check.applicable]
    if not silent:
        return ()
    names = ", ".join(f"{check.label} (version {check.version})" for check in silent)
    return (f"Answered about nothing here: {names}.",)
