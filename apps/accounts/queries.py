"""Reading accounts: the projects of a user, the role of a user, members, tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from django.db.models import QuerySet

from apps.accounts.models import (
    ApiToken,
    Membership,
    PrivacyChange,
    Project,
    User,
)
from apps.accounts.permissions import Role


def digest_of(secret: str) -> str:
    """The SHA-256 hex digest under which a secret is kept."""
    return hashlib.sha256(secret.encode()).hexdigest()


def projects_of(user: User) -> QuerySet[Membership]:
    """The memberships of `user` with their projects, by project name."""
    return (
        Membership.objects.filter(user=user)
        .select_related("project")
        .order_by("project__name", "project_id")
    )


def project_by_slug(slug: str) -> Project | None:
    """The project of this slug, or None."""
    return Project.objects.filter(slug=slug).first()


def privacy_changes_of(project: Project) -> QuerySet[PrivacyChange]:
    """How the privacy settings of `project` were changed, newest first."""
    return (
        PrivacyChange.objects.filter(project=project)
        .select_related("changed_by")
        .order_by("-id")
    )


def membership(*, user: User, slug: str) -> Membership | None:
    """The membership of `user` in the project `slug`, or None for a stranger."""
    return (
        Membership.objects.filter(user=user, project__slug=slug)
        .select_related("project")
        .first()
    )


def members_of(project: Project) -> QuerySet[Membership]:
    """The members of `project` with their users, by name."""
    return (
        Membership.objects.filter(project=project)
        .select_related("user")
        .order_by("user__username")
    )


def link_refusals(*, users: Sequence[User], asked_by: User) -> dict[int, str]:
    """Why `asked_by` may not make a sign-in link for each user, by id; empty if so.

    A link signs in as the whole user. So it is for users without a password, and only
    as long as `asked_by` owns every project that the user could then be seen in.
    """
    owned = Membership.objects.filter(user=asked_by, role=Role.OWNER)
    elsewhere = set(
        Membership.objects.filter(user__in=users)
        .exclude(project__in=owned.values("project"))
        .values_list("user_id", flat=True)
    )

    def sentence(user: User) -> str:
        if user.has_usable_password():
            return f"{user.label} signs in with a password and needs no link."
        if user.pk in elsewhere:
            return (
                f"{user.label} is a member of projects that you do not own; someone "
                "who runs this server can print a link."
            )
        return ""

    return {user.pk: sentence(user) for user in users}


def tokens_of(project: Project) -> QuerySet[ApiToken]:
    """The API tokens of `project`, live ones first, newest first."""
    return (
        ApiToken.objects.filter(project=project)
        .select_related("created_by")
        .order_by("revoked_at", "-id")
    )


def live_token(secret: str) -> ApiToken | None:
    """The token whose secret this is, unless it was revoked."""
    return (
        ApiToken.objects.filter(digest=digest_of(secret), revoked_at=None)
        .select_related("project")
        .first()
    )


def is_recent(moment: datetime | None, *, now: datetime, seconds: int) -> bool:
    """Whether `moment` lies less than `seconds` before `now`."""
    return moment is not None and (now - moment).total_seconds() < seconds
