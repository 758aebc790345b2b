"""What can happen to a blind look, and what may follow what. Pure."""

from __future__ import annotations

from enum import StrEnum

from apps.review.transitions import NotPossibleNow, SignalState


class BlindAct(StrEnum):
    """Everything that can happen to a blind look; each leaves one line of history."""

    DRAWN = "drawn"
    CLAIMED = "claimed"
    RELEASED = "released"
    EXPIRED = "expired"
    DECIDED = "decided"
    UNDONE = "undone"
    REVEALED = "revealed"
    WITHDRAWN = "withdrawn"


BLIND_NEXT: dict[tuple[SignalState, BlindAct], SignalState] = {
    (SignalState.OPEN, BlindAct.CLAIMED): SignalState.CLAIMED,
    (SignalState.CLAIMED, BlindAct.RELEASED): SignalState.OPEN,
    (SignalState.CLAIMED, BlindAct.EXPIRED): SignalState.OPEN,
    (SignalState.CLAIMED, BlindAct.DECIDED): SignalState.DECIDED,
    (SignalState.DECIDED, BlindAct.UNDONE): SignalState.CLAIMED,
    # Whoever has seen what the checks said is no longer blind: no way back from it.
    (SignalState.DECIDED, BlindAct.REVEALED): SignalState.DECIDED,
    (SignalState.OPEN, BlindAct.WITHDRAWN): SignalState.SUPERSEDED,
    (SignalState.CLAIMED, BlindAct.WITHDRAWN): SignalState.SUPERSEDED,
}

_WORDS = {
    SignalState.OPEN: "open",
    SignalState.CLAIMED: "claimed",
    SignalState.DECIDED: "decided",
    SignalState.SUPERSEDED: "withdrawn",
}


def following(state: SignalState, act: BlindAct) -> SignalState:
    """The state after `act`; raises `NotPossibleNow` when it may not happen now."""
    try:
        return BLIND_NEXT[(state, act)]
    except KeyError:
        raise NotPossibleNow(
            f"This blind look is {_WORDS[state]}, so it cannot be {act.value}."
        ) from None
