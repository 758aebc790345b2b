"""Declared facts: one answer for each place of a trace that needs one.

Whether an answer gives a fact back is what the check of planted facts says; here it
gets a distance, a place where it was lost, and an agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from apps.engine.check import Screening
from apps.engine.contracts.fact_spec import FactSpec
from apps.engine.contracts.planted_fact import PlantedFact
from apps.engine.memory.layers import LAYER_NAMES, LayerNames
from apps.engine.memory.localised import Need
from apps.engine.memory.measured import Measure
from apps.engine.memory.recall import MOST_OTHERS, Recall, Source, State, cut
from apps.engine.trace import Trace

_STATES: Final = {
    "recalled": State.RECALLED,
    "lost": State.LOST,
    "contradicted": State.CONTRADICTED,
    "ambiguous": State.AMBIGUOUS,
    "not_planted": State.NOT_TOLD,
    "not_needed": State.NOT_PROBED,
}
_WEIGHT: Final = (State.CONTRADICTED, State.LOST, State.AMBIGUOUS, State.RECALLED)


def memory_of(
    trace: Trace,
    facts: Sequence[tuple[str, FactSpec]],
    names: LayerNames = LAYER_NAMES,
) -> tuple[Recall, ...]:
    """What became of each fact, one answer for each message that needs it.

    A fact that no message needs, or none tells, has one answer. At most 20 messages
    that need one fact are read. Never raises.
    """
    return tuple(
        [recall for key, fact in facts for recall in _recalls(trace, key, fact, names)]
    )


def recall_of(trace: Trace, fact: FactSpec, names: LayerNames = LAYER_NAMES) -> Recall:
    """The answer that weighs most: contradicted, lost, ambiguous, recalled, the rest."""
    found = _recalls(trace, "", fact, names)
    return min(found, key=_weight)


def _weight(recall: Recall) -> int:
    return _WEIGHT.index(recall.state) if recall.state in _WEIGHT else len(_WEIGHT)


def _recalls(trace: Trace, key: str, fact: FactSpec, names: LayerNames) -> list[Recall]:
    check = PlantedFact(slug="fact", label="Fact", version=1, spec=fact)
    found = list(check.run(trace))
    told = next((each.evidence.steps[0] for each in found if each.evidence.steps), None)
    measure = None if told is None else Measure(trace, fact, told, names)
    return [
        _recall(key, fact, screening, measure, number)
        for number, screening in enumerate(found, 1)
    ]


def _recall(
    key: str, fact: FactSpec, screening: Screening, measure: Measure | None, probe: int
) -> Recall:
    state = _STATES.get(screening.reason_code, State.UNDECIDED)
    others = screening.evidence.facts.get("other_candidates", ())
    steps = screening.evidence.steps
    said = Recall(
        fact=key,
        source=Source.DECLARED,
        value=cut(fact.value),
        state=state,
        sentence=screening.reason,
        told_step=steps[0] if steps else None,
        others=tuple([cut(other) for other in others[:MOST_OTHERS]]),
    )
    if measure is None or len(steps) < 2:
        return said
    return measure.of(
        msgspec.structs.replace(said, probe=probe), Need(steps[1], steps[2:])
    )
