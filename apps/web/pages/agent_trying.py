"""Trying a contract or a way to find decisions on what an agent really did.

At most 50 recent invocations are looked at, their texts are loaded once, and nothing is
stored. What was left out, and why, is said.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from apps.agents.models import Agent
from apps.agents.queries import names_of
from apps.engine.agent_contracts import (
    CompiledContract,
    ContractState,
    Seen,
    Unread,
    plain_sentence,
)
from apps.engine.agent_names import agent_key
from apps.engine.bodies.canonical import canonical, opened
from apps.engine.conduct import Conduct, InvocationConduct, conducts_of, whole_conduct
from apps.engine.contracts.budget import Budget
from apps.engine.extraction import (
    DecisionSpec,
    DecisionState,
    Extracted,
    extractor,
    sentence_of,
)
from apps.engine.trace import Trace as EngineTrace
from apps.scoring.models import Conduct as StoredConduct
from apps.traces.contents import packed_sizes, stored_contents
from apps.traces.models import Trace
from apps.traces.storage import size_in_words
from apps.web.words import WITHOUT_DECISION

MOST_TRIED: Final = 50
MOST_BYTES: Final = 2_000_000
"""Of packed texts that a preview unpacks."""

LONGEST_TRIED: Final = 5_000
LARGEST_TRIED: Final = 8_000_000
"""Steps, and bytes of packed texts, of the largest trace that is unpacked for it."""

TRYING_SECONDS: Final = 3.0
LONGEST_SHOWN: Final = 280
MOST_BEFORE: Final = 5


class Recent(msgspec.Struct, frozen=True):
    """Recent runs of an agent: each trace with what the agent did in it.

    `left_out` says in a sentence what was not looked at, "" for nothing.
    """

    runs: list[tuple[Trace, EngineTrace, Conduct]]
    left_out: str = ""

    @property
    def invocations(self) -> int:
        """How many invocations these are."""
        return sum(len(conduct.invocations) for _, _, conduct in self.runs)


class Tried(msgspec.Struct, frozen=True):
    """One invocation as a preview shows it; `step` counts from 1, for the link.

    `invocation` is its number in the trace, None for what no named agent did.
    """

    trace: Trace
    step: int | None
    given: str
    output: str
    state: str = ""
    sentence: str = ""
    expected: str = ""
    found: str = ""
    invocation: int | None = None


class Group(msgspec.Struct, frozen=True):
    """What came out alike: a code, words for the count, a tone, a symbol, the rows."""

    code: str
    words: str
    tone: str
    symbol: str
    rows: list[Tried]


class ContractPreview(msgspec.Struct, frozen=True):
    """What a contract says of recent invocations. `errors` are label and sentence."""

    says: str = ""
    groups: list[Group] = []
    tried: int = 0
    left_out: str = ""
    errors: list[tuple[str, str]] = []


class Distinct(msgspec.Struct, frozen=True):
    """One decision, or a reason for none, with how many runs have it.

    `before` are its writings before the normalisers, `more` counts further ones.
    """

    shown: str
    is_decided: bool
    count: int
    before: list[str]
    more: int = 0


class DecisionPreview(msgspec.Struct, frozen=True):
    """What is found as the decision in recent runs, after and before the normalisers."""

    says: str = ""
    distinct: list[Distinct] = []
    before: int = 0
    rows: list[Tried] = []
    tried: int = 0
    left_out: str = ""
    errors: list[tuple[str, str]] = []

    @property
    def decisions(self) -> int:
        """How many distinct decisions there are."""
        return sum(one.is_decided for one in self.distinct)

    @property
    def without(self) -> int:
        """In how many runs there is none."""
        return sum(one.count for one in self.distinct if not one.is_decided)


_GROUPS: Final = (
    (ContractState.BROKEN, "breaks it", "break it", "red", "circle-x"),
    (ContractState.HELD, "holds", "hold", "green", "circle-check"),
    (ContractState.UNDECIDED, "undecided", "undecided", "amber", "circle-help"),
    (
        ContractState.DOES_NOT_APPLY,
        "does not apply",
        "do not apply",
        "",
        "circle-dashed",
    ),
)


def recent_runs(
    project_id: int, agent: Agent | None, *, most: int = MOST_TRIED
) -> Recent:
    """The newest runs of an agent, or of the whole system, with their texts.

    At most `most` invocations and 2 MB of packed texts; a fixed number of queries for
    1,000 steps.
    """
    traces = _newest(project_id, agent, most)
    sizes = packed_sizes([trace.pk for trace in traces])
    short = [
        trace
        for trace in traces
        if trace.step_count <= LONGEST_TRIED and sizes[trace.pk] <= LARGEST_TRIED
    ]
    chosen = _within_bytes(short, sizes)
    keys = set() if agent is None else {one.key for one in names_of(agent)}
    runs: list[tuple[Trace, EngineTrace, Conduct]] = []
    end = time.monotonic() + TRYING_SECONDS
    seen, count = 0, 0
    for content in stored_contents(chosen):
        if count >= most or (runs and time.monotonic() > end):
            break
        seen += 1
        trace = content.decoded()
        for conduct in _conducts(trace, keys, is_whole=agent is None):
            kept = conduct.invocations[: most - count]
            if kept:
                runs.append((content.trace, trace, Conduct(conduct.agent, kept)))
                count += len(kept)
    left = len(traces) - len(short), len(short) - seen if count < most else 0
    return Recent(runs=runs, left_out=_left_out(*left))


def _newest(project_id: int, agent: Agent | None, most: int) -> list[Trace]:
    rows = Trace.objects.filter(project_id=project_id)
    if agent is not None:
        newest = StoredConduct.objects.filter(agent=agent, trace__is_replay=False)
        newest = newest.order_by("-trace_id")
        rows = rows.filter(
            pk__in=list(newest.values_list("trace_id", flat=True)[:most])
        )
    return list(rows.select_related("task").order_by("-pk")[:most])


def _within_bytes(traces: Sequence[Trace], sizes: Mapping[int, int]) -> list[Trace]:
    """The first of them whose packed texts are 2 MB together, at least one."""
    taken: list[Trace] = []
    total = 0
    for trace in traces:
        total += sizes[trace.pk]
        if taken and total > MOST_BYTES:
            break
        taken.append(trace)
    return taken


def _conducts(
    trace: EngineTrace, keys: set[str], *, is_whole: bool
) -> Iterator[Conduct]:
    if is_whole:
        yield whole_conduct(trace)
        return
    found = [one for one in conducts_of(trace) if agent_key(one.agent) in keys]
    if not found:
        return
    invocations = [one for conduct in found for one in conduct.invocations]
    invocations.sort(key=lambda one: one.steps[0].seq)
    yield Conduct(found[0].agent, tuple(invocations))


def _left_out(too_long: int, too_much: int) -> str:
    said = []
    if too_long:
        traces = "1 trace is" if too_long == 1 else f"{too_long} traces are"
        said.append(
            f"{traces} longer than {LONGEST_TRIED:,} steps, or "
            f"{size_in_words(LARGEST_TRIED)} packed, and not tried here."
        )
    if too_much:
        traces = (
            "1 older trace was" if too_much == 1 else f"{too_much} older traces were"
        )
        said.append(f"{traces} left out to keep this quick.")
    return " ".join(said)


def contract_preview(
    recent: Recent, contract: CompiledContract, decision: DecisionSpec | Unread
) -> ContractPreview:
    """What a contract says of recent invocations, what breaks it first."""
    by_state: dict[ContractState, list[Tried]] = {}
    end = time.monotonic() + TRYING_SECONDS
    tried = 0
    for trace, content, conduct in recent.runs:
        if tried and time.monotonic() > end:
            break
        for one in conduct.invocations:
            seen = Seen(one, decision=decision, task=content.task or "")
            answer = contract.answer(seen, Budget())
            row = shown(trace, one)
            step = row.step if answer.step is None else answer.step + 1
            by_state.setdefault(answer.state, []).append(
                msgspec.structs.replace(
                    row,
                    step=step,
                    state=answer.state.value,
                    sentence=answer.sentence,
                    expected=answer.expected,
                    found=answer.found,
                )
            )
            tried += 1
    left = recent.invocations - tried
    late = f" {left} more were not tried in {TRYING_SECONDS:g} seconds." if left else ""
    return ContractPreview(
        says=plain_sentence(contract.spec),
        groups=[
            Group(
                code=state.value,
                words=f"{len(rows)} {one if len(rows) == 1 else many}",
                tone=tone,
                symbol=symbol,
                rows=rows,
            )
            for state, one, many, tone, symbol in _GROUPS
            if (rows := by_state.get(state, []))
        ],
        tried=tried,
        left_out=f"{recent.left_out}{late}".strip(),
    )


def decision_preview(recent: Recent, spec: DecisionSpec) -> DecisionPreview:
    """What is found as the decision in each recent run, the most frequent first."""
    asked = extractor(spec)
    before = extractor(msgspec.structs.replace(spec, normalisers=()))
    after: Counter[str] = Counter()
    words: dict[str, tuple[str, bool]] = {}
    writings: dict[str, Counter[str]] = {}
    rows = []
    for trace, _, conduct in recent.runs:
        found = asked.extracted(conduct)
        raw = before.extracted(conduct)
        key = found.value if found.is_decided else f"\x00{found.state}"
        after[key] += 1
        words.setdefault(key, (_in_words(found), found.is_decided))
        if raw.is_decided:
            writings.setdefault(key, Counter())[raw.shown] += 1
        row = shown(trace, conduct.invocations[-1])
        rows.append(
            msgspec.structs.replace(
                row,
                step=row.step if found.step is None else found.step + 1,
                state=found.state.value,
                sentence=found.how,
                found=_in_words(found),
                expected=raw.shown if raw.is_decided else "",
            )
        )
    return DecisionPreview(
        says=sentence_of(spec),
        distinct=[
            Distinct(
                *words[key],
                count=count,
                before=[
                    text
                    for text, _ in writings.get(key, Counter()).most_common(MOST_BEFORE)
                ],
                more=max(0, len(writings.get(key, ())) - MOST_BEFORE),
            )
            for key, count in after.most_common()
        ],
        before=len({text for found in writings.values() for text in found}),
        rows=rows,
        tried=len(rows),
        left_out=recent.left_out,
    )


def _in_words(found: Extracted) -> str:
    """What is compared, as people read it, or why there is nothing to compare."""
    if found.state is not DecisionState.DECIDED:
        return WITHOUT_DECISION[found.state]
    try:
        value = json.loads(found.value)
    except (ValueError, RecursionError):
        # A long decision ends in a hash of itself.
        return _cut(found.value)
    if isinstance(value, dict) and set(value) == {"tool", "arguments"}:
        return _cut(f"{value['tool']} {canonical(value['arguments'])}")
    return _cut(value if isinstance(value, str) else found.value)


def shown(trace: Trace, one: InvocationConduct) -> Tried:
    """An invocation with its input and output cut to a few lines."""
    return Tried(
        trace=trace,
        step=one.steps[0].seq + 1 if one.steps else None,
        given=brief(one.input),
        output=brief(one.output),
        state=one.status.value,
        invocation=one.number,
    )


def brief(value: Any) -> str:
    """A recorded value as at most 280 characters, "" where none is recorded."""
    if value is None:
        return ""
    plain = opened(value)
    return _cut(plain if isinstance(plain, str) else canonical(plain))


def _cut(text: str) -> str:
    line = " ".join(text[: 4 * LONGEST_SHOWN].split())
    is_cut = len(line) > LONGEST_SHOWN or len(text) > 4 * LONGEST_SHOWN
    return f"{line[: LONGEST_SHOWN - 1]}…" if is_cut else line


def recent_rows(project_id: int, agent: Agent, *, most: int = 6) -> list[Tried]:
    """A few recent invocations of an agent with what went in and came out."""
    recent = recent_runs(project_id, agent, most=most)
    return [
        shown(trace, one)
        for trace, _, conduct in recent.runs
        for one in conduct.invocations
    ]
