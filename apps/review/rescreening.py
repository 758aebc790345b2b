"""What becomes of the signals of a trace whose content was replaced.

A signal that a reviewer has ever decided keeps its decision and its evidence, whatever
the checks say now. A signal that still stands keeps its row, its claim and its drafts.
Each change is told in the signal's history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from apps.review.adopting import locked_signals, settle
from apps.review.models import Draft, HistoryEntry, Signal
from apps.review.operations import open_signals, write_rescreened
from apps.review.ranking import first_rank
from apps.review.transitions import Act, SignalState
from apps.screening.answering import answers_of, scope_of
from apps.screening.lineup import LineUp, pin_new_checks
from apps.screening.models import Screening
from apps.screening.operations import (
    Answered,
    StoredScreening,
    answer_key,
    drop_answers,
    evidence_document,
    is_queued,
    mark_screened,
    store_answers,
)
from apps.traces.copying import StoredTrace
from apps.traces.operations import allow_erasing_history

Key = tuple[str, int, str, str]
Part = tuple[str, str]
"""What one signal of a check is about, slug and scope; the keys of a check share it."""
Steps = Mapping[int, int]

LATE_SPANS = "Late spans changed this trace."
READ_AGAIN = "This trace was read again, and its content changed."


def rescreen(
    *,
    project_id: int,
    stored: StoredTrace,
    moved: Steps,
    now: datetime,
    why: str = LATE_SPANS,
) -> int:
    """Answer anew about a replaced trace; returns how many signals it has now.

    Runs inside the caller's transaction. `moved` says where the steps of the old
    content stand in the new one, and `why` what the history says of the change.
    """
    lineup = pin_new_checks(project_id=project_id, now=now)
    renewal = _Renewal(stored, moved, why, lineup)
    renewal.sort_out(locked_signals([stored.trace_id]))
    allow_erasing_history()
    Signal.objects.filter(pk__in=renewal.gone).delete()
    drop_answers(trace_id=stored.trace_id, kept_ids=renewal.kept)
    queued = store_answers(
        project_id=project_id, answered=renewal.to_store(), lineup=lineup
    )
    mark_screened(trace_ids=[stored.trace_id], lineup=lineup)
    new = renewal.repoint(queued)
    open_signals(project_id=project_id, queued=new, now=now)
    # The line-up may have changed since the trace was answered last.
    standing = settle(trace_ids=[stored.trace_id], lineup=lineup, now=now)
    return standing[stored.trace_id]


class _Renewal:
    """Sorts the signals of a trace into kept, changed and gone."""

    def __init__(
        self, stored: StoredTrace, moved: Steps, why: str, lineup: LineUp
    ) -> None:
        self._why = why
        self._lineup = lineup
        self._moved = moved
        self._answers: dict[Part, Answered] = {
            (check.slug, scope_of(answer)): (stored, check, answer)
            for check in lineup.checks
            for answer in answers_of(check, stored.trace)
        }
        self.gone: list[int] = []
        self.kept: list[int] = []
        self._kept_keys: set[Key] = set()
        self._taken: set[Part] = set()
        self._changed: dict[Part, Signal] = {}

    def sort_out(self, signals: Sequence[Signal]) -> None:
        """Decide for each signal what becomes of it."""
        ids = [signal.pk for signal in signals]
        decided = set(
            HistoryEntry.objects.filter(
                signal_id__in=ids, act=Act.DECIDED.value
            ).values_list("signal_id", flat=True)
        )
        drafted = set(
            Draft.objects.filter(signal_id__in=ids).values_list("signal_id", flat=True)
        )

        # Of several about one part the first one speaks for it.
        def place(signal: Signal) -> tuple[bool, bool]:
            return signal.pk not in decided, signal.state == SignalState.SUPERSEDED

        for signal in sorted(signals, key=place):
            part = signal.check_slug, signal.screening.scope
            found = self._answers.get(part)
            stands = found is not None and is_queued(found, self._lineup)
            if found and stands and self._is_same(signal.screening, found):
                self._keep(signal)
            elif signal.pk in decided:
                self._keep_decision(signal, part, found)
            elif stands and part not in self._taken:
                self._changed[part] = signal
                self._taken.add(part)
            elif signal.state == SignalState.CLAIMED or signal.pk in drafted:
                self._keep(signal)
                _tell(signal, f"{self._why} {_NO_LONGER}")
            else:
                self.gone.append(signal.pk)

    def _keep_decision(
        self, signal: Signal, part: Part, found: Answered | None
    ) -> None:
        """A decision stays; what another key says of the very same is not new."""
        self._keep(signal)
        if found and found[2].input_hash == signal.screening.input_hash:
            self._taken.add(part)
        else:
            _tell(signal, f"{self._why} {_after_a_decision(found)}")

    def _is_same(self, old: Screening, found: Answered) -> bool:
        """Whether the evidence is the same but for the places of its steps."""
        _, check, answer = found
        encoded = msgspec.json.encode(evidence_document(check, answer))
        now: dict[str, Any] = msgspec.json.decode(encoded)
        then = _readdressed(old.evidence, self._moved)
        return bool(_without_blanks(then) == _without_blanks(now))

    def _keep(self, signal: Signal) -> None:
        screening = signal.screening
        self.kept.append(screening.pk)
        self._kept_keys.add(_key(screening))
        entry = self._lineup.by_slug.get(screening.check_slug)
        if entry is not None and entry.key == _key(screening)[:3]:
            self._taken.add((screening.check_slug, screening.scope))
        evidence = _readdressed(screening.evidence, self._moved)
        if evidence != screening.evidence:
            Screening.objects.filter(pk=screening.pk).update(evidence=evidence)

    def to_store(self) -> list[Answered]:
        """The answers that take the place of those that are dropped."""
        return [
            answered
            for answered in self._answers.values()
            if answer_key(answered[1], answered[2]) not in self._kept_keys
        ]

    def repoint(self, queued: Sequence[StoredScreening]) -> list[StoredScreening]:
        """Give the changed signals their new answers; returns those that are new."""
        new = []
        for item in queued:
            part = item.check.slug, scope_of(item.screening)
            signal = self._changed.get(part)
            if signal is None:
                if part not in self._taken:
                    new.append(item)
                continue
            before = signal.headline
            _point_at(signal, item)
            # Also where the last line says just that: only this saves the signal.
            write_rescreened(
                signal, note=f"{self._why} The evidence is new. Before: {before}"
            )
        return new


_NO_LONGER = (
    "The check gives no signal here any more; the evidence shown is that of before."
)


def _after_a_decision(found: Answered | None) -> str:
    kept = "The decision and its evidence stay as they were; the check "
    if found is None:
        return kept + "no longer has an answer about this part of the trace."
    return kept + f"now says: {found[2].headline}"


def _key(screening: Screening) -> Key:
    return (
        screening.check_slug,
        screening.check_version,
        screening.parameters_hash,
        screening.scope,
    )


def _without_blanks(value: Any) -> Any:
    """Without what says nothing: earlier releases stored every field of the evidence."""
    if not isinstance(value, dict):
        return value
    kept = {name: _without_blanks(inner) for name, inner in value.items()}
    return {name: inner for name, inner in kept.items() if inner not in (None, [], {})}


def _readdressed(evidence: dict[str, Any], moved: Steps) -> dict[str, Any]:
    """The evidence with its steps where they stand now, if all are still there."""
    series = evidence.get("series")
    places = [*evidence.get("steps", ()), *(series["steps"] if series else ())]
    if any(place not in moved for place in places):
        return evidence
    evidence = dict(evidence)
    if "steps" in evidence:
        evidence["steps"] = [moved[place] for place in evidence["steps"]]
    if series:
        steps = [moved[place] for place in series["steps"]]
        evidence["series"] = {**series, "steps": steps}
    return evidence


def _point_at(signal: Signal, item: StoredScreening) -> None:
    evidence = item.screening.evidence
    signal.screening = Screening.objects.get(pk=item.screening_id)
    signal.check_version = item.check.version
    signal.agent = evidence.agent or ""
    signal.chance = evidence.chance.value if evidence.chance else 1.0
    signal.q, signal.rank = None, first_rank(item)
    signal.effect = evidence.effect or 0.0
    signal.length = evidence.length or 0
    signal.usage_missing = bool(evidence.usage_missing)
    signal.outcome = item.trace.trace.outcome.kind.value
    signal.headline = item.screening.headline


def _tell(signal: Signal, note: str) -> None:
    """Write the change into the history, unless its last line says just that."""
    last = HistoryEntry.objects.filter(signal=signal).order_by("-base_version").first()
    if last is None or (last.act, last.note) != (Act.RESCREENED.value, note):
        write_rescreened(signal, note=note)
