"""What a batch was planned with and what was estimated before it started, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from apps.engine.replay.estimates import Estimate
from apps.engine.replay.paraphrases import DECLARED, label_of
from apps.replays.models import Batch
from apps.web.pages.replay_words import LEVELS, regime_words, seconds_in_words
from apps.web.words import number_in_words

_STUBS: Final = {
    "recorded": "recordings with the same arguments",
    "in_order": "recordings in order",
    "static": "a declared value",
    "expression": "an expression over the arguments",
    "handler": "a handler",
}
_MISSES: Final = {
    "error": "an error",
    "empty": "nothing",
    "stop": "nothing, and the run ends there",
}


class Planned(msgspec.Struct, frozen=True):
    """Facts about a plan, the sentence of its estimate and what was not known then."""

    facts: list[tuple[str, str]]
    estimate: str
    unknown: list[str]
    wordings: list[tuple[str, str]]


def planned_of(batch: Batch) -> Planned:
    """What was frozen with a batch, in words."""
    estimate = _estimate(batch.estimate)
    return Planned(
        facts=list(_facts(batch)),
        estimate="" if estimate is None else estimate.sentence,
        unknown=[] if estimate is None else list(estimate.unknown),
        wordings=[
            (label_of(slug) if slug.startswith(DECLARED) else slug, text)
            for slug, text in batch.plan.get("paraphrases", {}).items()
        ],
    )


def _estimate(value: Mapping[str, Any]) -> Estimate | None:
    known = {name: value[name] for name in Estimate.__struct_fields__ if name in value}
    try:
        return msgspec.convert(known, Estimate)
    except msgspec.ValidationError:
        return None


def _facts(batch: Batch) -> Iterator[tuple[str, str]]:
    plan: Mapping[str, Any] = batch.plan
    settings: Mapping[str, Any] = batch.target_version.settings
    yield (
        "Target",
        f"{batch.target_version.target}, version {batch.target_version.number}",
    )
    if model := settings.get("model"):
        yield "Model", str(model)
    yield "Runs", f"{number_in_words(plan.get('repeats'))} of each case and regime"
    regimes = [regime_words(one) for one in plan.get("regimes", ())]
    if regimes and not plan.get("memory"):
        yield "Regimes", "; ".join(regimes)
    yield from _stubs(plan.get("stubs", {}))
    yield "Limits of one run", _limits(plan.get("limits", {}))
    least = plan.get("least_isolation")
    if least:
        yield "Least isolation", LEVELS.get(least, str(least))
    yield "At once", f"{number_in_words(batch.concurrency)} runs at most"
    yield "Prices", _price(plan.get("price"))


def _stubs(stubs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    default = stubs.get("default", {}).get("kind", "recorded")
    yield "Tools answer with", _STUBS.get(default, str(default))
    own = [
        f"{name}: {_STUBS.get(one.get('kind', 'recorded'), one.get('kind'))}"
        for name, one in stubs.get("tools", {}).items()
    ]
    if own:
        yield "Other tools", "; ".join(own[:20])
    misses = stubs.get("misses", "error")
    yield "Unknown calls get", _MISSES.get(misses, str(misses))


def _limits(limits: Mapping[str, Any]) -> str:
    parts = []
    if "seconds" in limits:
        parts.append(seconds_in_words(limits["seconds"]))
    for name, words in (("model_calls", "model calls"), ("tool_calls", "tool calls")):
        if name in limits:
            parts.append(f"{number_in_words(limits[name])} {words}")
    return ", ".join(parts) or "none declared"


def _price(price: Mapping[str, str] | None) -> str:
    if not price:
        return "not known, so no cap of money can hold"
    return " ".join(
        f"{money_in_words_of(price.get(side))} for a million {side} tokens,"
        for side in ("input", "output")
    ).rstrip(",")


def money_in_words_of(amount: str | None) -> str:
    """A price as it is stored."""
    return "not known" if amount is None else str(amount)
