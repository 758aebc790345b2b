"""The states of an upload and which may follow which. Pure."""

from __future__ import annotations

from enum import StrEnum


class UploadState(StrEnum):
    """Where an upload stands between its last byte and its receipt."""

    RECEIVED = "received"
    READING = "reading"
    DONE = "done"
    FAILED = "failed"


class UploadSource(StrEnum):
    """How the traces of an upload came: in a file, live, or out of a batch of replays."""

    FILE = "file"
    LIVE = "live"
    REPLAY = "replay"


class RawKept(StrEnum):
    """What lies in the store of the bytes of an upload."""

    KEPT = "kept"
    ENCRYPTED = "encrypted"
    UNTIL_READ = "until_read"
    GONE = "gone"


class TaskSource(StrEnum):
    """Who says that traces are trials of one task."""

    FILE = "file"
    INPUT = "input"
    HAND = "hand"


NEXT: dict[UploadState, tuple[UploadState, ...]] = {
    UploadState.RECEIVED: (UploadState.READING,),
    UploadState.READING: (
        UploadState.READING,
        UploadState.DONE,
        UploadState.FAILED,
    ),
    UploadState.DONE: (UploadState.RECEIVED,),
    UploadState.FAILED: (UploadState.RECEIVED,),
}

MAX_TRIES = 3


class NotPossibleNow(Exception):
    """The upload's state does not allow the act; the message is a sentence."""


def check_can_follow(state: UploadState, following: UploadState) -> None:
    """Raise `NotPossibleNow` unless `following` may come after `state`."""
    if following not in NEXT[state]:
        raise NotPossibleNow(
            f"This upload is {state.value}, so it cannot become {following.value}."
        )
