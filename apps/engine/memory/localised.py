"""Where a fact that failed was lost: the layers between telling and answering.

It rests on exact values in recorded inputs and outputs alone. The last place where the
value provably did not pass is named; a later layer may fail too. Where inputs are not
recorded the answer is that it cannot be told.
"""

from __future__ import annotations

from typing import Final

import msgspec

from apps.engine.memory.layers import Layer, LayerStep, agent_of
from apps.engine.memory.passages import Passages
from apps.engine.memory.recall import MOST_STEPS, Place
from apps.engine.trace import Step, StepKind, Trace

_UNSEEN: Final = (
    " The input of the answer is not recorded whole, so it may have stood there too."
)


class Loss(msgspec.Struct, frozen=True):
    """Where a fact was lost, the steps (`seq`) that it rests on, whose it is, and why."""

    place: Place
    steps: tuple[int, ...]
    agent: str
    why: str


class Need(msgspec.Struct, frozen=True):
    """The step (`seq`) that needs a fact, and those of the turn that should give it."""

    step: int
    answers: tuple[int, ...]


def localised(seen: Passages, need: Need) -> Loss:
    """Where a fact that an answer did not give back was lost. Never raises."""
    answer = _answering(seen, need)
    given = None if answer is None else seen.given_to(answer)
    if answer is not None and given:
        return _loss(
            seen.trace,
            Place.IGNORED,
            (answer,),
            f"The input of step {_at(answer)}, which answers, holds it; the answer "
            "does not give it.",
        )
    end = need.step if answer is None else answer.seq
    layers = [layer for layer in seen.layers if layer.step.seq < end]
    return (
        _not_passed_on(seen, need, answer, layers)
        or _by_layers(seen, need, answer, layers)
        or _cannot_tell(seen, answer, layers)
    )


def _answering(seen: Passages, need: Need) -> Step | None:
    """The last step of the turn in which a model says something, else the last."""
    steps = [step for step in map(seen.step, need.answers) if step is not None]
    said = [step for step in steps if step.kind is StepKind.MODEL_CALL]
    found = said or steps
    return found[-1] if found else None


def _not_passed_on(
    seen: Passages,
    need: Need,
    answer: Step | None,
    layers: list[LayerStep],
) -> Loss | None:
    """An agent of the same turn that was given the fact and did not hand it on."""
    if answer is None or seen.given_to(answer) is None:
        return None
    summaries = {each.step.seq for each in layers if each.layer is Layer.SUMMARY}
    for step in reversed([seen.step(seq) for seq in need.answers]):
        if step is None or step.kind is not StepKind.MODEL_CALL:
            continue
        if step.invocation == answer.invocation or step.seq in summaries:
            continue
        if seen.given_to(step) and seen.said_by(step) is False:
            return _loss(
                seen.trace,
                Place.IGNORED,
                (step, answer),
                f"The input of step {_at(step)} holds it; neither its answer nor the "
                f"input of step {_at(answer)}, which answers, does.",
            )
    return None


class _Trail(msgspec.Struct):
    """What one memory is known to hold: the step that shows it, or how it was lost."""

    holder: LayerStep | None = None
    lost: tuple[Place, tuple[LayerStep, ...]] | None = None


def _by_layers(
    seen: Passages,
    need: Need,
    answer: Step | None,
    layers: list[LayerStep],
) -> Loss | None:
    trails: dict[str, _Trail] = {}
    is_erased = False
    for layer in layers:
        if layer.layer is Layer.ERASE:
            trails.clear()
            is_erased = True
        elif layer.layer is not Layer.READ:
            _follow(trails.setdefault(layer.key, _Trail()), layer, seen)
    is_seen = answer is not None and seen.given_to(answer) is False
    holders = [trail.holder for trail in trails.values() if trail.holder is not None]
    if holders:
        last = max(holders, key=lambda each: each.step.seq)
        return _not_retrieved(seen, need, answer if is_seen else None, last, layers)
    lost = [trail.lost for trail in trails.values() if trail.lost is not None]
    if not lost or is_erased:
        return None
    place, steps = max(lost, key=lambda each: each[1][-1].step.seq)
    return _loss(
        seen.trace,
        place,
        tuple([each.step for each in steps]),
        _how_lost(place, steps) + ("" if is_seen else _UNSEEN),
    )


def _follow(trail: _Trail, layer: LayerStep, seen: Passages) -> None:
    """Note what one step of a memory says about the fact."""
    kept = seen.kept(layer)
    if kept:
        trail.holder, trail.lost = layer, None
    elif layer.layer is Layer.STORE:
        _not_written(trail, layer, seen, is_known=kept is not None)
    elif kept is None:
        trail.holder = trail.lost = None
    elif layer.layer is Layer.STATE and trail.holder is not None:
        trail.lost = (Place.DROPPED_BY_SUMMARISER, (trail.holder, layer))
        trail.holder = None
    else:
        _not_kept(trail, layer, seen)


def _not_written(
    trail: _Trail, layer: LayerStep, seen: Passages, *, is_known: bool
) -> None:
    """A write adds to a memory: one that does not hold the fact takes nothing away."""
    if trail.holder is not None:
        return
    if not is_known:
        trail.lost = None
    elif trail.lost is not None:
        place, steps = trail.lost
        trail.lost = (place, (*steps, layer)[:MOST_STEPS])
    elif seen.taken(layer):
        trail.lost = (Place.NEVER_STORED, (layer,))


def _not_kept(trail: _Trail, layer: LayerStep, seen: Passages) -> None:
    """A summary or a state without the fact; it matters where the fact went in."""
    taken = seen.taken(layer)
    before = () if trail.holder is None else (trail.holder,)
    if taken and layer.layer is Layer.STATE:
        trail.lost = (Place.NEVER_STORED, (layer,))
    elif taken or (before and taken is None):
        trail.lost = (Place.DROPPED_BY_SUMMARISER, (*before, layer))
    elif before:
        trail.lost = None
    trail.holder = None


def _not_retrieved(
    seen: Passages,
    need: Need,
    answer: Step | None,
    holder: LayerStep,
    layers: list[LayerStep],
) -> Loss | None:
    """Memory holds the fact, and neither a look-up nor the answer's input does.

    `answer` is `None` where its input is not recorded.
    """
    since = max(seen.asked_from(need.step), holder.step.seq)
    reads = [
        layer
        for layer in layers
        if layer.layer is Layer.READ and layer.step.seq > since
    ]
    missed = [read for read in reads if seen.kept(read) is False]
    if answer is None and (not missed or len(missed) < len(reads)):
        return None
    why = f"Step {_at(holder.step)} stores it"
    if missed:
        why += f"; the look-up in step {_at(missed[-1].step)} does not return it"
    if answer is not None:
        why += f"; the input of step {_at(answer)}, which answers, does not hold it"
    steps = [holder.step, *[read.step for read in missed[-1:]]]
    steps += [] if answer is None else [answer]
    dropped = missed[-1].step if missed else answer
    return Loss(
        Place.NOT_RETRIEVED,
        tuple([step.seq for step in steps]),
        "" if dropped is None else agent_of(seen.trace, dropped),
        f"{why}." + ("" if answer is not None else _UNSEEN),
    )


def _how_lost(place: Place, steps: tuple[LayerStep, ...]) -> str:
    last = steps[-1]
    if place is Place.NEVER_STORED:
        places = ", ".join(str(_at(each.step)) for each in steps)
        what = "does not hold it" if len(steps) == 1 else "do not hold it"
        noun = "step" if len(steps) == 1 else "steps"
        return f"What was stored in {noun} {places} {what}, though it had been given."
    if len(steps) == 2:
        return (
            f"What was kept in step {_at(steps[0].step)} holds it; what was kept in "
            f"step {_at(last.step)} does not."
        )
    return f"What went into step {_at(last.step)} holds it; what came out does not."


def _cannot_tell(seen: Passages, answer: Step | None, layers: list[LayerStep]) -> Loss:
    if answer is None:
        return Loss(Place.CANNOT_TELL, (), "", "No answering step is recorded.")
    steps = [answer]
    given = seen.given_to(answer)
    if given is None:
        why = (
            f"The input of step {_at(answer)}, which answers, is not recorded whole, "
            "and no recorded layer shows where it was lost."
        )
    else:
        why = f"The input of step {_at(answer)}, which answers, does not hold it"
        last = seen.last_given(answer.seq)
        if last is not None:
            steps.insert(0, last)
            why += f"; the input of step {_at(last)} was the last one that did"
        why += (
            ". What the recorded memory steps show does not settle where it was lost."
            if layers
            else ". No memory or summary step is recorded in between."
        )
    return _loss(seen.trace, Place.CANNOT_TELL, tuple(steps), why)


def _loss(trace: Trace, place: Place, steps: tuple[Step, ...], why: str) -> Loss:
    """A loss that belongs to the agent of the last step, or of the first if ignored."""
    whose = steps[0] if place is Place.IGNORED else steps[-1]
    return Loss(place, tuple([step.seq for step in steps]), agent_of(trace, whose), why)


def _at(step: Step) -> int:
    """The number of a step as people see it."""
    return step.seq + 1
