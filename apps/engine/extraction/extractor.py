"""What an agent decided in one trace, as one text that is compared between trials.

It is not claimed that a decision is right, only that this is what the declared rule
finds. What was not found stays a state of its own, so that it is counted.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, Final

import msgspec

from apps.engine.bodies.canonical import canonical
from apps.engine.bodies.recorded import NO_BODIES
from apps.engine.conduct import Conduct, InvocationConduct
from apps.engine.extraction.asked import finder
from apps.engine.extraction.found import DecisionState, Found
from apps.engine.extraction.normalisers import Normalised
from apps.engine.extraction.redactions import WHY_REDACTED, is_redacted
from apps.engine.extraction.spec import AUTOMATIC, DecisionSpec, Which

LONGEST_SHOWN: Final = 300
LONGEST_VALUE: Final = 4_000
_WORST: Final = (
    DecisionState.FAILED,
    DecisionState.MISSING,
    DecisionState.NO_BODIES,
    DecisionState.NOT_COMPARED,
)


class Extracted(msgspec.Struct, frozen=True):
    """What an agent decided in one trace.

    `value` is canonical JSON text after the normalisers and the thing that is
    compared: equal values are equal decisions. It is "" unless the state is decided;
    beyond 4,000 characters its end is a hash of all of it. `shown` is the same for
    people, one line of at most 300 characters. `how` is a sentence: by which rule it
    was found, or why there is none. `step` is the `seq` of the step that holds it.
    """

    state: DecisionState
    value: str = ""
    shown: str = ""
    how: str = ""
    step: int | None = None

    @property
    def is_decided(self) -> bool:
        """Whether there is a decision that can be compared."""
        return self.state is DecisionState.DECIDED


class Extractor:
    """A definition made ready once, for the conducts of many traces."""

    def __init__(self, spec: DecisionSpec) -> None:
        self.spec = spec
        self._find = finder(spec)

    def extracted(self, conduct: Conduct) -> Extracted:
        """What the agent decided in the invocation that counts, or in each of them.

        Where each counts, the value is the list of their decisions in order, and one
        invocation without a decision leaves none. Never raises for recorded values.
        """
        invocations = conduct.invocations
        if self.spec.of is Which.EACH and len(invocations) > 1:
            return self._of_each(invocations)
        at = 0 if self.spec.of is Which.FIRST else -1
        return self._settled([self._found(invocations[at])], is_list=False)

    def of_invocation(self, one: InvocationConduct) -> Extracted:
        """What was decided in one invocation alone."""
        return self._settled([self._found(one)], is_list=False)

    def _of_each(self, invocations: tuple[InvocationConduct, ...]) -> Extracted:
        found = [self._found(one) for one in invocations]
        for state in _WORST:
            without = [one for one in found if one.state is state]
            if without:
                counted = f"{len(without)} of {len(found)} invocations"
                how = f"No decision in {counted}: {without[0].how}"
                return Extracted(state, how=how, step=without[0].step)
        return self._settled(found, is_list=True)

    def _found(self, one: InvocationConduct) -> Found:
        if not one.has_bodies:
            return Found(DecisionState.NO_BODIES, NO_BODIES)
        found = self._find(one)
        is_decided = found.state is DecisionState.DECIDED
        if one.has_failed and not (is_decided and found.stands):
            return Found(
                DecisionState.FAILED,
                f"The run failed ({one.status}) and had not decided.",
                step=found.step,
            )
        if not is_decided and _kept_nothing(one):
            return Found(DecisionState.NO_BODIES, "No body of its steps was kept.")
        if is_decided and is_redacted(canonical(found.value)):
            return Found(DecisionState.MISSING, WHY_REDACTED, step=found.step)
        if one.has_failed:
            how = f"{found.how} The run failed ({one.status}) all the same."
            return msgspec.structs.replace(found, how=how)
        return found

    def _settled(self, found: list[Found], *, is_list: bool) -> Extracted:
        first = found[0]
        if first.state is not DecisionState.DECIDED:
            return Extracted(first.state, how=first.how, step=first.step)
        normalised = Normalised(self.spec.normalisers)
        values = [normalised.value(one.value) for one in found]
        value = values if is_list else values[0]
        raw = [one.value for one in found] if is_list else first.value
        how = " ".join(dict.fromkeys([*(one.how for one in found), *normalised.notes]))
        return Extracted(
            state=DecisionState.DECIDED,
            value=_bounded(canonical(value)),
            shown=_shown(raw),
            how=how,
            step=found[-1].step,
        )


@lru_cache(maxsize=256)
def extractor(spec: DecisionSpec) -> Extractor:
    """The extractor of a decoded definition; the same one for an equal definition."""
    return Extractor(spec)


def extracted(conduct: Conduct, spec: DecisionSpec = AUTOMATIC) -> Extracted:
    """What an agent decided in one trace, by a decoded definition."""
    return extractor(spec).extracted(conduct)


def _kept_nothing(one: InvocationConduct) -> bool:
    """Whether nothing of this invocation was kept, though of others it was."""
    return one.output is None and all(step.body is None for step in one.steps)


def _bounded(text: str) -> str:
    if len(text) <= LONGEST_VALUE:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return f"{text[: LONGEST_VALUE - 80]}… sha256:{digest}"


def _shown(value: Any) -> str:
    """A value on one line for people: tool calls as calls, texts without quotes."""
    if isinstance(value, dict) and set(value) == {"tool", "arguments"}:
        text = f"{value['tool']} {canonical(value['arguments'])}"
    else:
        text = value if isinstance(value, str) else canonical(value)
    line = " ".join(text[: 8 * LONGEST_SHOWN].split())
    line = "".join(char if char.isprintable() else "\ufffd" for char in line)
    is_cut = len(line) > LONGEST_SHOWN or len(text) > 8 * LONGEST_SHOWN
    return line[: LONGEST_SHOWN - 1] + "…" if is_cut else line
