"""Documents as `freeze` builds them, made by hand to exercise the renderers."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from apps.reports.document import (
    FORMAT_VERSION,
    ByChancePart,
    ChancePart,
    CheckPart,
    CountsPart,
    DecisionPart,
    EvidencePart,
    HeadlinePart,
    HistoryPart,
    ReasonPart,
    ReportDocument,
    SeriesPart,
    SignalPart,
    TracePart,
    UploadPart,
)
from apps.reports.gaps import NOTHING_REPLAYED
from apps.reports.rates import rate_of

NOT_ASSESSED = HeadlinePart(
    status="not_assessed",
    title="Masking: not assessed",
    sentence="This version makes no verdicts of single agents.",
)

DECAY = CheckPart(
    slug="output-decay",
    label="Output decay",
    version=1,
    level="review_signal",
    observes="Whether every output of one serial sequence of model calls is no longer than the one before, and how much of the first length the last retains.",
    null_model="All orders of the same lengths are equally likely; ties are counted. A falling order then has probability prod(t!) / n!.",
    material_when="At least 5 calls, and the last output retains at most 60 % of the first.",
    next_step="Read the last two calls: did the agent converge, was it capped, or did it give up?",
    parameters={"least_calls": 5, "most_retained": 0.6, "most_chance": 0.05},
    signals=1,
    queued=1,
    quiet=7,
    not_applicable=4,
    with_null=8,
    expected=0.0667,
    by_chance=ByChancePart(1, 8, 0.0667, 0, 1, 0.0648, "exact (Poisson-binomial)"),
    basis="statistic",
    reasons=(
        ReasonPart(
            "signal", "falls", 1, "Every output is shorter than the one before."
        ),
        ReasonPart("quiet", "not_falling", 7, "One output grew."),
        ReasonPart("not_applicable", "too_short", 3, "3 serial calls, needs 5."),
        ReasonPart(
            "not_applicable", "usage_missing", 1, "usage missing on 1 of 6 calls"
        ),
    ),
)

DRIFT = CheckPart(
    slug="tool-drift",
    label="Tool drift",
    version=1,
    level="review_signal",
    observes="Shannon entropy of tool names in the first and the last 4 calls of a trace.",
    null_model="The same calls in any order (permutation of the trace's own calls).",
    material_when="The entropy falls by at least 0.3 nats.",
    next_step="Look whether the agent repeats one tool because it is stuck.",
    parameters={"window": 4, "least_fall": 0.3},
    signals=22,
    queued=22,
    quiet=39,
    not_applicable=139,
    with_null=61,
    expected=19.274,
    by_chance=ByChancePart(22, 61, 19.274, 12, 27, 0.269, "exact (Poisson-binomial)"),
    basis="statistic",
    reasons=(
        ReasonPart("signal", "collapse", 22, "The entropy fell."),
        ReasonPart("quiet", "open", 39, "The entropy did not fall."),
        ReasonPart("not_applicable", "too_few_calls", 139, "5 tool calls, needs 8."),
    ),
)


def upload(**changes: Any) -> UploadPart:
    part = UploadPart(
        id=4,
        name="gpt-4o-airline.json",
        sha256="9f2c" * 16,
        size=4_102_331,
        state="done",
        failure="",
        format="tau_bench",
        reader_version=1,
        traces=200,
        steps=5_233,
        model_calls=2_310,
        tool_calls=1_162,
        usage_known=0,
        duplicates=0,
        rejected=0,
        notes=("Usage is reported on no message.",),
        received_at="2026-11-30T06:30:00Z",
    )
    return msgspec.structs.replace(part, **changes)


def trace(**changes: Any) -> TracePart:
    part = TracePart(
        id=17,
        name="airline task 12, trial 3",
        native_id=None,
        content_hash="ab12" * 16,
        upload="gpt-4o-airline.json",
        upload_sha256="9f2c" * 16,
        task="airline-12",
        trial=3,
        outcome="fail",
        outcome_words="fail",
        outcome_source="reward",
    )
    return msgspec.structs.replace(part, **changes)


def history(**changes: Any) -> HistoryPart:
    part = HistoryPart(
        act="decided",
        at="2026-11-30T07:01:12Z",
        by="Mori Aiko",
        verdict="confirm",
        reason="",
        note="",
        failure_kind="",
        where_agent="",
        where_step=None,
        evidence_hash="cd34" * 16,
    )
    return msgspec.structs.replace(part, **changes)


def decay_signal(**changes: Any) -> SignalPart:
    evidence = EvidencePart(
        scope="invocation 2, sequence 1",
        reason="Every one of 6 outputs is shorter than the one before; the last retains 38.4 % of the first, which is under the bound of 60 %.",
        agent="writer",
        model="gpt-4o-2024-08-06",
        provider="openai",
        began="the invocation began",
        ended="the invocation ended",
        order="time",
        length=6,
        first=112.0,
        last=43.0,
        ratio=43 / 112,
        effect=1 - 43 / 112,
        effect_bound=0.4,
        usage_known=6,
        usage_missing=0,
        chance=ChancePart(
            value=1 / 720,
            numerator="1",
            denominator="720",
            floor=1 / 720,
            method="exact count of permutations",
            model="every order of the same lengths is equally likely",
            assumptions="the calls are exchangeable",
        ),
        chance_of_signal=1 / 720,
        series=SeriesPart(
            unit="output tokens",
            steps=(3, 5, 7, 9, 11, 13),
            values=(112.0, 96.0, 81.0, 67.0, 52.0, 43.0),
            threshold=67.2,
        ),
        steps=(3, 5, 7, 9, 11, 13),
        not_modelled=(
            "serial dependence: under AR(1) with phi 0.5 such an order of five calls has 2.4 %",
            "the content of the answers",
        ),
        facts={"mann_kendall": {"S": -15, "p": 0.00139}, "phi": [0, 0.3, 0.5]},
        parameters=DECAY.parameters,
    )
    part = SignalPart(
        id=31,
        check="output-decay",
        check_version=1,
        headline="Output fell from 112 to 43 tokens over 6 calls",
        reason_code="falls",
        level="review_signal",
        state="open",
        verdict="",
        reason="",
        created_at="2026-11-30T06:31:00Z",
        input_hash="ef56" * 16,
        evidence=evidence,
        trace=trace(),
    )
    return msgspec.structs.replace(part, **changes)


TOOLS = (
    "get_user_details",
    "get_reservation_details",
    "search_direct_flight",
    "calculate",
    "search_direct_flight",
    "search_direct_flight",
    "search_direct_flight",
    "search_direct_flight",
    "search_direct_flight",
)


def drift_signal(number: int, **changes: Any) -> SignalPart:
    evidence = EvidencePart(
        scope="trace",
        reason="The entropy of tool names fell from 1.386 nats in the first 4 calls to 0 in the last 4.",
        agent=None,
        model="gpt-4o",
        provider=None,
        order="file",
        length=len(TOOLS),
        first=math.log(4),
        last=0.0,
        ratio=0.0,
        effect=math.log(4),
        effect_bound=math.log(4),
        usage_known=0,
        usage_missing=12,
        chance=ChancePart(
            value=0.0182,
            standard_error=0.0011,
            floor=0.0001,
            method="10,000 seeded shuffles",
            model="the same calls in any order",
            assumptions="the calls are exchangeable",
        ),
        chance_of_signal=0.316,
        series=SeriesPart(
            unit="tool calls",
            steps=tuple(range(2, 2 + 2 * len(TOOLS), 2)),
            values=(1.0,) * len(TOOLS),
            labels=TOOLS,
        ),
        not_modelled=("that some tools can only follow others",),
        parameters=DRIFT.parameters,
    )
    part = SignalPart(
        id=number,
        check="tool-drift",
        check_version=1,
        headline="Tool use collapsed onto search_direct_flight",
        reason_code="collapse",
        level="review_signal",
        state="open",
        verdict="",
        reason="",
        created_at="2026-11-30T06:31:00Z",
        input_hash="0a9b" * 16,
        evidence=evidence,
        trace=trace(id=number, name=f"airline task {number}, trial 0", trial=0),
    )
    return msgspec.structs.replace(part, **changes)


def decided(check: str, **counts: int) -> DecisionPart:
    confirmed, dismissed = counts.get("confirmed", 0), counts.get("dismissed", 0)
    return DecisionPart(
        check=check,
        signals=counts.get("signals", 0),
        open=counts.get("open", 0),
        confirmed=confirmed,
        dismissed=dismissed,
        needs_experiment=0,
        cannot_tell=0,
        precision=rate_of(confirmed, confirmed + dismissed),
        reasons={"converged": dismissed} if dismissed else {},
    )


def document(**changes: Any) -> dict[str, Any]:
    """The JSON values of a document; by default without a signal and an assessment."""
    whole = ReportDocument(
        format_version=FORMAT_VERSION,
        product_version="0.1.0",
        project="Airline refunds",
        project_slug="airline-refunds",
        title="Release 12: airline agent",
        generated_at="2026-11-30T07:10:42Z",
        generated_by="Mori Aiko",
        filter={"view": "open", "sort": "rarest"},
        filter_words="open signals, rarest by chance first",
        scope_words="the whole project",
        headline=NOT_ASSESSED,
        counts=CountsPart(
            uploads=1,
            traces=200,
            steps=5_233,
            model_calls=2_310,
            tool_calls=1_162,
            usage_known=0,
            errors=3,
            tasks=50,
            trials=200,
            outcomes={"pass": 84, "fail": 116, "score": 0, "unknown": 0},
        ),
        checks=(DECAY, DRIFT),
        decisions=(decided(""),),
        signals=(),
        signals_selected=0,
        uploads=(upload(),),
        not_checked=(
            "Usage is missing on 2,310 of 2,310 model calls (100 %).",
            NOTHING_REPLAYED,
        ),
        left_out=(),
    )
    built: dict[str, Any] = msgspec.to_builtins(
        msgspec.structs.replace(whole, **changes)
    )
    return built


def with_collapses(count: int) -> dict[str, Any]:
    """A document like that of the tau-bench airline file: `count` collapses."""
    silent = msgspec.structs.replace(
        DECAY,
        signals=0,
        queued=0,
        quiet=0,
        not_applicable=200,
        with_null=0,
        expected=None,
        by_chance=None,
        reasons=(
            ReasonPart(
                "not_applicable", "usage_missing", 200, "usage missing on 9 of 9 calls"
            ),
        ),
    )
    return document(
        checks=(silent, DRIFT),
        signals=tuple(drift_signal(number) for number in range(1, count + 1)),
        signals_selected=count,
        decisions=(
            decided("", signals=count, open=count),
            decided("tool-drift", signals=count, open=count),
        ),
    )


NOTE = (
    "出力が短くなったのは、要約の段階で文脈が失われたため。\n二回目の確認が必要です。"
)


def with_decision() -> dict[str, Any]:
    """A decay that was dismissed, taken back, and confirmed with a Japanese note."""
    signal = decay_signal(
        state="decided",
        verdict="confirm",
        history=(
            history(verdict="dismiss", reason="converged", at="2026-11-30T06:50:00Z"),
            history(act="undone", verdict="", at="2026-11-30T06:51:00Z"),
            history(
                note=NOTE, failure_kind="reasoning", where_agent="writer", where_step=11
            ),
        ),
    )
    return document(
        signals=(signal,),
        signals_selected=1,
        decisions=(
            decided("", signals=4, open=0, confirmed=3, dismissed=1),
            decided("output-decay", signals=4, open=0, confirmed=3, dismissed=1),
        ),
    )
