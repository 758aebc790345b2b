"""The verdict of an Inspect sample out of the scores of its scorers.

C is a pass, I and N (no answer) are a fail, P is half. Numbers 0 and 1 are fail and
pass only where the task counts the accuracy of that scorer, else they are a score. Of
several scorers the first one of the task is taken as the end-to-end verdict. Source:
https://inspect.aisi.org.uk/scorers.html
"""

from __future__ import annotations

import json
from typing import Any, Final

from apps.engine.reading.recorded import listed, mapping
from apps.engine.reading.text_limits import LABEL, Remarks
from apps.engine.trace import UNKNOWN_OUTCOME, Outcome, OutcomeKind

_LETTERS: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS: Final = {
    "yes": 1.0, "true": 1.0, "correct": 1.0, "pass": 1.0,
    "no": 0.0, "false": 0.0, "incorrect": 0.0, "fail": 0.0,
}  # fmt: skip
_SEVERAL_VALUES: Final = (
    "The scorer gave several values at once, none of which is the verdict, so the "
    "outcome is not known."
)
_OF_UNIT: Final = {0.0: OutcomeKind.FAIL, 1.0: OutcomeKind.PASS}


class Scorers:
    """The scorers of a task in order, and which of them count an accuracy."""

    def __init__(self, log: dict[str, Any]) -> None:
        self._order: list[str] = []
        self._accurate: set[str] = set()
        evaluation, results = mapping(log.get("eval")), mapping(log.get("results"))
        for scorer in listed(evaluation.get("scorers")) + listed(results.get("scores")):
            name = scorer.get("name") if isinstance(scorer, dict) else None
            if isinstance(name, str):
                self._order.append(name)
                if "accuracy" in _metric_names(scorer.get("metrics")):
                    self._accurate.add(name)

    def outcome(self, scores: Any, remarks: Remarks) -> Outcome:
        """Return the verdict of one sample; unknown where there is none."""
        if not isinstance(scores, dict) or not scores:
            return UNKNOWN_OUTCOME
        name = next((one for one in self._order if one in scores), next(iter(scores)))
        if len(scores) > 1:
            remarks.add(
                f"Of {len(scores)} scorers the first one of the task, {name[:80]}, is "
                "taken as the outcome; all scores are among the labels."
            )
        score = scores[name]
        value = score.get("value") if isinstance(score, dict) else score
        path = f"scores.{name}.value"
        if isinstance(value, dict) and len(value) == 1:
            [(key, value)] = value.items()
            path = f"{path}.{key}"
        return _outcome(
            value, path[:LABEL], counts_accuracy=name in self._accurate, remarks=remarks
        )


def _outcome(
    value: Any, path: str, *, counts_accuracy: bool, remarks: Remarks
) -> Outcome:
    if isinstance(value, dict | list):
        remarks.add(_SEVERAL_VALUES)
        words = json.dumps(value, ensure_ascii=False)
        return Outcome(label=words[:LABEL], source=path)
    if isinstance(value, str):
        known = _LETTERS.get(value, _WORDS.get(value.strip().casefold()))
        if known is None:
            return Outcome(label=value[:LABEL] or None, source=path)
        return _of_unit(known, value, path)
    if not _is_number(value):
        return UNKNOWN_OUTCOME
    if counts_accuracy or isinstance(value, bool):
        return _of_unit(float(value), value, path)
    return Outcome(
        kind=OutcomeKind.SCORE,
        score=float(value),
        label=str(value)[:LABEL],
        source=path,
    )


def _is_number(value: Any) -> bool:
    """Whether a value is a number that can be shown: finite, and not beyond 1e300."""
    if isinstance(value, int | float):
        return abs(value) <= 1e300
    return False


def _of_unit(score: float, told: Any, path: str) -> Outcome:
    return Outcome(
        kind=_OF_UNIT.get(score, OutcomeKind.SCORE),
        score=score,
        out_of=1.0,
        label=str(told)[:LABEL],
        source=path,
    )


def _metric_names(metrics: Any) -> set[str]:
    """Return the bare names of metrics, which stand as a list, a list of lists or keys."""
    found: set[str] = set()
    waiting = [metrics]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, dict) and isinstance(one.get("name"), str):
            found.add(one["name"].rsplit("/", 1)[-1])
        elif isinstance(one, dict):
            waiting.extend(one.values())
    return found
