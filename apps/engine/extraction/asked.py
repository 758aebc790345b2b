"""The rules that an author chooses for an agent, each compiled once per definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from apps.engine.bodies.canonical import canonical
from apps.engine.bodies.patterns import regular_expression, valid_text
from apps.engine.conduct import InvocationConduct
from apps.engine.extraction.automatic import automatic_decision, call_value
from apps.engine.extraction.found import (
    Found,
    decided,
    missing,
    not_compared,
    step_of_output,
)
from apps.engine.extraction.labels import Labels
from apps.engine.extraction.outputs import MOST_TEXT, given_in
from apps.engine.extraction.paths import Path, PathFailed
from apps.engine.extraction.prose import label_in
from apps.engine.extraction.redactions import WHY_REDACTED, marks_in, touches
from apps.engine.extraction.spec import DecisionKind, DecisionSpec, Place, Source
from apps.engine.extraction.tool_calls import ToolNames, arguments_of, result_of

Finder = Callable[[InvocationConduct], Found]
_NO_OUTPUT: Final = "No output of it is recorded."
_MOST_MATCHES: Final = 10_000


def finder(spec: DecisionSpec) -> Finder:
    """The rule of a definition, ready to be asked of many invocations.

    It raises for no recorded value. The definition must have been decoded.
    """
    return _FINDERS[spec.kind](spec)


class _Subject:
    """What a path or a pattern reads: the output, or a part of the last tool call."""

    def __init__(self, spec: DecisionSpec) -> None:
        self._source = spec.source
        self._tools = ToolNames(spec.tool)

    def read(self, one: InvocationConduct) -> Found | tuple[Any, int | None]:
        """The value with the step that holds it, or why there is none."""
        if self._source is Source.OUTPUT:
            if one.output is None:
                return missing(_NO_OUTPUT)
            return one.output, step_of_output(one)
        call = self._tools.last(one)
        if call is None:
            return missing(self._tools.why_none())
        is_result = self._source is Source.RESULT
        value = (result_of if is_result else arguments_of)(one, call)
        if value is None:
            what = "result" if is_result else "arguments"
            why = f"No {what} of the last call of “{call.name}” recorded."
            return missing(why, step=call.step)
        return value, call.step

    def words(self) -> str:
        """The subject in a sentence."""
        if self._source is Source.OUTPUT:
            return "the output"
        return f"the {self._source} of the last call of {self._tools.words()}"


class _ByPath:
    def __init__(self, spec: DecisionSpec) -> None:
        self._path = Path(spec.expression)
        self._text = spec.expression
        self._subject = _Subject(spec)
        self._is_output = spec.source is Source.OUTPUT

    def __call__(self, one: InvocationConduct) -> Found:
        read = self._subject.read(one)
        if isinstance(read, Found):
            return read
        value, step = read
        where = self._subject.words()
        candidates = [value]
        if self._is_output:
            given = given_in(value)
            if given.is_text and isinstance(value, str):
                return missing("The output is text and holds no JSON.", step=step)
            # An author may write the path for the answer or for the recorded message.
            candidates = [given.value, value] if given.value is not None else [value]
        return self._first(candidates, where, step)

    def _first(self, candidates: list[Any], where: str, step: int | None) -> Found:
        why = f"“{self._text}” finds nothing in {where}."
        for value in candidates:
            try:
                found = self._path.found_in(value)
            except PathFailed as error:
                why = f"“{self._text}” cannot be read in {where}: {error}."
                continue
            if found is not None and not (isinstance(found, str) and not found.strip()):
                return decided(found, f"“{self._text}” in {where}.", step=step)
        return missing(why, step=step)


class _ByPattern:
    def __init__(self, spec: DecisionSpec) -> None:
        self._pattern = regular_expression(spec.expression)
        self._place = spec.place
        self._subject = _Subject(spec)
        self._is_output = spec.source is Source.OUTPUT

    def __call__(self, one: InvocationConduct) -> Found:
        read = self._subject.read(one)
        if isinstance(read, Found):
            return read
        value, step = read
        text = valid_text(self._text_of(value))
        marks = marks_in(text)
        found = None
        for match in self._matches(text):
            found = match
        where = self._subject.words()
        if found is None:
            return missing(f"The pattern matches nothing in {where}.", step=step)
        group = 1 if self._pattern.groups and found.group(1) is not None else 0
        if touches(found.span(group), marks):
            return missing(WHY_REDACTED, step=step)
        if not found.group(group).strip():
            return missing(f"The pattern matches only blanks in {where}.", step=step)
        how = f"The {self._place} match of the pattern in {where}."
        return decided(found.group(group), how, step=step)

    def _text_of(self, value: Any) -> str:
        if self._is_output:
            given = given_in(value)
            return given.text if given.is_text else _as_text(given.value)
        return _as_text(value)

    def _matches(self, text: str) -> list[Any]:
        most = 1 if self._place is Place.FIRST else _MOST_MATCHES
        found = self._pattern.finditer(text)
        return [match for match, _ in zip(found, range(most), strict=False)]


def _as_text(value: Any) -> str:
    text = value if isinstance(value, str) else canonical(value)
    return text[-MOST_TEXT:]


class _ByCall:
    def __init__(self, spec: DecisionSpec) -> None:
        self._tools = ToolNames(spec.tool)
        self._kept = spec.arguments

    def __call__(self, one: InvocationConduct) -> Found:
        call = self._tools.last(one)
        if call is None:
            return missing(self._tools.why_none())
        given = arguments_of(one, call)
        if given is None:
            why = f"The arguments of the last call of “{call.name}” are not recorded."
            return missing(why, step=call.step)
        how = f"The last call of {self._tools.words()}."
        if self._kept:
            given = given if isinstance(given, dict) else {}
            given = {name: given[name] for name in self._kept if name in given}
            if not given:
                # Which tool was called is a decision all the same.
                how += (
                    f" “{call.name}” has none of the named arguments: its name alone."
                )
        # Without a name the last call of a failed run is only where it broke off.
        is_act = self._tools.is_one
        return decided(call_value(call, given), how, step=call.step, stands=is_act)


class _ByLabel:
    def __init__(self, spec: DecisionSpec) -> None:
        self._labels = Labels(spec.labels)

    def __call__(self, one: InvocationConduct) -> Found:
        if one.output is None:
            return missing(_NO_OUTPUT)
        step = step_of_output(one)
        named = self._labels.named_in(given_in(one.output).text)
        if named.label is None:
            return missing(named.why, step=step)
        how = "The one declared label that the output names."
        return decided(named.label, how, step=step)


class _ByWhole:
    def __init__(self, spec: DecisionSpec) -> None:
        self._prose = spec.prose

    def __call__(self, one: InvocationConduct) -> Found:
        if one.output is None:
            return missing(_NO_OUTPUT)
        step, given = step_of_output(one), given_in(one.output)
        if given.value is not None:
            how = f"All of {given.way}."
            return decided(given.value, how, step=step, stands=False)
        if not given.text:
            return missing("The output holds no words.", step=step)
        if self._prose or label_in(given.text) is not None:
            return decided(
                given.text, "The text of the output.", step=step, stands=False
            )
        why = "The output is prose, which is compared only where that is asked for."
        return not_compared(why, step=step)


def _automatic(_: DecisionSpec) -> Finder:
    return automatic_decision


_FINDERS: Final[dict[DecisionKind, Callable[[DecisionSpec], Finder]]] = {
    DecisionKind.AUTOMATIC: _automatic,
    DecisionKind.JMESPATH: _ByPath,
    DecisionKind.REGEX: _ByPattern,
    DecisionKind.LAST_TOOL_CALL: _ByCall,
    DecisionKind.LABEL: _ByLabel,
    DecisionKind.WHOLE_OUTPUT: _ByWhole,
}
