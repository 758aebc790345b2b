"""What becomes of signals when another key of a check counts, or none of it is queued.

A decision is never lost: a decided signal keeps its decision and its evidence. What
nobody decided follows the line-up: it is shown with the answer that counts now, opened,
superseded or opened again. Each change is told in the signal's history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, QuerySet, prefetch_related_objects

from apps.engine.check import Answer, Level
from apps.review.models import HistoryEntry, Signal
from apps.review.ranking import FACT_RANK
from apps.review.transitions import Act, SignalState, following
from apps.screening.answering import key_in_words
from apps.screening.lineup import LineUp
from apps.screening.models import Screening

Fingerprint = tuple[int, str, str, str]
"""What a decision belongs to: trace, check, scope, hash of what the check read."""

_CHANGED = (
    "screening",
    "check_version",
    "agent",
    "chance",
    "q",
    "rank",
    "effect",
    "length",
    "usage_missing",
    "headline",
    "state",
    "version",
    "claimed_by",
    "claimed_until",
)
_LATE = ("evidence",)


def fingerprint(screening: Screening) -> Fingerprint:
    """The fingerprint of an answer: two keys that read the same of a scope share it."""
    return (
        screening.trace_id,
        screening.check_slug,
        screening.scope,
        screening.input_hash,
    )


def settle(
    *, trace_ids: Sequence[int], lineup: LineUp, now: datetime
) -> dict[int, int]:
    """Bring the signals of these traces in line with `lineup`; counts them per trace.

    Runs inside the caller's transaction, after every check of the line-up has answered
    about the traces. Locks their signals. Superseded signals are not counted. Safe to
    run twice: the second time changes nothing.
    """
    queued = _queued(trace_ids, lineup)
    signals = locked_signals(trace_ids, answers=Screening.objects.defer(*_LATE))
    settling = _Settling(lineup, now, told=_last_told(signals))
    settling.sort_out(signals, queued)
    settling.write()
    standing = Counter(
        signal.trace_id for signal in signals if signal.state != SignalState.SUPERSEDED
    )
    standing.update(screening.trace_id for screening in settling.opened)
    return {trace_id: standing[trace_id] for trace_id in trace_ids}


def locked_signals(
    trace_ids: Sequence[int], *, answers: QuerySet[Screening] | None = None
) -> list[Signal]:
    """The signals of these traces with their answers, locked in the order of ids.

    `answers` says which columns of the answers are read; all by default. Two queries.
    """
    # Not by a join: a row that changes while its lock is waited for is joined with what
    # stood before, and may then be left out of the result.
    rows = Signal.objects.select_for_update().filter(trace_id__in=trace_ids)
    signals = list(rows.order_by("pk"))
    prefetch_related_objects(
        signals,
        Prefetch("screening", Screening.objects.all() if answers is None else answers),
    )
    return signals


def _queued(trace_ids: Sequence[int], lineup: LineUp) -> list[Screening]:
    active = LineUp([one for one in lineup.entries if not one.is_paused])
    return list(
        Screening.objects.filter(
            active.current(),
            trace_id__in=trace_ids,
            answer=Answer.SIGNAL,
            level=Level.REVIEW_SIGNAL,
        )
        .defer(*_LATE)
        .order_by("pk")
    )


def _last_told(signals: Iterable[Signal]) -> dict[int, str]:
    """What the history of each signal says last of another key, by signal id."""
    rows = (
        HistoryEntry.objects.filter(signal__in=signals, act=Act.ADOPTED.value)
        .order_by("signal_id", "-base_version")
        .distinct("signal_id")
    )
    return dict(rows.values_list("signal_id", "note"))


class _Settling:
    """Sorts the signals of some traces, and writes what changed in a few statements."""

    def __init__(self, lineup: LineUp, now: datetime, *, told: dict[int, str]) -> None:
        self._lineup = lineup
        self._now = now
        self._told = told
        self._words: dict[str, str] = {}
        self._pointed: dict[int, Signal] = {}
        self._changed: dict[int, Signal] = {}
        self._lines: list[HistoryEntry] = []
        self.opened: list[Screening] = []

    def sort_out(self, signals: Sequence[Signal], queued: Sequence[Screening]) -> None:
        """Match signals and queued answers by fingerprint."""
        there: dict[Fingerprint, list[Signal]] = {}
        for signal in signals:
            there.setdefault(fingerprint(signal.screening), []).append(signal)
        matched: set[int] = set()
        for screening in queued:
            found = there.get(fingerprint(screening))
            if not found:
                self.opened.append(screening)
                continue
            signal = min(found, key=lambda one: _preference(one, screening))
            matched.add(signal.pk)
            self._stands(signal, screening)
        for signal in signals:
            if signal.pk not in matched:
                self._falls(signal)

    def _stands(self, signal: Signal, screening: Screening) -> None:
        """The line-up queues an answer with this signal's fingerprint."""
        is_same = signal.screening_id == screening.pk
        key = self._key_in_words(signal.check_slug)
        if signal.state == SignalState.DECIDED:
            note = f"{key} counts now and gives this signal too. The decision stays."
            if not is_same or signal.pk in self._told:
                self._tell_once(signal, note)
        elif signal.state == SignalState.SUPERSEDED:
            self._point(signal, screening)
            self._tell(
                signal, Act.REOPENED, f"{key} counts now and gives this signal again."
            )
        elif not is_same:
            self._point(signal, screening)
            self._tell(
                signal,
                Act.ADOPTED,
                f"{key} counts now and gives this signal too; what is shown is its "
                "answer.",
            )

    def _falls(self, signal: Signal) -> None:
        """The line-up queues nothing with this signal's fingerprint."""
        entry = self._lineup.by_slug.get(signal.check_slug)
        if signal.state == SignalState.DECIDED:
            if entry is not None and not entry.is_paused:
                key = self._key_in_words(signal.check_slug)
                self._tell_once(
                    signal,
                    f"{key} counts now and gives no signal here. The decision stays.",
                )
        elif signal.state != SignalState.SUPERSEDED:
            if entry is None:
                why = "This check does not count in this project any more."
            elif entry.is_paused:
                why = f"{entry.check.label} is paused, so nothing of it is queued."
            else:
                key = self._key_in_words(signal.check_slug)
                why = f"{key} counts now and gives no signal here."
            self._tell(signal, Act.SUPERSEDED, why)

    def _key_in_words(self, slug: str) -> str:
        if slug not in self._words:
            self._words[slug] = key_in_words(self._lineup.by_slug[slug].check)
        return self._words[slug]

    def _point(self, signal: Signal, screening: Screening) -> None:
        signal.screening = screening
        self._pointed[screening.pk] = signal

    def _tell_once(self, signal: Signal, note: str) -> None:
        if self._told.get(signal.pk) != note:
            self._tell(signal, Act.ADOPTED, note)

    def _tell(self, signal: Signal, act: Act, note: str) -> None:
        before = SignalState(signal.state)
        after = following(before, act)
        self._lines.append(
            HistoryEntry(
                signal=signal,
                base_version=signal.version,
                act=act.value,
                at=self._now,
                state_before=before.value,
                state_after=after.value,
                evidence_hash=signal.screening.input_hash,
                note=note,
            )
        )
        signal.state = after
        signal.version += 1
        if after is not SignalState.CLAIMED:
            signal.claimed_by = None
            signal.claimed_until = None
        self._changed[signal.pk] = signal

    def write(self) -> None:
        """Write the changed signals, the new ones, and their lines of history."""
        needed = [*self._pointed, *(one.pk for one in self.opened)]
        rows = Screening.objects.select_related("trace").only(*_SHOWN, "trace__outcome")
        whole = rows.in_bulk(needed) if needed else {}
        for pk, signal in self._pointed.items():
            for name, value in shown(whole[pk]).items():
                setattr(signal, name, value)
        Signal.objects.bulk_update(self._changed.values(), _CHANGED, batch_size=500)
        created = Signal.objects.bulk_create(
            [
                Signal(
                    project_id=one.project_id,
                    screening=whole[one.pk],
                    trace_id=one.trace_id,
                    check_slug=one.check_slug,
                    outcome=whole[one.pk].trace.outcome,
                    created_at=self._now,
                    **shown(whole[one.pk]),
                )
                for one in self.opened
            ]
        )
        self._lines += [
            HistoryEntry(
                signal=signal,
                base_version=-1,
                act=Act.OPENED.value,
                at=self._now,
                state_after=SignalState.OPEN.value,
                evidence_hash=signal.screening.input_hash,
            )
            for signal in created
        ]
        HistoryEntry.objects.bulk_create(self._lines)


_SHOWN = (
    "project_id",
    "trace_id",
    "check_slug",
    "check_version",
    "scope",
    "agent",
    "chance",
    "chance_of_signal",
    "headline",
    "input_hash",
    "evidence",
)


def shown(screening: Screening) -> dict[str, Any]:
    """The columns of a signal that are copies of its answer."""
    evidence: dict[str, Any] = screening.evidence
    has_null = screening.chance is not None and screening.chance_of_signal is not None
    return {
        "check_version": screening.check_version,
        "agent": screening.agent or "",
        "chance": 1.0 if screening.chance is None else screening.chance,
        # None until the next ranking, which finds by it what is not ranked.
        "q": None,
        "rank": screening.chance if has_null else FACT_RANK,
        "effect": evidence.get("effect") or 0.0,
        "length": evidence.get("length") or 0,
        "usage_missing": bool(evidence.get("usage_missing")),
        "headline": screening.headline,
    }


def _preference(signal: Signal, screening: Screening) -> tuple[bool, bool, int]:
    """Of several signals with one fingerprint: decided, then this answer's, then first."""
    return (
        signal.state != SignalState.DECIDED,
        signal.screening_id != screening.pk,
        signal.pk,
    )
