"""The totals that a run records, compared with the sum of its calls and never added."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from apps.engine.reading.text_limits import Remarks
from apps.engine.reading.token_counts import Counts, whole_number
from apps.engine.reading.transcript import Draft
from apps.engine.trace import ModelCall, Step

_PARTS: Final = (
    ("total_prompt_tokens", "input"),
    ("total_completion_tokens", "output"),
)


def remark_total(
    remarks: Remarks, whole: str, what: str, *, told: int | None, found: int
) -> None:
    """Remark on a total that is not the sum of the calls; `None` was not recorded.

    `whole` is what records the total ("crew"), `what` is what it counts.
    """
    if told is not None and told != found:
        remarks.add(
            f"The {whole} records {told:,} {what} in all; its calls sum up to {found:,}."
        )


def known_outputs(steps: Iterable[Step | Draft]) -> list[int | None]:
    """Return the output tokens of each model call, `None` where not recorded."""
    calls = [step.call for step in steps]
    return [call.usage.output_total for call in calls if isinstance(call, ModelCall)]


class Sums:
    """Sums of input and output tokens, of the main agent and of all agents."""

    def __init__(self) -> None:
        self._own = {"input": 0, "output": 0}
        self._all = {"input": 0, "output": 0}
        self._known = 0
        self._missing = 0

    def add(self, counts: Counts, owner: int) -> None:
        """Count one call of the invocation `owner`; the main agent is number 0."""
        if counts.output_total is None:
            self._missing += 1
            return
        self._known += 1
        for part, count in (
            ("input", counts.input_total or 0),
            ("output", counts.output_total),
        ):
            self._all[part] += count
            if owner == 0:
                self._own[part] += count

    def compare(self, totals: Any, remarks: Remarks) -> None:
        """Remark on totals that are the sum neither of the main agent nor of all."""
        if not isinstance(totals, dict):
            return
        for key, part in _PARTS:
            told = whole_number(totals.get(key))
            if told is None or told in {self._own[part], self._all[part]}:
                continue
            if self._known == 0:
                remarks.add(f"Only the whole run has {part} tokens: {told}.")
                continue
            lacking = f" ({self._missing} calls have none)" if self._missing else ""
            remarks.add(
                f"The run records {told:,} {part} tokens in all; its calls sum up to "
                f"{self._all[part]:,}{lacking}."
            )
