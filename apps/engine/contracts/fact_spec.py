"""What a planted fact says: the value, where it is told, where it is needed."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from apps.engine.check import Level
from apps.engine.contracts.mentions import Normaliser, normalised, number_in
from apps.engine.contracts.spec import LONGEST_SENTENCE, BadDefinition, in_words

LONGEST_VALUE: Final = 200
LONGEST_MARK: Final = 300
MOST_DECOYS: Final = 20


class FactSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A fact that somebody tells the system, and must be given back later.

    `plant` marks the message that tells it (empty: the first one that names the value)
    and `probe` the later message that needs it; both are texts in it, with `*` for
    anything. `decoys` are other values that would be wrong answers.
    """

    value: str
    probe: str
    plant: str = ""
    normaliser: Normaliser = Normaliser.SPACE
    decoys: tuple[str, ...] = ()
    level: Level = Level.REVIEW_SIGNAL
    sentence: str = ""


def decoded_fact(spec: Any) -> FactSpec:
    """The planted fact in a JSON value; raises `BadDefinition` with field and sentence."""
    try:
        fact = msgspec.convert(spec, FactSpec)
    except (msgspec.ValidationError, RecursionError) as error:
        raise in_words(error) from None
    _refuse_value("value", fact.value, fact.normaliser)
    for name in ("plant", "probe"):
        if len(getattr(fact, name)) > LONGEST_MARK:
            raise BadDefinition(
                f"A mark may have at most {LONGEST_MARK} characters.", field=name
            )
    if not fact.probe.strip(" *?"):
        raise BadDefinition(
            "Say by which words the message that needs the fact is known.",
            field="probe",
        )
    _refuse_decoys(fact)
    if len(fact.sentence) > LONGEST_SENTENCE:
        raise BadDefinition(
            f"The sentence may have at most {LONGEST_SENTENCE} characters.",
            field="sentence",
        )
    return fact


def _refuse_value(field: str, value: str, how: Normaliser) -> None:
    if not any(char.isalnum() for char in value):
        raise BadDefinition("A value needs a letter or a digit.", field=field)
    if len(value) > LONGEST_VALUE:
        raise BadDefinition(
            f"A value may have at most {LONGEST_VALUE} characters.", field=field
        )
    if how is Normaliser.NUMBER and number_in(value) is None:
        raise BadDefinition(f"“{value[:60]}” is not a number.", field=field)


def _refuse_decoys(fact: FactSpec) -> None:
    if len(fact.decoys) > MOST_DECOYS:
        raise BadDefinition(
            f"There may be at most {MOST_DECOYS} decoys.", field="decoys"
        )
    own = normalised(fact.value, fact.normaliser)
    for decoy in fact.decoys:
        _refuse_value("decoys", decoy, fact.normaliser)
        if normalised(decoy, fact.normaliser) == own:
            raise BadDefinition(
                f"“{decoy}” is the value itself, written another way.", field="decoys"
            )
