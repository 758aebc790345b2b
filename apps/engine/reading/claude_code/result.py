"""The result line at the end of a run of Claude Code: its totals and how it ended.

Totals are compared with the sum of the model calls of the file, never used as usage.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.claude_code.lines import SessionLines
from apps.engine.reading.recorded import listed, text_in
from apps.engine.reading.token_counts import usage_of, whole_number
from apps.engine.reading.transcript import Draft, Transcript
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import ModelCall, StepKind, StepStatus

_KEPT: Final = (
    "subtype", "is_error", "num_turns", "duration_ms", "duration_api_ms",
    "total_cost_usd", "stop_reason", "terminal_reason",
)  # fmt: skip
_CAPPED: Final = frozenset({"error_max_turns", "error_max_budget_usd"})
_INPUTS: Final = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")


def add_result(lines: SessionLines, made: Transcript) -> dict[str, Any]:
    """Add what the result lines tell to the transcript; return the metadata.

    A run that failed or was capped gets a step that says so. The totals of the last
    result are compared with the model calls and a difference is remarked on.
    """
    metadata = dict(lines.about)
    if not lines.results:
        return metadata
    last = lines.results[-1]
    metadata["result"] = {key: last[key] for key in _KEPT if last.get(key) is not None}
    denied = sum(len(listed(one.get("permission_denials"))) for one in lines.results)
    if denied:
        made.remarks.add("Tool calls that the permission rules denied: {n}.", denied)
    for result in lines.results:
        _add_end(result, made)
    by_model = last.get("modelUsage")
    if isinstance(by_model, dict) and by_model:
        _compare_models(by_model, made)
    else:
        _compare_totals(lines.results, made)
    return metadata


def _add_end(result: dict[str, Any], made: Transcript) -> None:
    subtype = text_in(result, "subtype")
    capped = subtype in _CAPPED
    failed = result.get("is_error") is True or str(subtype).startswith("error")
    alone = not any(isinstance(one.call, ModelCall) for one in made.drafts)
    if not failed and not alone:
        return
    if alone:
        made.remarks.add(
            "The file holds only the result of a run: its model calls are not recorded."
        )
    words = result.get("errors") or result.get("result")
    status = StepStatus.UNFINISHED if capped else StepStatus.ERROR
    made.add(
        Draft(
            kind=StepKind.SYSTEM,
            status=status if failed else StepStatus.OK,
            error_type=subtype if failed else None,
            error_message=words if failed and isinstance(words, str) else None,
            native_id=result.get("uuid"),
            native_kind="result",
            output=words,
        )
    )
    if failed:
        made.invocations[0].status = status
        made.remarks.add(
            f"The run ended with {str(subtype)[:60]}, which says nothing of its task: the "
            "outcome is unknown."
        )


def _sums(made: Transcript) -> dict[str, list[int]]:
    """Input and output tokens of the calls by model; placeholders have none."""
    sums: dict[str, list[int]] = {}
    for draft in made.drafts:
        call = draft.call
        if isinstance(call, ModelCall) and call.usage.is_known:
            pair = sums.setdefault(call.model or "", [0, 0])
            pair[0] += call.usage.input_total or 0
            pair[1] += call.usage.output_total or 0
    return sums


def _compare_models(by_model: dict[str, Any], made: Transcript) -> None:
    sums = _sums(made)
    elsewhere = []
    for model, usage in by_model.items():
        if not isinstance(usage, dict):
            continue
        given = sum(whole_number(usage.get(key)) or 0 for key in _INPUTS)
        output = whole_number(usage.get("outputTokens")) or 0
        own = sums.get(model) or sums.get(model.partition("[")[0])
        if own is None:
            elsewhere.append(f"{model[:60]} ({output} output)")
        else:
            _remark(made, (given, output), (own[0], own[1]))
    if elsewhere:
        made.remarks.add(
            "The result of the run counts tokens of models that made no call in the "
            f"file: {', '.join(elsewhere[:10])}."
        )


def _compare_totals(results: list[dict[str, Any]], made: Transcript) -> None:
    given = output = 0
    for result in results:
        usage = usage_of(usage_counts(result.get("usage")))
        given += usage.input_total or 0
        output += usage.output_total or 0
    sums = _sums(made).values()
    if output:
        _remark(
            made, (given, output), (sum(s[0] for s in sums), sum(s[1] for s in sums))
        )


def _remark(made: Transcript, told: tuple[int, int], found: tuple[int, int]) -> None:
    if told != found:
        made.remarks.add(
            f"The result of the run counts {told[0]} input and {told[1]} output tokens; "
            f"the model calls in the file add up to {found[0]} and {found[1]}."
        )
