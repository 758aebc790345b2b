"""The rules that an author chooses: what they find, what they miss, what has failed."""

from __future__ import annotations

import pytest

from apps.engine.extraction import DecisionState, decoded_decision, extracted, extractor
from apps.engine.trace import StepStatus
from tests.engine.extraction.doings import Run, asked, at, bare, did, gave

ERROR = StepStatus.ERROR
PROSE = "The order will be sent back to you within a few days, as you asked for."


def test_a_path_reads_the_json_of_the_output_wherever_it_stands():
    for output in (
        {"route": {"to": "Billing"}},
        '{"route": {"to": "billing"}}',
        {"role": "assistant", "content": '```json\n{"route": {"to": "BILLING "}}\n```'},
    ):
        found = at("route.to", gave(output))
        assert (found.state, found.value) == ("decided", '"billing"')
    assert found.how == "“route.to” in the output."


def test_a_path_may_be_written_for_the_recorded_message_too():
    output = {"role": "assistant", "content": '{"to": "b"}', "stop_reason": "end"}
    assert at("stop_reason", gave(output)).value == '"end"'
    assert at("to", gave(output)).value == '"b"'


@pytest.mark.parametrize(
    ("path", "output"),
    [
        ("route", {"other": 1}), ("route", {"route": None}), ("route", {"route": "  "}),
        ("items[*].decision", {"items": [{"a": 1}]}), ("[a, b]", {"c": 1}),
        ("{x: a, y: b}", {"c": 1}), ("route", PROSE), ("abs(route)", {"route": "x"}),
        ("sort_by(r, &a)", {"r": [{"a": 1}, {"a": "b"}]}), ("r[0]", {"r": {}}),
        ("max(r)", {"r": [1, None]}), ("route", None), ("route", ""),
    ],
)  # fmt: skip
def test_a_key_that_is_absent_is_a_missing_decision_and_no_error(path, output):
    found = at(path, gave(output, ("look", {})))
    assert (found.state, found.value) == ("missing", "")
    assert found.how.endswith(".")
    assert at(path, gave(output, ("look", {}), status=ERROR)).state == "failed"


def test_an_empty_list_that_stands_there_is_a_decision():
    assert at("chosen", bare({"chosen": []})).value == "[]"


def test_a_path_reads_the_arguments_and_the_result_of_the_last_call_of_a_tool():
    conduct = gave(
        PROSE,
        ("route_ticket", {"team": "Billing"}),
        ("log", {"team": "x"}),
        results={"route_ticket": '{"ticket": 7}'},
    )
    tool = {"source": "arguments", "tool": "route_*|assign"}
    found = at("team", conduct, **tool)
    assert (found.value, found.step) == ('"billing"', 0)
    assert at("ticket", conduct, source="result", tool="route_ticket").value == "7"
    assert at("team", conduct, source="arguments", tool="pay").state == "missing"
    assert at("team", conduct, source="arguments").value == '"x"'


def test_a_path_that_costs_too_much_is_missing_with_a_sentence():
    found = at("a[*].b[*].c", gave({"a": [{"b": [{"c": 1}] * 300}] * 300}))
    assert (found.state, "too large" in found.how) == (DecisionState.MISSING, True)


def test_a_pattern_takes_its_group_or_all_and_the_last_match_or_the_first():
    said = gave("Route: billing. No, wait.\nRoute: Sales.")
    spec = {"kind": "regex", "expression": r"Route: (\w+)"}
    assert asked(said, **spec).value == '"sales"'
    assert asked(said, **spec, place="first").value == '"billing"'
    whole = asked(said, kind="regex", expression=r"Route: \w+")
    assert (whole.value, whole.shown) == ('"route: sales"', "Route: Sales")
    missing = asked(said, kind="regex", expression="Team: (.+)")
    assert (missing.state, missing.value) == ("missing", "")


def test_a_pattern_reads_the_json_of_tools_as_text():
    conduct = gave(PROSE, ("run", {"command": "kubectl scale --replicas=3"}))
    found = asked(
        conduct, kind="regex", expression=r"--replicas=(\d+)", source="arguments"
    )
    assert (found.value, found.step) == ("3", 0)


def test_the_last_tool_call_is_compared_with_canonical_arguments():
    one = gave(PROSE, ("pay", {"b": 1.0, "a": "X"}), ("look", {}))
    other = gave(PROSE, ("look", {}), ("pay", '{"a": "x ", "b": 1}'))
    spec = {"kind": "last_tool_call", "tool": "pay|refund"}
    assert asked(one, **spec).value == asked(other, **spec).value
    assert asked(one, **spec).shown == 'pay {"a":"X","b":1}'


def test_only_named_arguments_are_kept():
    spec = {"kind": "last_tool_call", "arguments": ["order", "amount"]}
    one = gave(PROSE, ("pay", {"order": 1, "amount": 2, "note": "a"}))
    other = gave(PROSE, ("pay", {"order": 1, "amount": 2, "note": "b"}))
    assert asked(one, **spec).value == asked(other, **spec).value


def test_a_call_without_the_named_arguments_is_decided_by_its_name_alone():
    spec = {"kind": "last_tool_call", "arguments": ["order"]}
    found = [
        asked(gave(PROSE, (name, {"note": note})), **spec)
        for name, note in (("pay", "a"), ("pay", "b"), ("refund", "a"))
    ]
    assert [one.state for one in found] == ["decided"] * 3
    assert found[0].value == found[1].value != found[2].value
    assert "its name alone" in found[0].how


def test_a_redacted_argument_does_not_hide_the_others_that_are_kept():
    conduct = gave(PROSE, ("pay", {"order": 1, "card": "[redacted: card]"}))
    kept = asked(conduct, kind="last_tool_call", arguments=["order"])
    assert kept.state == "decided"
    assert asked(conduct, kind="last_tool_call").state == "missing"


def test_a_run_that_called_nothing_has_not_decided():
    spec = {"kind": "last_tool_call"}
    silent = asked(gave(PROSE), **spec)
    assert (silent.state, silent.how) == ("missing", "It called no tool.")
    other = asked(gave(PROSE, ("look", {})), **spec, tool="pay")
    assert other.how == "It called no tool named “pay”."
    assert asked(gave(PROSE, status=ERROR), **spec).state == "failed"


def test_in_a_failed_run_a_named_tool_was_called_and_any_tool_was_only_the_last():
    conduct = gave(None, ("look", {"a": 1}), status=ERROR)
    assert asked(conduct, kind="last_tool_call").state == "failed"
    named = asked(conduct, kind="last_tool_call", tool="look")
    assert (named.state, "failed (error) all the same" in named.how) == (
        "decided",
        True,
    )


LABELS = {"kind": "label", "labels": ["pass", "fail", "not approved", "approved"]}


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("The check did PASS.", "pass"), ("FAIL (0 passes)", "fail"),
        ("not a pass but a fail", "fail"), ("This is Not  Approved", "not approved"),
        ("approved, and again: approved", "approved"), ("It is not only approved.", "approved"),
        ({"verdict": "pass", "fail": 0}, "pass"), ("<thinking>fail</thinking>pass", "pass"),
    ],
)  # fmt: skip
def test_a_label_is_found_as_a_whole_word(text, label):
    found = asked(gave(text), **LABELS)
    assert (found.state, found.shown) == ("decided", label)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("It did not pass.", "Only denied: “pass”."),
        ("It didn't pass", "Only denied"),
        ("pass: false", "Only denied"),
        ("there is no pass here", "Only denied"),
        ("pass isn't what I would say", "Only denied"),
        ("pass or fail, who knows", "Several labels are named: “fail”, “pass”."),
        ("It is a pass. It is not a pass.", "“pass” is both affirmed and denied."),
        ("passing, bypass, pass-through, fail_2", "None of the labels is named"),
        ("[redacted: pass]", "None of the labels is named"),
        (["pass", "fail"], "Several labels"),
    ],
)
def test_a_label_that_is_denied_or_not_alone_is_a_missing_decision(text, why):
    found = asked(gave(text), **LABELS)
    assert (found.state, found.value) == ("missing", "")
    assert why in found.how


@pytest.mark.parametrize("text", ["1%", "0.5", "95/100", "15", "A-5", "5.1"])
def test_a_figure_is_not_named_by_a_part_of_another(text):
    labels = {"kind": "label", "labels": ["1", "5", "95", "100"]}
    assert asked(gave(f"It is {text} here"), **labels).state == "missing"


def test_a_label_in_a_failed_or_silent_run():
    assert asked(gave("Traceback", status=ERROR), **LABELS).state == "failed"
    assert asked(gave(None, ("look", {})), **LABELS).state == "missing"


def test_the_whole_output_is_compared_as_json_and_prose_only_if_asked():
    spec = {"kind": "whole_output"}
    assert asked(gave('{"b": 1, "a": "X"}'), **spec).value == '{"a":"x","b":1}'
    assert asked(gave("Billing"), **spec).value == '"billing"'
    assert asked(gave(PROSE), **spec).state == "not_compared"
    assert asked(gave(PROSE), **spec, prose=True).shown == PROSE
    assert asked(gave(None, ("look", {})), **spec).state == "missing"
    assert asked(gave("Error: 500", status=ERROR), **spec, prose=True).state == "failed"


def test_which_invocation_counts_is_declared():
    conduct = did(Run({"to": "A"}), Run({"to": "B"}), Run({"to": "C"}))
    assert at("to", conduct).value == '"c"'
    assert at("to", conduct, of="first").value == '"a"'
    each = at("to", conduct, of="each")
    assert (each.value, each.shown) == ('["a","b","c"]', '["A","B","C"]')


def test_one_invocation_without_a_decision_leaves_none_of_each():
    conduct = did(Run({"to": "A"}), Run({"other": "B"}), Run({"to": "C"}))
    found = at("to", conduct, of="each")
    assert (found.state, "1 of 3 invocations" in found.how) == ("missing", True)
    crashed = did(Run({"to": "A"}), Run(None, status=ERROR), Run({"x": 1}))
    assert at("to", crashed, of="each").state == "failed"
    assert at("to", did(Run({"to": "A"})), of="each").value == '"a"'


def test_four_of_five_runs_that_crashed_have_no_decision_and_stay_five():
    crash = {"status": ERROR}
    runs = [gave({"route": "a"}), *[gave(None, ("look", {}), **crash)] * 4]
    states = [at("route", run).state for run in runs]
    assert states == ["decided", "failed", "failed", "failed", "failed"]


def test_what_is_shown_is_one_short_line():
    found = at("x", gave({"x": "a\n\u202eb\x00" + "word " * 400}))
    assert len(found.shown) == 300
    assert found.shown.isprintable()
    assert "\n" not in found.shown


def test_a_long_value_is_compared_in_full_though_it_is_cut():
    one, other = ({"x": "ab " * 5_000 + end} for end in ("y", "z"))
    first, second = at("x", gave(one)), at("x", gave(other))
    assert len(first.value) < 4_200
    assert first.value != second.value
    assert first.value == at("x", gave(one)).value


def test_a_definition_is_made_ready_once():
    value = {"kind": "jmespath", "expression": "x"}
    ready = extractor(decoded_decision(value))
    assert extractor(decoded_decision(dict(value))) is ready
    assert ready.extracted(gave({"x": "A"})) == extracted(
        gave({"x": "A"}), decoded_decision(value)
    )
