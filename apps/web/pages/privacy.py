"""What the privacy pages need: the rules, the settings in words, their history."""

from __future__ import annotations

from datetime import datetime

import msgspec
from django.conf import settings

from apps.accounts.models import Project, RawBytes
from apps.accounts.permissions import Permission
from apps.accounts.queries import privacy_changes_of
from apps.engine.privacy.rules import by_slug
from apps.traces.storage import raw_policy
from apps.web.access import Place

LINES_OF_HISTORY = 10
_RAW_WORDS = {
    RawBytes.KEPT: "files are kept as they came",
    RawBytes.ENCRYPTED: "files are kept encrypted",
    RawBytes.NOT_KEPT: "files are removed once they are read",
}
_STRUCTURE_WORDS = {
    RawBytes.KEPT: "the structure is kept",
    RawBytes.ENCRYPTED: "the structure is kept, encrypted",
    RawBytes.NOT_KEPT: "nothing is kept once it is read",
}


class PrivacyLine(msgspec.Struct, frozen=True):
    """One change of the settings: who, when, and what has been kept since."""

    who: str
    moment: datetime
    words: str


class PrivacySection(msgspec.Struct, frozen=True):
    """The privacy part of a project's settings."""

    project: Project
    raw_choices: list[tuple[str, str]]
    words: str
    refusal: str
    history: list[PrivacyLine]


class RuleCount(msgspec.Struct, frozen=True):
    """How many secrets one rule replaced in an upload."""

    slug: str
    label: str
    count: int


def rule_counts(redactions: dict[str, int]) -> list[RuleCount]:
    """The counts of an upload by rule, most first; a rule that is gone keeps its slug."""
    rows = [RuleCount(slug, _label(slug), n) for slug, n in redactions.items()]
    return sorted(rows, key=lambda row: (-row.count, row.slug))


def _label(slug: str) -> str:
    try:
        return by_slug(slug).label
    except KeyError:
        return slug


def privacy_in_words(
    *, redact_secrets: bool, structure_only: bool, raw: RawBytes | None
) -> str:
    """What is kept, as one sentence."""
    if structure_only and raw is not None:
        return (
            f"Structure only: no bodies are stored; of files {_STRUCTURE_WORDS[raw]}."
        )
    if structure_only:
        bodies = "Structure only: no bodies are stored"
    elif redact_secrets:
        bodies = "Bodies are stored, secrets in them are replaced"
    else:
        bodies = "Bodies are stored as they came, with any secrets in them"
    if raw is None:
        return bodies + "; files as the site does."
    return f"{bodies}; {_RAW_WORDS[raw]}."


def privacy_section(place: Place) -> PrivacySection:
    """The settings of a project as they are now, and how they came to be."""
    project = Project.objects.get(pk=place.project.pk)
    return PrivacySection(
        project=project,
        raw_choices=_raw_choices(),
        words=privacy_in_words(
            redact_secrets=project.redact_secrets,
            structure_only=project.structure_only,
            raw=raw_policy(project),
        ),
        refusal=place.refusal(Permission.MANAGE_PRIVACY),
        history=_history(project),
    )


def _raw_choices() -> list[tuple[str, str]]:
    """What a project may choose: what the site does, or something stricter."""
    order = list(RawBytes)
    site = RawBytes(settings.RAW_BYTES)
    stricter = order[order.index(site) + 1 :]
    return [
        ("", f"As the site does: {site.label.lower()}"),
        *((one.value, one.label) for one in stricter),
    ]


def _history(project: Project) -> list[PrivacyLine]:
    return [
        PrivacyLine(
            who=change.changed_by.label if change.changed_by else "someone",
            moment=change.changed_at,
            words=privacy_in_words(
                redact_secrets=change.redact_secrets,
                structure_only=change.structure_only,
                raw=RawBytes(change.raw_bytes) if change.raw_bytes else None,
            ),
        )
        for change in privacy_changes_of(project)[:LINES_OF_HISTORY]
    ]
