"""What must hold of traces, answers, signals and their history after any act."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import isclose

from apps.accounts.models import Project
from apps.engine.check import Answer, Level
from apps.engine.nulls import benjamini_hochberg
from apps.review.models import Draft, HistoryEntry, Signal
from apps.screening.answering import answers_of, scope_of
from apps.screening.lineup import key_of, lineup_of
from apps.screening.models import Screening
from apps.screening.queries import counts_per_check
from apps.traces.behind import behind_count
from apps.traces.models import Trace, Upload
from apps.traces.queries import engine_trace

WAITING = {"open", "claimed"}


def signals_of(project: Project) -> list[Signal]:
    rows = Signal.objects.filter(project=project).select_related("screening", "trace")
    return list(rows.order_by("pk"))


def _key(row: Screening) -> tuple[str, int, str]:
    return row.check_slug, row.check_version, row.parameters_hash


def assert_counts_follow_the_rows(project: Project) -> None:
    """Traces and uploads say how many signals they have, superseded ones apart."""
    standing = Counter(
        one.trace_id for one in signals_of(project) if one.state != "superseded"
    )
    of_uploads: Counter[int] = Counter()
    traces: Counter[int] = Counter()
    for trace in Trace.objects.filter(project=project):
        assert trace.signal_count == standing[trace.pk], trace.name
        of_uploads[trace.upload_id] += trace.signal_count
        traces[trace.upload_id] += 1
    for upload in Upload.objects.filter(project=project):
        assert upload.signal_count == of_uploads[upload.pk], upload.name
        assert upload.trace_count == traces[upload.pk], upload.name


def assert_history_is_whole(project: Project) -> None:
    """One line for each change of a signal, in order, the last one saying its state."""
    lines = defaultdict(list)
    for entry in HistoryEntry.objects.filter(signal__project=project).order_by(
        "signal_id", "base_version"
    ):
        lines[entry.signal_id].append(entry)
    for signal in signals_of(project):
        entries = lines[signal.pk]
        numbers = [entry.base_version for entry in entries]
        assert numbers == list(range(-1, signal.version)), signal
        assert entries[-1].state_after == signal.state, signal
        states = [entry.state_after for entry in entries]
        assert [entry.state_before for entry in entries] == ["", *states[:-1]]


def assert_signals_show_their_answer(project: Project) -> None:
    """The columns of a signal are those of its answer, and no two show the same."""
    seen = Counter()
    decided = _ever_decided()
    for signal in signals_of(project):
        answer = signal.screening
        assert (signal.check_slug, signal.trace_id) == (
            answer.check_slug,
            answer.trace_id,
        )
        assert (signal.headline, signal.check_version) == (
            answer.headline,
            answer.check_version,
        )
        assert signal.chance == (1.0 if answer.chance is None else answer.chance)
        # One that was undone waits beside what took its place, until it is let go.
        if signal.state in WAITING and signal.pk not in decided:
            seen[(signal.trace_id, signal.check_slug, answer.scope)] += 1
    assert not [where for where, number in seen.items() if number > 1]


def _ever_decided() -> set[int]:
    rows = HistoryEntry.objects.filter(act="decided")
    return set(rows.values_list("signal_id", flat=True))


def assert_caught_up(project: Project) -> None:
    """Every current key has said of every trace what it says of it, and no more waits."""
    lineup = lineup_of(project.pk)
    assert behind_count(project.pk, lineup.name) == 0
    signals = signals_of(project)
    held = {one.screening_id for one in signals if one.version > 0}
    stored = defaultdict(dict)
    for row in Screening.objects.filter(lineup.current(), project=project):
        stored[(row.trace_id, _key(row))][row.scope] = row
    queued = {}
    for trace in Trace.objects.filter(project=project).select_related("task"):
        content = engine_trace(trace)
        for entry in lineup.entries:
            rows = stored[(trace.pk, entry.key)]
            fresh = {scope_of(one): one for one in answers_of(entry.check, content)}
            assert set(fresh) <= set(rows), (trace.name, entry.key)
            for scope, row in rows.items():
                if row.pk in held:
                    continue
                said = fresh[scope]
                assert (row.answer, row.level, row.input_hash) == (
                    said.answer.value,
                    said.level.value,
                    said.input_hash,
                )
            if not entry.is_paused:
                queued |= {
                    row.pk: row
                    for row in rows.values()
                    if (row.answer, row.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
                }
    _assert_the_queue_is(signals, queued)
    _assert_counts(project)


def _assert_the_queue_is(signals: list[Signal], queued: dict[int, Screening]) -> None:
    decided = _ever_decided()
    typed = set(Draft.objects.values_list("signal_id", flat=True))
    waiting = {one.screening_id: one for one in signals if one.state in WAITING}
    for pk, signal in waiting.items():
        # What was undone follows the line-up with its next change.
        assert pk in queued or signal.pk in decided | typed, signal
    spoken_for = {
        (one.trace_id, one.check_slug, one.screening.scope)
        for one in signals
        if one.state == "decided" or one.pk in decided
    }
    for pk, row in queued.items():
        part = (row.trace_id, row.check_slug, row.scope)
        assert pk in waiting or part in spoken_for, row


def _assert_counts(project: Project) -> None:
    lineup = lineup_of(project.pk)
    rows = Counter(
        (row.check_slug, row.answer)
        for row in Screening.objects.filter(lineup.current(), project=project)
    )
    for counts in counts_per_check(project, lineup=lineup):
        assert counts.signals == rows[(counts.slug, "signal")]
        assert counts.quiet == rows[(counts.slug, "quiet")]
        assert counts.not_applicable == rows[(counts.slug, "not_applicable")]


def assert_ranked(project: Project) -> None:
    """Each waiting signal of a current key has the q of Benjamini and Hochberg."""
    lineup = lineup_of(project.pk)
    for entry in lineup.entries:
        slug, version, parameters = key_of(entry.check)
        rows = [
            row
            for row in Screening.objects.filter(
                project=project,
                check_slug=slug,
                check_version=version,
                parameters_hash=parameters,
                chance_of_signal__isnull=False,
            )
            if row.answer != Answer.NOT_APPLICABLE
        ]
        # A quiet answer found nothing, whatever the chance of its own direction is.
        chances = [
            row.chance
            if row.answer == Answer.SIGNAL and row.chance is not None
            else 1.0
            for row in rows
        ]
        wanted = dict(
            zip((row.pk for row in rows), benjamini_hochberg(chances), strict=True)
        )
        ranked = [
            one
            for one in signals_of(project)
            if one.screening_id in wanted and one.state in WAITING
        ]
        for signal in ranked:
            assert signal.q is not None
            assert isclose(signal.q, wanted[signal.screening_id], rel_tol=1e-9)
            assert signal.rank == signal.q
        ranked.sort(key=lambda one: one.chance)
        assert [one.q for one in ranked] == sorted(one.q for one in ranked)


def assert_always(project: Project) -> None:
    """What holds at any moment, also before the line-up has answered everywhere."""
    assert_counts_follow_the_rows(project)
    assert_history_is_whole(project)
    assert_signals_show_their_answer(project)
