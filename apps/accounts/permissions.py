"""Who may do what in a project. Each rule is a pair: a sentence and a boolean."""

from __future__ import annotations

from enum import StrEnum

from django.db import models


class Role(models.TextChoices):
    """What a member of a project is, from least to most."""

    VIEWER = "viewer", "Viewer"
    REVIEWER = "reviewer", "Reviewer"
    MAINTAINER = "maintainer", "Maintainer"
    OWNER = "owner", "Owner"


class Permission(StrEnum):
    """An act in a project."""

    VIEW = "view"
    REVIEW = "review"
    MANAGE_SETS = "manage_sets"
    FREEZE_REPORT = "freeze_report"
    UPLOAD = "upload"
    MANAGE_TOKENS = "manage_tokens"
    MANAGE_PRIVACY = "manage_privacy"
    MANAGE_CHECKS = "manage_checks"
    MANAGE_AGENTS = "manage_agents"
    REPLAY = "replay"
    MANAGE_TARGETS = "manage_targets"
    MANAGE_MEMBERS = "manage_members"


LEAST_ROLE: dict[Permission, Role] = {
    Permission.VIEW: Role.VIEWER,
    Permission.REVIEW: Role.REVIEWER,
    Permission.MANAGE_SETS: Role.REVIEWER,
    Permission.FREEZE_REPORT: Role.REVIEWER,
    Permission.UPLOAD: Role.MAINTAINER,
    Permission.MANAGE_TOKENS: Role.MAINTAINER,
    Permission.MANAGE_PRIVACY: Role.MAINTAINER,
    Permission.MANAGE_CHECKS: Role.MAINTAINER,
    Permission.MANAGE_AGENTS: Role.MAINTAINER,
    Permission.REPLAY: Role.REVIEWER,
    Permission.MANAGE_TARGETS: Role.MAINTAINER,
    Permission.MANAGE_MEMBERS: Role.OWNER,
}

_ORDER = list(Role)

_WORDS: dict[Permission, str] = {
    Permission.VIEW: "see this project",
    Permission.REVIEW: "decide signals",
    Permission.MANAGE_SETS: "make and change trace sets",
    Permission.FREEZE_REPORT: "freeze reports",
    Permission.UPLOAD: "upload traces",
    Permission.MANAGE_TOKENS: "manage API tokens",
    Permission.MANAGE_PRIVACY: "change what is kept of traces",
    Permission.MANAGE_CHECKS: "change which checks count",
    Permission.MANAGE_AGENTS: "change agents and their contracts",
    Permission.REPLAY: "keep cases and start replays",
    Permission.MANAGE_TARGETS: "change how agents are run alone",
    Permission.MANAGE_MEMBERS: "manage members",
}


class NotAllowed(Exception):
    """The role does not allow the act; the message is a sentence for a person."""


class Scope(models.TextChoices):
    """What an API token may do."""

    READ = "read", "Read traces, signals and reports"
    UPLOAD = "upload", "Upload traces"
    DEFINE = "define", "Change contracts of agents and what is expected of tasks"
    REPLAY = "replay", "Keep cases and start replays"


def allows(role: str | None, permission: Permission) -> bool:
    """Whether `role` (None for a stranger) is enough for `permission`."""
    if role is None:
        return False
    return _ORDER.index(Role(role)) >= _ORDER.index(LEAST_ROLE[permission])


def refusal(role: str | None, permission: Permission) -> str:
    """The sentence that explains why the act is not allowed; empty when it is."""
    if allows(role, permission):
        return ""
    least = LEAST_ROLE[permission].label.lower()
    yours = f"you are a {Role(role).label.lower()}" if role else "you are not a member"
    if least == Role.OWNER.label.lower():
        return f"Only an owner may {_WORDS[permission]}; {yours}."
    return f"Only a {least} or higher may {_WORDS[permission]}; {yours}."


def check_allowed(role: str | None, permission: Permission) -> None:
    """Raise `NotAllowed` with a sentence unless `role` is enough for `permission`."""
    if sentence := refusal(role, permission):
        raise NotAllowed(sentence)
