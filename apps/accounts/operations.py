"""Writing accounts: projects, members, tokens, one-time sign-in links."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import IntegrityError, transaction
from django.utils.text import slugify

from apps.accounts.models import (
    ApiToken,
    Membership,
    PrivacyChange,
    Project,
    RawBytes,
    SignInLink,
    User,
)
from apps.accounts.permissions import NotAllowed, Role, Scope
from apps.accounts.queries import digest_of, is_recent, link_refusals

LINK_LIFETIME = timedelta(hours=12)


def create_project(
    *, name: str, owner: User, now: datetime, slug: str = "", description: str = ""
) -> Project:
    """Create a project with its first owner; a taken slug gets a number behind it."""
    base = slug or slugify(name)[:50] or "project"
    for number in range(1, 1000):
        candidate = base if number == 1 else f"{base}-{number}"
        try:
            with transaction.atomic():
                project = Project.objects.create(
                    slug=candidate, name=name, description=description, created_at=now
                )
                Membership.objects.create(
                    project=project, user=owner, role=Role.OWNER, created_at=now
                )
        except IntegrityError:
            continue
        return project
    raise NotAllowed(f"There are too many projects called “{name}”; choose a name.")


class PrivacyChoice(NamedTuple):
    """What is kept of traces; `raw_bytes` is None where the site's setting is enough."""

    redact_secrets: bool = True
    structure_only: bool = False
    raw_bytes: RawBytes | None = None


def set_privacy(
    *, project: Project, choice: PrivacyChoice, user: User, now: datetime
) -> bool:
    """Choose what is kept of traces that arrive from now on; whether that was new.

    What is stored already stays as it is. Each change leaves a line of history. Raises
    `NotAllowed` when bytes shall be encrypted and the site has no key.
    """
    raw = choice.raw_bytes
    if raw is RawBytes.ENCRYPTED and not settings.RAW_KEYS:
        raise NotAllowed(
            "This site has no key to encrypt with: set EVALSITE_RAW_KEY first."
        )
    chosen = {**choice._asdict(), "raw_bytes": raw.value if raw else ""}
    with transaction.atomic():
        held = Project.objects.select_for_update().get(pk=project.pk)
        if all(getattr(held, name) == value for name, value in chosen.items()):
            return False
        Project.objects.filter(pk=project.pk).update(**chosen)
        PrivacyChange.objects.create(
            project=project, changed_by=user, changed_at=now, **chosen
        )
    return True


def set_blind_percent(*, project: Project, percent: int) -> bool:
    """Choose which share of new traces is looked at blindly; whether that was new.

    Blind looks that were drawn already stay. Raises `ValueError` with a sentence for
    what is no percentage.
    """
    if not 0 <= percent <= 100:
        raise ValueError("A percentage lies between 0 and 100.")
    changed = Project.objects.filter(pk=project.pk).exclude(blind_percent=percent)
    return changed.update(blind_percent=percent) == 1


def set_role(*, project: Project, user: User, role: Role | None, now: datetime) -> None:
    """Give `user` a role in `project`, or take the membership away with `None`.

    Raises `NotAllowed` when this would leave the project without an owner. Safe to
    run twice.
    """
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        others = Membership.objects.filter(project=project, role=Role.OWNER).exclude(
            user=user
        )
        was_owner = Membership.objects.filter(
            project=project, user=user, role=Role.OWNER
        ).exists()
        if was_owner and role != Role.OWNER and not others.exists():
            raise NotAllowed(
                "A project needs at least one owner: make someone else owner first."
            )
        if role is None:
            Membership.objects.filter(project=project, user=user).delete()
            return
        Membership.objects.update_or_create(
            project=project,
            user=user,
            defaults={"role": role},
            create_defaults={"role": role, "created_at": now},
        )


def add_member(
    *, project: Project, username: str, role: Role, now: datetime
) -> tuple[User, str]:
    """Make the user of this name a member, all or nothing.

    Returns the user and, for a name that is new here, the secret of a sign-in link
    (else an empty string). Raises `NotAllowed` like `set_role`.
    """
    with transaction.atomic():
        user, is_new = User.objects.get_or_create(
            username=User.normalize_username(username),
            defaults={"password": make_password(None)},
        )
        set_role(project=project, user=user, role=role, now=now)
        return user, create_sign_in_link(user=user, now=now) if is_new else ""


def create_token(
    *,
    project: Project,
    name: str,
    scopes: Sequence[Scope],
    user: User,
    now: datetime,
) -> tuple[ApiToken, str]:
    """Create an API token; the secret is returned once and kept nowhere.

    Raises `NotAllowed` when a live token of this name exists or no scope is given.
    """
    if not scopes:
        raise NotAllowed("Choose at least one thing that the token may do.")
    secret = "evs_" + secrets.token_urlsafe(32)
    try:
        with transaction.atomic():
            token = ApiToken.objects.create(
                project=project,
                name=name,
                prefix=secret[:10],
                digest=digest_of(secret),
                scopes=[scope.value for scope in scopes],
                created_by=user,
                created_at=now,
            )
    except IntegrityError as error:
        raise NotAllowed(f"There is a live token called “{name}” already.") from error
    return token, secret


def revoke_token(*, token: ApiToken, now: datetime) -> None:
    """End a token at once. Safe to run twice."""
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now)


def note_token_use(*, token: ApiToken, now: datetime) -> None:
    """Remember when a token was last used, to the minute."""
    if not is_recent(token.last_used_at, now=now, seconds=60):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)


def create_sign_in_link(*, user: User, now: datetime) -> str:
    """Create a one-time sign-in link; returns its secret, which is kept nowhere."""
    secret = secrets.token_urlsafe(32)
    SignInLink.objects.create(
        user=user, digest=digest_of(secret), expires_at=now + LINK_LIFETIME
    )
    return secret


def renew_sign_in_link(*, user: User, asked_by: User, now: datetime) -> str:
    """Create a sign-in link for a member who has no password; returns its secret.

    Raises `NotAllowed` with the sentence of `link_refusals` where that would give the
    asking owner more than this project.
    """
    if sentence := link_refusals(users=[user], asked_by=asked_by)[user.pk]:
        raise NotAllowed(sentence)
    return create_sign_in_link(user=user, now=now)


def use_sign_in_link(*, secret: str, now: datetime) -> User | None:
    """The user of an unused, unexpired link, exactly once; None for any other."""
    live = SignInLink.objects.filter(
        digest=digest_of(secret), used_at=None, expires_at__gt=now, user__is_active=True
    )
    link = live.select_related("user").first()
    if link is None:
        return None
    # Asks the link's own row only: a condition on the user would become a subquery,
    # which PostgreSQL does not ask again after it waited for another use of the link.
    used = SignInLink.objects.filter(pk=link.pk, used_at=None).update(used_at=now)
    return link.user if used == 1 else None
