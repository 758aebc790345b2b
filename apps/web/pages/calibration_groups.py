"""How often a check fired in each group of traces, beside all other traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from apps.accounts.models import Project
from apps.engine.calibration import NO_TRACES, Rate, group_rates, rate
from apps.engine.calibration import GroupRate as Compared
from apps.engine.traits import TRAIT_WORDS, Trait
from apps.review.calibration import Groups, Said
from apps.screening.calibration import GroupKind, GroupRate
from apps.traces.models import TraceSet, Upload
from apps.web.pages.calibration_words import (
    FEWEST,
    RangeMark,
    points_in_words,
    range_mark,
    rate_in_words,
    share_in_words,
)
from apps.web.pages.uploads import FORMAT_LABELS
from apps.web.words import percent_in_words

# What people ask first of a check that looks at how outputs end.
_FIRST: Final = (
    Trait.CONVERGED,
    Trait.CAPPED,
    Trait.RETRIED,
    Trait.USAGE_MISSING,
    Trait.MODEL_SWITCHED,
)
SHOWN: Final = (
    (GroupKind.TRAIT, "How the trace went"),
    (GroupKind.MODEL, "Model"),
    (GroupKind.AGENT, "Agent"),
    (GroupKind.DOMAIN, "Domain"),
    (GroupKind.FORMAT, "Format"),
    (GroupKind.UPLOAD, "Upload"),
    (GroupKind.SET, "Set made by hand"),
)
_FOUND: Final = {
    GroupKind.TRAIT: "Read from the recording; a trace has many of them.",
    GroupKind.MODEL: "Every model that a trace names.",
    GroupKind.AGENT: "The agent of the sequence that was looked at.",
    GroupKind.FORMAT: "What the file was recognised as.",
    GroupKind.UPLOAD: "The latest ones.",
    GroupKind.SET: "Groups that people named.",
}


class GroupLine(msgspec.Struct, frozen=True):
    """One group: its rate, how far it is from the rest, what reviewers said in it."""

    name: str
    rate: Rate
    share: str
    mark: RangeMark | None
    is_few: bool
    difference: str
    q: str
    stands_out: bool
    queued: int
    said: str


class GroupTable(msgspec.Struct, frozen=True):
    """The groups of one kind; `found` says where they come from, `more` what is left."""

    label: str
    found: str
    lines: list[GroupLine]
    more: int


class GroupsPart(msgspec.Struct, frozen=True):
    """All groups, and how many comparisons the q-values are corrected for."""

    tables: list[GroupTable]
    compared: int
    upload_names: dict[str, str]


def groups_part(
    project: Project, rates: Sequence[GroupRate], said: Groups
) -> GroupsPart:
    """The groups of one key as tables; groups of fewer than five are not compared."""
    whole = next((one for one in rates if one.kind is GroupKind.ALL), None)
    if whole is None:
        return GroupsPart([], 0, {})
    shown = {kind for kind, _ in SHOWN}
    listed = [one for one in rates if one.kind in shown]
    compared = group_rates(
        {
            f"{one.kind}/{one.name}": (one.signals, one.applicable)
            for one in listed
            if FEWEST <= one.applicable <= whole.applicable - FEWEST
        },
        whole=(whole.signals, whole.applicable),
    )
    names = _names(project, listed)
    lines = _Lines(
        names=names,
        said=said,
        compared={one.group: one for one in compared},
    )
    tables = [
        lines.table(kind, label, [one for one in listed if one.kind is kind])
        for kind, label in SHOWN
    ]
    return GroupsPart(
        tables=[table for table in tables if table.lines],
        compared=sum(one.q is not None for one in compared),
        upload_names={
            name: words
            for (kind, name), words in names.items()
            if kind is GroupKind.UPLOAD
        },
    )


class _Lines:
    """Puts the numbers of groups into words."""

    def __init__(
        self,
        *,
        names: Mapping[tuple[GroupKind, str], str],
        said: Groups,
        compared: Mapping[str, Compared],
    ) -> None:
        self._names = names
        self._said = said
        self._compared = compared

    def table(
        self, kind: GroupKind, label: str, groups: Sequence[GroupRate]
    ) -> GroupTable:
        """The groups of one kind, those that people ask for first."""
        if kind is GroupKind.TRAIT:
            groups = sorted(groups, key=_place_of_trait)
        lines = [self._line(group) for group in groups]
        found = _FOUND.get(kind, "") or _where_domains_stand(groups)
        more = groups[0].of_kind - len(groups) if groups else 0
        return GroupTable(label=label, found=found, lines=lines, more=more)

    def _line(self, group: GroupRate) -> GroupLine:
        inside = rate(group.signals, group.applicable, nothing=NO_TRACES)
        compared = self._compared.get(f"{group.kind}/{group.name}")
        difference, q = _comparison(compared)
        said = self._said.get((group.kind, group.name), Said())
        return GroupLine(
            name=self._names[group.kind, group.name],
            rate=inside,
            share=share_in_words(inside),
            mark=range_mark(inside),
            is_few=group.applicable < FEWEST,
            difference=difference,
            q="" if q is None else percent_in_words(q),
            stands_out=q is not None and q <= 0.05,
            queued=group.queued,
            said=rate_in_words(rate(said.confirmed, said.decided)),
        )


def _comparison(compared: Compared | None) -> tuple[str, float | None]:
    """The difference from the rest in words, and its q."""
    against = compared.against_rest if compared else None
    if compared is None or against is None or against.difference is None:
        return "", None
    return points_in_words(against.difference, against.interval), compared.q


def _place_of_trait(group: GroupRate) -> tuple[int, int, str]:
    first = list(_FIRST)
    place = first.index(Trait(group.name)) if group.name in first else len(first)
    return place, -group.applicable, group.name


def _where_domains_stand(groups: Sequence[GroupRate]) -> str:
    keys = sorted({group.name.partition(": ")[0] for group in groups})
    return f"Found in the metadata of traces under {', '.join(keys)}." if keys else ""


def _names(
    project: Project, groups: Sequence[GroupRate]
) -> dict[tuple[GroupKind, str], str]:
    """How each group is called on the page; two queries."""

    def ids(kind: GroupKind) -> list[int]:
        return [int(one.name) for one in groups if one.kind is kind]

    uploads = dict(
        Upload.objects.filter(
            project=project, pk__in=ids(GroupKind.UPLOAD)
        ).values_list("pk", "name")
    )
    sets = dict(
        TraceSet.objects.filter(project=project, pk__in=ids(GroupKind.SET)).values_list(
            "pk", "name"
        )
    )
    named: dict[GroupKind, Mapping[str, str]] = {
        GroupKind.UPLOAD: {str(pk): name for pk, name in uploads.items()},
        GroupKind.SET: {str(pk): name for pk, name in sets.items()},
        GroupKind.TRAIT: {str(trait): text for trait, text in TRAIT_WORDS.items()},
        GroupKind.FORMAT: FORMAT_LABELS,
    }
    return {
        (one.kind, one.name): named.get(one.kind, {}).get(one.name, one.name)
        for one in groups
    }
