"""Agreement over many tasks: how many are stable, drifting and so on, with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from apps.engine.consistency.rule import LABELS, UNSTABLE, Stability
from apps.engine.consistency.scored import Consistency
from apps.engine.consistency.shares import Share, share


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """How many of `n` tasks got each verdict; `stable_but_wrong` are among the stable.

    The intervals take the tasks as independent and drawn alike from those that could
    have been asked; tasks of one kind are more alike than that.
    """

    n: int
    verdicts: Mapping[Stability, Share]
    unstable: Share
    stable_but_wrong: Share

    @property
    def words(self) -> str:
        """One clause for each verdict that occurs; "no tasks yet" for none."""
        if not self.n:
            return "no tasks yet"
        return "; ".join(
            f"{LABELS[verdict]}: {found.words}"
            for verdict, found in self.verdicts.items()
            if found.k
        )


def summary(tasks: Iterable[Consistency]) -> Summary:
    """The verdicts of `tasks`, each counted once."""
    found = tuple(tasks)
    wrong = sum(task.is_stable_but_wrong for task in found)
    return summary_of_counts(
        Counter(task.verdict for task in found), stable_but_wrong=wrong
    )


def summary_of_counts(
    counts: Mapping[Stability, int], *, stable_but_wrong: int = 0
) -> Summary:
    """The same from counted verdicts, as a database gives them.

    Raises `ValueError` for counts below 0 or more stable-but-wrong than stable tasks.
    """
    n = sum(counts.values())
    stable = counts.get(Stability.STABLE, 0)
    if stable_but_wrong > stable:
        raise ValueError("More tasks are stable but wrong than are stable.")
    return Summary(
        n=n,
        verdicts={each: _share(counts.get(each, 0), n) for each in Stability},
        unstable=_share(sum(counts.get(each, 0) for each in UNSTABLE), n),
        stable_but_wrong=_share(stable_but_wrong, n),
    )


def _share(k: int, n: int) -> Share:
    return share(k, n, nothing="no tasks yet")
