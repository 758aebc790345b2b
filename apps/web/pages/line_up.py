"""Which key of a check counts in a project: the part of its page, and its history."""

from __future__ import annotations

from datetime import datetime

import msgspec
from django.http import Http404

from apps.accounts.permissions import Permission
from apps.engine.check import Check
from apps.screening.answering import parameters_in_words
from apps.screening.lineup import Entry, with_stored_parameters
from apps.screening.models import Adoption, CheckState, Shadow, ShadowState
from apps.screening.regression import cases_of
from apps.screening.shadows import shadows_of, versions_here
from apps.traces.behind import behind_count
from apps.traces.models import Trace
from apps.web.access import Place

LAST_ADOPTIONS = 3
MOST_ADOPTIONS = 50
MOST_SHADOWS = 20


class AdoptionRow(msgspec.Struct, frozen=True):
    """One change of the line-up: what, who, when and why; `may_return` to its key."""

    number: int
    what: str
    parameters: str
    who: str
    when: datetime
    note: str
    is_current: bool
    may_return: bool


class ShadowRow(msgspec.Struct, frozen=True):
    """One shadow in a list."""

    shadow: Shadow
    key: str
    tone: str


class LineUpPart(msgspec.Struct, frozen=True):
    """The key that counts, whether it is paused, and what is under way."""

    place: Place
    slug: str
    check: Check
    key: str
    is_paused: bool
    defined_slug: str
    gave_way: str
    newer: Check | None
    behind: int
    traces: int
    running: list[ShadowRow]
    adoptions: list[AdoptionRow]
    cases: int
    refusal: str

    @property
    def caught_up(self) -> int:
        """Traces about which everything that counts has answered."""
        return self.traces - self.behind


def entry_or_404(place: Place, slug: str) -> Entry:
    """The entry of a check in the project's line-up, or 404."""
    entry = place.lineup.by_slug.get(slug)
    if entry is None:
        raise Http404
    return entry


def line_up_part(place: Place, slug: str) -> LineUpPart:
    """What the page of a check says of its place in the line-up, or 404."""
    entry = entry_or_404(place, slug)
    versions = versions_here(place.lineup, slug)
    has_newer = bool(versions) and versions[0].version > entry.check.version
    behind = behind_count(place.project.pk, place.lineup.name)
    running = shadows_of(place.project.pk, slug).filter(state=ShadowState.RUNNING)
    return LineUpPart(
        place=place,
        slug=slug,
        check=entry.check,
        key=parameters_in_words(entry.check),
        is_paused=entry.is_paused,
        defined_slug=entry.defined_slug,
        gave_way=entry.gave_way,
        newer=versions[0] if has_newer else None,
        behind=behind,
        traces=Trace.objects.filter(project=place.project).count() if behind else 0,
        running=[shadow_row(place, one) for one in running],
        adoptions=adoption_rows(place, entry, most=LAST_ADOPTIONS),
        cases=cases_of(place.project.pk, slug=slug).filter(retired_at=None).count(),
        refusal=place.refusal(Permission.MANAGE_CHECKS),
    )


_TONES = {
    ShadowState.RUNNING: "blue",
    ShadowState.DONE: "plain",
    ShadowState.CANCELLED: "",
    ShadowState.FAILED: "red",
    ShadowState.ADOPTED: "green",
}


def shadow_row(place: Place, shadow: Shadow) -> ShadowRow:
    """A shadow with its parameters in words."""
    key = _in_words(place, shadow.check_slug, shadow.check_version, shadow.parameters)
    return ShadowRow(shadow, key, _TONES[ShadowState(shadow.state)])


def shadow_rows(place: Place, slug: str) -> list[ShadowRow]:
    """The last shadows of a check, the newest first."""
    rows = shadows_of(place.project.pk, slug)[:MOST_SHADOWS]
    return [shadow_row(place, one) for one in rows]


def _in_words(
    place: Place, slug: str, version: int, parameters: dict[str, object]
) -> str:
    for check in versions_here(place.lineup, slug):
        if check.version == version:
            return parameters_in_words(with_stored_parameters(check, parameters))
    return ", ".join(f"{name}: {value}" for name, value in parameters.items())


def adoption_rows(place: Place, entry: Entry, *, most: int) -> list[AdoptionRow]:
    """The last changes of a check in the line-up, the newest first."""
    slug = entry.check.slug
    found = list(
        Adoption.objects.filter(project=place.project, check_slug=slug)
        .select_related("adopted_by")
        .order_by("-number")[: most + 1]
    )
    here = {check.version for check in versions_here(place.lineup, slug)}
    before = [*found[1:], None][: len(found)]
    return [
        AdoptionRow(
            number=row.number,
            what=_what(row, earlier),
            parameters=_in_words(place, slug, row.check_version, row.parameters),
            who=row.adopted_by.label if row.adopted_by else "",
            when=row.adopted_at,
            note=row.note,
            is_current=row is found[0],
            may_return=_key(row) != entry.key and row.check_version in here,
        )
        for row, earlier in list(zip(found, before, strict=True))[:most]
    ]


def _key(row: Adoption) -> tuple[str, int, str]:
    return row.check_slug, row.check_version, row.parameters_hash


def _what(row: Adoption, earlier: Adoption | None) -> str:
    if earlier is not None and _key(row) == _key(earlier):
        return "Paused" if row.state == CheckState.PAUSED else "Resumed"
    version = f"Version {row.check_version}"
    return f"{version} adopted" if row.number > 1 else f"{version} from the start"
