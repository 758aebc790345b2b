"""Phoenix exports as Parquet: read with the extra, and a sentence without it."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.sequences import serial_sequences
from apps.engine.trace import UsageState
from tests.formats import index
from tests.formats.changed_files import QUICK, read_safely
from tests.formats.phoenix_files import ROWS, SHAPES, TRACE, columns, ident
from tests.formats.reading import counts_of, refusal_of, slug_of, traces_of

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed.")
parquet = pytest.importorskip("pyarrow.parquet")

WHOLE = (112, 100, 86, 78, 70, 43)


def as_parquet(rows):
    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), file, row_group_size=2)
    return file.getvalue()


def kept_as_text(row):
    """What Arrow takes: one type a column, so lists and objects are JSON texts."""
    return {
        name: json.dumps(row[name])
        if isinstance(row.get(name), list | dict)
        else row.get(name)
        for name in columns()
    }


PARQUET = as_parquet([kept_as_text(row) for row in ROWS])


def test_it_reads_the_same_steps_as_from_json_lines():
    [trace] = traces_of(PARQUET)
    [other] = traces_of(SHAPES["lines"])
    assert trace.steps == other.steps
    assert trace.invocations == other.invocations
    assert (trace.session, trace.task, trace.trial) == ("s1", "refund", 2)
    assert slug_of(PARQUET) == "phoenix-parquet"


def test_it_names_the_extra_when_parquet_cannot_be_read(monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(
        "apps.engine.formats.phoenix_parquet.importlib.import_module", absent
    )
    assert "`.venv/bin/pip install pyarrow`" in refusal_of(PARQUET)


def test_it_says_that_a_parquet_file_is_no_table_of_spans():
    assert "context.span_id" in refusal_of(as_parquet([{"a": 1}]))


def test_it_says_that_a_parquet_file_is_cut_off():
    data = PARQUET
    for at in (4, 20, len(data) // 2, len(data) - 1):
        assert "damaged or cut off" in refusal_of(data[:at])


def test_it_reads_parquet_with_lists_of_objects_times_and_bytes():
    row = {
        "name": "x", "span_kind": "LLM", "context.span_id": ident(2),
        "context.trace_id": TRACE,
        "start_time": pyarrow.scalar(1_796_008_524_000_000_007,
                                     pyarrow.timestamp("ns", "UTC")),
        "attributes.llm.input_messages": [{"message.role": "user",
                                           "message.content": "hello"}],
        "attributes.blob": b"\x00a",
        "attributes.llm.token_count.completion": float("nan"),
    }  # fmt: skip
    named = {key: pyarrow.array([item]) for key, item in row.items()}
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(named), file)
    [trace] = traces_of(file.getvalue())
    [step] = trace.steps
    assert step.start_ns == 1_796_008_524_000_000_007
    assert step.body.input == [{"role": "user", "content": "hello"}]
    assert step.body.attributes["blob"] == "\ufffda"
    assert step.call.usage.state is UsageState.MISSING


@QUICK
@given(st.data())
def test_damaged_parquet_gives_items_or_a_sentence(data):
    changed = bytearray(PARQUET)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(4, len(changed) - 1))
        changed[at] = data.draw(st.integers(0, 255))
    read_safely(bytes(changed), "phoenix-parquet")


@pytest.mark.parametrize("row", index.rows("phoenix_spans_export"))
def test_it_finds_the_counts_of_the_index(row):
    traces = traces_of((index.DATA / row["path"]).read_bytes())
    assert counts_of(traces) == index.expected(row)


def test_it_gives_each_call_to_the_agent_that_made_it(shared_data):
    """Every framework's runs in one export, with the boundary of each sequence."""
    path = shared_data / "phoenix_spans_export/spans_dataframe.parquet"
    found = {}
    for trace in traces_of(path.read_bytes()):
        for one in serial_sequences(trace):
            found.setdefault((trace.name, one.agent), []).append(one.outputs)
    assert found == {
        ("LangGraph", None): [(None,)],
        ("LangGraph", "billing_agent"): [(None,) * 6],
        ("invoke_agent triage_agent", "triage_agent"): [WHOLE],
        ("invoke_agent triage_agent", "billing_agent"): [WHOLE] * 5,
        ("Support workflow", "Triage Agent"): [WHOLE[:1]] * 4,
        ("Support workflow", "Billing Agent"): [WHOLE[1:]] * 4,
    }
