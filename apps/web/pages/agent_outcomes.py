"""What the page of outcomes needs: what is expected, and what that makes of outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from django.db.models import Count, Max

from apps.accounts.permissions import Permission
from apps.agents.models import OutcomeDefinition
from apps.agents.queries import outcome_history
from apps.engine.agent_contracts import (
    BadDefinition,
    OutcomeExpectation,
    Unread,
    canonical,
    expectation_for,
    expectation_sentence,
    outcome_verdict,
    stored_decision,
    stored_expectations,
    task_of,
)
from apps.engine.extraction import AUTOMATIC, sentence_of
from apps.engine.trace import Outcome, OutcomeKind
from apps.scoring.models import TraceScore
from apps.traces.models import Trace
from apps.traces.transitions import TaskSource
from apps.web.access import Place
from apps.web.agent_decision_forms import ExpectationForm
from apps.web.pages.agent_versions import Version, asked_versions
from apps.web.pages.bodies import as_text
from apps.web.pages.scoring_state import ScoringState, scoring_state

MOST_GROUPS: Final = 20_000
COLOURS: Final = ("green", "red", "unknown")


class Expected(msgspec.Struct, frozen=True):
    """What is expected of some tasks; `plain` are the values of the form.

    `stored` is the text of what cannot be read, `says` why not.
    """

    task: str
    says: str
    plain: Mapping[str, Any]
    stored: str = ""


class Moved(msgspec.Struct, frozen=True):
    """So many outcomes would change their colour; `example` is one of the traces."""

    before: str
    after: str
    count: int
    example: int


class OutcomePreview(msgspec.Struct, frozen=True):
    """What recorded outcomes become: counts by colour, now and then."""

    says: str = ""
    before: Mapping[str, int] = {}
    after: Mapping[str, int] = {}
    matched: int = 0
    moved: list[Moved] = []
    left_out: str = ""
    errors: list[tuple[str, str]] = []

    @property
    def table(self) -> list[tuple[str, int, int]]:
        """Colour, how many now, how many then."""
        return [
            (colour, self.before.get(colour, 0), self.after.get(colour, 0))
            for colour in COLOURS
        ]


class OutcomesPage(msgspec.Struct, frozen=True):
    """What is expected of outcomes in a project, and how the whole's decision is found."""

    place: Place
    form: ExpectationForm
    expectations: list[Expected]
    counts: Mapping[str, int]
    decision: str
    is_automatic: bool
    number: int
    history: list[Version]
    refusal: str
    scoring: ScoringState
    preview: OutcomePreview | None = None

    @property
    def n(self) -> int:
        """How many traces are scored."""
        return sum(self.counts.values())


def outcomes_page(place: Place, form: ExpectationForm) -> OutcomesPage:
    """What is expected in the place's project: a fixed number of queries."""
    form.mark_errors()
    history = outcome_history(place.project.pk)
    current = history[0] if history else None
    number = 0 if current is None else current.number
    spec = stored_decision(
        None if current is None else current.decision, version=number
    )
    rows = TraceScore.objects.filter(project=place.project).values("outcome")
    return OutcomesPage(
        place=place,
        form=form,
        expectations=[
            _expected(task, one)
            for task, one in sorted(expectations_in(current).items())
        ],
        counts={row["outcome"]: row["n"] for row in rows.annotate(n=Count("pk"))},
        decision=spec.sentence if isinstance(spec, Unread) else sentence_of(spec),
        is_automatic=spec == AUTOMATIC,
        number=number,
        history=asked_versions(history),
        refusal=place.refusal(Permission.MANAGE_AGENTS),
        scoring=scoring_state(place.project.pk),
    )


def expectations_in(
    current: OutcomeDefinition | None,
) -> dict[str, OutcomeExpectation | Unread]:
    """What is expected, by the name or pattern of the tasks."""
    if current is None:
        return {}
    return stored_expectations(current.held, version=current.number)


def _expected(task: str, one: OutcomeExpectation | Unread) -> Expected:
    if isinstance(one, Unread):
        return Expected(task, one.sentence, {"task": task}, as_text(one.stored))
    return Expected(task, expectation_sentence(one), _fields(task, one))


def replaced_in(
    current: OutcomeDefinition | None, task: str, one: OutcomeExpectation | None
) -> tuple[Any, ...]:
    """The stored expectations with another one for a task, or with none.

    All others stay as they are stored, also those that cannot be read.
    """
    held = [] if current is None else current.held
    new = [] if one is None else [{"task": task, **canonical(one)}]
    at = next((at for at, row in enumerate(held) if task_of(row) == task), len(held))
    others = [row for row in held[at:] if task_of(row) != task]
    return (*held[:at], *new, *others)


def _fields(task: str, one: OutcomeExpectation) -> dict[str, Any]:
    return {
        "task": task,
        "expect": one.expect.value,
        "at_least": "" if one.at_least is None else f"{one.at_least:g}",
        "labels": "\n".join(one.labels),
    }


def initial_for(current: OutcomeDefinition | None, task: str) -> dict[str, Any]:
    """The values of the form for the tasks that an address names, as they are stored."""
    found = expectations_in(current).get(task)
    return {} if found is None else dict(_expected(task, found).plain)


def wanted_expectation(
    form: ExpectationForm,
) -> tuple[str, OutcomeExpectation] | None:
    """What was sent; `None`, with errors in the form, where it is none."""
    if not form.is_valid():
        return None
    try:
        return form.wanted()
    except BadDefinition as error:
        form.put_error(error)
        return None


def outcome_preview(
    place: Place, form: ExpectationForm, current: OutcomeDefinition | None
) -> OutcomePreview:
    """What the recorded outcomes would become with what was sent: one query."""
    wanted = wanted_expectation(form)
    if wanted is None:
        return OutcomePreview(errors=form.wrong())
    task, expectation = wanted
    old = expectations_in(current)
    groups = _groups(place.project.pk)
    counted = _Counted(old, {**old, task: expectation}, task)
    for group in groups[:MOST_GROUPS]:
        counted.add(group)
    return OutcomePreview(
        says=expectation_sentence(expectation),
        before=counted.before,
        after=counted.after,
        matched=counted.matched,
        moved=[
            Moved(before, after, count, counted.examples[before, after])
            for (before, after), count in counted.moved.most_common()
        ],
        left_out=(
            f"Only {MOST_GROUPS:,} different outcomes were looked at."
            if len(groups) > MOST_GROUPS
            else ""
        ),
    )


_Group = dict[str, Any]


def _groups(project_id: int) -> list[_Group]:
    """Outcomes that are alike in one task, with how many traces have them."""
    rows = Trace.objects.filter(project_id=project_id).values(
        "task__key",
        "task__source",
        "outcome",
        "outcome_score",
        "outcome_out_of",
        "outcome_label",
    )
    counted = rows.annotate(n=Count("pk"), example=Max("pk")).order_by("-example")
    return [dict(row) for row in counted[: MOST_GROUPS + 1]]


class _Counted:
    """Counts what outcomes are under the old and the new expectations."""

    def __init__(
        self,
        old: Mapping[str, OutcomeExpectation | Unread],
        new: Mapping[str, OutcomeExpectation | Unread],
        task: str,
    ) -> None:
        self.before: Counter[str] = Counter()
        self.after: Counter[str] = Counter()
        self.moved: Counter[tuple[str, str]] = Counter()
        self.examples: dict[tuple[str, str], int] = {}
        self.matched = 0
        self._old, self._new, self._task = old, new, task
        self._of: dict[str | None, tuple[Any, Any]] = {}

    def add(self, group: _Group) -> None:
        """Count one group of traces."""
        is_found = group["task__source"] == TaskSource.INPUT
        task = None if is_found else group["task__key"]
        if task not in self._of:
            self._of[task] = (
                expectation_for(task, self._old),
                expectation_for(task, self._new),
            )
        old, new = self._of[task]
        outcome = Outcome(
            kind=OutcomeKind(group["outcome"]),
            score=group["outcome_score"],
            out_of=group["outcome_out_of"],
            label=group["outcome_label"] or None,
        )
        before = outcome_verdict(outcome, old).colour.value
        after = outcome_verdict(outcome, new).colour.value
        self.before[before] += group["n"]
        self.after[after] += group["n"]
        if new is self._new[self._task]:
            self.matched += group["n"]
        if before != after:
            self.moved[before, after] += group["n"]
            self.examples.setdefault((before, after), group["example"])
