"""Branch points: where the trials of one task part, and how each side ended.

Trials are aligned by what they decided, so that a retry or an extra lookup does not
make everything after it different. A fork says that trials did different things from
there on. It never says that the fork caused the outcome.
"""

from apps.engine.branching.branches import (
    MOST_PATHS,
    MOST_POINTS,
    Branching,
    branching_of,
)
from apps.engine.branching.chance import DecisiveChance, decisive_chance
from apps.engine.branching.differing import Difference, Piece, side_by_side
from apps.engine.branching.lanes import Lane, Node, Track, TrialPath
from apps.engine.branching.outcomes import Branch, Fork, ForkKind, Place
from apps.engine.branching.packing import packed, unpacked
from apps.engine.branching.points import (
    Compare,
    Point,
    PointKind,
    has_uncertain_order,
    points_of,
)
from apps.engine.branching.statements import Statement

__all__ = [
    "MOST_PATHS",
    "MOST_POINTS",
    "Branch",
    "Branching",
    "Compare",
    "DecisiveChance",
    "Difference",
    "Fork",
    "ForkKind",
    "Lane",
    "Node",
    "Piece",
    "Place",
    "Point",
    "PointKind",
    "Statement",
    "Track",
    "TrialPath",
    "branching_of",
    "decisive_chance",
    "has_uncertain_order",
    "packed",
    "points_of",
    "side_by_side",
    "unpacked",
]
