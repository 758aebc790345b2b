"""Which failed calls are tried again, when, and with what sentence one gives up.

Only the kind of an error decides. A status that was returned and an error that stands
in the body of a good status are one thing. Source of the jitter: "Exponential Backoff
And Jitter" of the AWS Architecture Blog (full jitter); of Retry-After: RFC 9110, 10.2.3.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final

import msgspec

from apps.engine.reading.json_words import visible
from apps.engine.replay.run import ErrorKind, ModelCalled, RunError

_TOLD: Final = 300
_SECONDS: Final = re.compile(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*")
_NO_QUOTA: Final = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
)
_LIMITED: Final = frozenset(
    {"rate_limit_exceeded", "rate_limit_error", "too_many_requests", "rate_limited"}
)
_OVERLOADED: Final = frozenset(
    {"overloaded", "overloaded_error", "server_overloaded", "service_unavailable",
     "engine_overloaded"}
)  # fmt: skip
_RETRIED: Final = frozenset(
    {ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED, ErrorKind.CONNECTION}
)
_NOT_BILLED: Final = frozenset(
    {
        ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED, ErrorKind.NOT_ALLOWED,
        ErrorKind.REFUSED,
    }
)  # fmt: skip


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long is tried. All times are seconds.

    `tries` counts all tries of one call, `connection_tries` those of which the
    connection broke. The back-off is chance between 0 and `first` * 2^n, at most
    `longest`. A target that asks for more than `longest_asked` is given up.
    """

    tries: int = 5
    connection_tries: int = 3
    first: float = 0.5
    longest: float = 30.0
    longest_asked: float = 120.0


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """The seconds that a target asks to wait, from its headers in small letters.

    `now` is seconds since the Unix epoch, for those that give a date. A date that is
    past is 0; what is no time is `None`.
    """
    if (found := _SECONDS.fullmatch(headers.get("retry-after-ms", ""))) is not None:
        return float(found[1]) / 1_000
    given = headers.get("retry-after", "")
    if (found := _SECONDS.fullmatch(given)) is not None:
        return float(found[1])
    if not given or len(given) > 64:
        return None
    try:
        when = parsedate_to_datetime(given)
        seconds = when.replace(tzinfo=when.tzinfo or UTC).timestamp() - now
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def error_in(body: Any) -> tuple[int | None, str, str]:
    """The status, code and words of an error that stands in a body.

    `(None, "", "")` where none does. A stream's error event is read as well.
    """
    if not isinstance(body, dict):
        return None, "", ""
    error = body.get("error") or _error_of_choice(body)
    if isinstance(error, str) and error:
        return None, "", error
    if body.get("type") == "error" and not isinstance(error, dict):
        error = body
    if not isinstance(error, dict) or not error:
        return None, "", ""
    codes = [error.get(key) for key in ("code", "status", "type")]
    status = next((_status_in(one) for one in codes if _status_in(one)), None)
    code = next((one for one in codes if isinstance(one, str) and one != "error"), "")
    words = error.get("message")
    return status, code, words if isinstance(words, str) else code or "no reason given"


def _error_of_choice(body: dict[str, Any]) -> Any:
    """A gateway writes the error of a provider that broke off into the choice."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first.get("error") if isinstance(first, dict) else None


def _status_in(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[45]\d\d", value):
        value = int(value)
    is_status = isinstance(value, int) and not isinstance(value, bool)
    return value if is_status and 400 <= value < 600 else None


def failure_of(
    status: int, headers: Mapping[str, str], body: Any, *, now: float, is_model: bool
) -> RunError | None:
    """What is wrong with an answer by its status and the error in its body.

    `None` for a good one. `headers` have names in small letters and secrets have been
    masked in all of them. Of a model endpoint an inner error (500) is taken for a
    passing one, of an agent for its own.
    """
    inner, code, words = error_in(body)
    is_good = 200 <= status < 300
    if is_good and not words:
        return None
    told = _told(words)
    if 300 <= status < 400:
        return RunError(
            kind=ErrorKind.REFUSED,
            sentence=f"The target answered with a redirect ({status}); redirect refused.",
        )
    kind = _kind(inner if is_good else status, code, is_model=is_model)
    if kind in {ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED}:
        asked = retry_after(headers, now=now)
        return RunError(
            kind=kind, sentence=_busy(kind, status) + told, retry_after=asked
        )
    if kind is ErrorKind.NOT_ALLOWED:
        sentence = f"The target does not accept the key ({code or status}): check the key or its quota."
        return RunError(kind=kind, sentence=sentence + told)
    shown = f"status {status}" if not is_good else "an error"
    return RunError(kind=kind, sentence=f"The target answered with {shown}.{told}")


def _kind(status: int | None, code: str, *, is_model: bool) -> ErrorKind:
    low = code.casefold()
    if low in _NO_QUOTA or status in {401, 403}:
        return ErrorKind.NOT_ALLOWED
    if status == 429 or low in _LIMITED:
        return ErrorKind.RATE_LIMITED
    passing = {502, 503, 504, 529, 408} | ({500} if is_model else set())
    if status in passing or low in _OVERLOADED:
        return ErrorKind.OVERLOADED
    return ErrorKind.TARGET


def _busy(kind: ErrorKind, status: int) -> str:
    if kind is ErrorKind.RATE_LIMITED:
        return f"The target limits the rate of calls ({status})."
    return f"The target is overloaded or not ready ({status})."


def _told(words: str) -> str:
    if not words:
        return ""
    plain = " ".join(visible(words).split())
    cut = plain if len(plain) <= _TOLD else plain[: _TOLD - 1] + "\u2026"
    return f' It said: "{cut}"'


def pause_before_retry(
    error: RunError, *, tries: int, patience: Patience, chance: random.Random
) -> float | None:
    """The seconds to wait before the next try, or `None` to give up.

    `tries` is how often this call was tried, this failure included.
    """
    if error.kind not in _RETRIED:
        return None
    most = patience.tries
    if error.kind is ErrorKind.CONNECTION:
        most = min(most, patience.connection_tries)
    if tries >= most:
        return None
    asked = error.retry_after
    if asked is not None and asked > patience.longest_asked:
        return None
    backoff = min(patience.longest, patience.first * 2.0 ** min(tries - 1, 30))
    return (asked or 0.0) + chance.uniform(0.0, backoff)


def gave_up(error: RunError, *, tries: int, patience: Patience) -> RunError:
    """The error with which a call ends that is not tried again."""
    if error.kind not in _RETRIED:
        return error
    asked = error.retry_after
    if asked is not None and asked > patience.longest_asked:
        why = (
            f"Gave up: it asks to wait {asked:,.0f} seconds, longer than "
            f"{patience.longest_asked:,.0f}."
        )
    else:
        why = f"Gave up after {tries:,} {'try' if tries == 1 else 'tries'}."
    return msgspec.structs.replace(error, sentence=f"{error.sentence} {why}")


def may_have_been_billed(event: ModelCalled) -> bool:
    """Whether a try may cost something: all do but those that were turned away."""
    return event.error is None or event.error.kind not in _NOT_BILLED
