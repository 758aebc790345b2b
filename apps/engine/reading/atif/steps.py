"""The steps of one ATIF trajectory, made into model calls, tool calls and sub-agents.

One model call may stand on several agent steps: converters write its words as one step
with the metrics and each of its tool calls as a further step without any. Those are
joined again where the record shows it (`continues`); a step that only copies
an earlier trajectory, or says that no model was asked, is no call.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.atif.fields import (
    OpenCall,
    continues,
    counts_in,
    id_of_call,
    is_sidechain,
    only_says_what_ran,
    tool_status,
)
from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.json_gate import RefusedRecord
from apps.engine.reading.local_times import told_ns
from apps.engine.reading.recorded import listed, mapping
from apps.engine.reading.run_totals import Sums
from apps.engine.reading.text_limits import IDENTIFIER, NAME, Remarks, clip
from apps.engine.reading.token_counts import usage_of, whole_number
from apps.engine.reading.transcript import (
    Draft,
    Invoked,
    ToolResult,
    Transcript,
    with_call,
)
from apps.engine.trace import MISSING, ModelCall, StepKind, StepStatus, UsageState, Via

Files = dict[str, dict[str, Any]]
"""Trajectories of other files of the same run, by the name that references use."""

_SOURCES: Final = {"user": StepKind.USER_MESSAGE, "system": StepKind.SYSTEM}
_READ: Final = frozenset(
    {"source", "message", "reasoning_content", "tool_calls", "observation", "metrics",
     "timestamp", "model_name", "step_id"}
)  # fmt: skip
_SPLIT: Final = "Agent steps that only repeat a model call written before: {n}."
_COPIED: Final = "Steps copied from another trajectory for context, no calls: {n}."
_SEVERAL: Final = "Steps that stand for several model calls together: {n}."
_ELSEWHERE: Final = "Sub-agents whose trajectory is in a file that is not here: {n}."
_UNASKED: Final = "Tool calls whose model call is not recorded: {n}."
_FOR_ALL: Final = (
    "Observations of several tool calls together, kept with the last: {n}."
)


class TrajectorySteps:
    """Adds trajectories to a transcript: the main one, then what it refers to."""

    def __init__(self, made: Transcript, remarks: Remarks, files: Files) -> None:
        self.made = made
        self.sums = Sums()
        self.remarks = remarks
        self._files = files
        self._seen: set[int] = set()
        self._resets = False

    def add(self, trajectory: dict[str, Any], owner: int, path: str) -> None:
        """Add one trajectory with its continuations; `RefusedRecord` for a bad step."""
        self._seen.add(id(trajectory))
        begins_anew, self._resets = self._resets, False
        steps = trajectory.get("steps")
        if not isinstance(steps, list):
            raise RefusedRecord("The trajectory has no list of steps.", f"{path}.steps")
        lines = _Lines(self, trajectory, owner, begins_anew=begins_anew)
        for index, step in enumerate(steps):
            if not isinstance(step, dict) or not isinstance(step.get("source"), str):
                raise RefusedRecord(
                    "This is not a step: it needs a source (system, user, agent).",
                    f"{path}.steps[{index}]",
                )
            lines.add(step)
        self._add_rest(trajectory, owner, path)
        following = self.file(trajectory.get("continued_trajectory_ref"))
        if following is not None:
            self._resets = True
            self.add(following, owner, path)

    def file(self, reference: Any) -> dict[str, Any] | None:
        """Return the trajectory in another file that was not read yet."""
        if not isinstance(reference, str):
            return None
        found = self._files.get(reference.rsplit("/", 1)[-1])
        return None if found is None or id(found) in self._seen else found

    def delegate(
        self, reference: dict[str, Any], trajectory: dict[str, Any], above: Draft | None
    ) -> None:
        """Add the sub-agent that a tool result refers to, below that tool call."""
        # Before version 1.7 a reference could only name the session of a sub-agent.
        key = (
            "session_id" if reference.get("trajectory_id") is None else "trajectory_id"
        )
        wanted = reference.get(key)
        inside = [
            one
            for one in listed(trajectory.get("subagent_trajectories"))
            if isinstance(one, dict) and id(one) not in self._seen
        ]
        matching = (one for one in inside if wanted and one.get(key) == wanted)
        found = next(matching, None)
        found = found or self.file(reference.get("trajectory_path"))
        if found is None:
            if isinstance(reference.get("trajectory_path"), str):
                self.remarks.add(_ELSEWHERE)
            return
        self._add_below(found, 0 if above is None else above.invocation, "$")

    def _add_rest(self, trajectory: dict[str, Any], owner: int, path: str) -> None:
        """Add the embedded sub-agents that no tool result refers to."""
        inside = trajectory.get("subagent_trajectories")
        for index, one in enumerate(inside if isinstance(inside, list) else []):
            if isinstance(one, dict) and id(one) not in self._seen:
                self._add_below(one, owner, f"{path}.subagent_trajectories[{index}]")

    def _add_below(self, trajectory: dict[str, Any], owner: int, path: str) -> None:
        agent = trajectory.get("agent")
        number = self.made.invoke(
            Invoked(
                agent=agent.get("name") if isinstance(agent, dict) else None,
                parent=owner,
                via=Via.SUBAGENT,
                native_id=trajectory.get("trajectory_id"),
            )
        )
        self.add(trajectory, number, path)


class _Lines:
    """Adds the steps of one trajectory, joining those that are one model call."""

    def __init__(
        self,
        whole: TrajectorySteps,
        trajectory: dict[str, Any],
        owner: int,
        *,
        begins_anew: bool,
    ) -> None:
        agent = trajectory.get("agent")
        self._whole = whole
        self._made = whole.made
        self._remarks = whole.remarks
        self._trajectory = trajectory
        self._owner = owner
        self._model = agent.get("model_name") if isinstance(agent, dict) else None
        self._has_metrics = any(
            isinstance(step, dict) and step.get("metrics")
            for step in trajectory["steps"]
        )
        # A line that a stream announced has zeros and, unlike the others, no reason.
        self._has_reasons = any(
            isinstance(step, dict) and mapping(step.get("extra")).get("stop_reason")
            for step in trajectory["steps"]
        )
        self._resets = begins_anew
        self._open: OpenCall | None = None
        self._by_id: dict[str, int] = {}
        self._sidechain: tuple[Any, int] | None = None

    def add(self, step: dict[str, Any]) -> None:
        """Add one step."""
        owner = self._owner_of(step)
        kind = _SOURCES.get(step["source"])
        calls: list[Draft] = []
        if step.get("is_copied_context") is True:
            self._remarks.add(_COPIED)
            self._plain(step, StepKind.OTHER, owner, native_kind="copied step")
        elif kind is not None or step["source"] != "agent":
            self._plain(step, kind or StepKind.OTHER, owner)
        else:
            calls = self._add_agent_step(step, owner)
        self._give_results(step, calls, owner)

    def _plain(
        self,
        step: dict[str, Any],
        kind: StepKind,
        owner: int,
        native_kind: str | None = None,
    ) -> None:
        self._open = None
        draft = self._draft(step, kind, owner)
        draft.native_kind = native_kind or step["source"]
        self._made.add(draft)

    def _add_agent_step(self, step: dict[str, Any], owner: int) -> list[Draft]:
        if step.get("llm_call_count") == 0:
            if not step.get("tool_calls"):
                self._plain(step, StepKind.OTHER, owner, "step without a model")
            return self._ask(step, None, owner)
        begun = self._call_before(step)
        if begun is not None:
            return self._ask(step, begun, owner)
        if self._is_stray_tool(step):
            self._remarks.add(_UNASKED)
            return self._ask(step, None, owner)
        return self._ask(step, self._add_call(step, owner), owner)

    def _call_before(self, step: dict[str, Any]) -> int | None:
        """Return the number of the call that a step belongs to, if it began before."""
        key = id_of_call(step)
        known = self._by_id.get(key) if key else None
        last = self._open
        if known is None and last is not None and continues(last, step):
            known = last.number
        if known is None:
            return None
        self._remarks.add(_SPLIT)
        draft = self._made.drafts[known]
        draft.output = draft.output or step.get("message")
        call = draft.call
        if isinstance(call, ModelCall) and call.usage == MISSING:
            counts = counts_in(step.get("metrics"))
            self._whole.sums.add(counts, draft.invocation)
            with_call(draft, usage=usage_of(counts))
        return known

    def _is_stray_tool(self, step: dict[str, Any]) -> bool:
        """Whether a converter wrote a tool call whose model call is not in the file."""
        return (
            self._has_metrics
            and not step.get("metrics")
            and step.get("llm_call_count") is None
            and only_says_what_ran(step)
        )

    def _add_call(self, step: dict[str, Any], owner: int) -> int:
        extra = mapping(step.get("extra"))
        counts = counts_in(step.get("metrics"))
        several = (whole_number(step.get("llm_call_count")) or 1) > 1
        if several:
            self._remarks.add(_SEVERAL)
        usage = usage_of(counts, UsageState.AGGREGATE_ONLY if several else None)
        finish, finish_raw = finish_of(
            extra.get("stop_reason") or extra.get("finish_reason")
        )
        draft = self._draft(step, StepKind.MODEL_CALL, owner)
        has_content = bool(step.get("message") or step.get("tool_calls"))
        is_announced = self._has_reasons and finish_raw is None
        draft.call = ModelCall(
            model=clip(step.get("model_name") or self._model, NAME, self._remarks),
            finish=finish,
            finish_raw=clip(finish_raw, IDENTIFIER, self._remarks),
            usage=usage,
            response_id=clip(id_of_call(step), IDENTIFIER, self._remarks),
            is_placeholder=usage.state is UsageState.ZERO_SUSPECT
            and (is_announced or not has_content),
            resets_context=self._resets,
        )
        self._resets = False
        number = self._made.add(draft)
        self._whole.sums.add(counts, owner)
        self._open = OpenCall.of(step, number)
        key = id_of_call(step)
        if key:
            self._by_id[key] = number
        return number

    def _ask(self, step: dict[str, Any], by: int | None, owner: int) -> list[Draft]:
        calls = step.get("tool_calls")
        asked = []
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, dict):
                draft = self._made.ask(
                    name=call.get("function_name"),
                    call_id=call.get("tool_call_id"),
                    arguments=call.get("arguments"),
                    by=by,
                )
                draft.invocation = owner
                draft.start_ns = told_ns(step.get("timestamp"), self._remarks)
                draft.attributes = mapping(call.get("extra"))
                asked.append(draft)
        return asked

    def _give_results(
        self, step: dict[str, Any], calls: list[Draft], owner: int
    ) -> None:
        results = mapping(step.get("observation")).get("results")
        results = [one for one in listed(results) if isinstance(one, dict)]
        unnamed = [one for one in results if one.get("source_call_id") is None]
        targets = self._targets(unnamed, calls)
        for result in results:
            target = targets.get(id(result))
            above = self._give(result, target, step, owner)
            for reference in listed(result.get("subagent_trajectory_ref")):
                if isinstance(reference, dict):
                    self._whole.delegate(reference, self._trajectory, above)
                    # The system asks sub-agents only to sum up a context that is full.
                    self._resets = self._resets or step["source"] == "system"

    def _targets(
        self, unnamed: list[dict[str, Any]], calls: list[Draft]
    ) -> dict[int, Draft]:
        """Return the call of each result that names none: in order, else the last."""
        if len(unnamed) == len(calls):
            pairs = zip(unnamed, calls, strict=True)
            return {id(result): call for result, call in pairs}
        if calls and len(unnamed) == 1:
            self._remarks.add(_FOR_ALL)
            return {id(unnamed[0]): calls[-1]}
        return {}

    def _give(
        self,
        result: dict[str, Any],
        target: Draft | None,
        step: dict[str, Any],
        owner: int,
    ) -> Draft | None:
        failed = tool_status(result, mapping(step.get("extra")))
        content = result.get("content")
        if target is not None:
            target.output = content
            target.status = failed
            if failed is StepStatus.ERROR:
                target.error_message = content
            return target
        if result.get("source_call_id") is None:
            self._made.add(
                Draft(
                    kind=StepKind.OTHER,
                    invocation=owner,
                    name="observation",
                    start_ns=told_ns(step.get("timestamp"), self._remarks),
                    native_kind="observation",
                    output=content,
                )
            )
            return None
        return self._made.give(
            ToolResult(
                output=content,
                call_id=result.get("source_call_id"),
                status=failed,
                error_message=content if failed is StepStatus.ERROR else None,
                invocation=owner,
                native_kind="observation",
            )
        )

    def _owner_of(self, step: dict[str, Any]) -> int:
        """Return the invocation of a step: that of its side chain, where it is on one."""
        if not is_sidechain(step):
            self._sidechain = None
            return self._owner
        extra = mapping(step.get("extra"))
        key = extra.get("agent_id") or extra.get("agentId")
        if self._sidechain is None or self._sidechain[0] != key:
            number = self._made.invoke(
                Invoked(
                    agent=extra.get("agent_name")
                    or extra.get("subagent_type")
                    or "sidechain",
                    parent=self._owner,
                    via=Via.SUBAGENT,
                    native_id=key,
                )
            )
            self._sidechain = (key, number)
        return self._sidechain[1]

    def _draft(self, step: dict[str, Any], kind: StepKind, owner: int) -> Draft:
        return Draft(
            kind=kind,
            invocation=owner,
            start_ns=told_ns(step.get("timestamp"), self._remarks),
            native_id=step.get("step_id"),
            native_kind="agent",
            output=step.get("message"),
            reasoning=step.get("reasoning_content"),
            attributes={key: step[key] for key in step if key not in _READ},
        )
