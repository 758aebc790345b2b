"""Making targets and changing what they are set to."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec
from django.db import IntegrityError, transaction

from apps.agents.models import Agent
from apps.engine.replay.run import TargetKind
from apps.replays.models import Target, TargetVersion
from apps.replays.sealing import CannotSeal, forget_secret, secret_of
from apps.replays.target_settings import Allowed, WrongTarget, decoded_settings

MOST_TARGETS: Final = 100
LONGEST_NAME: Final = 120


def _name(text: str) -> str:
    words = " ".join(text.replace("\x00", "").split())
    if not words or len(words) > LONGEST_NAME:
        raise WrongTarget(
            f"A target needs a name of 1 to {LONGEST_NAME} characters.", field="name"
        )
    return words


def _taken(name: str) -> WrongTarget:
    return WrongTarget(
        f"This agent has a target with the name “{name}” already.", field="name"
    )


class NewTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A target that is to be made: its name, kind and what it is set to."""

    name: str
    kind: TargetKind
    settings: dict[str, Any]


def add_target(
    *, agent: Agent, new: NewTarget, allowed: Allowed, user_id: int, now: datetime
) -> Target:
    """A new target of an agent with its first version; raises `WrongTarget`."""
    name = _name(new.name)
    settings = msgspec.to_builtins(decoded_settings(new.kind, new.settings, allowed))
    try:
        with transaction.atomic():
            if Target.objects.filter(agent=agent).count() >= MOST_TARGETS:
                raise WrongTarget(f"An agent may have at most {MOST_TARGETS} targets.")
            target = Target.objects.create(
                project_id=agent.project_id,
                agent=agent,
                name=name,
                kind=new.kind.value,
                created_by_id=user_id,
                created_at=now,
            )
            TargetVersion.objects.create(
                target=target,
                number=1,
                settings=settings,
                created_by_id=user_id,
                created_at=now,
            )
    except IntegrityError:
        raise _taken(name) from None
    return target


def change_target(
    *,
    target: Target,
    settings: dict[str, Any],
    allowed: Allowed,
    user_id: int,
    now: datetime,
) -> TargetVersion:
    """Set a target to something else from now on; the same settings change nothing.

    Where the address changes its secret is forgotten, so that it is never sent
    elsewhere than where it was meant for. Raises `WrongTarget`.
    """
    decoded = decoded_settings(TargetKind(target.kind), settings, allowed)
    wanted: dict[str, Any] = msgspec.to_builtins(decoded)
    with transaction.atomic():
        Target.objects.select_for_update(no_key=True).get(pk=target.pk)
        newest = current_version(target.pk)
        if newest.settings == wanted:
            return newest
        if _is_elsewhere(newest.settings, wanted):
            forget_secret(target=target)
        return TargetVersion.objects.create(
            target=target,
            number=newest.number + 1,
            settings=wanted,
            created_by_id=user_id,
            created_at=now,
        )


def _is_elsewhere(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return any(one.get(field) != other.get(field) for field in ("url", "base_url"))


def secret_for(*, target_id: int, settings: dict[str, Any], now: datetime) -> str:
    """The secret for a call of a target as it was set to, "" where it has none.

    Raises:
        CannotSeal: It cannot be read, or it is for another address than this one.
    """
    secret = secret_of(target_id, now=now)
    if secret and _is_elsewhere(current_version(target_id).settings, settings):
        raise CannotSeal(
            "The address of this target has changed since the batch was planned, and its "
            "secret is for the new one. Plan a new batch."
        )
    return secret


def current_version(target_id: int) -> TargetVersion:
    """What a target is set to now. One query."""
    return TargetVersion.objects.filter(target_id=target_id).latest("number")


def rename_target(*, target: Target, name: str) -> None:
    """Give a target another name; raises `WrongTarget` where it is taken."""
    words = _name(name)
    try:
        with transaction.atomic():
            Target.objects.filter(pk=target.pk).update(name=words)
    except IntegrityError:
        raise _taken(words) from None


def retire_target(*, target: Target, is_retired: bool) -> None:
    """Put a target away, with its secret forgotten, or take it back.

    What was run with it stays. Raises `WrongTarget` where another one has its name by
    now.
    """
    try:
        with transaction.atomic():
            if is_retired:
                forget_secret(target=target)
            Target.objects.filter(pk=target.pk).update(is_retired=is_retired)
    except IntegrityError:
        raise _taken(target.name) from None
