"""Valid files changed anywhere or cut off anywhere, for the property tests of readers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from apps.engine.format import Item, Note, Progress, Rejected, UnreadableTrace
from apps.engine.trace import StepKind, Trace
from tests.formats.reading import as_json, items_of, lines
from tests.soak import times

QUICK = settings(
    max_examples=times(50, soak=2_000),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def read_safely(data: bytes, slug: str | None) -> list[Item]:
    """What a reader yields, or nothing where it refuses the file in a sentence."""
    said = None
    items: list[Item] = []
    try:
        items = items_of(data, slug)
    except UnreadableTrace as refusal:
        said = str(refusal)
    assert said is None or said.endswith(".")
    for item in items:
        assert isinstance(item, Trace | Rejected | Note | Progress)
        if isinstance(item, Trace):
            check_storable(item)
    return items


def check_storable(trace: Trace) -> None:
    """Fail where a trace has what the database does not take or a page cannot show."""
    assert [step.seq for step in trace.steps] == list(range(len(trace.steps)))
    for step in trace.steps:
        assert step.parent is None or 0 <= step.parent < len(trace.steps)
        assert step.invocation is None or step.invocation < len(trace.invocations)
    text = repr(trace)
    assert "\x00" not in text
    assert "\\x00" not in text.replace("\\\\", "")
    for step in trace.steps:
        json.dumps([step.body and step.body.output], allow_nan=False).encode()
        (step.name or "").encode()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All paths inside a JSON value."""
    yield path
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in pairs:
            yield from places(item, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with what stands at `path` replaced."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def values_of(data: bytes) -> tuple[Any, Callable[[Any], bytes]] | None:
    """The JSON value of a file or the list of its lines, and how it is written back."""
    try:
        return json.loads(data), as_json
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in data.splitlines()], _as_lines
    except ValueError:
        return None


def _as_lines(value: Any) -> bytes:
    return lines(*value) if isinstance(value, list) else as_json(value)


def check_cut(whole: bytes, at: int, slug: str) -> None:
    """A file that was cut off never tells a step that the whole file does not have."""
    everything = _steps_of_whole(whole, slug)
    cut = steps_of(read_safely(whole[:at], slug))
    assert {step.native_id for step in cut} <= {step.native_id for step in everything}
    for kind in (StepKind.MODEL_CALL, StepKind.TOOL_CALL):
        assert _count(cut, kind) <= _count(everything, kind)


@cache
def _steps_of_whole(whole: bytes, slug: str) -> list[Any]:
    # Asked of the same few files at each cut.
    return steps_of(read_safely(whole, slug))


def _count(steps: list[Any], kind: StepKind) -> int:
    return sum(step.kind is kind for step in steps)


def steps_of(items: list[Item]) -> list[Any]:
    """All steps of all traces among items."""
    return [step for one in items if isinstance(one, Trace) for step in one.steps]
