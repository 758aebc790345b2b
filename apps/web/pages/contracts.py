"""What the pages of contracts need: the list, one with its history, a form, a preview."""

from __future__ import annotations

import time
from typing import Final

import msgspec

from apps.accounts.permissions import Permission
from apps.engine.check import Answer, Check, Screening
from apps.engine.contracts import BadDefinition
from apps.engine.contracts.definitions import CONTRACT
from apps.screening.answering import answers_of
from apps.screening.definitions import (
    Wanted,
    check_of,
    definitions_of,
    history_of,
    unread_because,
)
from apps.screening.models import Definition, DefinitionState
from apps.screening.queries import CheckCounts, counts_per_check
from apps.traces.behind import behind_count
from apps.traces.models import Trace
from apps.traces.queries import engine_trace
from apps.web.access import Place
from apps.web.contract_forms import DefinitionForm
from apps.web.pages.bodies import as_text

MOST_TRIED: Final = 50
LONGEST_TRIED: Final = 5_000
TRYING_SECONDS: Final = 3.0
_MOST_STEPS_LINKED: Final = 8


class Defined(msgspec.Struct, frozen=True):
    """One definition: its row, what it says in plain English, and its answers.

    `broken` says why a stored definition cannot be checked any more.
    """

    row: Definition
    says: str
    check: Check | None
    counts: CheckCounts | None
    broken: str = ""

    @property
    def stored(self) -> str:
        """The text of a definition that cannot be checked any more, else ""."""
        return as_text(self.row.spec) if self.broken else ""

    @property
    def is_answered(self) -> bool:
        """Whether it has said something about any trace yet."""
        one = self.counts
        return bool(one and (one.signals or one.quiet or one.not_applicable))

    @property
    def is_active(self) -> bool:
        """Whether it is checked and its signals are queued."""
        return self.row.state == DefinitionState.ACTIVE

    @property
    def is_retired(self) -> bool:
        """Whether it is of the past."""
        return self.row.state == DefinitionState.RETIRED


class ContractsPage(msgspec.Struct, frozen=True):
    """Every definition of a project. `refusal` says who may change them.

    `behind` counts the traces that the checks have not answered about yet.
    """

    place: Place
    rows: list[Defined]
    refusal: str
    behind: int


class ContractPage(msgspec.Struct, frozen=True):
    """One definition with all that was changed, the newest first.

    `behind` counts the traces that the checks have not answered about yet.
    """

    place: Place
    defined: Defined
    history: list[tuple[Definition, str]]
    refusal: str
    behind: int


class Tried(msgspec.Struct, frozen=True):
    """One trace that a definition was tried on, by its worst answer.

    `more` counts further answers about the trace, `steps` count from 1.
    """

    trace: Trace
    group: str
    headline: str
    reason: str
    steps: tuple[int, ...]
    more: int = 0


class Preview(msgspec.Struct, frozen=True):
    """What a definition would answer. `errors` are sentences, `stopped` says why not all."""

    says: str = ""
    rows: list[Tried] = []
    errors: list[tuple[str, str]] = []
    stopped: str = ""

    @property
    def groups(self) -> list[tuple[str, str, str, list[Tried]]]:
        """Name, word, tone and rows of each group, what breaks it first."""
        return [
            (group, one if len(found) == 1 else many, tone, found)
            for group, one, many, tone in _GROUPS
            if (found := [row for row in self.rows if row.group == group])
        ]


class FormPage(msgspec.Struct, frozen=True):
    """The form of a definition, new or current, with a preview if one was asked for."""

    place: Place
    form: DefinitionForm
    current: Definition | None
    traces: list[Trace]
    on: str
    preview: Preview | None

    @property
    def defined(self) -> Defined | None:
        """What is defined at present; `None` for a new one."""
        return None if self.current is None else _defined(self.current, {})

    @property
    def is_contract(self) -> bool:
        """Whether it is a contract over steps, and no planted fact."""
        return self.form.kind == CONTRACT


_GROUPS: Final = (
    (Answer.SIGNAL.value, "breaks it", "break it", "amber"),
    (Answer.QUIET.value, "holds", "hold", "green"),
    (Answer.NOT_APPLICABLE.value, "does not apply", "do not apply", ""),
    ("not_tried", "not tried", "not tried", ""),
)


def contracts_page(place: Place) -> ContractsPage:
    """Every definition of the place's project with its answers."""
    counts = _counts(place)
    rows = [_defined(row, counts) for row in definitions_of(place.project.pk)]
    return ContractsPage(
        place=place,
        rows=rows,
        refusal=place.refusal(Permission.MANAGE_CHECKS),
        behind=_behind(place),
    )


def contract_page(place: Place, current: Definition) -> ContractPage:
    """One definition with its history."""
    rows = list(history_of(project_id=place.project.pk, slug=current.slug))
    before = [*rows[1:], None]
    return ContractPage(
        place=place,
        defined=_defined(current, _counts(place)),
        history=[
            (row, _change(row, old)) for row, old in zip(rows, before, strict=True)
        ],
        refusal=place.refusal(Permission.MANAGE_CHECKS),
        behind=_behind(place),
    )


def form_page(
    place: Place,
    form: DefinitionForm,
    *,
    current: Definition | None,
    on: str = "",
    preview: Preview | None = None,
) -> FormPage:
    """The form of a definition."""
    form.mark_errors()
    return FormPage(
        place=place,
        form=form,
        current=current,
        traces=latest_traces(place),
        on=on,
        preview=preview,
    )


def latest_traces(place: Place) -> list[Trace]:
    """The traces that a definition can be tried on."""
    rows = Trace.objects.filter(project=place.project).select_related("task")
    return list(rows.order_by("-pk")[:MOST_TRIED])


def wrong(form: DefinitionForm) -> Preview:
    """The preview of a form that says nothing yet: what is wrong with which field."""
    return Preview(
        errors=[
            (str(form.fields[name].label) if name in form.fields else "", str(error))
            for name, errors in form.errors.items()
            for error in errors
        ]
    )


def preview(place: Place, check: Check, *, on: str = "") -> Preview:
    """What `check` answers about the latest traces, or about the one with the id `on`.

    Stops after a few seconds and says so; nothing is stored.
    """
    traces = latest_traces(place)
    if on:
        traces = [trace for trace in traces if str(trace.pk) == on] or traces
    says = plain(check)
    rows: list[Tried] = []
    end = time.monotonic() + TRYING_SECONDS
    for trace in traces:
        if rows and time.monotonic() > end:
            break
        rows.append(_tried(check, trace, says))
    left = len(traces) - len(rows)
    stopped = (
        f"Stopped after {TRYING_SECONDS:g} seconds: "
        f"{'1 trace was' if left == 1 else f'{left} traces were'} not tried."
        if left
        else ""
    )
    return Preview(says=says, rows=rows, stopped=stopped)


def plain(check: Check) -> str:
    """What a defined check asks, in one sentence."""
    return check.observes.removeprefix("Whether this holds. ")


def _tried(check: Check, trace: Trace, says: str) -> Tried:
    if trace.step_count > LONGEST_TRIED:
        said = f"Longer than {LONGEST_TRIED:,} steps; it is checked once this is saved."
        return Tried(trace, "not_tried", "Too long to try here", said, ())
    answers = answers_of(check, engine_trace(trace))
    worst = min(answers, key=_rank)
    return Tried(
        trace=trace,
        group=worst.answer.value,
        headline=worst.headline,
        # What it asks stands once above the list.
        reason=worst.reason.removeprefix(says).strip(),
        steps=_linked(worst),
        more=len(answers) - 1,
    )


_RANKS: Final = {Answer.SIGNAL: 0, Answer.QUIET: 1, Answer.NOT_APPLICABLE: 2}


def _rank(screening: Screening) -> int:
    return _RANKS[screening.answer]


def _linked(screening: Screening) -> tuple[int, ...]:
    if screening.answer is Answer.QUIET:
        return ()
    return tuple(step + 1 for step in screening.evidence.steps[:_MOST_STEPS_LINKED])


def _behind(place: Place) -> int:
    return behind_count(place.project.pk, place.lineup.name)


def _counts(place: Place) -> dict[str, CheckCounts]:
    found = counts_per_check(place.project, lineup=place.lineup)
    return {counts.slug: counts for counts in found}


def _defined(row: Definition, counts: dict[str, CheckCounts]) -> Defined:
    wanted = Wanted(kind=row.kind, label=row.label, spec=row.spec)
    try:
        check = check_of(wanted, slug=row.slug, version=row.version)
    except BadDefinition as error:
        why = unread_because(row, error).sentence
        return Defined(row, "", None, None, broken=why)
    return Defined(row, plain(check), check, counts.get(check.slug))


_STATES: Final[dict[str, str]] = {
    DefinitionState.ACTIVE: "checked again",
    DefinitionState.PAUSED: "paused",
    DefinitionState.RETIRED: "retired",
}


def _change(row: Definition, before: Definition | None) -> str:
    """What a row of the history changed, in words."""
    if before is None:
        return "defined"
    changes: list[str] = []
    if row.state != before.state:
        changes.append(_STATES[row.state])
    if row.version != before.version:
        changes.append(f"asks something else: version {row.version}")
    if row.label != before.label:
        changes.append(f"renamed from “{before.label}”")
    return ", ".join(changes)
