"""The states of a signal, what a reviewer may say, and which act may follow. Pure."""

from __future__ import annotations

from enum import StrEnum

from django.db import models


class SignalState(models.TextChoices):
    """Where a signal stands in the queue."""

    OPEN = "open", "Open"
    CLAIMED = "claimed", "Claimed"
    DECIDED = "decided", "Decided"
    SUPERSEDED = "superseded", "Superseded"


class Verdict(models.TextChoices):
    """What a reviewer says of a signal."""

    CONFIRM = "confirm", "Confirm"
    DISMISS = "dismiss", "Dismiss"
    NEEDS_EXPERIMENT = "needs_experiment", "Needs experiment"
    CANNOT_TELL = "cannot_tell", "Cannot tell"


class DismissalReason(models.TextChoices):
    """Why a signal is dismissed: the strata by which checks are calibrated."""

    CONVERGED = "converged", "Normal convergence"
    CAPPED = "capped", "Response cap"
    RETRIED = "retried", "Retry or branch grouped in"
    MODEL_CHANGED = "model_changed", "Model changed"
    USAGE_MISSING = "usage_missing", "Usage missing"
    TOO_SENSITIVE = "too_sensitive", "Check too sensitive"
    DUPLICATE = "duplicate", "Duplicate"
    OTHER = "other", "Other"


class FailureKind(models.TextChoices):
    """What kind of failure a confirmed signal points at."""

    RETRIEVAL = "retrieval", "Retrieval"
    REASONING = "reasoning", "Reasoning"
    CAPABILITY = "capability", "Capability"
    TOOL = "tool", "Tool"
    CONTRACT = "contract", "Contract"
    OTHER = "other", "Other"


class Act(StrEnum):
    """Everything that can happen to a signal; each leaves one line of history."""

    OPENED = "opened"
    CLAIMED = "claimed"
    RELEASED = "released"
    EXPIRED = "expired"
    DECIDED = "decided"
    UNDONE = "undone"
    RESCREENED = "rescreened"
    ADOPTED = "adopted"
    SUPERSEDED = "superseded"
    REOPENED = "reopened"
    RETURNED = "returned"


NEXT: dict[tuple[SignalState, Act], SignalState] = {
    (SignalState.OPEN, Act.CLAIMED): SignalState.CLAIMED,
    (SignalState.CLAIMED, Act.RELEASED): SignalState.OPEN,
    (SignalState.CLAIMED, Act.EXPIRED): SignalState.OPEN,
    (SignalState.CLAIMED, Act.DECIDED): SignalState.DECIDED,
    (SignalState.DECIDED, Act.UNDONE): SignalState.CLAIMED,
    # Late spans changed the trace: nobody's claim or decision is touched by that.
    **{(state, Act.RESCREENED): state for state in SignalState},
    # Another key of the check was adopted: what nobody decided follows it.
    **{(state, Act.ADOPTED): state for state in SignalState},
    (SignalState.OPEN, Act.SUPERSEDED): SignalState.SUPERSEDED,
    (SignalState.CLAIMED, Act.SUPERSEDED): SignalState.SUPERSEDED,
    (SignalState.SUPERSEDED, Act.REOPENED): SignalState.OPEN,
    # The experiment that a decision asked for was made: its result wants a look.
    (SignalState.DECIDED, Act.RETURNED): SignalState.OPEN,
}


class NotPossibleNow(Exception):
    """The signal's state does not allow the act; the message is a sentence."""


def following(state: SignalState, act: Act) -> SignalState:
    """The state after `act`; raises `NotPossibleNow` when it may not happen now."""
    try:
        return NEXT[(state, act)]
    except KeyError:
        raise NotPossibleNow(
            f"This signal is {state.label.lower()}, so it cannot be "
            f"{act.value.replace('_', ' ')}."
        ) from None


def check_is_complete(*, verdict: Verdict, reason: str, note: str) -> None:
    """Raise `NotPossibleNow` with a sentence when a decision lacks what it needs."""
    if verdict is not Verdict.DISMISS:
        return
    if reason not in DismissalReason.values:
        raise NotPossibleNow("Choose a reason: why is this signal dismissed?")
    if reason == DismissalReason.OTHER and not note.strip():
        raise NotPossibleNow("“Other” needs a note that says why.")


class BlindVerdict(models.TextChoices):
    """What a reviewer says of a trace without knowing what the checks said."""

    FAILURE = "failure", "Failure"
    NO_FAILURE = "no_failure", "No failure"
    CANNOT_TELL = "cannot_tell", "Cannot tell"
