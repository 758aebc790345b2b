"""Facts that nobody declared: exact values that are told, and used or asked for later.

Only what exact texts prove is said. Recalled: an argument of a tool is the value, and
nobody told it again in between. Contradicted: an argument that held a told value now
holds a slip of it that nobody told, and the call failed. Lost: the agent asks a user
for what the user had told under the same name, and gets the same value again. In every
doubt nothing is said; that nothing is found does not mean that nothing was forgotten.
"""

from __future__ import annotations

from typing import Final

from apps.engine.bodies.effects import words_of
from apps.engine.bodies.texts import texts_of
from apps.engine.contracts.fact_spec import FactSpec
from apps.engine.contracts.mentions import Normaliser
from apps.engine.memory.asked_again import asked_again
from apps.engine.memory.layers import LAYER_NAMES, LayerNames, agent_of
from apps.engine.memory.localised import Need
from apps.engine.memory.measured import Measure
from apps.engine.memory.recall import Recall, Source, State, cut
from apps.engine.memory.stated import Reading, Use, reading_of
from apps.engine.memory.values import is_date, is_slip, tokens_in
from apps.engine.sequences import steps_in_order
from apps.engine.trace import Step, StepKind, ToolCall, Trace

MOST_FOUND: Final = 50
FEWEST_STEPS: Final = 10
MOST_FAILED: Final = 10
_MOST_TRIED: Final = 20
_LAST: Final = 5
_OF_ONE: Final = 262_144
_IDS: Final = frozenset(
    {
        "id", "ids", "number", "no", "code", "key", "ref", "reference", "email", "phone",
        "order", "account", "reservation", "booking", "ticket", "invoice", "serial",
        "iban", "sku", "uuid",
    }
)  # fmt: skip


def detected_reuse(trace: Trace, names: LayerNames = LAYER_NAMES) -> tuple[Recall, ...]:
    """What exact values show of memory in `trace`: failures first, then what was reused.

    A value counts as recalled where at least one message of a user, or at least
    `FEWEST_STEPS` steps, lie between the last time it was told and its use; the use
    that lies furthest is kept. At most `MOST_FOUND` come back. Linear in the texts, of
    which `reading_of` has the bounds. Never raises.
    """
    reading = reading_of(trace)
    if not reading.uses and len(reading.turns) < 2:
        return ()
    failed = _failed(trace, reading, names) if reading.is_whole else []
    of_failed = {recall.value for recall in failed}
    recalled = [
        each for each in _recalled(trace, reading) if each.value not in of_failed
    ]
    return tuple([*failed, *recalled][:MOST_FOUND])


def _recalled(trace: Trace, reading: Reading) -> list[Recall]:
    furthest: dict[str, tuple[tuple[int, int], Use]] = {}
    for use in reading.uses:
        if use.told is None:
            continue
        depth = (use.turn - use.told_turn, use.step.seq - use.told - 1)
        if depth[0] < 1 and depth[1] < FEWEST_STEPS:
            continue
        if use.value not in furthest or depth > furthest[use.value][0]:
            furthest[use.value] = (depth, use)
    ranked = sorted(
        furthest.values(), key=lambda each: (-each[0][0], -each[0][1], each[1].value)
    )
    return [_reused(trace, use, depth) for depth, use in ranked[:MOST_FOUND]]


def _reused(trace: Trace, use: Use, depth: tuple[int, int]) -> Recall:
    told = 0 if use.told is None else use.told
    return Recall(
        fact=use.name,
        source=Source.DETECTED,
        value=cut(use.value),
        state=State.RECALLED,
        sentence=(
            f"“{use.value}” was told in step {told + 1} and is used as “{use.name}” in "
            f"step {use.step.seq + 1}; nobody told it again in between."
        ),
        told_step=use.told,
        needed_step=use.step.seq,
        answer_step=use.step.seq,
        turns_between=depth[0],
        steps_between=depth[1],
        agent=agent_of(trace, use.step),
    )


def _failed(trace: Trace, reading: Reading, names: LayerNames) -> list[Recall]:
    found = []
    for again in asked_again(trace, reading)[:MOST_FAILED]:
        said = Recall(
            fact=again.noun,
            source=Source.DETECTED,
            value=cut(again.value),
            state=State.LOST,
            sentence=(
                f"The user told the {again.noun} “{again.value}” in step "
                f"{again.told + 1}; step {again.asking + 1} asks for it, and the user "
                "tells the same one again."
            ),
            told_step=again.told,
        )
        need = Need(again.asking, (again.asking,))
        found.append(_measured(trace, said, again.value, need, names))
    for use, before in _slips(trace, reading)[:MOST_FAILED]:
        told = 0 if before.told is None else before.told
        said = Recall(
            fact=use.name,
            source=Source.DETECTED,
            value=cut(before.value),
            state=State.CONTRADICTED,
            sentence=(
                f"“{before.name}” was “{before.value}” in step {before.step.seq + 1}, as "
                f"told in step {told + 1}. In step {use.step.seq + 1} it is "
                f"“{use.value}”, which nobody told, and the call failed."
            ),
            told_step=before.told,
            others=(cut(use.value),),
        )
        found.append(_measured(trace, said, before.value, _need_of(use.step), names))
    return found


def _need_of(step: Step) -> Need:
    """A tool call as what needs a value; the model call that asked for it answers."""
    by = step.call.requested_by if isinstance(step.call, ToolCall) else None
    return Need(step.seq, (step.seq,) if by is None else (by, step.seq))


def _measured(
    trace: Trace, said: Recall, value: str, need: Need, names: LayerNames
) -> Recall:
    fact = FactSpec(value=value, probe="-", normaliser=Normaliser.EXACT)
    told = 0 if said.told_step is None else said.told_step
    return Measure(trace, fact, told, names).of(said, need)


def _slips(trace: Trace, reading: Reading) -> list[tuple[Use, Use]]:
    """Uses of a value that nobody told, with the told value that each is a slip of."""
    held: dict[str, list[Use]] = {}
    found = []
    tried = 0
    for use in reading.uses:
        before = held.setdefault(use.name, [])
        if use.told is not None:
            before.append(use)
            del before[:-_LAST]
        elif use.failed and _names_an_id(use) and tried < _MOST_TRIED:
            near = [each for each in before if is_slip(use.value, each.value)]
            tried += bool(near)
            if near and not _stands_before(trace, use):
                found.append((use, near[-1]))
    return found


def _names_an_id(use: Use) -> bool:
    return not _IDS.isdisjoint(words_of(use.name)) and not is_date(use.value)


def _stands_before(trace: Trace, use: Use) -> bool:
    """Whether anything recorded before a use, an agent's own words too, holds its value."""
    for step in steps_in_order(trace):
        if step.seq >= use.step.seq:
            return False
        body = step.body
        if body is None or _is_asking(step, use.step):
            continue
        for value in (body.input, body.output, body.attributes):
            if any(use.value in tokens_in(text) for text in texts_of(value, _OF_ONE)):
                return True
    return False


def _is_asking(step: Step, call: Step) -> bool:
    """Whether a step is the model call that asked for a tool call: it holds its input."""
    if isinstance(call.call, ToolCall) and call.call.requested_by is not None:
        return step.seq == call.call.requested_by
    return step.kind is StepKind.MODEL_CALL and step.seq == call.seq - 1
