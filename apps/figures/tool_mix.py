"""How the tool calls of two sets are shared among the tools, as a Plotly figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from apps.engine.comparison import ToolShare
from apps.figures.sequence import inert

_HOVER: Final = "%{hovertext}<extra></extra>"
_LONGEST: Final = 28


def tool_mix_figure(
    tools: Sequence[ToolShare], *, names: tuple[str, str]
) -> dict[str, Any]:
    """Grouped bars (`data` and `layout`, JSON values): the first tool stands on top.

    A set without tool calls has no bars, never bars of 0.
    """
    rows = list(reversed(tools))
    sides = (
        (names[1], "mute", [row.second_share for row in rows]),
        (names[0], "accent", [row.first_share for row in rows]),
    )
    return {
        "data": [_bars(name, tone, rows, shares) for name, tone, shares in sides],
        "layout": {
            "barmode": "group",
            "bargap": 0.3,
            "showlegend": True,
            "legend": {"orientation": "h", "y": 1.16, "x": 0, "traceorder": "reversed"},
            "xaxis": {
                "title": {"text": "share of all tool calls"},
                "ticksuffix": " %",
                "rangemode": "tozero",
            },
            # Places, not names: two long names may begin alike.
            "yaxis": {
                "tickvals": list(range(len(rows))),
                "ticktext": [inert(_short(row.name)) for row in rows],
                "showgrid": False,
            },
        },
    }


def _bars(
    name: str, tone: str, rows: Sequence[ToolShare], shares: Sequence[float | None]
) -> dict[str, Any]:
    shown = [
        (place, row, share)
        for place, (row, share) in enumerate(zip(rows, shares, strict=True))
        if share is not None
    ]
    return {
        "type": "bar",
        "orientation": "h",
        "name": inert(_short(name)),
        "meta": tone,
        "x": [100 * share for _, _, share in shown],
        "y": [place for place, _, _ in shown],
        "hovertext": [
            f"{inert(row.name[:200])}<br>{inert(_short(name))}: {100 * share:.1f} %"
            for _, row, share in shown
        ],
        "hovertemplate": _HOVER,
    }


def _short(text: str) -> str:
    words = text or "(no name)"
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"
