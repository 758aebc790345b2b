"""Secrets of targets: sealed with a key that is not in the database, written and never read out.

Only a worker opens one, at the moment of a call.
"""

from __future__ import annotations

import base64
from datetime import datetime

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import transaction

from apps.replays.models import Target, TargetSecret

SHORTEST, LONGEST = 6, 4_000


class CannotSeal(ValueError):
    """A secret can be neither kept nor read; the message is a sentence."""


def _sealer() -> MultiFernet:
    keys: list[bytes] = settings.REPLAY_KEYS
    if not keys:
        raise CannotSeal(
            "This site has no key to keep secrets with. The operator sets "
            "EVALSITE_REPLAY_KEY, the same for every process."
        )
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])


def set_secret(*, target: Target, text: str, user_id: int, now: datetime) -> None:
    """Keep a new secret for a target; older ones are emptied. Raises `CannotSeal`."""
    secret = text.strip()
    if not SHORTEST <= len(secret) <= LONGEST:
        raise CannotSeal(
            f"A secret has {SHORTEST} to {LONGEST:,} characters: a shorter one could not "
            "be told from other text where answers repeat it."
        )
    if not secret.isascii() or not secret.isprintable():
        raise CannotSeal("A secret is sent in a header: plain letters and signs only.")
    sealed = _sealer().encrypt(secret.encode())
    with transaction.atomic():
        forget_secret(target=target)
        TargetSecret.objects.create(
            target=target, sealed=sealed, created_by_id=user_id, created_at=now
        )
        Target.objects.filter(pk=target.pk).update(needs_key=False)


def forget_secret(*, target: Target) -> bool:
    """Empty every secret of a target; whether there was one. Their rows stay."""
    kept = TargetSecret.objects.filter(target=target).exclude(sealed=b"")
    return bool(kept.update(sealed=b""))


def newest_secret(target_id: int) -> TargetSecret | None:
    """The row of the secret that counts, None where there is none or it was emptied."""
    rows = TargetSecret.objects.filter(target_id=target_id).exclude(sealed=b"")
    return rows.order_by("-pk").first()


def secret_of(target_id: int, *, now: datetime) -> str:
    """The secret that a target is called with, "" where it has none; notes its use.

    Raises:
        CannotSeal: It was sealed with a key that is not listed any more.
    """
    row = newest_secret(target_id)
    if row is None:
        return ""
    try:
        opened = _sealer().decrypt(bytes(row.sealed)).decode()
    except InvalidToken:
        raise CannotSeal(
            "The secret of this target cannot be read: EVALSITE_REPLAY_KEY does not list "
            "the key that it was sealed with. Enter it again, or put the old key back."
        ) from None
    TargetSecret.objects.filter(pk=row.pk).update(last_used_at=now)
    return opened


def seal_again() -> int:
    """Seal every secret with the newest key; how many. Safe to run twice.

    Raises:
        CannotSeal: One was sealed with a key that is not listed; none was changed.
    """
    sealer = _sealer()
    with transaction.atomic():
        rows = list(TargetSecret.objects.select_for_update().exclude(sealed=b""))
        for row in rows:
            try:
                row.sealed = sealer.rotate(bytes(row.sealed))
            except InvalidToken:
                raise CannotSeal(
                    f"The secret of target {row.target_id} was sealed with a key that "
                    "EVALSITE_REPLAY_KEY does not list. Nothing was changed."
                ) from None
        TargetSecret.objects.bulk_update(rows, ["sealed"])
    return len(rows)
