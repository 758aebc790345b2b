"""Tables: dialects, quoted cells, bad rows, formulas, and literals in cells."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.format import Note, Progress, Rejected
from apps.engine.formats import open_source
from apps.engine.reading import rows
from apps.engine.reading.json_gate import Record, RefusedRecord
from apps.engine.reading.python_repr import NotALiteral, literal
from apps.engine.reading.rows import cell, header_of, read_rows
from tests.formats.reading import refusal_of


def read(text: str | bytes):
    """The records, and everything else but progress."""
    data = text.encode() if isinstance(text, str) else text
    records: list[Record] = []
    source = open_source(io.BytesIO(data))
    others = read_rows(source, lambda record: records.append(record) or ())
    return records, [item for item in others if not isinstance(item, Progress)]


def values(text: str | bytes):
    records, others = read(text)
    assert others == []
    return [record.value for record in records]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_it_tells_the_delimiter_from_the_header(mark):
    text = f"id{mark}name\n1{mark}a\n"
    assert values(text) == [{"id": "1", "name": "a"}]
    assert header_of(open_source(io.BytesIO(text.encode()))).delimiter == mark


def test_it_believes_the_delimiter_that_a_spreadsheet_declares():
    assert values("sep=;\nid;a,b\n1;2\n") == [{"id": "1", "a,b": "2"}]


def test_it_does_not_count_delimiters_inside_quotes():
    assert values('"a;b;c;d",id\n"x",1\n') == [{"a;b;c;d": "x", "id": "1"}]


def test_it_reads_quotes_line_ends_and_delimiters_inside_cells():
    text = 'id,input\n1,"he said ""hi"",\nand\r\nleft"\n2,b\n'
    assert values(text) == [
        {"id": "1", "input": 'he said "hi",\nand\r\nleft'},
        {"id": "2", "input": "b"},
    ]


def test_it_reads_windows_line_ends_blank_lines_and_a_byte_order_mark():
    text = "\ufeffid,name\r\n1,a\r\n\r\n2,b\r\n"
    assert values(text) == [{"id": "1", "name": "a"}, {"id": "2", "name": "b"}]


def test_it_names_the_line_on_which_a_row_begins():
    records, _ = read('id,input\n1,"a\nb\nc"\n2,x\n')
    assert [record.place for record in records] == [
        "record 1 (line 2)",
        "record 2 (line 5)",
    ]


@pytest.mark.parametrize("word", ["", "nan", "None", "NULL", "NaT", "<NA>", "\\N"])
def test_it_reads_the_words_for_nothing_as_not_recorded(word):
    assert values(f"id,tokens,end\n1,{word},x\n") == [{"id": "1", "end": "x"}]


def test_it_keeps_the_same_words_where_they_are_quoted_text():
    assert values('id,tokens\n1,"None"\n') == [{"id": "1", "tokens": "None"}]


def test_it_leaves_out_a_column_without_a_name():
    assert values(",id\n0,1\n") == [{"id": "1"}]


def test_it_says_which_column_stands_twice_and_keeps_the_first_cell():
    records, [note] = read("id,a,a\n1,x,y\n")
    assert [record.value for record in records] == [{"id": "1", "a": "x"}]
    assert isinstance(note, Note)
    assert '"a"' in note.sentence


def test_it_rejects_a_row_of_another_width_and_reads_the_others():
    records, [rejected] = read("id,a\n1\n2,x\n3,x,y\n"[:-6] + "\n")
    assert [record.value for record in records] == [{"id": "2", "a": "x"}]
    assert rejected.place == "record 1 (line 2)"
    assert "1 cells where the header has 2" in rejected.reason


def test_it_rejects_a_row_whose_quotes_stand_inside_a_cell():
    records, [rejected] = read('id,a\n1,"x"y\n2,b\n')
    assert [record.value["id"] for record in records] == ["2"]
    assert "quote" in rejected.reason


def test_it_says_that_a_file_was_cut_off_inside_a_quote():
    records, [rejected] = read('id,a\n1,b\n2,"abc')
    assert len(records) == 1
    assert "cut off" in rejected.reason


def test_it_says_that_a_file_was_cut_off_inside_its_last_row():
    records, [rejected] = read("id,a,b\n1,b,c\n2,x")
    assert len(records) == 1
    assert "cut off" in rejected.reason


def test_it_does_not_believe_a_last_cell_that_may_be_cut_off():
    records, [note] = read("id,tokens\n1,12\n2,1")
    assert [record.value for record in records] == [
        {"id": "1", "tokens": "12"},
        {"id": "2"},
    ]
    assert note.code == "last_cell"


def test_it_believes_a_last_cell_whose_quotes_are_closed():
    assert values('id,tokens\n1,"12"') == [{"id": "1", "tokens": "12"}]


def test_it_gives_up_a_row_that_is_too_large_and_reads_on(monkeypatch):
    monkeypatch.setattr(rows, "MAX_ROW", 50)
    records, [rejected] = read(f"id,a\n1,{'x' * 200}\n2,b\n")
    assert [record.value["id"] for record in records] == ["2"]
    assert "larger than 50 bytes" in rejected.reason


def test_it_takes_the_refusal_of_a_reader_for_one_row_only():
    def refuse(record):
        if record.value["id"] == "1":
            raise RefusedRecord("It has no span.", "$.span")
        return ()

    source = open_source(io.BytesIO(b"id,a\n1,b\n2,c\n"))
    found = [i for i in read_rows(source, refuse) if isinstance(i, Rejected)]
    assert [(one.place, one.reason) for one in found] == [
        ("record 1 (line 2), $.span", "It has no span.")
    ]


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", "one word", "a\nb\n"])
def test_it_sees_no_header_where_there_is_no_table(text):
    assert header_of(open_source(io.BytesIO(text.encode()))) is None


def test_a_formula_in_a_cell_is_the_text_of_a_formula(shared_data):
    [value] = values((shared_data / "traps/csv_formula.csv").read_bytes())
    assert value["name"] == '=HYPERLINK("http://x")'
    assert [value["input"], value["output"]] == ["=1+1", "@SUM(A1)"]
    assert cell(value["input"]) == "=1+1"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'message.role': 'user', 'n': None}", {"message.role": "user", "n": None}),
        ("[{'a': 1}\n {'b': 2.5}]", [{"a": 1}, {"b": 2.5}]),
        ("array([{'a': array(['x'], dtype=object)}], dtype=object)", [{"a": ["x"]}]),
        ("(1, 'a', True)", [1, "a", True]),
        ("{'t': datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.timezone.utc)}",
         {"t": "2026-01-02 03:04:00.000000"}),
        ("[Timestamp('2026-01-01', tz='UTC'), nan, -1]", ["2026-01-01", None, -1]),
        ("OrderedDict([('a', 1)])", {"a": 1}),
        ('{"a": "it\'s", \'b\': "\\n\\x41"}', {"a": "it's", "b": "\nA"}),
        ('{"a": [1, {"b": null}]}', {"a": [1, {"b": None}]}),
        ("{}", {}),
        ("()", []),
        ("[ 1.5e3 ]", [1500.0]),
    ],
)  # fmt: skip
def test_it_opens_a_cell_that_holds_json_or_a_python_literal(text, value):
    assert cell(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "[__import__('os').system('true')]",
        "[1",
        "{1: }",
        "{'a' 'b': 1}",
        "[1,,2]",
        "{[1]: 2}",
        "[lambda: 1]",
        "[" * 5000,
        "[open('x')]",
        "[1]*9",
        "(1) (2)",
        "[f'{x}']",
        "{'a': " + "9" * 1000 + "}",
        "{'a': <object at 0x1>}",
    ],
)
def test_it_leaves_what_is_no_literal_as_the_text_it_is(text):
    assert cell(text) == text
    with pytest.raises(NotALiteral):
        literal(text)


def test_it_stops_at_a_literal_of_too_many_parts(monkeypatch):
    monkeypatch.setattr("apps.engine.reading.python_repr.MAX_TOKENS", 10)
    with pytest.raises(NotALiteral, match="too many parts"):
        literal("[" + "1, " * 20 + "]")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.lists(PLAIN, max_size=3))
def test_it_reads_every_plain_value_as_python_writes_it(value):
    text = json.dumps(value)
    if "\\u0000" in text or "\\ud" in text:
        return
    assert literal(repr(value)) == value


@given(st.text(max_size=60))
def test_any_text_is_a_literal_or_is_refused(text):
    try:
        value = literal(text)
    except NotALiteral:
        return
    json.dumps(value, allow_nan=False)


CELLS = st.text(max_size=12).filter(lambda text: "\0" not in text)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5), st.sampled_from(",;"))
def test_it_reads_back_whatever_was_quoted(table, mark):
    def quoted(text):
        return '"' + text.replace('"', '""') + '"'

    lines = [mark.join(map(quoted, row)) for row in table]
    text = mark.join(["first", "second"]) + "\n" + "\n".join(lines) + "\n"
    expected = [
        {
            name: text
            for name, text in zip(("first", "second"), row, strict=True)
            if text
        }
        for row in table
    ]
    assert values(text.encode("utf-8", "replace")) == [
        {name: text.encode("utf-8", "replace").decode() for name, text in row.items()}
        for row in expected
    ]


@given(st.binary(max_size=200))
def test_any_bytes_below_a_header_give_records_or_refusals(data):
    records, others = read(b"id,name\n" + data)
    assert all(set(record.value) <= {"id", "name"} for record in records)
    assert all(isinstance(item, Note | Rejected) for item in others)


@given(st.integers(min_value=9))
def test_a_table_that_is_cut_off_never_tells_what_the_whole_does_not(at):
    whole = 'id,name,tokens\n1,"a\nb",112\n2,c,"100"\n3,"d ""e""",86\n'
    known = {tuple(sorted(row.items())) for row in values(whole)}
    records, _ = read(whole.encode()[: max(16, at % len(whole))])
    for record in records:
        row = set(record.value.items())
        assert any(row <= set(one) for one in known)


def test_it_says_which_columns_a_table_of_no_known_format_has():
    said = refusal_of(b"city,rain,sun\nOslo,1,2\n")
    assert said.startswith('The file is a table with the columns "city", "rain", "sun"')


def test_a_sentence_with_a_comma_is_no_table():
    said = refusal_of(b"Hello, this is no trace\nat all, sorry\n")
    assert "JSON, JSON lines, CSV, protobuf and Parquet" in said
    assert ".gz, .zst, .zip or .tar" in said
