"""Masking: an agent is red or unstable while the outcome is green; and what is not seen.

The mirror is an outcome that is red though every agent is green: a gap in the
contracts. Gaps come beside, agents that nothing exercised first. An unknown outcome
masks nothing, and nothing here says that a masked agent caused any harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from apps.engine.consistency import Share, counted, share
from apps.engine.masking.alone import worst_alone
from apps.engine.masking.colours import COLOURS, Colour, OutcomeColour
from apps.engine.masking.reasons import Reason, ReasonCode
from apps.engine.masking.verdict import Verdict
from apps.engine.trace import Outcome, OutcomeKind

MASKABLE: Final = frozenset({Colour.RED, Colour.UNSTABLE})

_PASSED: Final = {OutcomeKind.PASS: True, OutcomeKind.FAIL: False}


class Judged(msgspec.Struct, frozen=True):
    """One trace or one task: its outcome and the colour of every agent that acts in it."""

    id: str
    outcome: OutcomeColour
    agents: Mapping[str, Colour]


class Masked(msgspec.Struct, frozen=True):
    """The colours of an agent in the `passed` traces or tasks in which it acts.

    The rest of `passed` is green, or unknown where the unknown were not counted.
    """

    red: int = 0
    unstable: int = 0
    unknown: int = 0
    passed: int = 0

    @property
    def share(self) -> Share:
        """Red or unstable, of those that passed."""
        nothing = "none that passed exercises it"
        return share(self.red + self.unstable, self.passed, nothing=nothing)


class AgentCounts(msgspec.Struct, frozen=True):
    """What masking needs to know of one agent, as a database can count it."""

    agent: str
    traces: Masked = Masked()
    tasks: Masked = Masked()


class OutcomeCounts(msgspec.Struct, frozen=True):
    """How many traces or tasks passed and failed; of the failed, all agents green in some.

    `all_green` are failed ones with at least one agent and none that is not green.
    """

    passed: int = 0
    failed: int = 0
    all_green: int = 0


class Masking(msgspec.Struct, frozen=True):
    """An agent that is red or unstable behind green outcomes, there or in replays.

    `colour` is the worst that was masked; `traces` and `tasks` count where, of those
    that passed and exercise it. `reasons` are those of the agent's own verdict.
    """

    agent: str
    colour: Colour
    traces: Share
    tasks: Share
    headline: str
    reasons: tuple[Reason, ...]


class GapKind(StrEnum):
    """What was not seen: of an agent, of a failure, or of a definition of the whole."""

    AGENT_UNKNOWN = "agent_unknown"
    FAILURE_UNSEEN = "failure_unseen"
    VERDICT_OPEN = "verdict_open"
    DEFINITION_UNREAD = "definition_unread"


class Gap(msgspec.Struct, frozen=True):
    """Something that was not exercised or not covered; `agent` "" where it is of none."""

    kind: GapKind
    agent: str
    sentence: str
    reason: Reason | None = None
    found: Share | None = None


class MaskingReport(msgspec.Struct, frozen=True):
    """Masking of a project or a task, worst first, its headline, and the gaps.

    `headline` is a sentence in every case, also where nothing is masked.
    """

    headline: str
    maskings: tuple[Masking, ...]
    gaps: tuple[Gap, ...]


def outcome_of(outcome: Outcome) -> OutcomeColour:
    """The colour of a recorded outcome; a score is unknown, prose is never read."""
    return outcome_of_trials([_PASSED.get(outcome.kind)])


def outcome_of_trials(passed: Iterable[bool | None]) -> OutcomeColour:
    """The outcome of a task: green only if every known trial passed; none is unknown."""
    known = {each for each in passed if each is not None}
    if len(known) > 1:
        return OutcomeColour.MIXED
    if not known:
        return OutcomeColour.UNKNOWN
    return OutcomeColour.GREEN if True in known else OutcomeColour.RED


def masked(
    agents: Mapping[str, Colour], outcome: OutcomeColour
) -> tuple[tuple[str, Colour], ...]:
    """The agents that are masked in one trace or task, worst first, then by name.

    Empty unless the outcome is green: a mixed or unknown one masks nothing.
    """
    if outcome is not OutcomeColour.GREEN:
        return ()
    found = [(name, colour) for name, colour in agents.items() if colour in MASKABLE]
    return tuple(sorted(found, key=lambda each: (COLOURS.index(each[1]), each[0])))


def is_unseen_failure(agents: Mapping[str, Colour], outcome: OutcomeColour) -> bool:
    """The mirror: the outcome is red though every agent (at least one) is green."""
    return outcome is OutcomeColour.RED and set(agents.values()) == {Colour.GREEN}


def outcome_counts(judged: Iterable[Judged]) -> OutcomeCounts:
    """How many of `judged` passed, failed, and failed behind green agents."""
    passed = failed = all_green = 0
    for each in judged:
        passed += each.outcome is OutcomeColour.GREEN
        failed += each.outcome is OutcomeColour.RED
        all_green += is_unseen_failure(each.agents, each.outcome)
    return OutcomeCounts(passed, failed, all_green)


def agent_counts(
    traces: Iterable[Judged], tasks: Iterable[Judged] = ()
) -> tuple[AgentCounts, ...]:
    """For every agent that acts anywhere, by name: where it is masked."""
    of_traces, of_tasks = _masked_by_agent(traces), _masked_by_agent(tasks)
    return tuple(
        AgentCounts(name, of_traces.get(name, Masked()), of_tasks.get(name, Masked()))
        for name in sorted({*of_traces, *of_tasks})
    )


def masking_report(
    *,
    verdicts: Mapping[str, Verdict],
    counts: Iterable[AgentCounts],
    traces: OutcomeCounts,
    tasks: OutcomeCounts,
    unread: Iterable[str] = (),
) -> MaskingReport:
    """Masking over many traces and tasks, the headline first, and the gaps.

    `verdicts` are those of the agents over all of them, also of agents that nothing
    exercised. Sorted red before unstable, then by how many traces and tasks, then by
    name; the order of what is given does not matter. `unread` are sentences about what
    is asked of the whole and cannot be read.
    """
    of_agents = tuple(counts)
    maskings = _maskings(of_agents, verdicts, traces)
    unjudged = sorted({each.agent for each in of_agents} - verdicts.keys())
    return MaskingReport(
        headline=_headline(maskings, of_agents, verdicts, traces),
        maskings=maskings,
        gaps=(
            *_unknown_agents(verdicts),
            *(Gap(GapKind.DEFINITION_UNREAD, "", said) for said in unread),
            *(_unjudged(name) for name in unjudged),
            *_unseen(traces, tasks),
            *_open(verdicts),
        ),
    )


def _masked_by_agent(judged: Iterable[Judged]) -> dict[str, Masked]:
    found: dict[str, Masked] = {}
    for each in judged:
        is_green = each.outcome is OutcomeColour.GREEN
        for name, colour in each.agents.items():
            so_far = found.get(name, Masked())
            found[name] = Masked(
                red=so_far.red + (is_green and colour is Colour.RED),
                unstable=so_far.unstable + (is_green and colour is Colour.UNSTABLE),
                unknown=so_far.unknown + (is_green and colour is Colour.UNKNOWN),
                passed=so_far.passed + is_green,
            )
    return found


def _maskings(
    counts: Iterable[AgentCounts],
    verdicts: Mapping[str, Verdict],
    traces: OutcomeCounts,
) -> tuple[Masking, ...]:
    found = [
        _masking(each, verdicts.get(each.agent), traces)
        for each in counts
        if each.traces.share.k
        or each.tasks.share.k
        or hidden_alone(each.traces, verdicts.get(each.agent))
    ]
    return tuple(
        sorted(
            found,
            key=lambda each: (
                COLOURS.index(each.colour),
                -each.traces.k,
                -each.tasks.k,
                each.agent,
            ),
        )
    )


def hidden_alone(traces: Masked, verdict: Verdict | None) -> Colour | None:
    """The colour of replays that green traces which exercise the agent hide."""
    if verdict is None or not traces.passed:
        return None
    return worst_alone(verdict.reasons)


def _masking(
    each: AgentCounts, verdict: Verdict | None, traces: OutcomeCounts
) -> Masking:
    reasons = verdict.reasons if verdict else ()
    alone = hidden_alone(each.traces, verdict)
    is_red = each.traces.red or each.tasks.red or alone is Colour.RED
    return Masking(
        agent=each.agent,
        colour=Colour.RED if is_red else Colour.UNSTABLE,
        traces=each.traces.share,
        tasks=each.tasks.share,
        headline=_masking_words(each, traces, alone),
        reasons=reasons,
    )


def _masking_words(
    each: AgentCounts, traces: OutcomeCounts, alone: Colour | None
) -> str:
    """`memory is red in 3 of 12 traces that passed`, of tasks where no trace is."""
    if alone is not None and not each.traces.share.k and not each.tasks.share.k:
        return (
            f"{each.agent} is {alone.value} when it runs alone, and in none of the "
            f"{counted(each.traces.passed, 'trace')} that passed and exercise it"
        )
    is_of_traces = bool(each.traces.share.k)
    found = each.traces if is_of_traces else each.tasks
    words = (
        f"{each.agent} is {_colours(found)} in {found.share.k:,} of "
        f"{counted(found.passed, 'trace' if is_of_traces else 'task')} that passed"
    )
    if is_of_traces and found.passed < traces.passed:
        words += f" and exercise it ({traces.passed:,} passed in all)"
    words = f"{words}, unknown in {found.unknown:,}" if found.unknown else words
    return f"{words}, and {alone.value} when it runs alone" if alone else words


def _colours(found: Masked) -> str:
    if found.red and found.unstable:
        return "red or unstable"
    return "red" if found.red else "unstable"


def _headline(
    maskings: tuple[Masking, ...],
    counts: tuple[AgentCounts, ...],
    verdicts: Mapping[str, Verdict],
    traces: OutcomeCounts,
) -> str:
    if maskings:
        more = len(maskings) - 1
        also = f"; {counted(more, 'more agent')} masked" if more else ""
        return f"{maskings[0].headline}{also}."
    if not traces.passed:
        return "No trace is known to have passed, so nothing can be masked."
    unknown = {name for name, each in verdicts.items() if each.colour is Colour.UNKNOWN}
    if len(unknown) == len(verdicts):
        return "No agent could be judged, so masking would not be seen."
    return _nothing_masked(unknown, _unseen_in_passes(counts), verdicts, traces)


def _unseen_in_passes(counts: Iterable[AgentCounts]) -> set[str]:
    """Agents of which nothing could be judged in any trace that passed."""
    return {
        each.agent
        for each in counts
        if each.traces.passed and each.traces.unknown == each.traces.passed
    }


def _nothing_masked(
    unknown: set[str],
    unseen: set[str],
    verdicts: Mapping[str, Verdict],
    traces: OutcomeCounts,
) -> str:
    """That nothing is masked, and of how many agents that could not have been seen."""
    where = f"{counted(traces.passed, 'trace')} that passed"
    blind = (unknown | unseen) & verdicts.keys()
    if len(blind) == len(verdicts):
        return f"No agent could be judged in the {where}, so masking would not be seen."
    words = f"No agent is red or unstable in the {where}"
    if not blind:
        return f"{words}."
    there = " there" if blind - unknown else ""
    of = counted(len(verdicts), "agent")
    return f"{words}; {len(blind):,} of {of} unknown{there}."


_UNKNOWN_ORDER: Final = (
    ReasonCode.NOT_EXERCISED,
    ReasonCode.UNREAD,
    ReasonCode.NO_CONTRACT,
    ReasonCode.NONE_APPLIED,
    ReasonCode.ALL_UNDECIDED,
    ReasonCode.ALL_FAILED,
)


def _unknown_agents(verdicts: Mapping[str, Verdict]) -> list[Gap]:
    found = [
        (name, reason)
        for name, verdict in verdicts.items()
        if verdict.colour is Colour.UNKNOWN
        for at, reason in enumerate(verdict.reasons)
        if at == 0 or reason.code is ReasonCode.UNREAD
    ]
    found.sort(key=lambda each: (_UNKNOWN_ORDER.index(each[1].code), each[0]))
    return [
        Gap(
            kind=GapKind.AGENT_UNKNOWN,
            agent=name,
            sentence=f"{name} is unknown: {reason.inner}",
            reason=reason,
        )
        for name, reason in found
    ]


def _unjudged(name: str) -> Gap:
    return Gap(GapKind.AGENT_UNKNOWN, name, f"{name} is unknown: it was never judged.")


def _unseen(traces: OutcomeCounts, tasks: OutcomeCounts) -> list[Gap]:
    return [
        Gap(
            kind=GapKind.FAILURE_UNSEEN,
            agent="",
            sentence=(
                f"Every agent is green in {share(of.all_green, of.failed).words} of the "
                f"{noun} that failed: a gap in the contracts."
            ),
            found=share(of.all_green, of.failed),
        )
        for noun, of in (("traces", traces), ("tasks", tasks))
        if of.all_green
    ]


def _open(verdicts: Mapping[str, Verdict]) -> list[Gap]:
    return [
        Gap(
            kind=GapKind.VERDICT_OPEN,
            agent=name,
            sentence=f"{name}: {gap.inner}",
            reason=gap,
            found=gap.share,
        )
        for name in sorted(verdicts)
        for gap in verdicts[name].gaps
    ]
