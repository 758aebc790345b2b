"""Traces out of the spans of a file: one trace for each trace id.

Every span becomes one step. Model calls are the leaves only; what a wrapper says of
its calls together is compared with them, never added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from apps.engine.reading import genai
from apps.engine.reading.answer_facts import finish_in
from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.genai_bodies import body_of, requested_ids
from apps.engine.reading.ground_truth import parted
from apps.engine.reading.span_agents import Owners
from apps.engine.reading.span_tree import SpanTree
from apps.engine.reading.spans import (
    STATUS_ERROR,
    STATUS_OK,
    Span,
    SpanStore,
    TraceFacts,
)
from apps.engine.reading.text_limits import (
    IDENTIFIER,
    LABEL,
    MESSAGE,
    NAME,
    Remarks,
    clip,
)
from apps.engine.reading.token_counts import usage_of
from apps.engine.reading.unique_ids import unique_id
from apps.engine.trace import (
    Body,
    ModelCall,
    OrderSource,
    Outcome,
    OutcomeKind,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
)

_OUTCOMES: Final = {"pass": OutcomeKind.PASS, "fail": OutcomeKind.FAIL}


Mark = Callable[[list[Span], Remarks], None]
"""What a format knows of a whole trace, written into the facts of its spans."""


def traces_of(store: SpanStore, mark: Mark | None = None) -> Iterator[Trace]:
    """Yield the trace of each trace id, in the order of first appearance.

    `mark` is given all spans of a trace before anything is made of them.
    """
    for trace_id, spans in store.traces.items():
        remarks = Remarks()
        duplicates = store.duplicates.get(trace_id)
        if duplicates:
            remarks.add("Copies of spans with the same id, read once: {n}.", duplicates)
        facts = store.facts.get(trace_id) or TraceFacts()
        for sentence in facts.notes:
            remarks.add(sentence)
        whole = list(spans.values())
        if mark is not None:
            mark(whole, remarks)
        builder = _Builder(trace_id, whole, remarks)
        yield builder.trace(facts)


class _Builder:
    """Builds one trace."""

    def __init__(self, trace_id: str, spans: list[Span], remarks: Remarks) -> None:
        self._trace_id = trace_id
        self._remarks = remarks
        self._tree = SpanTree(spans, remarks)
        self._owners = Owners(self._tree, remarks)
        self._bodies: list[Body | None] = []
        self._requests: dict[str, int] = {}

    def trace(self, facts: TraceFacts) -> Trace:
        """Return the trace of the spans; what `facts` says comes before the spans."""
        tree, remarks = self._tree, self._remarks
        self._remark_units()
        statuses = [_status(span) for span in tree.spans]
        self._bodies = [
            body_of(span, kind)
            for span, kind in zip(tree.spans, tree.kinds, strict=True)
        ]
        steps = tuple(self._steps(statuses))
        self._compare_wrappers(steps)
        starts = [span.start_ns for span in tree.spans if span.start_ns is not None]
        ends = [span.end_ns for span in tree.spans if span.end_ns is not None]
        root = tree.spans[tree.main_root()]
        resource = {"resource": root.resource} if root.resource else {}
        metadata, ground_truth = parted(facts.metadata)
        return Trace(
            name=clip(facts.name, NAME, remarks)
            or clip(root.name, NAME, remarks)
            or f"trace {self._trace_id}",
            steps=steps,
            invocations=self._owners.invocations(statuses),
            native_id=unique_id(self._trace_id) if facts.is_id_unique else None,
            session=self._told(facts.session, genai.session_of, IDENTIFIER),
            start_ns=min(starts, default=None),
            end_ns=max(ends, default=None),
            order=OrderSource.TIME if tree.has_all_starts else OrderSource.FILE,
            outcome=facts.outcome or self._outcome(),
            task=self._told(facts.task, genai.task_of, LABEL),
            trial=self._first(genai.trial_of) if facts.trial is None else facts.trial,
            metadata=resource | metadata,
            labels=self._labels() | ground_truth | facts.labels,
            notes=remarks.sentences(),
        )

    def _told(
        self, fact: Any, read: Callable[[dict[str, Any]], Any], limit: int
    ) -> str | None:
        told = clip(fact, limit, self._remarks)
        return told or clip(self._first(read), limit, self._remarks)

    def _first(self, read: Callable[[dict[str, Any]], Any]) -> Any:
        """Return the first recorded value, from the top of the tree downwards."""
        for at in self._tree.top_down:
            value = read(self._tree.spans[at].attributes)
            if value is not None:
                return value
        return None

    def _labels(self) -> dict[str, Any]:
        """Return the expected answers of all spans, those nearest to the root last."""
        found: dict[str, Any] = {}
        for at in reversed(self._tree.top_down):
            found.update(genai.labels_of(self._tree.spans[at].attributes))
        return found

    def _outcome(self) -> Outcome:
        recorded = self._first(lambda attributes: attributes.get("evalsite.outcome"))
        if not isinstance(recorded, str):
            return Outcome()
        return Outcome(
            kind=_OUTCOMES.get(recorded.casefold(), OutcomeKind.UNKNOWN),
            label=clip(recorded, LABEL, self._remarks),
            source="evalsite.outcome",
        )

    def _remark_units(self) -> None:
        units = {span.unit for span in self._tree.spans if span.unit}
        for unit in sorted(units):
            self._remarks.add(f"Times stood in {unit} where nanoseconds belong.")
        spans = self._tree.spans
        reversed_times = sum(
            span.start_ns is not None
            and span.end_ns is not None
            and span.end_ns < span.start_ns
            for span in spans
        )
        if reversed_times:
            self._remarks.add("Spans that end before they start: {n}.", reversed_times)
        if not self._tree.has_all_starts:
            self._remarks.add("Spans without a start, so the order is the file's: {n}.",
                              sum(span.start_ns is None for span in spans))  # fmt: skip

    def _steps(self, statuses: list[StepStatus]) -> Iterator[Step]:
        tree, remarks = self._tree, self._remarks
        for at, span in enumerate(tree.spans):
            error_type, error_message = _error(span)
            failed = statuses[at] is StepStatus.ERROR
            yield Step(
                seq=at,
                kind=tree.kinds[at],
                invocation=self._owners.owner[at],
                parent=tree.parents[at],
                name=self._name(at, span),
                start_ns=span.start_ns,
                end_ns=span.end_ns,
                status=statuses[at],
                error_type=clip(error_type, IDENTIFIER, remarks) if failed else None,
                error_message=clip(error_message, MESSAGE, remarks) if failed else None,
                native_id=span.span_id,
                native_kind=clip(genai.native_kind(span), IDENTIFIER, remarks),
                call=self._call(at, span),
                body=self._bodies[at],
            )

    def _name(self, at: int, span: Span) -> str | None:
        kind = self._tree.kinds[at]
        if kind is StepKind.TOOL_CALL:
            return clip(genai.tool_name(span), NAME, self._remarks)
        return clip(span.name, NAME, self._remarks)

    def _call(self, at: int, span: Span) -> ModelCall | ToolCall | None:
        kind = self._tree.kinds[at]
        if kind is StepKind.MODEL_CALL:
            return self._model_call(at, span)
        if kind is StepKind.TOOL_CALL:
            told = genai.call_id_of(span)
            call_id = clip(told, IDENTIFIER, self._remarks)
            return ToolCall(
                name=clip(genai.tool_name(span), NAME, self._remarks)
                or "(unnamed tool)",
                call_id=call_id,
                requested_by=self._requests.get(call_id) if call_id else None,
            )
        return None

    def _model_call(self, at: int, span: Span) -> ModelCall:
        remarks = self._remarks
        counts, bad = genai.counts_of(span)
        if bad:
            remarks.add(
                "Token counts that are no counts (negative, fractions, text), read as "
                "not recorded: {n}.",
                bad,
            )
        facts = genai.call_facts(span)
        body = self._bodies[at]
        told = facts.finish
        if told is None and body is not None:
            told = finish_in(body.output)
        finish, finish_raw = finish_of(told)
        ids = facts.requested_ids or (requested_ids(body.output) if body else ())
        asked = tuple(one[:IDENTIFIER] for one in ids)
        for one in asked:
            self._requests.setdefault(one, at)
        return ModelCall(
            provider=clip(facts.provider, NAME, remarks),
            model=clip(facts.model, NAME, remarks),
            finish=finish,
            finish_raw=clip(finish_raw, IDENTIFIER, remarks),
            usage=usage_of(counts, facts.usage_state),
            response_id=clip(facts.response_id, IDENTIFIER, remarks),
            conversation=clip(facts.conversation, IDENTIFIER, remarks),
            is_placeholder=facts.is_placeholder,
            tool_call_ids=asked,
        )

    def _compare_wrappers(self, steps: tuple[Step, ...]) -> None:
        """Remark on wrappers whose output tokens are not the sum of their calls'.

        A wrapper may count all calls below it, or leave those of other agents out.
        """
        tree = self._tree
        sums = _Sums(steps)
        differing: list[tuple[int, int]] = []
        for at in reversed(tree.top_down):
            if steps[at].kind is StepKind.MODEL_CALL or not tree.children[at]:
                continue
            found = sums.add_up(at, tree.children[at])
            told = genai.told_output(tree.spans[at])
            if told is not None and found and told not in found:
                differing.append((told, max(found)))
        if differing:
            told, total = differing[-1]
            self._remarks.add(
                "Wrapper spans whose output tokens differ from the sum of their calls: "
                f"{{n}} (one says {told:,}, its calls {total:,}).",
                len(differing),
            )


class _Sums:
    """Output tokens below each step: of all calls, and without those of inner agents."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self._steps = steps
        self._all = [_known_output(step) for step in steps]
        self._own = list(self._all)

    def add_up(self, at: int, children: list[int]) -> set[int]:
        """Set the sums of a step from those of its children; return what is known."""
        inner = StepKind.AGENT
        own = [child for child in children if self._steps[child].kind is not inner]
        self._all[at] = _sum([self._all[child] for child in children])
        self._own[at] = _sum([self._own[child] for child in own])
        both = (self._all[at], self._own[at])
        return {total for total in both if total is not None}


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _known_output(step: Step) -> int | None:
    call = step.call
    return call.usage.output_total if isinstance(call, ModelCall) else None


def _status(span: Span) -> StepStatus:
    if span.status == STATUS_ERROR:
        return StepStatus.ERROR
    if span.end_ns is None:
        return StepStatus.UNFINISHED
    return StepStatus.OK if span.status == STATUS_OK else StepStatus.UNSET


def _error(span: Span) -> tuple[Any, Any]:
    """Return type and message of the error, from the last exception event or status."""
    if span.facts is not None:
        return span.facts.error_type, span.facts.error_message or span.status_message
    raised = [event for event in span.events if event.name == "exception"]
    details = raised[-1].attributes if raised else {}
    error_type = details.get("exception.type") or span.attributes.get("error.type")
    message = span.status_message or details.get("exception.message")
    return error_type, message
