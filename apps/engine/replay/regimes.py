"""Under which conditions the runs of a batch are repeated, chosen and in words."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from apps.engine.replay.case import Case
from apps.engine.replay.paraphrases import DECLARED, label_of, why_not
from apps.engine.replay.run import Regime, RegimeKind


class RegimesAsked(msgspec.Struct, frozen=True, kw_only=True):
    """What a person chose: temperature 0, sampling, and paraphrases by slug.

    `sampling` are temperatures, `None` for whatever the target does by itself. Each of
    the `declared` wordings is a regime too.
    """

    determinism: bool = True
    sampling: tuple[float | None, ...] = ()
    paraphrases: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()


class Skipped(msgspec.Struct, frozen=True):
    """A paraphrase that does not apply to a case, and why."""

    regime: Regime
    reason: str


def regimes_of(asked: RegimesAsked) -> tuple[Regime, ...]:
    """The regimes in the order in which they are run, each once."""
    found = []
    if asked.determinism:
        found.append(Regime())
    found += [
        Regime(kind=RegimeKind.SAMPLING, temperature=one) for one in asked.sampling
    ]
    slugs = [
        *asked.paraphrases,
        *(f"{DECLARED}{number}" for number in range(1, len(asked.declared) + 1)),
    ]
    found += [Regime(kind=RegimeKind.PARAPHRASE, paraphrase=slug) for slug in slugs]
    return tuple(dict.fromkeys(found))


def applicable(
    case: Case, regimes: Sequence[Regime], *, declared: Sequence[str] = ()
) -> tuple[tuple[Regime, ...], tuple[Skipped, ...]]:
    """The regimes that a case can be run in, and those that leave it as it is.

    Raises `LookupError` for a paraphrase that does not exist.
    """
    taken, skipped = [], []
    for regime in regimes:
        reason = (
            why_not(case, regime.paraphrase, declared=declared)
            if regime.kind is RegimeKind.PARAPHRASE
            else ""
        )
        if reason:
            skipped.append(Skipped(regime, reason))
        else:
            taken.append(regime)
    return tuple(taken), tuple(skipped)


def regime_in_words(regime: Regime) -> str:
    """“Temperature 0”, “Temperature 0.7”, or the paraphrase with its temperature."""
    if regime.kind is RegimeKind.PARAPHRASE:
        label = label_of(regime.paraphrase)
        return label if regime.temperature == 0 else f"{label}, {_heat(regime)}"
    return _heat(regime)[:1].upper() + _heat(regime)[1:]


def _heat(regime: Regime) -> str:
    if regime.temperature is None:
        return "the target's own temperature"
    return f"temperature {regime.temperature:g}"
