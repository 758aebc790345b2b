"""Cases as JSON lines: good lines are kept, of bad ones it is said what is wrong."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.engine.replay.case import Case, RecordedCall, ToolOffer
from apps.engine.replay.cases_file import cases_as_jsonl, cases_from_jsonl

LINE = '{"agent": "billing", "input": "I was charged twice"}'


def test_good_lines_are_kept_and_each_bad_one_has_its_reason():
    lines = [
        b"\xef\xbb\xbf" + LINE.encode(),
        "",
        "not json",
        '{"agent": "a", "input": 1} {"agent": "b"}',
        "[1]",
        '{"agent": "a"}',
        '{"input": "x"}',
        '{"agent": "a", "input": "x", "mesages": []}',
        '{"agent": "a", "input": "x", "calls": [{"tool": "t", "answer": 1}]}',
        '{"agent": "a", "messages": [{"role": "bot", "content": "x"}]}',
        '{"agent": "a", "input": "x", "tools": [{"name": " "}]}',
        '{"agent": "a", "input": "x", "calls": [{"tool": ""}]}',
        '{"agent": "a", "input": "x", "calls": [{"arguments": {}}]}',
        '{"agent": 7, "input": "x"}',
        b"\xff{}",
        '{"agent": "a", "input": ' + "[" * 200 + "]" * 200 + "}",
        '{"agent": "a", "input": {"n": 1',
        '{"agent": "last", "input": {"n": 1}}',
    ]
    read = cases_from_jsonl(lines)
    assert [(case.agent, case.input) for case in read.cases] == [
        ("billing", "I was charged twice"),
        ("last", {"n": 1}),
    ]
    reasons = {one.line: one.reason for one in read.refused}
    expected = {
        3: "Not valid JSON",
        4: "Something follows the JSON object on the same line.",
        5: "A case is a JSON object; this line holds another value.",
        6: "There is neither “input” nor “messages”: what is it asked?",
        7: "“agent” is missing: which agent is run?",
        8: "“mesages” is no field of a case; the fields there are agent, name, input,",
        9: "“calls[0].answer” is no field of a case; the fields there are tool,",
        10: "“messages[0].role” is none of assistant, developer, system, tool, user.",
        11: "A tool among “tools” has no name.",
        12: "A call among “calls” names no tool.",
        13: "Object missing required field `tool` in “calls[0]”.",
        14: "Expected `str`, got `int` in “agent”.",
        15: "The line is not UTF-8 text.",
        16: "nested deeper than 128 levels",
        17: "it was cut off",
    }
    assert list(reasons) == list(expected)
    for line, words in expected.items():
        assert words in reasons[line], (line, reasons[line])
    assert read.refused_count == len(expected)
    assert read.refused[0].excerpt == "not json"


def test_lines_without_an_agent_take_the_one_that_is_given():
    read = cases_from_jsonl(['{"input": "x"}', LINE], agent="triage")
    assert [case.agent for case in read.cases] == ["triage", "billing"]


def test_an_empty_agent_is_the_one_without_a_name_and_none_at_all_is_refused():
    lines = ['{"agent": "", "input": "x"}', '{"input": "y"}']
    read = cases_from_jsonl(lines)
    assert [(case.agent, case.input) for case in read.cases] == [("", "x")]
    assert [one.line for one in read.refused] == [2]
    both = cases_from_jsonl(lines, agent="").cases
    assert [case.agent for case in both] == ["", ""]
    assert next(iter(cases_as_jsonl(both))) == lines[0] + "\n"


def test_what_was_replaced_on_the_way_in_is_said():
    (case,) = (
        read := cases_from_jsonl(
            ['{"agent": "a", "input": {"x": NaN, "x2": 1, "x2": 2, "t": "\\ud800"}}']
        )
    ).cases
    assert case.input == {"x": None, "x2": 2, "t": "\ufffd"}
    assert len(read.notes) == 3


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip
words = st.text(min_size=1, max_size=6).filter(str.strip)
cases = st.builds(
    Case,
    agent=st.text(max_size=6),
    name=st.text(max_size=6),
    input=plain.filter(lambda value: value is not None),
    messages=st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "system", "tool"]), "content": plain}
        ),
        max_size=2,
    ).map(tuple),
    tools=st.lists(
        st.builds(
            ToolOffer,
            name=words,
            parameters=st.dictionaries(st.text(max_size=4), plain, max_size=2),
        ),
        max_size=2,
    ).map(tuple),
    calls=st.lists(
        st.builds(RecordedCall, tool=words, arguments=plain, result=plain), max_size=2
    ).map(tuple),
    state=plain,
    context=st.dictionaries(st.text(max_size=4), plain, max_size=2),
    parameters=st.dictionaries(st.text(max_size=4), plain, max_size=2),
)


# On a busy machine values are slow to draw, which says nothing of the reader.
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(cases, max_size=3))
def test_cases_come_back_as_they_were_written(written):
    lines = list(cases_as_jsonl(written))
    assert all(line.endswith("\n") and "\n" not in line[:-1] for line in lines)
    read = cases_from_jsonl(lines)
    assert read.refused == ()
    shown = json.loads(
        json.dumps([case.input for case in written]).replace("\\u0000", "\\ufffd")
    )
    assert [case.input for case in read.cases] == shown
    assert list(cases_as_jsonl(read.cases)) == lines
