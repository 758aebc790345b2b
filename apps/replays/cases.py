"""Keeping cases: frozen from a trace, read from a file, or written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
import zstandard
from django.db import transaction

from apps.agents.models import Agent
from apps.engine.replay.case import Case, case_hash
from apps.replays.models import CaseSource, ReplayCase
from apps.traces.models import Trace

MOST_CASES: Final = 10_000
LARGEST: Final = 4 * 1024**2
LONGEST_NAME: Final = 200
_LONGEST_SHOWN: Final = 300
_decode: Final = msgspec.json.Decoder(Case).decode


class WrongCase(ValueError):
    """What was given is no case that can be kept; the message is a sentence."""


class UnreadCase(WrongCase):
    """A stored case that this version cannot read; the message says which and why."""


class Kept(msgspec.Struct, frozen=True):
    """A case that is kept, and whether it was new."""

    case: ReplayCase
    is_new: bool


class Origin(msgspec.Struct, frozen=True):
    """Where cases came from: a trace and the number of an invocation in it, if any."""

    source: CaseSource
    trace: Trace | None = None
    invocation: int | None = None


def keep_cases(
    *,
    agent: Agent,
    cases: Sequence[Case],
    origin: Origin,
    user_id: int | None,
    now: datetime,
) -> list[Kept]:
    """Keep cases of an agent; the same content is kept once and taken back if retired.

    Raises `WrongCase` where one is too large or there are too many; none is kept then.
    """
    rows = [_row(agent, case, origin, user_id, now) for case in cases]
    with transaction.atomic():
        Agent.objects.select_for_update(no_key=True).get(pk=agent.pk)
        held = ReplayCase.objects.filter(agent=agent)
        known = {
            row.hash: row for row in held.filter(hash__in=[one.hash for one in rows])
        }
        if held.count() + len(rows) - len(known) > MOST_CASES:
            raise WrongCase(f"An agent may have at most {MOST_CASES:,} cases.")
        return [_keep(row, known) for row in rows]


def _keep(row: ReplayCase, known: dict[str, ReplayCase]) -> Kept:
    found = known.get(row.hash)
    if found is not None:
        if found.is_retired:
            found.is_retired = False
            found.save(update_fields=["is_retired"])
        return Kept(found, is_new=False)
    row.save()
    known[row.hash] = row
    return Kept(row, is_new=True)


def _row(
    agent: Agent, case: Case, origin: Origin, user_id: int | None, now: datetime
) -> ReplayCase:
    content = msgspec.json.encode(case)
    if len(content) > LARGEST:
        raise WrongCase(
            f"The case “{_named(case)}” has {len(content):,} bytes; a case has at most "
            f"{LARGEST:,}."
        )
    return ReplayCase(
        project_id=agent.project_id,
        agent=agent,
        name=_named(case),
        content=zstandard.compress(content),
        hash=case_hash(case),
        shown=shown_input(case.input),
        recorded_calls=len(case.calls),
        source=origin.source.value,
        trace=origin.trace,
        invocation=origin.invocation,
        created_by_id=user_id,
        created_at=now,
    )


def _named(case: Case) -> str:
    words = " ".join(case.name.replace("\x00", "").split())
    return words[:LONGEST_NAME] or shown_input(case.input)[:60] or "unnamed case"


def shown_input(value: Any) -> str:
    """How an input begins, for people: one line of 300 characters at most."""
    text = value if isinstance(value, str) else _as_text(value)
    words = " ".join(text.replace("\x00", "�").split())
    return words if len(words) <= _LONGEST_SHOWN else words[: _LONGEST_SHOWN - 1] + "…"


def _as_text(value: Any) -> str:
    return "" if value is None else msgspec.json.encode(value).decode()


def case_of(row: ReplayCase) -> Case:
    """The case as the engine knows it; raises `UnreadCase`."""
    try:
        return _decode(stored_text(row))
    except (msgspec.DecodeError, zstandard.ZstdError, RecursionError) as error:
        raise UnreadCase(
            f"The case “{row.name}” (number {row.pk}) cannot be read by this version of "
            f"Evalsite: {str(error).rstrip('.')}. Freeze it anew, or take its stored "
            "text from the download of cases; it is kept."
        ) from None


def stored_text(row: ReplayCase) -> bytes:
    """The JSON text of a case as it is stored, read or not."""
    return zstandard.decompress(bytes(row.content))


def rename_case(*, case: ReplayCase, name: str) -> None:
    """Give a case another name; raises `WrongCase`."""
    words = " ".join(name.replace("\x00", "").split())
    if not words or len(words) > LONGEST_NAME:
        raise WrongCase(f"A case needs a name of 1 to {LONGEST_NAME} characters.")
    ReplayCase.objects.filter(pk=case.pk).update(name=words)


def retire_case(*, case: ReplayCase, is_retired: bool) -> None:
    """Put a case away or take it back; what was run with it stays.

    What was run with one that is put away counts in no verdict: the caller has the
    project scored anew.
    """
    ReplayCase.objects.filter(pk=case.pk).update(is_retired=is_retired)
