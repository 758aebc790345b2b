"""Figures as plain values: Plotly dicts for pages and the API, points for small SVGs.

Meaning travels as a word (`accent`, `red`, `amber`, `mute`) in `meta` or `name`; the
page turns it into a colour of its theme. Nothing here draws a missing value as 0.
"""

from apps.figures.sequence import sequence_figure
from apps.figures.sparkline import Sparkline, sparkline_of

__all__ = ["Sparkline", "sequence_figure", "sparkline_of"]
