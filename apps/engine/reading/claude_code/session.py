"""One session of Claude Code, or of a tool that writes like it, made into a trace.

An answer on several lines is one model call. An answer without usage that was given
again at once is a placeholder. Totals of a run are compared with the sum of its calls
and never added to it. How a run ended is no verdict on its task.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from apps.engine.reading.answer_parts import text_of_nothing
from apps.engine.reading.claude_code.events import (
    TOOL_BLOCKS,
    Call,
    Event,
    Given,
    Said,
    text_of,
)
from apps.engine.reading.claude_code.lines import MAIN, SYNTHETIC, SessionLines
from apps.engine.reading.claude_code.result import add_result
from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.offered import beside, open_ended
from apps.engine.reading.recorded import kind_of, plain_text, remark_unread, time_range
from apps.engine.reading.text_limits import IDENTIFIER, NAME, Remarks, clip
from apps.engine.reading.token_counts import usage_of
from apps.engine.reading.transcript import (
    Draft,
    Invoked,
    ToolResult,
    Transcript,
    ending_of,
)
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import (
    ModelCall,
    OrderSource,
    StepKind,
    StepStatus,
    Trace,
    Via,
)

_MAIN_AGENT: Final = "main"
_FACTS: Final = (
    "status", "agentId", "agentType", "totalTokens", "totalToolUseCount",
    "totalDurationMs", "durationMs", "interrupted", "exitCode",
    "returnCodeInterpretation", "backgroundTaskId", "usage",
)  # fmt: skip
_COUNTED: Final = {
    "repeated": "Lines that repeat an earlier line, left out: {n}.",
    "compactions": "Times the conversation was compacted, which resets the context: {n}.",
    "clears": "Times the conversation was cleared, which resets the context: {n}.",
    "rewinds": "Times the conversation was taken back to an earlier prompt: {n}.",
    "retries": "Failed requests to the model that were tried again: {n}.",
    "aliases": "Lines of other sessions that continue this one: {n}.",
}
_ABANDONED: Final = "Tool calls of an answer that was given again, never run: {n}."
_PLACEHOLDER: Final = (
    "Answers without usage that were given again at once, kept as placeholders: {n}."
)
_UNSETTLED: Final = (
    "Model calls without a stop reason, whose output count may be of the beginning of "
    "the answer: {n}."
)
_LOOSE: Final = "Subagents whose call is not in the file: {n}."


def trace_of_session(
    lines: SessionLines, *, name: str, merge_attempts: bool = False
) -> Trace:
    """Return the trace of collected lines; `name` names a session without an id.

    With `merge_attempts` the texts of a placeholder belong to the call that follows,
    for tools that write one answer in overlapping pieces.
    """
    return _Session(lines, merge_attempts=merge_attempts).trace(name)


class _Session:
    """Builds the steps of one session out of its events."""

    def __init__(self, lines: SessionLines, *, merge_attempts: bool) -> None:
        self._lines = lines
        self._remarks = Remarks()
        self._made = Transcript(self._remarks)
        self._numbers: dict[str, int] = {MAIN: 0}
        self._tools: dict[str, tuple[int, dict[str, Any]]] = {}
        self._answered: set[str] = set()
        self._merge = merge_attempts
        self._shown_later: dict[int, set[str]] = {}
        self._merged: dict[int, _Run] = {}

    def trace(self, name: str) -> Trace:
        """Return the trace; call it once."""
        lines, remarks = self._lines, self._remarks
        self._mark_placeholders(lines.events)
        for run in self._merged.values():
            run.merge()
        self._link_by_prompt()
        self._name_root()
        for event in lines.events:
            if isinstance(event, Call):
                self._add_call(event)
            elif isinstance(event, Given):
                self._add_result(event)
            else:
                self._add_words(event)
        self._join_subagents()
        metadata = add_result(lines, self._made)
        for key, words in _COUNTED.items():
            if lines.counts[key]:
                remarks.add(words, lines.counts[key])
        self._note_unread()
        steps, invocations, _ = self._made.finished()
        start, end = time_range(steps)
        session = clip(lines.session, IDENTIFIER, remarks)
        return Trace(
            name=clip(lines.about.get("slug"), NAME, remarks)
            or (f"session {session}" if session else name),
            steps=steps,
            invocations=invocations,
            session=session,
            start_ns=start,
            end_ns=end,
            order=OrderSource.FILE,
            metadata=metadata,
            notes=remarks.sentences(),
        )

    def _mark_placeholders(self, events: list[Event]) -> None:
        """Mark empty attempts that another answer of the same agent follows at once."""
        runs: dict[str, _Run] = {}
        for event in reversed(events):
            if not isinstance(event, Call):
                if not isinstance(event, Said) or event.kind is not StepKind.SYSTEM:
                    runs.pop(event.scope, None)
                continue
            ids = {str(block.get("id")) for block in event.tools()}
            run = runs.get(event.scope)
            if run is None or not event.is_empty_attempt:
                runs[event.scope] = _Run(event, ids)
                continue
            event.placeholder = True
            self._shown_later[id(event)] = ids & run.ids
            run.ids |= ids
            if self._merge:
                run.attempts.append(event)
                self._shown_later[id(event)] = ids
                self._merged[id(run.call)] = run

    def _link_by_prompt(self) -> None:
        """Find the calls of subagents that no id links: they were given the prompt."""
        tasks = self._lines.tasks
        linked = {str(one.tool) for one in self._lines.subagents.values()}
        waiting: dict[str, deque[str]] = {}
        for own_id, given in tasks.items():
            prompt = given.get("prompt")
            if isinstance(prompt, str) and own_id not in linked:
                waiting.setdefault(prompt, deque()).append(own_id)
        for one in self._lines.subagents.values():
            if (
                one.tool is None
                and isinstance(one.prompt, str)
                and waiting.get(one.prompt)
            ):
                one.tool = waiting[one.prompt].popleft()

    def _name_root(self) -> None:
        """Name the root: the main agent, or the subagent that is alone in the file."""
        scopes = {event.scope for event in self._lines.events}
        root = self._made.invocations[0]
        if len(scopes) == 1 and MAIN not in scopes:
            [scope] = scopes
            alone = self._lines.subagents[scope]
            self._numbers[scope] = 0
            root.agent, root.native_id = alone.agent, alone.agent_id
            root.via = Via.SUBAGENT
        else:
            root.agent = _MAIN_AGENT

    def _number_of(self, scope: str) -> int:
        if scope not in self._numbers:
            one = self._lines.subagents[scope]
            task = (
                self._lines.tasks.get(one.tool, {}) if isinstance(one.tool, str) else {}
            )
            self._numbers[scope] = self._made.invoke(
                Invoked(
                    agent=one.agent or task.get("subagent_type") or "subagent",
                    via=Via.SUBAGENT,
                    native_id=one.agent_id or one.tool,
                )
            )
        return self._numbers[scope]

    def _add_call(self, event: Call) -> None:
        remarks = self._remarks
        finish, raw = finish_of(event.stop)
        model = None if event.model == SYNTHETIC else clip(event.model, NAME, remarks)
        shown, thoughts = _sorted_out(event.blocks)
        if shown is None:
            shown = text_of_nothing(event.stop, asks=bool(event.tools()))
        failed = event.error is not None
        draft = Draft(
            kind=StepKind.MODEL_CALL,
            invocation=self._number_of(event.scope),
            name=model,
            start_ns=event.at,
            end_ns=event.end,
            status=StepStatus.ERROR if failed else StepStatus.UNSET,
            error_type=event.error if failed else None,
            error_message=text_of(event.blocks) if failed else None,
            native_id=event.message_id,
            native_kind="assistant",
            output=shown,
            reasoning=thoughts,
            attributes=beside(None, _offered(event)),
            call=ModelCall(
                model=model,
                finish=finish,
                finish_raw=clip(raw, IDENTIFIER, remarks),
                usage=usage_of(
                    usage_counts({} if failed else event.usage, "message.usage")
                ),
                response_id=clip(event.message_id, IDENTIFIER, remarks),
                is_placeholder=event.placeholder,
                resets_context=event.resets,
            ),
        )
        if raw is None and not failed and draft.call.usage.is_known:  # type: ignore[union-attr]
            remarks.add(_UNSETTLED)
        if event.placeholder:
            remarks.add(_PLACEHOLDER)
        number = self._made.add(draft)
        for block in event.tools():
            self._add_tool(block, event, number)

    def _add_tool(self, block: dict[str, Any], event: Call, by: int) -> None:
        own_id = block.get("id")
        if self._is_repeat(own_id, block, event):
            return
        draft = self._made.ask(
            name=block.get("name"),
            call_id=block.get("id"),
            arguments=block.get("input"),
            by=by,
        )
        draft.native_kind = block["type"]
        if isinstance(own_id, str):
            self._tools[own_id] = (len(self._made.drafts) - 1, block)
            self._answered.discard(own_id)
        if event.placeholder:
            draft.status = StepStatus.UNFINISHED
            self._remarks.add(_ABANDONED)

    def _is_repeat(self, own_id: Any, block: dict[str, Any], event: Call) -> bool:
        """Whether a tool call is, or will be, a step of another answer.

        Some tools number their calls anew after a restart: the same id with other
        arguments, once the first is answered, is another call.
        """
        if not isinstance(own_id, str):
            return False
        if own_id in self._shown_later.get(id(event), ()):
            return True
        if own_id not in self._tools:
            return False
        return own_id not in self._answered or self._tools[own_id][1] == block

    def _add_result(self, event: Given) -> None:
        status = ending_of(event.is_error)
        failed = status is StepStatus.ERROR
        self._answered.add(str(event.call_id))
        draft = self._made.give(
            ToolResult(
                output=event.output,
                call_id=event.call_id,
                status=status,
                error_message=text_of(event.output) if failed else None,
                end_ns=event.at,
                invocation=self._number_of(event.scope),
                native_kind="tool_result",
            )
        )
        facts = {key: event.facts[key] for key in _FACTS if key in event.facts}
        if facts:
            draft.attributes = (draft.attributes or {}) | facts

    def _add_words(self, event: Said) -> None:
        self._made.add(
            Draft(
                kind=event.kind,
                invocation=self._number_of(event.scope),
                start_ns=event.at,
                end_ns=event.at,
                error_type=event.error_type,
                native_id=event.native_id,
                native_kind=event.native_kind,
                output=event.output,
                attributes=event.attributes,
            )
        )

    def _join_subagents(self) -> None:
        """Hang each subagent under the tool call that started it."""
        parents: dict[int, int] = {}
        for scope, number in self._numbers.items():
            if number == 0:
                continue
            tool = self._lines.subagents[scope].tool
            known = self._tools.get(tool) if isinstance(tool, str) else None
            if known is None:
                self._remarks.add(_LOOSE)
                continue
            above = self._made.drafts[known[0]].invocation
            # A file may claim a circle; an agent is only ever below an earlier one.
            if above < number:
                self._made.invocations[number].parent = above
                parents[number] = known[0]
        for place, draft in enumerate(self._made.drafts):
            parent = parents.get(draft.invocation)
            if draft.parent is None and parent is not None and parent < place:
                draft.parent = parent

    def _note_unread(self) -> None:
        remark_unread(self._remarks, "Lines", self._lines.unread)


def _offered(event: Call) -> list[Any]:
    """What a call was offered; tools that the provider ran stand in no list."""
    if any(kind_of(block) != "tool_use" for block in event.tools()):
        return open_ended(event.offered)
    return event.offered


class _Run:
    """An answer and the empty attempts right before it, last attempt first."""

    def __init__(self, call: Call, ids: set[str]) -> None:
        self.call = call
        self.ids = ids
        self.attempts: list[Call] = []

    def merge(self) -> None:
        """Move what was written in earlier pieces of the answer to its last piece."""
        own, self.call.blocks, self.call.known = self.call.blocks, [], set()
        for attempt in reversed(self.attempts):
            self.call.add(attempt.blocks)
            attempt.blocks = []
        self.call.add(own)


def _sorted_out(blocks: list[Any]) -> tuple[Any, Any]:
    """Return what was said and what was thought; tool calls are steps of their own."""
    thoughts = [one.get("thinking") for one in blocks if kind_of(one) == "thinking"]
    readable = [text for text in thoughts if isinstance(text, str) and text.strip()]
    hidden = {"thinking", "redacted_thinking", *TOOL_BLOCKS}
    shown = [one for one in blocks if kind_of(one) not in hidden]
    return plain_text(shown) if shown else None, "\n\n".join(readable) or None
