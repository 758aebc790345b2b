"""Which traces are trials of which task: found from the data, corrected by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec
from django.db import IntegrityError, connection, transaction
from django.db.models import Count, Max, Q, QuerySet, Sum

from apps.accounts.models import Project
from apps.engine.root_input import root_input
from apps.engine.trace import OutcomeKind
from apps.traces.locking import wait_for_traces
from apps.traces.models import Task, Trace
from apps.traces.queries import engine_trace
from apps.traces.transitions import TaskSource

MAX_KEY = 200
MAX_TRIAL = 2**31 - 1
MOST_MOVED = 1_000
_PLACE = ("task", "trial", "is_task_set")
_KEY = "same input "
_LOOKED_AT = 64
_DEEPEST = 6
_NOT_SAID = frozenset({"type", "role", "id", "name", "mime_type"})

_AT_ONCE = 200

# A session log that grew and was uploaded again is the same run, not another trial.
_RUN = """
    CASE WHEN native_id IS NULL AND session <> '' THEN session
         ELSE traces_trace.id::text END
"""
# Root inputs that traces of the project share, of those asked about, where neither the
# file nor a person says of which task they are, and one of them is of none yet.
_SHARED = f"""
    SELECT input_hash
    FROM traces_trace
    LEFT JOIN traces_task ON traces_task.id = traces_trace.task_id
    WHERE traces_trace.project_id = %(project)s
      AND input_hash = ANY(%(hashes)s)
      AND NOT is_task_set
      AND (task_id IS NULL OR traces_task.source = 'input')
    GROUP BY input_hash
    HAVING count(DISTINCT {_RUN}) > 1 AND bool_or(task_id IS NULL)
"""  # noqa: S608 - no value comes from outside
_OF_NO_TASK = """
    SELECT id FROM traces_trace
    WHERE project_id = %(project)s AND input_hash = ANY(%(shared)s)
      AND task_id IS NULL AND NOT is_task_set
"""
_NUMBERED = f"""
    WITH fresh AS (
        SELECT id, {_RUN} AS run, min(id) OVER (PARTITION BY {_RUN}) AS first
        FROM traces_trace
        WHERE project_id = %(project)s AND input_hash = %(hash)s
          AND task_id IS NULL AND NOT is_task_set AND id = ANY(%(held)s)
    ), known AS (
        SELECT {_RUN} AS run, min(trial) AS trial
        FROM traces_trace WHERE task_id = %(task)s GROUP BY 1
    ), numbered AS (
        SELECT fresh.id, known.trial AS known,
               dense_rank() OVER (PARTITION BY known.trial IS NULL ORDER BY first)
                   AS place
        FROM fresh LEFT JOIN known USING (run)
    )
    UPDATE traces_trace
    SET task_id = %(task)s,
        trial = COALESCE(traces_trace.trial, numbered.known, %(last)s + numbered.place)
    FROM numbered WHERE traces_trace.id = numbered.id
"""  # noqa: S608 - no value comes from outside


class TaskRow(msgspec.Struct, frozen=True):
    """A task with the number of its trials, how they ended, and who placed them."""

    task: Task
    trials: int
    by_hand: int
    passed: int
    failed: int
    signals: int

    @property
    def others(self) -> int:
        """How many trials neither passed nor failed, as far as is recorded."""
        return self.trials - self.passed - self.failed


class Placed(msgspec.Struct, frozen=True):
    """Where a trace stood before a person moved it, so that the move can be undone."""

    task: str
    trial: int | None
    is_set: bool


class Moved(msgspec.Struct, frozen=True):
    """How one trace stood in a task before it was moved to another."""

    trace: int
    trial: int | None
    is_set: bool


class WrongPlace(Exception):
    """A task or trial cannot be taken; the message is a sentence for a person."""


def find_trials(*, project_id: int, input_hashes: Iterable[str]) -> int:
    """Make traces with the same root input trials of one task; returns how many moved.

    What a file or a person says stays. Safe to run any number of times and in
    parallel: one at a time finds in a project, and what is found already is left. Not
    to be run inside a transaction that holds uploads or traces (`apps.traces.locking`).
    """
    hashes = iter(sorted(set(input_hashes)))
    moved = 0
    # Some at a time: others who find trials of the project wait for the lock.
    while some := list(islice(hashes, _AT_ONCE)):
        moved += _find(project_id, some)
    return moved


def _find(project_id: int, hashes: list[str]) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        _lock_finding(cursor, project_id)
        cursor.execute(_SHARED, {"project": project_id, "hashes": hashes})
        shared = [row[0] for row in cursor.fetchall()]
        if not shared:
            return 0
        cursor.execute(_OF_NO_TASK, {"project": project_id, "shared": shared})
        # What others store from here on is found when they look.
        held = [row[0] for row in cursor.fetchall()]
        wait_for_traces(held)
        return sum(_join(cursor, project_id, digest, held) for digest in shared)


def _lock_finding(cursor: Any, project_id: int) -> None:
    # Two uploads that end together must each see what the other has stored.
    cursor.execute(
        "SELECT pg_advisory_xact_lock(hashtext('find_trials'), %s)", [project_id]
    )


def find_trials_of_upload(*, project_id: int, upload_id: int) -> int:
    """`find_trials` for the inputs of all traces of an upload; returns how many moved."""
    hashes = (
        Trace.objects.filter(upload_id=upload_id, input_hash__isnull=False)
        .order_by()
        .values_list("input_hash", flat=True)
        .distinct()
    )
    return find_trials(
        project_id=project_id, input_hashes=[one for one in hashes if one]
    )


def _join(cursor: Any, project_id: int, digest: str, held: list[int]) -> int:
    task, _ = Task.objects.get_or_create(
        project_id=project_id,
        key=_KEY + digest,
        defaults={"source": TaskSource.INPUT.value},
    )
    if not task.title:
        first = Trace.objects.filter(project_id=project_id, input_hash=digest).first()
        task.title = _title(first) if first else ""
        task.save(update_fields=["title"])
    last = Trace.objects.filter(task=task).aggregate(last=Max("trial"))["last"]
    cursor.execute(
        _NUMBERED,
        {
            "project": project_id,
            "hash": digest,
            "task": task.pk,
            "last": -1 if last is None else last,
            "held": held,
        },
    )
    return int(cursor.rowcount)


def _title(trace: Trace) -> str:
    """How the root input begins, on one line."""
    words = " ".join(_texts(root_input(engine_trace(trace, most=_LOOKED_AT)), 0))
    words = " ".join(words.split())
    return words[:119] + "\u2026" if len(words) > 120 else words


def _texts(value: Any, depth: int) -> Iterator[str]:
    """The texts inside a value, in order; keys and kinds of parts say nothing."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and depth < _DEEPEST:
        for item in value:
            yield from _texts(item, depth + 1)
    elif isinstance(value, dict) and depth < _DEEPEST:
        for key, item in value.items():
            if key not in _NOT_SAID:
                yield from _texts(item, depth + 1)


def place_trace(*, trace: Trace, task: str, trial: int | None) -> tuple[Placed, Placed]:
    """Say by hand of which task a trace is; returns where it stood and stands now.

    An empty `task` takes it out of every task. Raises `WrongPlace` with a sentence.
    """
    key = " ".join(task.replace("\x00", "").split())
    if len(key) > MAX_KEY:
        raise WrongPlace("The name of a task has at most 200 characters.")
    if trial is not None and not 0 <= trial <= MAX_TRIAL:
        raise WrongPlace("A trial is a whole number from 0 up.")
    with transaction.atomic():
        held = Trace.objects.select_for_update(of=("self",)).get(pk=trace.pk)
        before = _placed(held)
        held.task = _task_named(held.project, key) if key else None
        held.trial = trial
        held.is_task_set = True
        held.save(update_fields=["task", "trial", "is_task_set"])
    return before, _placed(held)


def _placed(trace: Trace) -> Placed:
    return Placed(
        task=trace.task.key if trace.task else "",
        trial=trace.trial,
        is_set=trace.is_task_set,
    )


def put_back(*, trace: Trace, placed: Placed, since: Placed) -> None:
    """Undo `place_trace`: the trace stands where it stood before.

    Raises `WrongPlace` when it does not stand any more where it was put (`since`).
    """
    with transaction.atomic():
        held = Trace.objects.select_for_update(of=("self",)).get(pk=trace.pk)
        if _placed(held) != since:
            raise WrongPlace("Somebody has moved this trace since; it stays there.")
        place_trace(trace=trace, task=placed.task, trial=placed.trial)
        Trace.objects.filter(pk=trace.pk).update(is_task_set=placed.is_set)


def _task_named(project: Project, name: str) -> Task:
    """The task with this key, or with this title where one input was found so."""
    found = Task.objects.filter(project=project, key=name).first()
    if found is None:
        found = Task.objects.filter(
            project=project, title=name, source=TaskSource.INPUT.value
        ).first()
    if found is not None:
        return found
    task, _ = Task.objects.get_or_create(
        project=project, key=name, defaults={"source": TaskSource.HAND.value}
    )
    return task


def rename_task(*, task: Task, name: str) -> None:
    """Give a task another name; its traces keep their trials. Raises `WrongPlace`."""
    key = " ".join(name.replace("\x00", "").split())
    if not key or len(key) > MAX_KEY:
        raise WrongPlace("A task needs a name of 1 to 200 characters.")
    taken = WrongPlace(
        f"A task “{key}” is here already. Join the two instead of renaming one."
    )
    if Task.objects.filter(project=task.project, key=key).exclude(pk=task.pk).exists():
        raise taken
    if task.source == TaskSource.INPUT.value:
        # The key finds later trials by their input: only the words shown change.
        task.title = key
        task.save(update_fields=["title"])
        return
    task.key = key
    try:
        with transaction.atomic():
            task.save(update_fields=["key"])
    except IntegrityError as error:
        # A file or a person has just brought a task of this name.
        raise taken from error


def join_tasks(*, task: Task, into: Task) -> list[Moved]:
    """Move all traces of `task` to `into`, by hand; returns where each stood.

    They get the numbers after the last trial of `into`, so that no two are the same.
    Raises `WrongPlace` for none, and for more traces than can be moved back.
    """
    if task.pk == into.pk or task.project_id != into.project_id:
        raise WrongPlace("Choose another task of this project.")
    with transaction.atomic():
        traces = list(
            Trace.objects.select_for_update(of=("self",))
            .filter(task=task)
            .order_by("pk")[: MOST_MOVED + 1]
        )
        if not traces:
            # Sent twice: what was moved the first time must stay what is undone.
            raise WrongPlace("This task has no trial to move.")
        if len(traces) > MOST_MOVED:
            raise WrongPlace(
                f"This task has more than {MOST_MOVED} trials, which is the most that "
                "can be moved at once and back again. Rename it instead."
            )
        # Without a number last, as the database sorts.
        traces.sort(key=lambda one: (one.trial is None, one.trial or 0, one.pk))
        moved = [Moved(one.pk, one.trial, one.is_task_set) for one in traces]
        last = Trace.objects.filter(task=into).aggregate(last=Max("trial"))["last"]
        start = 0 if last is None else last + 1
        for number, one in enumerate(traces, start):
            one.task, one.trial, one.is_task_set = into, number, True
        Trace.objects.bulk_update(traces, _PLACE)
    return moved


def part_tasks(*, task: Task, into: Task, moved: Iterable[Moved]) -> int:
    """Undo `join_tasks`: the traces stand in `task` as before; returns how many.

    What somebody has moved on from `into` since stays there.
    """
    before = {one.trace: one for one in moved}
    with transaction.atomic():
        traces = list(
            Trace.objects.select_for_update(of=("self",))
            .filter(project=task.project, task=into, pk__in=before)
            .order_by("pk")
        )
        for trace in traces:
            held = before[trace.pk]
            trace.task, trace.trial = task, held.trial
            trace.is_task_set = held.is_set
        Trace.objects.bulk_update(traces, _PLACE)
    return len(traces)


def task_called(*, project: Project, name: str) -> Task | None:
    """The task with this name as pages show it, or `None`."""
    words = " ".join(name.replace("\x00", "").split())
    tasks = Task.objects.filter(project=project)
    return (
        tasks.filter(key=words).first()
        or tasks.filter(title=words).order_by("pk").first()
    )


def _rows(tasks: QuerySet[Task]) -> list[TaskRow]:
    counted = tasks.annotate(
        trials=Count("trace"),
        by_hand=Count("trace", filter=Q(trace__is_task_set=True)),
        passed=Count("trace", filter=Q(trace__outcome=OutcomeKind.PASS.value)),
        failed=Count("trace", filter=Q(trace__outcome=OutcomeKind.FAIL.value)),
        signals=Sum("trace__signal_count", default=0),
    )
    return [
        TaskRow(task, task.trials, task.by_hand, task.passed, task.failed, task.signals)
        for task in counted
    ]


def task_rows(*, project: Project, start: int, most: int) -> list[TaskRow]:
    """Tasks that have traces, those with most trials first, from place `start` on."""
    tasks = (
        Task.objects.filter(project=project)
        .annotate(size=Count("trace"))
        .filter(size__gt=0)
        .order_by("-size", "id")
    )
    ids = list(tasks.values_list("pk", flat=True)[start : start + most])
    by_id = {row.task.pk: row for row in _rows(Task.objects.filter(pk__in=ids))}
    return [by_id[pk] for pk in ids]


def task_row(task: Task) -> TaskRow:
    """One task with the number of its trials and how they ended.

    Raises `Task.DoesNotExist` where it is gone meanwhile.
    """
    for row in _rows(Task.everything.filter(pk=task.pk)):
        return row
    raise Task.DoesNotExist


def suggested_tasks(*, project: Project, but: Task | None = None) -> list[Task]:
    """Up to 100 tasks of the project, newest first, to choose from."""
    tasks = Task.objects.filter(project=project).order_by("-id")
    if but is not None:
        tasks = tasks.exclude(pk=but.pk)
    return list(tasks[:100])
