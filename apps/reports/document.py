"""What a frozen report holds, as plain structs, and its canonical JSON.

The document is complete: markdown and PDF are made from it alone. It does not claim
that a signal is a fault, nor that what was not checked is fine. Steps are kept as they
are stored and count from 0; whatever draws them for a person counts from 1.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from apps.engine.nulls import Association
from apps.reports.assessment import AssessmentPart
from apps.reports.rates import Rate

FORMAT_VERSION: Final = 2
READABLE: Final = frozenset({1, FORMAT_VERSION})
"""Version 1 had no verdicts of agents: such a document has no assessment."""

MAX_SIGNALS: Final = 2_000
MAX_UPLOADS: Final = 200
MAX_VALUES: Final = 400
MAX_HISTORY: Final = 20


class UnreadableReport(Exception):
    """The stored document is not one that this version can read; says why."""


class ChancePart(msgspec.Struct, frozen=True):
    """A null probability; the exact fraction as decimal strings of any size."""

    value: float
    model: str
    assumptions: str
    method: str
    numerator: str | None = None
    denominator: str | None = None
    floor: float | None = None
    standard_error: float | None = None


class SeriesPart(msgspec.Struct, frozen=True):
    """The values of the evidence; None was not recorded.

    `left_out` values are missing after place `gap_after` of this list.
    """

    unit: str
    steps: tuple[int, ...]
    values: tuple[float | None, ...]
    labels: tuple[str | None, ...] = ()
    threshold: float | None = None
    left_out: int = 0
    gap_after: int | None = None


class TracePart(msgspec.Struct, frozen=True):
    """The trace that a signal lies in, and the upload that it came with."""

    id: int
    name: str
    native_id: str | None
    content_hash: str
    upload: str
    upload_sha256: str
    task: str | None
    trial: int | None
    outcome: str
    outcome_words: str
    outcome_source: str


class HistoryPart(msgspec.Struct, frozen=True):
    """One decision, or its undoing. `at` is UTC."""

    act: str
    at: str
    by: str
    verdict: str
    reason: str
    note: str
    failure_kind: str
    where_agent: str
    where_step: int | None
    evidence_hash: str


class EvidencePart(msgspec.Struct, frozen=True):
    """Everything that the evidence card shows."""

    scope: str
    reason: str
    agent: str | None = None
    model: str | None = None
    provider: str | None = None
    began: str | None = None
    ended: str | None = None
    order: str | None = None
    length: int | None = None
    first: float | None = None
    last: float | None = None
    ratio: float | None = None
    effect: float | None = None
    effect_bound: float | None = None
    usage_known: int | None = None
    usage_missing: int | None = None
    chance: ChancePart | None = None
    chance_of_signal: float | None = None
    series: SeriesPart | None = None
    steps: tuple[int, ...] = ()
    not_modelled: tuple[str, ...] = ()
    facts: dict[str, Any] = {}
    parameters: dict[str, Any] = {}


class SignalPart(msgspec.Struct, frozen=True):
    """One signal with its evidence, its trace and what people said of it.

    `standing` is `signal`, or what made it a finding: `confirmed` or `supported`. `q`
    is its chance, corrected for the number looked at; None for a fact.
    """

    id: int
    check: str
    check_version: int
    headline: str
    reason_code: str
    level: str
    state: str
    verdict: str
    reason: str
    created_at: str
    input_hash: str
    evidence: EvidencePart
    trace: TracePart
    history: tuple[HistoryPart, ...] = ()
    history_left_out: int = 0
    q: float | None = None
    standing: str = "signal"
    standing_words: str = "signal"


class ReasonPart(msgspec.Struct, frozen=True):
    """How often a check answered with one reason, and one such answer in words."""

    answer: str
    code: str
    count: int
    example: str


class ByChancePart(msgspec.Struct, frozen=True):
    """Signals among the `tested` sequences with a null probability, beside chance.

    Chance alone gives `expected`, in 95 % of cases `low` to `high`; it gives `signals`
    or more with probability `p`.
    """

    signals: int
    tested: int
    expected: float
    low: int
    high: int
    p: float
    method: str


class CheckPart(msgspec.Struct, frozen=True):
    """One version of a check with one set of parameters, and what it answered.

    `expected` sums how often the null model alone makes it fire, over the
    `with_null` sequences that have such a probability; None where none has.
    `association` is over the traces in scope; None where none passed or failed.
    """

    slug: str
    label: str
    version: int
    level: str
    observes: str
    null_model: str
    material_when: str
    next_step: str
    parameters: dict[str, Any]
    signals: int = 0
    queued: int = 0
    quiet: int = 0
    not_applicable: int = 0
    with_null: int = 0
    expected: float | None = None
    by_chance: ByChancePart | None = None
    basis: str = ""
    reasons: tuple[ReasonPart, ...] = ()
    association: Association | None = None

    @property
    def applicable(self) -> int:
        """Sequences that the check could answer about."""
        return self.signals + self.quiet


class DecisionPart(msgspec.Struct, frozen=True):
    """What people decided of one check's signals (`check` is "" for all checks).

    `superseded` signals, which their check does not queue any more, are not among
    `signals`.
    """

    check: str
    signals: int
    open: int
    confirmed: int
    dismissed: int
    needs_experiment: int
    cannot_tell: int
    precision: Rate
    reasons: dict[str, int] = {}
    superseded: int = 0


class UploadPart(msgspec.Struct, frozen=True):
    """One received file as its receipt says."""

    id: int
    name: str
    sha256: str
    size: int
    state: str
    failure: str
    format: str
    reader_version: int | None
    traces: int
    steps: int
    model_calls: int
    tool_calls: int
    usage_known: int
    duplicates: int
    rejected: int
    notes: tuple[str, ...]
    received_at: str


class CountsPart(msgspec.Struct, frozen=True):
    """What the scope of the report holds. `trials` are traces that share a task."""

    uploads: int
    traces: int
    steps: int
    model_calls: int
    tool_calls: int
    usage_known: int
    errors: int
    tasks: int
    trials: int
    outcomes: dict[str, int]


class HeadlinePart(msgspec.Struct, frozen=True):
    """What the report leads with.

    `status` is `masked`, `none` where nothing is masked, `unseen` where masking would
    not be seen, and `not_assessed` until agents are judged.
    """

    status: str
    title: str
    sentence: str


class ReportDocument(msgspec.Struct, frozen=True):
    """A whole report. Two with equal fields have equal bytes.

    `assessment` is None in documents of format version 1 only.
    """

    format_version: int
    product_version: str
    project: str
    project_slug: str
    title: str
    generated_at: str
    generated_by: str
    filter: dict[str, Any]
    filter_words: str
    scope_words: str
    headline: HeadlinePart
    counts: CountsPart
    checks: tuple[CheckPart, ...]
    decisions: tuple[DecisionPart, ...]
    signals: tuple[SignalPart, ...]
    signals_selected: int
    uploads: tuple[UploadPart, ...]
    not_checked: tuple[str, ...]
    left_out: tuple[str, ...]
    assessment: AssessmentPart | None = None


def canonical(document: ReportDocument | dict[str, Any]) -> str:
    """The one JSON text of a document: keys sorted, no spaces."""
    builtins = msgspec.to_builtins(document)
    return msgspec.json.encode(builtins, order="sorted").decode()


def sha256_of(text: str) -> str:
    """The hex SHA-256 of a canonical document."""
    return hashlib.sha256(text.encode()).hexdigest()


def read(document: dict[str, Any]) -> ReportDocument:
    """The typed document of JSON values; raises `UnreadableReport`."""
    if document.get("format_version") not in READABLE:
        raise UnreadableReport(
            f"This report has format version {document.get('format_version')}, "
            f"this version of Evalsite reads 1 to {FORMAT_VERSION}."
        )
    try:
        return msgspec.convert(document, ReportDocument)
    except msgspec.ValidationError as error:
        raise UnreadableReport(f"This report cannot be read: {error}.") from error


def bounded_series(series: dict[str, Any]) -> SeriesPart:
    """The series of stored evidence with at most `MAX_VALUES` values.

    A longer one keeps its first and last halves and says how many are left out.
    """
    values, steps = series["values"], series["steps"]
    labels = series.get("labels") or []
    left_out = max(0, len(values) - MAX_VALUES)
    half = MAX_VALUES // 2

    def ends(items: list[Any]) -> tuple[Any, ...]:
        return tuple(items[:half] + items[-half:] if left_out else items)

    return SeriesPart(
        unit=series["unit"],
        steps=ends(steps),
        values=ends(values),
        labels=ends(labels) if len(labels) == len(values) else (),
        threshold=series.get("threshold"),
        left_out=left_out,
        gap_after=half if left_out else None,
    )
