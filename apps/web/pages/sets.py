"""What the pages of trace sets need: rows, the traces of a set, the state of a baseline."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from apps.accounts.permissions import Permission
from apps.traces.models import Trace, TraceSet
from apps.traces.queries import PAGE_SIZE
from apps.traces.sets import (
    MOST_IDS,
    MOST_TRACES,
    Chosen,
    SetRow,
    WrongSet,
    chosen_in_words,
    chosen_traces,
    set_rows,
    sets_of,
    traces_in_set,
)
from apps.traces.sides import Choice, choices
from apps.web.access import Place
from apps.web.numbers import whole
from apps.web.pages.traces import filter_from, query_of

SETS_PER_PAGE: Final = 25
_MODELS_SHOWN: Final = 3


class SetLine(msgspec.Struct, frozen=True):
    """One set in the list."""

    row: SetRow
    models: str
    is_wanted: bool


class SetsPage(msgspec.Struct, frozen=True):
    """One page of the sets of a project."""

    place: Place
    lines: list[SetLine]
    next_url: str
    first_url: str
    refusal: str


class BaselineState(msgspec.Struct, frozen=True):
    """Whether a set is the baseline, becomes it, or could not; what the checks read."""

    is_baseline: bool
    is_wanted: bool
    done: int
    total: int
    failure: str
    latency_traces: int
    error_traces: int
    names: int
    made_of: int
    refusal: str


class SetPage(msgspec.Struct, frozen=True):
    """One set with its traces."""

    place: Place
    row: SetRow
    made_from: str
    list_query: str
    models: str
    rows: list[Trace]
    next_url: str
    first_url: str
    baseline: BaselineState
    others: list[Choice]
    refusal: str


class NewSetPage(msgspec.Struct, frozen=True):
    """What a new set would hold, said before it is made."""

    place: Place
    query: str
    words: str
    count: int
    most: int
    ids: str
    typed: Mapping[str, str]
    error: str

    @property
    def is_too_large(self) -> bool:
        """Whether more traces match than a set holds."""
        return self.count > self.most


def sets_page(place: Place, query: Mapping[str, str]) -> SetsPage:
    """The sets of the project, newest first."""
    before = whole(query.get("before", ""))
    found = list(sets_of(place.project, before=before)[: SETS_PER_PAGE + 1])
    shown = found[:SETS_PER_PAGE]
    wanted = set(
        TraceSet.objects.filter(
            pk__in=[one.pk for one in shown], baseline__has_key="wanted"
        ).values_list("pk", flat=True)
    )
    return SetsPage(
        place=place,
        lines=[
            SetLine(row, _models(row), is_wanted=row.trace_set.pk in wanted)
            for row in set_rows(shown)
        ],
        next_url=f"?before={shown[-1].pk}" if len(found) > SETS_PER_PAGE else "",
        first_url="?" if before is not None else "",
        refusal=place.refusal(Permission.MANAGE_SETS),
    )


def _models(row: SetRow) -> str:
    named = [f"{name} ({count:,})" for name, count in row.models[:_MODELS_SHOWN]]
    more = len(row.models) - _MODELS_SHOWN
    return ", ".join([*named, f"{more} more"] if more > 0 else named)


def baseline_state(place: Place, trace_set: TraceSet) -> BaselineState:
    """How far a set is on the way to being the baseline."""
    kept: dict[str, Any] = trace_set.baseline or {}
    wanted = kept.get("wanted") or {}
    latencies, failures = kept.get("latencies") or {}, kept.get("failures") or {}
    names = {*latencies.get("samples", {}), *failures.get("counts", {})}
    return BaselineState(
        is_baseline=trace_set.is_baseline,
        is_wanted=bool(wanted),
        done=wanted.get("done", 0),
        total=wanted.get("total", 0),
        failure=kept.get("failure", ""),
        latency_traces=len(latencies.get("scores", ())),
        error_traces=len(failures.get("scores", ())),
        names=len(names),
        made_of=kept.get("traces", 0),
        refusal=place.refusal(Permission.MANAGE_CHECKS),
    )


def set_page(place: Place, trace_set: TraceSet, query: Mapping[str, str]) -> SetPage:
    """One set: what it holds, one page of its traces, and what it may stand beside."""
    after = whole(query.get("after", ""))
    found = list(traces_in_set(trace_set, after=after)[: PAGE_SIZE + 1])
    shown = found[:PAGE_SIZE]
    [row] = set_rows([trace_set])
    made_from = trace_set.made_from
    return SetPage(
        place=place,
        row=row,
        made_from=str(made_from.get("words", "")),
        list_query=_query_of_filter(made_from),
        models=_models(row),
        rows=shown,
        next_url=f"?after={shown[-1].pk}" if len(found) > PAGE_SIZE else "",
        first_url="?" if after is not None else "",
        baseline=baseline_state(place, trace_set),
        others=[one for one in choices(place.project) if one.key != trace_set.slug],
        refusal=place.refusal(Permission.MANAGE_SETS),
    )


def _query_of_filter(made_from: dict[str, Any]) -> str:
    """The list of traces under the same filter; empty where ids were given by hand."""
    if made_from.get("ids"):
        return ""
    fields = {key: str(value) for key, value in made_from.get("filter", {}).items()}
    return query_of(filter_from(fields))


def chosen_from(query: Mapping[str, str], ids: str) -> Chosen:
    """The traces that an address means, or these `ids`; raises `WrongSet`."""
    parts = [part for part in re.split(r"[\s,;]+", ids) if part]
    numbers = [whole(part) for part in parts]
    if None in numbers:
        wrong = parts[numbers.index(None)][:40]
        raise WrongSet(f"“{wrong}” is no trace id. Ids are whole numbers.")
    if len(numbers) > MOST_IDS:
        raise WrongSet(f"At most {MOST_IDS:,} ids can be given by hand.")
    unique = tuple(dict.fromkeys(one for one in numbers if one is not None))
    return Chosen(where=filter_from(query), ids=unique)


def new_set_page(
    place: Place, query: Mapping[str, str], typed: Mapping[str, str], error: str = ""
) -> NewSetPage:
    """What a set of the traces that the address means would hold."""
    ids = typed.get("ids", query.get("ids", ""))
    try:
        chosen = chosen_from(query, ids)
        count = chosen_traces(place.project, chosen).count()
    except WrongSet as wrong:
        chosen, count, error = Chosen(filter_from(query)), 0, str(wrong)
    return NewSetPage(
        place=place,
        query=query_of(chosen.where),
        words=chosen_in_words(place.project, chosen),
        count=count,
        most=MOST_TRACES,
        ids=ids[:20_000].replace("\x00", ""),
        typed=typed,
        error=error,
    )
