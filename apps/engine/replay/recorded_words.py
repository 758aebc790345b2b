"""The sentences of a run: how it ended, how far it was isolated, what its tools missed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from apps.engine.consistency import counted
from apps.engine.replay.run import UNKNOWN, AnswerSource, Ending, Ran, ToolCalled

_ENDED: Final = {
    Ending.FAILED: "It failed",
    Ending.TIMED_OUT: "It did not end in time",
    Ending.CANCELLED: "It was cancelled",
    Ending.OVER_BUDGET: "It was ended by its budget",
    Ending.STOPPED: "It was stopped",
}
_MOST_NAMED: Final = 3


def notes_of(ran: Ran) -> tuple[str, ...]:
    """What a reader of the run has to know, one sentence each, the most important first."""
    return (*_breaches(ran), *_ending(ran), *_tools(ran), *_isolation(ran))


def _breaches(ran: Ran) -> Iterator[str]:
    breaches = [one for one in ran.effects if one.is_breach]
    if breaches:
        named = ", ".join(
            f"{one.kind.value} {one.what}" for one in breaches[:_MOST_NAMED]
        )
        yield (
            "The agent tried to reach outside of its run "
            f"{counted(len(breaches), 'time')}: {named[:300]}."
        )
    proof = ran.proof
    if proof.input_after and proof.input_after != proof.input_before:
        yield "The agent changed the input that it was given."


def _ending(ran: Ran) -> Iterator[str]:
    if ran.ending is not Ending.FINISHED:
        why = f": {ran.error.sentence.rstrip('.')}" if ran.error is not None else ""
        yield f"{_ENDED[ran.ending]}{why}. It has no decision."


def _tools(ran: Ran) -> Iterator[str]:
    called = [one for one in ran.events if isinstance(one, ToolCalled)]
    misses = [one for one in called if one.answer.source is AnswerSource.MISS]
    if misses:
        names = list(dict.fromkeys(f"`{one.tool}`" for one in misses))
        more = (
            f" and {len(names) - _MOST_NAMED:,} more"
            if len(names) > _MOST_NAMED
            else ""
        )
        yield (
            f"{len(misses):,} of {counted(len(called), 'tool call')} had no prepared "
            f"answer: {', '.join(names[:_MOST_NAMED])}{more}."
        )
    writes = [one for one in called if one.answer.writes]
    if writes:
        yield (
            f"{counted(len(writes), 'call')} of tools that change something "
            f"{'was' if len(writes) == 1 else 'were'} intended and not done."
        )
    left = len(ran.proof.unconsumed)
    if left:
        yield f"{counted(left, 'recorded tool call')} {'was' if left == 1 else 'were'} not made."


def _isolation(ran: Ran) -> Iterator[str]:
    if ran.proof.level == UNKNOWN:
        yield "No record came back: neither isolation nor calls of tools are known."
    else:
        yield f"Isolation level reached: {ran.proof.level or 'not known'}."
    if ran.proof.not_walled:
        open_ends = "; ".join(one.rstrip(".") for one in ran.proof.not_walled)
        yield f"What isolation leaves open: {open_ends}."
