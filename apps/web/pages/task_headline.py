"""The sentence that the page of a task begins with: masking before anything else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from apps.engine.consistency import UNSTABLE, Stability
from apps.scoring.models import AgentTaskScore, TaskScore

MOST_NAMES: Final = 5
_ENDED: Final = {
    "green": "every known trial passed",
    "red": "every known trial failed",
    "mixed": "some trials passed and some failed",
    "unknown": "no outcome of a trial is known",
}


class Headline(msgspec.Struct, frozen=True):
    """What matters most about a task: `tone` and `icon` of a banner, and its words."""

    tone: str
    icon: str
    title: str
    text: str


def headline_of(score: TaskScore, agents: Sequence[AgentTaskScore]) -> Headline:
    """Masking, else the mirror of it, else stable but wrong, else what is unstable."""
    return next(_headlines(score, agents))


def _headlines(
    score: TaskScore, agents: Sequence[AgentTaskScore]
) -> Iterator[Headline]:
    hidden = [one for one in agents if one.is_masked]
    if hidden:
        yield _masked(score, hidden)
    if score.is_gap:
        yield Headline(
            "amber",
            "shield",
            "Every agent is green, and every known trial failed",
            "This is the mirror of masking: no contract of the agents sees what went "
            "wrong here.",
        )
    if score.is_stable_but_wrong:
        yield Headline("red", "circle-x", "Stable but wrong", _reason(score, last=True))
    red = [one for one in agents if one.colour == "red"]
    if red:
        yield Headline(
            "red",
            "circle-x",
            f"{_names(red)} {_is(red)} red",
            f"End to end {_ENDED[score.outcome]}.",
        )
    yield from _of_stability(score)


def _masked(score: TaskScore, hidden: Sequence[AgentTaskScore]) -> Headline:
    colours = sorted({one.colour for one in hidden if one.colour != "green"})
    words = " or ".join(colours) or "red"
    if score.outcome == "green":
        where = "although every known trial passed"
    else:
        keys = {one.agent.key for one in hidden}
        trials = score.detail["trials"]
        count = sum(not keys.isdisjoint(one["masked"]) for one in trials)
        where = f"in {count:,} of {score.passed:,} trials that passed"
        words = "red"
    first = hidden[0].detail["reasons"][:1]
    return Headline(
        "red",
        "eye-off",
        f"Masked: {_names(hidden)} {_is(hidden)} {words} {where}",
        " ".join(first),
    )


def _of_stability(score: TaskScore) -> Iterator[Headline]:
    verdict = Stability(score.consistency)
    if verdict in UNSTABLE:
        title = {
            Stability.DRIFTING: "Drifting: some trials decide otherwise",
            Stability.NON_DETERMINISTIC: "Non-deterministic: the trials do not agree",
        }[verdict]
        yield Headline("amber", "triangle-alert", title, _reason(score))
    ended = _ENDED[score.outcome]
    if verdict is Stability.STABLE:
        title = f"Stable: every trial decided the same, and {ended}"
        yield Headline("", "check", title, "Stable does not mean right.")
    yield Headline(
        "",
        "circle-help",
        f"Too little to say how stable this is; {ended}",
        _reason(score),
    )


def _reason(score: TaskScore, *, last: bool = False) -> str:
    reasons = score.detail["consistency"]["reasons"]
    return str(reasons[-1 if last else 0]) if reasons else ""


def _names(agents: Sequence[AgentTaskScore]) -> str:
    names = [str(one.agent) for one in agents[:MOST_NAMES]]
    more = len(agents) - len(names)
    if more:
        return f"{', '.join(names)} and {more} more"
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _is(agents: Sequence[AgentTaskScore]) -> str:
    return "is" if len(agents) == 1 else "are"
