"""How far apart telling and needing lie, where a failed fact was lost, and whose it is."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import msgspec

from apps.engine.contracts.conversation import turns
from apps.engine.contracts.fact_spec import FactSpec
from apps.engine.memory.layers import LayerNames, agent_of
from apps.engine.memory.localised import Need, localised
from apps.engine.memory.passages import Passages, Telling
from apps.engine.memory.recall import MOST_STEPS, Place, Recall
from apps.engine.sequences import steps_in_order
from apps.engine.trace import StepKind, Trace


class Measure:
    """Measures what became of one fact that was told in step `told` of a trace."""

    def __init__(
        self, trace: Trace, fact: FactSpec, told: int, names: LayerNames
    ) -> None:
        self._trace = trace
        self._steps = steps_in_order(trace)
        self._places = [step.seq for step in self._steps]
        self._asked = [turn.step for turn in turns(trace) if turn.asked]
        self._told = told
        after = bisect_right(self._asked, told)
        until = self._asked[after] if after < len(self._asked) else self._end()
        telling = Telling(fact.value, fact.normaliser, told, until)
        self._seen = Passages(trace, telling, names)

    def of(self, recall: Recall, need: Need) -> Recall:
        """The recall with its distance and agent, and with its place where it failed."""
        answer = self._answer(need)
        measured = msgspec.structs.replace(
            recall,
            needed_step=need.step,
            answer_step=answer,
            turns_between=_between(self._asked, self._told, need.step),
            steps_between=_between(self._places, self._told, need.step),
            agent=self._agent(answer),
        )
        if not recall.is_failure:
            return measured
        loss = localised(self._seen, need)
        return msgspec.structs.replace(
            measured,
            place=loss.place,
            place_steps=loss.steps[:MOST_STEPS],
            why=loss.why,
            agent=measured.agent if loss.place is Place.CANNOT_TELL else loss.agent,
        )

    def _end(self) -> int:
        return self._places[-1] + 1 if self._places else 0

    def _answer(self, need: Need) -> int | None:
        """The last step of the answering turn in which a model says something."""
        steps = [self._seen.step(seq) for seq in need.answers]
        said = [s.seq for s in steps if s is not None and s.kind is StepKind.MODEL_CALL]
        found = said or list(need.answers)
        return found[-1] if found else None

    def _agent(self, answer: int | None) -> str:
        step = self._seen.step(answer)
        return "" if step is None else agent_of(self._trace, step)


def _between(places: list[int], start: int, end: int) -> int:
    """How many of the sorted `places` lie strictly between two others."""
    return max(0, bisect_left(places, end) - bisect_right(places, start))
