"""The keys of a check whose calibration can be looked at."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from django.http import Http404

from apps.screening.calibration import KeyAnswers, keys_that_answered
from apps.screening.lineup import CheckKey
from apps.screening.models import Shadow
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
    shadows = {
        (slug, version, parameters)
        for version, parameters in Shadow.objects.filter(
            project=place.project, check_slug=slug
        ).values_list("check_version", "parameters_hash")
    }
    if entry is not None and all(one.key != entry.key for one in answered):
        answered.insert(0, KeyAnswers(entry.key, 0, 0, 0, 0))
    found = []
    for one in answered:
        state = "earlier"
        if entry is not None and one.key == entry.key:
            state = "paused" if entry.is_paused else "current"
        elif one.key in shadows:
            state = "shadow"
        label = f"v{one.key[1]} · {one.key[2][:6]} · {state}"
        found.append(KeyChoice(one.key, value_of(one.key), label, state, one))
    return sorted(found, key=lambda one: one.state not in {"current", "paused"})
