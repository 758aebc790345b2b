"""Which metadata are ground truth: expected answers, and where a run went wrong.

They came with a file for people who score it. They belong to the labels of a trace,
where no check and no masked reviewer meets them.
"""

from __future__ import annotations

from typing import Any, Final

_KEYS: Final = frozenset(
    {
        "expected", "expected_output", "expectedoutput", "expected_answer",
        "expectedanswer", "expected_result", "ground_truth", "groundtruth", "gold",
        "gold_answer", "reference_answer", "reference_output", "reference_outputs",
        "mistake_agent", "mistake_step", "mistake_reason",
    }
)  # fmt: skip


def parted(facts: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what may be shown with a trace, and what is ground truth about it."""
    labels = {key: item for key, item in facts.items() if key.casefold() in _KEYS}
    if not labels:
        return facts, {}
    return {key: item for key, item in facts.items() if key not in labels}, labels
