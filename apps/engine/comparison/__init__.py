"""Two sets of traces side by side: what differs, how sure, and what is missing.

Nothing here says why two sets differ or which is better. A missing figure is left
out and counted, never taken for zero, and nothing is compared with fewer than two
traces on a side.
"""

from __future__ import annotations

from apps.engine.comparison.compared import compare
from apps.engine.comparison.figures import (
    FEWEST_TRACES,
    Comparison,
    Metric,
    Side,
    ToolShare,
    TraceFigures,
)

__all__ = [
    "FEWEST_TRACES",
    "Comparison",
    "Metric",
    "Side",
    "ToolShare",
    "TraceFigures",
    "compare",
]
