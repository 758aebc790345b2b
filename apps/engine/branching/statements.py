"""What a reader must know beside the forks: what is uncertain, cut, or not compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from apps.engine.branching.lanes import Lane, TrialPath


class Statement(msgspec.Struct, frozen=True):
    """One thing to know, as a code and as a sentence, with the trials it is about."""

    code: str
    sentence: str
    trial_ids: tuple[str, ...] = ()


def statements_of(
    trials: Sequence[TrialPath], lanes: Sequence[Lane], left_out: Sequence[str]
) -> tuple[Statement, ...]:
    """The statements about trials and their lanes; an empty tuple where all is plain.

    Codes: `no_points`, `no_common_step`, `different_length`, `order_uncertain`,
    `compared_by_name`, `same_decisions`, `cut`, `left_out`.
    """
    return (
        *_no_points(trials),
        *_common(lanes),
        *_lengths(trials),
        *_order(trials),
        *_by_name(trials),
        *_same_way(lanes),
        *_cut(trials, lanes),
        *_left_out(left_out),
    )


def _no_points(trials: Sequence[TrialPath]) -> Iterator[Statement]:
    empty = [trial.trial_id for trial in trials if not trial.points]
    if empty:
        words = (
            f"{len(empty)} of {len(trials)} trials made no decision that is recorded."
        )
        yield Statement("no_points", words, tuple(sorted(empty)))


def _common(lanes: Sequence[Lane]) -> Iterator[Statement]:
    if len(lanes) < 2:
        return
    shared = set(lanes[0].nodes)
    for lane in lanes[1:]:
        shared &= set(lane.nodes)
    if not shared:
        yield Statement("no_common_step", "There is no step that all trials have.")


def _lengths(trials: Sequence[TrialPath]) -> Iterator[Statement]:
    lengths = [len(trial.points) for trial in trials]
    if len(set(lengths)) > 1:
        yield Statement(
            "different_length",
            f"The trials have different lengths: {min(lengths):,} to "
            f"{max(lengths):,} points.",
        )


def _order(trials: Sequence[TrialPath]) -> Iterator[Statement]:
    found = [trial.trial_id for trial in trials if trial.order_uncertain]
    if found:
        yield Statement(
            "order_uncertain",
            f"In {len(found)} of {len(trials)} trials the order of some steps is "
            "uncertain: agents worked at the same time, so a fork may be chance.",
            tuple(sorted(found)),
        )


def _by_name(trials: Sequence[TrialPath]) -> Iterator[Statement]:
    points = [point for trial in trials for point in trial.points]
    uncertain = sum(point.is_uncertain for point in points)
    if uncertain:
        yield Statement(
            "compared_by_name",
            f"{uncertain:,} of {len(points):,} points are compared by the names of the "
            "tools alone: arguments are not recorded, or redacted.",
        )


def _same_way(lanes: Sequence[Lane]) -> Iterator[Statement]:
    """Trials that never parted and yet ended differently."""
    groups: dict[int, list[Lane]] = defaultdict(list)
    for lane in lanes:
        groups[lane.group].append(lane)
    for _, held in sorted(groups.items()):
        known = [lane.passed for lane in held if lane.passed is not None]
        if 0 < sum(known) < len(known):
            yield Statement(
                "same_decisions",
                f"{len(held)} trials never part, and {sum(known)} of {len(known)} "
                "passed: what they decided at the forks does not tell them apart. "
                "Look at their differences, and at their texts.",
                tuple(sorted([lane.trial_id for lane in held])),
            )


def _cut(trials: Sequence[TrialPath], lanes: Sequence[Lane]) -> Iterator[Statement]:
    aligned = {lane.trial_id: len(lane.nodes) for lane in lanes}
    cut = [
        trial.trial_id
        for trial in trials
        if aligned.get(trial.trial_id, len(trial.points)) < len(trial.points)
    ]
    if cut:
        most = max([aligned[trial_id] for trial_id in cut])
        yield Statement(
            "cut",
            f"Of {len(cut)} of {len(trials)} trials only the first {most:,} points are "
            "compared.",
            tuple(sorted(cut)),
        )


def _left_out(left_out: Sequence[str]) -> Iterator[Statement]:
    if left_out:
        yield Statement(
            "left_out",
            f"{len(left_out)} trials are left out: they take further ways of their own, "
            "beyond the number that is compared.",
            tuple(left_out),
        )
