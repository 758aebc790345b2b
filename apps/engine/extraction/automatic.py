"""The decision of an agent of which nobody said how it is found, by a declared order.

It guesses from shapes and names, and says which rule it was. In a failed run only a
named field counts: everything else may be an error message or where the run broke off.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from apps.engine.bodies.calls import CalledTool
from apps.engine.bodies.effects import (
    ends_a_task,
    is_reading_action,
    is_write,
    words_of,
)
from apps.engine.conduct import InvocationConduct
from apps.engine.extraction.found import (
    Found,
    decided,
    missing,
    not_compared,
    step_of_output,
)
from apps.engine.extraction.outputs import Given, given_in
from apps.engine.extraction.prose import (
    NOTHING,
    label_in,
    left_out_words,
    without_prose,
)
from apps.engine.extraction.tool_calls import arguments_of
from apps.engine.trace import Step, StepKind, StepStatus

FIELD_NAMES: Final = (
    "decision", "final_decision", "verdict", "final_answer", "answer", "label", "class",
    "category", "classification", "route", "next_agent", "next", "action", "intent",
    "choice", "selection", "prediction", "resolution", "outcome",
)  # fmt: skip
"""The names that a decision may have in a JSON output, the first one that is there."""

LINE_NAMES: Final = (
    "final_decision", "decision", "verdict", "final_answer", "answer", "classification",
    "category", "route", "choice", "prediction",
)  # fmt: skip
"""What a line may begin with that names an answer; other names begin lines of code."""

AUTOMATIC_ORDER: Final = (
    "A JSON output with a field of one of these names, the first one found: "
    + ", ".join(FIELD_NAMES)
    + " (however they are capitalised and joined).",
    "The last line such as “Final answer: 31”, if what follows is short; it may begin "
    "with " + ", ".join(name.replace("_", " ") for name in LINE_NAMES) + ".",
    "An output that is one short label (at most 60 characters and 4 words on one line, "
    "no sentence), a number, or true or false. “Done” and the like are no decision.",
    "A handoff, or a call of a tool that transfers or escalates, as its last act: to whom.",
    "The arguments of the tool by which it ended the task (final_answer, submit, …), if "
    "that was its last call.",
    "The last call of a tool that changes something, by the verbs in its name, with its "
    "arguments; one that did not fail where there is one.",
    "Any other JSON output as a whole.",
    "The last tool call with its arguments; ending the task and making notes for itself "
    "do not count.",
)
"""What is looked for, in this order. Prose is left out everywhere, and of arguments and
JSON also texts of more than 200 characters on several lines, or 1,000 on one."""

_FIELDS: Final = tuple(name.replace("_", "") for name in FIELD_NAMES)
_LINE: Final = re.compile(
    r"^[ \t>#*_`-]{0,12}(?:the )?(?:"
    + "|".join(name.replace("_", "[ _]") for name in LINE_NAMES)
    + r")[ \t*_`]{0,6}[:\uff1a](?!\s*```)[ \t*_`]{0,6}\r?\n?(.{0,200})$",
    re.IGNORECASE | re.MULTILINE,
)
_TRANSFERS: Final = frozenset({"transfer", "handoff", "escalate"})
_NAME_OF_HANDOFF: Final = re.compile(
    r"^(?:handoff|hand_off|transfer)[ _](?:to[ _])?", re.IGNORECASE
)
_TARGETS: Final = ("to_agent", "target")
_ACTS: Final = frozenset({StepKind.MODEL_CALL, StepKind.TOOL_CALL, StepKind.HANDOFF})
_OWN_NOTES: Final = frozenset(
    {"think", "thought", "thoughts", "thinking", "todo", "todos", "plan", "scratchpad"}
)


class _Looked(msgspec.Struct, frozen=True):
    """An invocation with its output opened."""

    one: InvocationConduct
    given: Given


def automatic_decision(one: InvocationConduct) -> Found:
    """What the first rule of `AUTOMATIC_ORDER` that finds something finds."""
    looked = _Looked(one, given_in(one.output))
    for rule in _RULES:
        if (found := rule(looked)) is not None:
            return found
    if one.output in (None, "") and not one.calls:
        return missing("Neither an output nor a tool call of it is recorded.")
    return not_compared(
        "The output is prose, which is compared only where that is asked for, and no "
        "tool call of it tells a decision.",
        step=step_of_output(one),
    )


def named_field(value: Any) -> tuple[str, Any] | None:
    """The declared field of a JSON object with its value, the first that holds one."""
    if not isinstance(value, dict):
        return None
    by_name = {_plain(name): name for name in reversed(value)}
    for wanted in _FIELDS:
        name = by_name.get(wanted)
        if name is not None and (held := _compared(value[name])) is not NOTHING:
            return name, held
    return None


def _plain(name: Any) -> str:
    return "".join(char for char in str(name).casefold() if char.isalnum())


def _compared(value: Any) -> Any:
    """What of a value is compared; `NOTHING` for null, blanks and prose."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return NOTHING
    return without_prose(value)[0]


def _by_field(looked: _Looked) -> Found | None:
    held = named_field(looked.given.value)
    if held is None:
        return None
    how = f"The field “{held[0][:60]}” of {looked.given.way}."
    return decided(held[1], how, step=step_of_output(looked.one))


def _by_line(looked: _Looked) -> Found | None:
    if not looked.given.is_text:
        return None
    last = None
    for match in _LINE.finditer(looked.given.text):
        last = match
    label = None if last is None else label_in(last[1])
    if label is None:
        return None
    how = "The last line of the output that names an answer."
    return decided(label, how, step=step_of_output(looked.one), stands=False)


def _by_label(looked: _Looked) -> Found | None:
    given, step = looked.given, step_of_output(looked.one)
    if isinstance(given.value, bool | int | float):
        return decided(
            given.value, "The output, a single value.", step=step, stands=False
        )
    label = label_in(given.text) if given.is_text else None
    if label is None or _names_a_call(label, looked.one.calls):
        return None
    return decided(label, "The output, one short label.", step=step, stands=False)


def _names_a_call(label: str, calls: tuple[CalledTool, ...]) -> bool:
    """Whether a short output only says which tool ran: “Executed Write”."""
    words = set(re.findall(r"\w+", label.casefold()))
    return len(words) > 1 and any(call.name.casefold() in words for call in calls)


def _by_handoff(looked: _Looked) -> Found | None:
    acts = [step for step in looked.one.steps if step.kind in _ACTS]
    last = acts[-1] if acts else None
    if last is None or last.status is StepStatus.ERROR:
        return None
    if last.kind is StepKind.HANDOFF:
        target = _target(last)
        value, how = f"handoff to {target}", "The handoff that was its last act."
        return decided(value, how, step=last.seq, stands=False)
    call = looked.one.calls[-1] if looked.one.calls else None
    if call is None or _TRANSFERS.isdisjoint(words_of(call.name)):
        return None
    how = "The last tool call, which hands over to somebody."
    return decided(call.name, how, step=call.step, stands=False)


def _target(step: Step) -> str:
    held = {} if step.body is None else step.body.attributes or {}
    for name in _TARGETS:
        if isinstance(held.get(name), str) and held[name]:
            return str(held[name])
    return _NAME_OF_HANDOFF.sub("", step.name or "").strip() or "(not recorded)"


def _by_final_tool(looked: _Looked) -> Found | None:
    call = looked.one.calls[-1] if looked.one.calls else None
    if call is None or not ends_a_task(call.name):
        return None
    given = arguments_of(looked.one, call)
    held = named_field(given)
    value = held[1] if held is not None else _compared(_only(given))
    if value is NOTHING or value in ({}, []) or _is_name(value, call):
        return None
    how = f"The argument of “{call.name}”, which ends the task."
    return decided(value, how, step=call.step, stands=False)


def _is_name(value: Any, call: CalledTool) -> bool:
    """Whether a call only repeats its own name, as commands without arguments do."""
    return isinstance(value, str) and value.strip() == call.name


def _only(given: Any) -> Any:
    """The one argument of a call, or all of them."""
    if isinstance(given, dict) and len(given) == 1:
        return next(iter(given.values()))
    return given


def _by_write(looked: _Looked) -> Found | None:
    writes = [call for call in looked.one.calls if is_write(call.name)]
    writes = [
        call for call in writes if not is_reading_action(arguments_of(looked.one, call))
    ]
    if not writes:
        return None
    worked = [call for call in writes if not call.failed]
    how = "The last call of a tool that changes something"
    if not worked:
        how += " (every such call failed)"
    return _of_call(looked.one, (worked or writes)[-1], how)


def _by_whole(looked: _Looked) -> Found | None:
    value = looked.given.value
    if not isinstance(value, dict | list) or not value:
        return None
    kept, left_out = without_prose(value)
    if kept is NOTHING:
        return None
    way = looked.given.way
    how = f"{way[0].upper()}{way[1:]} as a whole{left_out_words(left_out)}."
    return decided(kept, how, step=step_of_output(looked.one), stands=False)


def _by_last_call(looked: _Looked) -> Found | None:
    for call in reversed(looked.one.calls):
        if not ends_a_task(call.name) and _OWN_NOTES.isdisjoint(words_of(call.name)):
            return _of_call(looked.one, call, "The last tool call")
    return None


def _of_call(one: InvocationConduct, call: CalledTool, how: str) -> Found:
    given = arguments_of(one, call)
    if given is None:
        return missing(
            f"The arguments of the call of “{call.name}” are not recorded.",
            step=call.step,
        )
    kept, left_out = without_prose(given)
    value = call_value(call, {} if kept is NOTHING else kept)
    how = f"{how}{left_out_words(left_out)}."
    return decided(value, how, step=call.step, stands=False)


def call_value(call: CalledTool, arguments: Any) -> dict[str, Any]:
    """A tool call as a value that is compared: its name and its arguments."""
    return {"tool": call.name, "arguments": arguments}


_RULES: Final[tuple[Callable[[_Looked], Found | None], ...]] = (
    _by_field,
    _by_line,
    _by_label,
    _by_handoff,
    _by_final_tool,
    _by_write,
    _by_whole,
    _by_last_call,
)
