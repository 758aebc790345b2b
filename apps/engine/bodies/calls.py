"""Tool calls as they can be compared: canonical arguments, results, rounds.

A round is what was asked for at once: the calls that one answer of the model asked
for, or that overlap in time. Rounds of one lane came one after another.
"""

from __future__ import annotations

import hashlib
from bisect import bisect
from typing import Any, Final

import msgspec

from apps.engine.bodies.canonical import canonical, opened
from apps.engine.bodies.numerals import has
from apps.engine.bodies.recorded import NO_BODIES, REDACTED, has_bodies
from apps.engine.sequences import once_per_trace, tool_sequences
from apps.engine.trace import (
    OrderSource,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
)

_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_FAILED_WORDS: Final = (
    "error", "traceback", "exception", "failed", "failure", "<tool_use_error",
    "<error", "permission denied", "ran into [errno",
)  # fmt: skip
_CODES: Final = ("exit_code", "exitCode", "returncode", "return_code")
_CLIMB: Final = 4


class CalledTool(msgspec.Struct, frozen=True):
    """One tool call as a check compares it.

    `arguments` is `None` where they are not recorded or hold a redacted value, and
    `result` where no result is. `failed` is what the file records or what the result
    says in a form made for it (an `error` field, an exit code, a text that begins with
    "Error").
    """

    step: int
    name: str
    arguments: str | None
    result: str | None
    failed: bool
    status: StepStatus

    @property
    def key(self) -> tuple[str, str] | None:
        """What is compared: tool and arguments; `None` where they are not known."""
        return None if self.arguments is None else (self.name, self.arguments)


class Round(msgspec.Struct, frozen=True):
    """The calls that were asked for at once, and how many user messages came before."""

    calls: tuple[CalledTool, ...]
    turn: int

    @property
    def steps(self) -> tuple[int, ...]:
        """The `seq` of its calls."""
        return tuple([call.step for call in self.calls])

    @property
    def key(self) -> tuple[tuple[str, str], ...] | None:
        """Its calls in no order, `None` where the arguments of one are not known."""
        if len(self.calls) == 1:
            only = self.calls[0].key
            return None if only is None else (only,)
        keys = [call.key for call in self.calls]
        known = [key for key in keys if key is not None]
        return tuple(sorted(known)) if len(known) == len(keys) else None

    @property
    def results(self) -> tuple[str, ...] | None:
        """The results of its calls in the order of `key`, `None` if one is missing."""
        if len(self.calls) == 1:
            only = self.calls[0].result
            return None if only is None else (only,)
        found = [
            (call.key or (call.name, ""), call.result)
            for call in self.calls
            if call.result is not None
        ]
        if len(found) < len(self.calls):
            return None
        return tuple([result for _, result in sorted(found)])


class ToolLane(msgspec.Struct, frozen=True):
    """The rounds of one agent invocation, or of what no invocation owns, in order.

    `fingerprint` stands for everything in it that can be compared.
    """

    scope: str
    invocation: int | None
    agent: str | None
    order: OrderSource
    rounds: tuple[Round, ...]
    calls: tuple[CalledTool, ...]
    fingerprint: str

    @property
    def unknown(self) -> int:
        """How many calls have no arguments to compare."""
        return sum([call.arguments is None for call in self.calls])

    @property
    def unknown_words(self) -> str:
        """A sentence where some calls could not be compared, else nothing."""
        if not self.unknown:
            return ""
        return (
            f" {self.unknown} of {len(self.calls)} calls {has(self.unknown)} no arguments that can be "
            "compared (not recorded, or redacted)."
        )


class Absent(msgspec.Struct, frozen=True):
    """Why a check cannot read a trace: a code, a short sentence, a full one."""

    code: str
    headline: str
    reason: str


_NO_CALLS: Final = Absent(
    "no_tool_calls",
    "No tool calls recorded",
    "The trace holds no tool call, so there is nothing to compare.",
)
_NOT_KEPT: Final = Absent("no_bodies", "No bodies kept", NO_BODIES)
_NO_ARGUMENTS: Final = Absent(
    "no_arguments",
    "No arguments recorded",
    "No tool call has arguments that can be compared: they are not recorded, or "
    "redacted.",
)


def calls_absent(trace: Trace) -> Absent | None:
    """Why no tool calls of `trace` can be compared; `None` where some can."""
    lanes = tool_lanes(trace)
    if not lanes:
        return _NO_CALLS
    if not has_bodies(trace):
        return _NOT_KEPT
    if all(lane.unknown == len(lane.calls) for lane in lanes):
        return _NO_ARGUMENTS
    return None


@once_per_trace
def tool_lanes(trace: Trace) -> tuple[ToolLane, ...]:
    """The tool calls of `trace` by owner; a call recorded twice as nested spans is one.

    Steps in any order give the same answer. Linear in the steps. Never raises.
    """
    sequences = tool_sequences(trace)
    if not sequences:
        return ()
    steps = {step.seq: step for step in trace.steps}
    users = sorted(
        [s.seq for s in trace.steps if s.kind is StepKind.USER_MESSAGE],
    )
    lanes = []
    for tools in sequences:
        owned = [steps[seq] for seq in tools.steps]
        kept = [step for step in owned if not _is_inner(step, steps)]
        rounds = _rounds(kept, users, is_timed=tools.order is OrderSource.TIME)
        lanes.append(
            ToolLane(
                scope=tools.scope,
                invocation=tools.invocation,
                agent=tools.agent,
                order=tools.order,
                rounds=rounds,
                calls=tuple([call for one in rounds for call in one.calls]),
                fingerprint=_fingerprint(rounds),
            )
        )
    return tuple(lanes)


def _is_inner(step: Step, steps: dict[int, Step]) -> bool:
    """Whether a call repeats the one around it: two instruments, one call."""
    above = step.parent
    for _ in range(_CLIMB):
        around = None if above is None else steps.get(above)
        if around is None or around.kind in {StepKind.MODEL_CALL, StepKind.AGENT}:
            return False
        if around.kind is StepKind.TOOL_CALL:
            return around.seq != step.seq and _is_same_call(step, around)
        above = around.parent
    return False


def _is_same_call(inner: Step, outer: Step) -> bool:
    one, other = inner.call, outer.call
    if not isinstance(one, ToolCall) or not isinstance(other, ToolCall):
        return False
    if one.name != other.name:
        return False
    given = None if inner.body is None else inner.body.input
    return (
        given is None
        or outer.body is None
        or outer.body.input is None
        or canonical(given) == canonical(outer.body.input)
    )


def _rounds(
    owned: list[Step], users: list[int], *, is_timed: bool
) -> tuple[Round, ...]:
    groups: list[list[Step]] = []
    reach: int | None = None
    asked: int | None = None
    for step in owned:
        by = step.call.requested_by if isinstance(step.call, ToolCall) else None
        is_together = groups and (
            (by is not None and by == asked) or (is_timed and _overlaps(step, reach))
        )
        if is_together:
            groups[-1].append(step)
        else:
            groups.append([step])
            reach, asked = None, by
        if step.end_ns is not None and (reach is None or step.end_ns > reach):
            reach = step.end_ns
    return tuple(
        [
            Round(
                tuple([called(step) for step in group]),
                bisect(users, group[0].seq) if users else 0,
            )
            for group in groups
        ]
    )


def _overlaps(step: Step, reach: int | None) -> bool:
    return reach is not None and step.start_ns is not None and step.start_ns < reach


def called(step: Step) -> CalledTool:
    """The tool call of a step of that kind."""
    body = step.body
    given, output = (None, None) if body is None else (body.input, body.output)
    arguments = None if given is None else canonical(given)
    if arguments is not None and REDACTED in arguments:
        arguments = None
    return CalledTool(
        step=step.seq,
        name=step.call.name if isinstance(step.call, ToolCall) else step.name or "",
        arguments=arguments,
        result=_result(output, step),
        failed=step.status is StepStatus.ERROR
        or step.error_type is not None
        or (output is not None and says_it_failed(output)),
        status=step.status,
    )


def _result(output: Any, step: Step) -> str | None:
    if output is None:
        return step.error_message
    if isinstance(output, str):
        # A failed call often holds an empty result beside its message.
        return output or step.error_message or output
    try:
        return _encode(output).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return canonical(output)


def says_it_failed(output: Any) -> bool:
    """Whether a result says in a form made for it that the call failed.

    A text counts by how it begins, an object by its error, success or exit code.
    """
    if isinstance(output, str):
        begin = output[:40].lstrip().casefold()
        if begin.startswith(_FAILED_WORDS):
            return True
        if begin.startswith("<returncode>"):
            return not begin.startswith("<returncode>0<")
        if not begin.startswith("{"):
            return False
        output = opened(output)
    return isinstance(output, dict) and _object_failed(output)


def _object_failed(value: dict[str, Any]) -> bool:
    if value.get("error") or value.get("errors"):
        return True
    if value.get("isError") is True or value.get("is_error") is True:
        return True
    if value.get("success") is False or value.get("ok") is False:
        return True
    codes = [value[key] for key in _CODES if key in value]
    return any(isinstance(code, int) and code != 0 for code in codes)


def _fingerprint(rounds: tuple[Round, ...]) -> str:
    read = [
        (one.turn - rounds[0].turn, c.name, c.arguments, c.result, c.failed, c.status)
        for one in rounds
        for c in one.calls
    ]
    sizes = [len(one.calls) for one in rounds]
    try:
        data = _encode((sizes, read))
    except (ValueError, OverflowError):
        data = repr((sizes, read)).encode("utf-8", "replace")
    return hashlib.sha256(data).hexdigest()
