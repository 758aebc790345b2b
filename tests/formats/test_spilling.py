"""Large files in little memory: what waits in a file comes back as it was."""

from __future__ import annotations

import gc
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from apps.engine.format import Rejected
from apps.engine.formats import otlp
from apps.engine.reading import json_window, spans
from apps.engine.reading.bytestream import open_source
from apps.engine.reading.json_gate import Level, Parts, Record, records
from apps.engine.reading.spans import Event, Facts, Span, SpanStore, TraceFacts
from apps.engine.reading.spill import SpillFile
from apps.engine.trace import StepKind, UsageState
from tests.benchmarks import memory
from tests.formats.otlp_files import call, document
from tests.formats.reading import as_json, items_of, lines, traces_of

ROOT = Path(__file__).resolve().parents[2]

numbers = st.one_of(
    st.integers(), st.integers(-(2**80), 2**80), st.floats(allow_nan=False)
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)
facts = st.one_of(
    st.none(),
    st.builds(
        Facts,
        kind=st.sampled_from(StepKind),
        usage_state=st.sampled_from([None, *UsageState]),
        requested_ids=st.lists(texts, max_size=2).map(tuple),
        input=values,
        attributes=st.none() | objects,
    ),
)
some_spans = st.builds(
    Span,
    trace_id=st.sampled_from(["t1", "t2", "t3"]),
    span_id=st.sampled_from(["a", "b", "c", "d"]),
    parent_id=st.sampled_from([None, "a"]),
    name=texts,
    start_ns=st.integers(0, 2**62),
    end_ns=st.none() | st.integers(0, 2**62),
    unit=st.none(),
    status=st.integers(0, 2),
    status_message=texts,
    attributes=objects,
    events=st.lists(
        st.builds(Event, name=texts, time_ns=st.none(), attributes=objects), max_size=2
    ),
    resource=objects,
    scope=texts,
    facts=facts,
)


def all_of(store: SpanStore) -> tuple[list[tuple[str, list[Span]]], dict[str, int]]:
    found = [(trace_id, list(held.values())) for trace_id, held in store.traces.items()]
    return found, store.duplicates


@settings(deadline=None)
@given(given_spans=st.lists(some_spans, max_size=12), held=st.integers(0, 5))
def test_a_store_answers_alike_whether_its_spans_wait_in_a_file_or_not(
    given_spans, held
):
    spilled, whole = SpanStore(held=held), SpanStore()
    for span in given_spans:
        spilled.add(span)
        whole.add(span)
    assert all_of(spilled) == all_of(whole)
    assert all_of(spilled) == all_of(whole), "a second look"
    assert len(spilled.traces) == len(whole.traces)


def test_of_two_copies_the_fuller_stays_in_the_place_of_the_first():
    def span(span_id: str, **attributes) -> Span:
        return Span(trace_id="t", span_id=span_id, parent_id=None, name="", start_ns=1,
                    end_ns=2, unit=None, status=0, status_message="", events=[],
                    attributes=attributes, resource={}, scope="")  # fmt: skip

    store = SpanStore(held=0)
    for one in (span("a", x=1), span("b"), span("a", x=1, y=2), span("a", z=3)):
        store.add(one)
    [found] = [list(held.values()) for held in store.traces.values()]
    assert [(one.span_id, one.attributes) for one in found] == [
        ("a", {"x": 1, "y": 2}),
        ("b", {}),
    ]
    assert store.duplicates == {"t": 2}
    store.describe("t", TraceFacts(name="first"))
    store.describe("t", TraceFacts(name="second"))
    assert store.facts["t"].name == "first"


def test_long_texts_are_not_held_either(monkeypatch):
    monkeypatch.setattr(spans, "HELD_CHARACTERS", 1000)
    store = SpanStore()
    [span] = list(_spans_of(document(call(1))))
    for number in range(50):
        text = {"text": "x" * 300}
        store.add(replace(span, span_id=f"{number:016x}", attributes=text))
        assert sum(map(len, store._spans.values())) <= 4
    [held] = store.traces.values()
    assert list(held) == [f"{number:016x}" for number in range(50)]


def _spans_of(value):
    taker = otlp._Taker()
    list(taker(Record(value, 1, 1)))
    for held in taker.store.traces.values():
        yield from held.values()


def test_the_file_is_closed_with_its_store():
    file: SpillFile[list[Any]] = SpillFile(list[Any])
    place = file.write([2**300, -1])
    assert file.read(place) == [2**300, -1]
    opened = file._file
    del file
    gc.collect()
    assert opened.closed


REQUEST = document(call(1), call(2), call(3))
REQUEST["resourceSpans"][0] = {
    "resource": {"attributes": [{"key": "a", "value": {"intValue": "1"}}]},
    "scopeSpans": [
        {"scope": {"name": "s"}, **REQUEST["resourceSpans"][0]["scopeSpans"][0]}
    ],
}


@pytest.fixture
def small_windows(monkeypatch):
    """Read everything in parts, a few characters at a time."""
    monkeypatch.setattr(json_window, "WINDOW", 16)
    monkeypatch.setattr(otlp, "_PARTS", otlp._PARTS._replace(whole=0))


def test_one_document_reads_alike_in_parts_and_whole(small_windows, monkeypatch):
    data = as_json(REQUEST)
    in_parts = traces_of(data)
    monkeypatch.undo()
    assert in_parts == traces_of(data)
    assert len(in_parts[0].steps) == 3


def test_a_real_document_reads_alike_in_parts_and_whole(
    small_windows, monkeypatch, shared_data
):
    for name in ("traceloop__normal_3runs", "openinference_smolagents__no_usage"):
        data = (shared_data / f"otlp_json/{name}.otlp.json").read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr(json_window, "WINDOW", 4096)
            in_parts = items_of(data)
        with monkeypatch.context() as patched:
            patched.setattr(json_window, "WINDOW", 2**24)
            whole = items_of(data)
        assert [i for i in in_parts if type(i).__name__ != "Progress"] == [
            i for i in whole if type(i).__name__ != "Progress"
        ]


def test_lines_may_be_read_in_parts_too(small_windows):
    [trace] = traces_of(lines(REQUEST, document(call(9)), REQUEST))
    assert len(trace.steps) == 4


NESTED = Parts(
    (Level(frozenset({"groups"})), Level(frozenset({"items"}), after="name")), whole=0
)


def read_in_parts(text: str, monkeypatch, parts: Parts = NESTED):
    monkeypatch.setattr(json_window, "WINDOW", 8)
    source = open_source(io.BytesIO(text.encode()))
    found = list(records(source, unroll=True, parts=parts))
    return (
        [(i.value, i.starts) for i in found if isinstance(i, Record)],
        [i for i in found if isinstance(i, Rejected)],
    )


def test_each_part_has_what_came_before_its_list_and_says_where_it_begins(monkeypatch):
    text = json.dumps({"v": 1, "groups": [
        {"name": "first name", "items": list(range(100)), "late": True},
        {"items": ["no name came before"], "name": "x"},
    ], "after": [1, 2, 3]})  # fmt: skip
    found, rejected = read_in_parts(text, monkeypatch)
    assert not rejected
    assert [starts for _, starts in found] == [(0, 0), (0, 64), (1,)]
    first, second, third = (value for value, _ in found)
    assert first == {
        "v": 1,
        "groups": [{"name": "first name", "items": list(range(64))}],
    }
    assert second["groups"][0]["items"] == list(range(64, 100))
    assert third["groups"] == [{"items": ["no name came before"], "name": "x"}]


def test_long_elements_do_not_wait_for_each_other():
    text = json.dumps({"groups": [{"name": "x", "items": ["y" * 400_000] * 30}]})
    source = open_source(io.BytesIO(text.encode()))
    found = [
        i for i in records(source, unroll=True, parts=NESTED) if isinstance(i, Record)
    ]
    sizes = [len(one.value["groups"][0]["items"]) for one in found]
    assert sum(sizes) == 30
    assert max(sizes) <= 4
    assert [one.start(1) for one in found] == [
        sum(sizes[:n]) for n in range(len(sizes))
    ]


def test_a_bad_element_is_rejected_and_the_elements_around_it_are_kept(monkeypatch):
    text = (
        '{"groups": [{"name": "a long name", "items": [{"a": 1}, {"b" 2}, {"c": 3}]}]}'
    )
    found, [rejected] = read_in_parts(text, monkeypatch)
    assert [(value["groups"][0]["items"], starts) for value, starts in found] == [
        ([{"a": 1}], (0, 0)),
        ([{"c": 3}], (0, 2)),
    ]
    assert rejected.place == "line 1, column 62"


@pytest.mark.parametrize(
    ("text", "items", "words"),
    [
        ('{"groups": [{"name": "a long name", "items": ["a", "b', ["a"], "cut off"),
        ('{"groups": [{"name": "a long name", "items": [1, 2]', [1, 2], "cut off"),
        ('{"groups": [{"name": "a long name", "items": [1 2]}]}', [1], "comma"),
        ('{"groups": [{"name": "a long name", "items": [1]} x', [1], "comma"),
        ('{"groups": [{"name": "a long name", "items": [1] "x": 1}]}', [1], "a comma"),
        ('{"groups": [{"name": "a long name", "items": [1], x: 1}]}', [1], "A key"),
    ],
)
def test_what_came_before_a_break_is_kept(text, items, words, monkeypatch):
    found, rejected = read_in_parts(text, monkeypatch)
    assert found[0][0]["groups"][0]["items"] == items
    assert words in rejected[0].reason


@pytest.mark.parametrize(
    ("make", "megabytes", "limit"),
    [
        (memory.collector_lines, 40, 65),
        (memory.chat_lines, 40, 50),
        (memory.one_document, 25, 75),
    ],
)
def test_memory_does_not_grow_with_the_file(make, megabytes, limit, tmp_path):
    """The process takes about 30 MB before the first byte; if all spans were held as
    objects and the document read whole, these would need about 87, 31 and 118 MB."""
    path = tmp_path / "large.json"
    make(path, megabytes * memory.MB)
    words = [sys.executable, "-W", "error", "-m", "tests.benchmarks.memory", str(path)]
    done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    peak = int(done.stdout.split("peak")[1].split()[0])
    assert peak < limit, done.stdout
