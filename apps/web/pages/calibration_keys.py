"""The keys of a check whose calibration can be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from django.db.models import QuerySet
from django.http import Http404

from apps.screening.calibration import KeyAnswers, keys_that_answered
from apps.screening.lineup import CheckKey
from apps.screening.models import Adoption, Shadow
from apps.web.access import Place


class KeyChoice(msgspec.Struct, frozen=True):
    """One key that can be looked at; `state` is current, paused, shadow or earlier."""

    key: CheckKey
    value: str
    label: str
    state: str
    answers: KeyAnswers


def value_of(key: CheckKey) -> str:
    """A key as an address names it: `2-0f3a...`."""
    return f"{key[1]}-{key[2]}"


def asked_for(choices: Sequence[KeyChoice], value: str) -> KeyChoice | None:
    """The choice that an address names, or None."""
    return next((one for one in choices if one.value == value), None)


def key_choices(place: Place, slug: str) -> list[KeyChoice]:
    """The keys that can be chosen: the current one, then the newest versions first.

    Raises `Http404` for a check that is neither in the line-up nor has ever answered.
    """
    entry = place.lineup.by_slug.get(slug)
    answered = keys_that_answered(project=place.project, check_slug=slug)
    if entry is None and not answered:
        raise Http404
    if entry is not None and all(one.key != entry.key for one in answered):
        answered.insert(0, KeyAnswers(entry.key, 0, 0, 0, 0))
    adopted = _parameters(Adoption.objects.filter(project=place.project), slug)
    shadowed = _parameters(Shadow.objects.filter(project=place.project), slug)
    known = shadowed | adopted
    if entry is not None:
        known[entry.key] = dict(entry.check.parameters)
    names = _names_that_differ([known[o.key] for o in answered if o.key in known])
    found = []
    for one in answered:
        state = "shadow" if one.key in shadowed.keys() - adopted.keys() else "earlier"
        if entry is not None and one.key == entry.key:
            state = "paused" if entry.is_paused else "current"
        parts = [f"v{one.key[1]}", _told_apart(one.key, known, names), state]
        label = " · ".join(part for part in parts if part)
        found.append(KeyChoice(one.key, value_of(one.key), label, state, one))
    return sorted(found, key=lambda one: one.state not in {"current", "paused"})


def _parameters(
    rows: QuerySet[Adoption] | QuerySet[Shadow], slug: str
) -> dict[CheckKey, dict[str, Any]]:
    """The parameters of each key of a check that stands in rows of a line-up."""
    values = rows.filter(check_slug=slug).values_list(
        "check_version", "parameters_hash", "parameters"
    )
    return {(slug, version, hashed): given for version, hashed, given in values}


def _names_that_differ(known: Sequence[dict[str, Any]]) -> list[str]:
    """The parameters of which not all keys have the same value."""
    names = sorted({name for given in known for name in given})
    return [
        name
        for name in names
        if any(one.get(name) != known[0].get(name) for one in known[1:])
    ]


def _told_apart(
    key: CheckKey, known: dict[CheckKey, dict[str, Any]], names: Sequence[str]
) -> str:
    """What tells a key apart from the others: its own values, or its hash."""
    if key not in known:
        return key[2][:6]
    told = [f"{name.replace('_', ' ')} {known[key].get(name)}" for name in names]
    return ", ".join(told)[:80]
