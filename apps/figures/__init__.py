"""Figures as plain values: Plotly dicts for pages and the API, points for small SVGs.

Meaning travels as a word (`accent`, `red`, `amber`, `mute`) in `meta` or `name`; the
page turns it into a colour of its theme. Nothing here draws a missing value as 0.
"""

from apps.figures.chance import chance_figure, lattice_figure
from apps.figures.sequence import sequence_figure
from apps.figures.sparkline import Sparkline, sparkline_of
from apps.figures.tool_mix import tool_mix_figure
from apps.figures.trend import TrendLine, TrendPoint, trend_figure

__all__ = [
    "Sparkline",
    "TrendLine",
    "TrendPoint",
    "chance_figure",
    "lattice_figure",
    "sequence_figure",
    "sparkline_of",
    "tool_mix_figure",
    "trend_figure",
]
