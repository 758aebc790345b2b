"""What the list of tasks needs: filters from the URL, scores of trials, whose they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce, NullIf

from apps.accounts.permissions import Permission
from apps.agents.models import Agent
from apps.engine.consistency import LABELS, Stability
from apps.engine.masking import Colour
from apps.scoring.decisive import decisive_forks
from apps.scoring.models import AgentTaskScore, TaskScore
from apps.traces.models import Task, Trace
from apps.traces.queries import PAGE_SIZE
from apps.traces.transitions import TaskSource
from apps.traces.trials import suggested_tasks
from apps.web.access import Place
from apps.web.numbers import whole
from apps.web.pages.decisive_forks import decisive_words
from apps.web.pages.scoring_state import ScoringState, scoring_state
from apps.web.pages.task_agreement import StabilityWord, word_of

MOST_AGENTS: Final = 200
_LABEL: Final = re.compile(r"“([^”]{34})[^”]{2,}”")

SOURCE_WORDS: Final = {
    TaskSource.FILE: "named in the file",
    TaskSource.INPUT: "found by the same first input",
    TaskSource.HAND: "set by hand",
}
OUTCOMES: Final = {
    "passed": "green",
    "failed": "red",
    "mixed": "mixed",
    "unknown": "unknown",
}
WRONG: Final = "stable_but_wrong"
STABILITIES: Final = {
    **{each.value: LABELS[each] for each in Stability},
    WRONG: "stable but wrong",
}
FORKS: Final = {
    "some": "Some fork",
    "decisive": "A decisive fork",
    "none": "No fork",
}
SORTS: Final = {
    "worst": "Worst first",
    "trials": "Most trials first",
    "name": "By name",
}


class TaskFilter(msgspec.Struct, frozen=True):
    """What the list of tasks shows; every field comes from the URL.

    With an agent, stability and masking are those of this agent.
    """

    q: str = ""
    outcome: str = ""
    stability: str = ""
    masked: str = ""
    forks: str = ""
    agent: int | None = None
    sort: str = "worst"

    @property
    def is_narrowed(self) -> bool:
        """Whether anything is filtered."""
        return self != TaskFilter(sort=self.sort)


class TaskLine(msgspec.Struct, frozen=True):
    """One task of the list; `score` is `None` until its trials are scored.

    `trials` and `signals` are counted from the traces as they are now, `unknown` are
    the agents of which nothing could be judged here.
    """

    task: Task
    source_words: str
    trials: int
    signals: int
    score: TaskScore | None
    unknown: int = 0

    @property
    def known(self) -> int:
        """How many scored trials passed or failed."""
        return self.score.passed + self.score.failed if self.score else 0

    @property
    def decisive(self) -> str:
        """What the outcomes hang on, in short: labels and chance cut to a few words."""
        return "" if self.score is None else in_short(self.score.decisive)

    @property
    def word(self) -> StabilityWord | None:
        """How stable what the whole system decided is."""
        return None if self.score is None else word_of(self.score)


class TasksPage(msgspec.Struct, frozen=True):
    """One page of the tasks of a project with its filters."""

    place: Place
    where: TaskFilter
    rows: list[TaskLine]
    matching: int
    total: int
    unscored: int
    by_outcome: dict[str, int]
    agents: list[Agent]
    agent: Agent | None
    without_task: int
    decisive: str
    scoring: ScoringState
    shown: str
    first_query: str
    next_query: str
    outcomes: dict[str, str]
    stabilities: dict[str, str]
    forks: dict[str, str]
    sorts: dict[str, str]


def in_short(decisive: str) -> str:
    """The sentence of a decisive fork with its labels cut and its p in brackets."""
    said, _, chance = decisive.partition(" Fisher's exact p is ")
    short = _LABEL.sub(r"“\1…”", said).rstrip(".")
    p, _, caveat = chance.rstrip(".").partition(": ")
    if not p:
        return short
    return f"{short} (p {p}, few trials)." if caveat else f"{short} (p {p})."


def filter_from(query: Mapping[str, str]) -> TaskFilter:
    """The filter that a URL asks for; what it does not know it ignores."""

    def one_of(name: str, allowed: Mapping[str, str], default: str = "") -> str:
        value = query.get(name, default)
        return value if value in allowed else default

    return TaskFilter(
        q=query.get("q", "").replace("\x00", "").strip()[:300],
        outcome=one_of("outcome", OUTCOMES),
        stability=one_of("stability", STABILITIES),
        masked=one_of("masked", {"yes": ""}),
        forks=one_of("forks", FORKS),
        agent=whole(query.get("agent", "")),
        sort=one_of("sort", SORTS, "worst"),
    )


def query_of(where: TaskFilter, **more: object) -> str:
    """The filter as a query string with its question mark."""
    default = TaskFilter()
    fields = {
        name: getattr(where, name)
        for name in where.__struct_fields__
        if getattr(where, name) != getattr(default, name)
    }
    return "?" + urlencode({**fields, **more})


def tasks_page(place: Place, query: Mapping[str, str]) -> TasksPage:
    """The tasks that the URL asks for. A fixed number of queries."""
    where = filter_from(query)
    start = whole(query.get("from", "")) or 0
    some = _with_trials(place)
    counts = _counts(some)
    matching = _sorted(some.filter(*_conditions(where)), where.sort)
    tasks = list(matching[start : start + PAGE_SIZE + 1])
    is_more = len(tasks) > PAGE_SIZE
    agents = _agents(place)
    return TasksPage(
        place=place,
        where=where,
        rows=_lines(tasks[:PAGE_SIZE]),
        matching=matching.count() if where.is_narrowed else counts["total"],
        total=counts["total"],
        unscored=counts["unscored"],
        by_outcome={word: counts[colour] for word, colour in OUTCOMES.items()},
        agents=agents,
        agent=next((one for one in agents if one.pk == where.agent), None),
        without_task=Trace.objects.filter(project=place.project, task=None).count(),
        decisive=decisive_words(decisive_forks(place.project.pk)),
        scoring=scoring_state(place.project.pk),
        shown=_shown(start, min(len(tasks), PAGE_SIZE)),
        first_query=query_of(where) if start else "",
        next_query=query_of(where, **{"from": start + PAGE_SIZE}) if is_more else "",
        outcomes={word: word.capitalize() for word in OUTCOMES},
        stabilities={key: words.capitalize() for key, words in STABILITIES.items()},
        forks=FORKS,
        sorts=SORTS,
    )


def _with_trials(place: Place) -> QuerySet[Task]:
    trials = Trace.objects.filter(task=OuterRef("pk"))
    return Task.objects.filter(Exists(trials), project=place.project)


def _counts(tasks: QuerySet[Task]) -> dict[str, int]:
    found: dict[str, int] = tasks.aggregate(
        total=Count("pk"),
        unscored=Count("pk", filter=Q(taskscore=None)),
        **{
            colour: Count("pk", filter=Q(taskscore__outcome=colour))
            for colour in OUTCOMES.values()
        },
    )
    return found


def _conditions(where: TaskFilter) -> Iterator[Q]:
    if where.q:
        yield Q(key__icontains=where.q) | Q(title__icontains=where.q)
    if where.outcome:
        yield Q(taskscore__outcome=OUTCOMES[where.outcome])
    if where.forks:
        yield {
            "some": Q(taskscore__fork_count__gt=0),
            "decisive": Q(taskscore__isnull=False) & ~Q(taskscore__decisive=""),
            "none": Q(taskscore__fork_count=0),
        }[where.forks]
    if where.agent is None:
        yield from _of_whole(where)
    else:
        yield _of_agent(where, where.agent)


def _of_whole(where: TaskFilter) -> Iterator[Q]:
    if where.stability == WRONG:
        yield Q(taskscore__is_stable_but_wrong=True)
    elif where.stability:
        yield Q(taskscore__consistency=where.stability)
    if where.masked:
        yield Q(taskscore__masked__gt=0)


def _of_agent(where: TaskFilter, agent: int) -> Q:
    of_agent = AgentTaskScore.objects.filter(task=OuterRef("pk"), agent=agent)
    if where.stability == WRONG:
        of_agent = of_agent.filter(is_stable_but_wrong=True)
    elif where.stability:
        of_agent = of_agent.filter(consistency=where.stability)
    if where.masked:
        of_agent = of_agent.filter(is_masked=True)
    return Q(Exists(of_agent))


def _sorted(tasks: QuerySet[Task], sort: str) -> QuerySet[Task]:
    found = tasks.select_related("taskscore").defer("taskscore__detail")
    if sort == "name":
        return found.order_by(Coalesce(NullIf("title", Value("")), "key"), "pk")
    if sort == "trials":
        size = Coalesce("taskscore__trials", 0)
        return found.order_by(size.desc(), "pk")
    return found.order_by(F("taskscore__rank").desc(nulls_last=True), "pk")


def _lines(tasks: list[Task]) -> list[TaskLine]:
    counted = {
        row["task_id"]: row
        for row in Trace.objects.filter(task__in=[task.pk for task in tasks])
        .values("task_id")
        .annotate(trials=Count("pk"), signals=Sum("signal_count"))
    }
    unknown = dict(
        AgentTaskScore.objects.filter(task__in=tasks, colour=Colour.UNKNOWN.value)
        .values_list("task_id")
        .annotate(Count("agent_id"))
    )
    return [
        TaskLine(
            unknown=unknown.get(task.pk, 0),
            task=task,
            source_words=SOURCE_WORDS[TaskSource(task.source)],
            trials=counted[task.pk]["trials"],
            signals=counted[task.pk]["signals"],
            score=getattr(task, "taskscore", None),
        )
        for task in tasks
        if task.pk in counted
    ]


def _agents(place: Place) -> list[Agent]:
    """The agents that act in a trace; those without a name stand last."""
    acting = AgentTaskScore.objects.filter(agent=OuterRef("pk"), task__is_replay=False)
    agents = Agent.objects.filter(Exists(acting), project=place.project)
    return list(agents.order_by(F("name").asc(), "pk")[:MOST_AGENTS])


def _shown(start: int, count: int) -> str:
    if not count:
        return ""
    return f"Tasks {start + 1:,} to {start + count:,}"


def placing(place: Place, trace: Trace, undo: Any) -> dict[str, Any]:
    """What the form on a trace needs to say by hand of which task it is."""
    return {
        "refusal": place.refusal(Permission.REVIEW),
        "task": str(trace.task) if trace.task else "",
        "trial": trace.trial,
        "source": (
            (SOURCE_WORDS[TaskSource.HAND] if trace.task else "none, set by hand")
            if trace.is_task_set
            else SOURCE_WORDS[TaskSource(trace.task.source)]
            if trace.task
            else ""
        ),
        "suggestions": suggested_tasks(project=place.project),
        "may_undo": isinstance(undo, dict) and str(trace.pk) in undo,
    }
