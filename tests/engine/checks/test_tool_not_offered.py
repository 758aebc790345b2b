"""Tools that were not offered, wherever vendors record the offer."""

from __future__ import annotations

import json

import pytest

from apps.engine.bodies.offers import UNNAMED_TOOL
from apps.engine.check import Answer, Level
from apps.engine.checks.tool_not_offered import ToolNotOffered
from apps.engine.reading import transcript
from apps.engine.trace import Body, Step, StepKind
from tests.engine.told import answer, told, turned_round, used, without_bodies

DEFINED = {"type": "function", "function": {"name": "get_order", "parameters": {}}}


def asks(*names):
    return {
        "role": "assistant",
        "tool_calls": [
            {
                "id": f"c{n}",
                "type": "function",
                "function": {"name": name, "arguments": "{}"},
            }
            for n, name in enumerate(names)
        ],
    }


def one(attributes=None, output=None, given=None, **step):
    body = {"attributes": attributes, "input": given}
    trace = told(answer(0, output or asks("get_order", "zap"), body=body, **step))
    (found,) = ToolNotOffered().run(trace)
    return found


OFFERS = {
    "request": ("input", {"messages": [], "tools": [DEFINED]}),
    "attribute": ("attributes", {"tools": [DEFINED]}),
    "genai": (
        "attributes",
        {
            "gen_ai.tool.definitions": json.dumps(
                [{"type": "function", "name": "get_order"}]
            )
        },
    ),
    "openinference": (
        "attributes",
        {"llm.tools.0.tool.json_schema": json.dumps(DEFINED)},
    ),
    "vercel": (
        "attributes",
        {"ai.prompt.tools": [json.dumps({"type": "function", "name": "get_order"})]},
    ),
    "langsmith": ("attributes", {"invocation_params": {"tools": [DEFINED]}}),
    "langfuse": (
        "attributes",
        {
            "metadata": {
                "attributes": {"gen_ai.tool.definitions": json.dumps([DEFINED])}
            }
        },
    ),
    "pydantic": (
        "attributes",
        {
            "model_request_parameters.function_tools": [{"name": "get_order"}],
            "model_request_parameters.native_tools": [],
        },
    ),
    "gemini": (
        "input",
        {"tools": [{"functionDeclarations": [{"name": "get_order"}]}]},
    ),
    "bedrock": (
        "input",
        {"toolConfig": {"tools": [{"toolSpec": {"name": "get_order"}}]}},
    ),
    "anthropic": ("input", {"tools": [{"name": "get_order", "input_schema": {}}]}),
    "names": ("attributes", {"tools": ["get_order"]}),
}


@pytest.mark.parametrize("shape", OFFERS)
def test_an_offer_is_found_in_every_shape(shape):
    place, value = OFFERS[shape]
    found = one(
        value if place == "attributes" else None,
        given=value if place == "input" else None,
    )
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
    assert found.evidence.facts["requests"] == [{"step": 0, "not_offered": ["zap"]}]
    assert found.evidence.facts["offered"] == ["get_order"]
    quiet = one(
        value if place == "attributes" else None,
        asks("get_order"),
        value if place == "input" else None,
    )
    assert (quiet.answer, quiet.reason_code) == (Answer.QUIET, "all_offered")


@pytest.mark.parametrize(
    "output",
    [
        [{"role": "assistant", "parts": [{"type": "tool_call", "name": "zap"}]}],
        {"content": [{"type": "tool_use", "name": "zap", "input": {"name": "x"}}]},
        {"output": [{"type": "function_call", "name": "zap", "arguments": "{}"}]},
        {"text": "", "toolCalls": [{"toolCallId": "1", "toolName": "zap"}]},
    ],
)
def test_what_was_asked_for_is_found_in_every_shape(output):
    found = one({"tools": [DEFINED]}, output)
    assert found.evidence.facts["requests"][0]["not_offered"] == ["zap"]


def test_the_repeated_offer_of_an_answer_is_not_asked_for():
    output = {"tools": [DEFINED, {"type": "function", "name": "other"}], "output": []}
    assert one(None, output).reason_code == "none_asked_for"


def test_steps_that_name_their_request_count_where_the_answer_is_a_text():
    trace = told(
        answer(0, "I look.", body={"attributes": {"tools": [DEFINED]}}),
        used(1, "zap", {}, "x", by=0),
    )
    (found,) = ToolNotOffered().run(trace)
    assert found.answer is Answer.SIGNAL


@pytest.mark.parametrize(
    ("offered", "asked"),
    [
        ("get_order", "functions.get_order"),
        ("get order", "get_order"),
        ("server.get", "server_get"),
    ],
)
def test_names_are_compared_as_providers_send_them(offered, asked):
    assert one({"tools": [offered]}, asks(asked)).answer is Answer.QUIET


def test_another_case_is_another_name():
    assert one({"tools": ["get_order"]}, asks("Get_Order")).answer is Answer.SIGNAL


def test_tools_of_the_provider_have_kinds_and_no_names():
    offered = {"tools": [{"type": "web_search_preview"}, DEFINED]}
    assert one(offered, asks("web_search")).answer is Answer.QUIET
    assert one(offered, asks("zap")).answer is Answer.SIGNAL


@pytest.mark.parametrize(
    "tools",
    [
        [DEFINED, {"type": "mcp", "server_label": "mail"}],
        '[{"type": "function", "function": {"name": "get_ord',
    ],
)
def test_an_open_or_cut_offer_says_nothing(tools):
    found = one({"tools": tools})
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "offer_open")


@pytest.mark.parametrize("attributes", [None, {"tools": []}, {"toolDefinitions": "{}"}])
def test_no_recorded_offer_is_not_applicable(attributes):
    found = one(attributes)
    assert found.reason_code == "offer_not_recorded"


def test_an_offer_without_a_recorded_answer_says_nothing():
    trace = told(answer(0, None, body={"attributes": {"tools": [DEFINED]}}))
    (found,) = ToolNotOffered().run(trace)
    assert (found.answer, found.reason_code) == (
        Answer.NOT_APPLICABLE,
        "offer_not_recorded",
    )


def test_the_tools_of_an_agent_are_an_offer_and_handing_over_is_allowed():
    agent = Step(
        seq=0,
        kind=StepKind.AGENT,
        invocation=0,
        body=Body(attributes={"tools": ["get_order"]}),
    )
    (found,) = ToolNotOffered().run(
        told(agent, answer(1, asks("get_order", "transfer_to_billing")))
    )
    assert found.answer is Answer.QUIET
    (found,) = ToolNotOffered().run(told(agent, answer(1, asks("zap"))))
    assert found.answer is Answer.SIGNAL


def test_each_agent_is_judged_by_its_own_calls():
    body = {"attributes": {"tools": [DEFINED]}}
    steps = [
        answer(0, asks("get_order"), body=body),
        answer(1, asks("zap"), body=body, invocation=1),
        answer(2, asks("zap"), invocation=1),
    ]
    found = list(ToolNotOffered().run(told(*steps, agents=("one", "two"))))
    assert [f.answer for f in found] == [Answer.QUIET, Answer.SIGNAL]
    assert found[1].evidence.effect == 1
    assert "1 more call the" in found[1].reason


def test_structure_only_is_not_applicable():
    trace = told(answer(0, asks("zap"), body={"attributes": {"tools": [DEFINED]}}))
    (found,) = ToolNotOffered().run(without_bodies(trace))
    assert found.reason_code == "no_bodies"
    (found,) = ToolNotOffered().run(told())
    assert found.reason_code == "no_model_calls"


def test_steps_in_any_order_give_the_same_answer():
    body = {"attributes": {"tools": [DEFINED]}}
    trace = told(*[answer(n, asks("zap", f"t{n}"), body=body) for n in range(4)])
    assert list(ToolNotOffered().run(turned_round(trace))) == list(
        ToolNotOffered().run(trace)
    )


def test_it_has_no_parameters():
    assert (ToolNotOffered().parameters, ToolNotOffered().limits) == ({}, ())


def test_an_offer_of_which_nothing_was_asked_is_not_said_to_hold_all():
    found = one({"tools": [DEFINED]}, {"role": "assistant", "content": "Hi."})
    assert (found.answer, found.reason_code) == (Answer.QUIET, "none_asked_for")
    assert found.headline == "No tool asked for in 1 model call"
    assert found.reason == (
        "The offer is recorded for 1 model call, and no tool was asked for."
    )


def test_it_speaks_of_one_call_in_good_english():
    assert one({"tools": [DEFINED]}, asks("get_order")).headline == (
        "1 requested tool, offered"
    )
    assert "for the only model call" in one(None).reason
    found = one({"tools": [DEFINED]})
    assert found.reason.startswith("The only model call with a recorded offer asked")


def test_a_tool_without_a_recorded_name_is_not_missing_from_the_offer():
    trace = told(
        answer(0, "I look.", body={"attributes": {"tools": [DEFINED]}}),
        used(1, UNNAMED_TOOL, {}, "x", by=0),
    )
    (found,) = ToolNotOffered().run(trace)
    assert found.reason_code == "none_asked_for"
    assert UNNAMED_TOOL == transcript.UNNAMED_TOOL


@pytest.mark.parametrize("kind", ["mcp_toolset", "tool_search", "namespace"])
def test_tools_that_are_found_while_the_model_works_leave_the_offer_open(kind):
    found = one({"tools": [DEFINED, {"type": kind, "name": "more"}]})
    assert found.reason_code == "offer_open"


def test_a_custom_tool_of_a_chat_request_has_a_name():
    custom = {"type": "custom", "custom": {"name": "zap"}}
    assert one({"tools": [DEFINED, custom]}).reason_code == "all_offered"
    assert one({"tools": [custom]}).reason_code == "not_offered"


def test_a_redacted_name_is_not_taken_for_a_missing_one():
    hidden = "[redacted: key]"
    found = one({"tools": [DEFINED, hidden]})
    assert found.reason_code == "offer_open"
    found = one({"tools": [DEFINED]}, asks("get_order", hidden))
    assert found.reason_code == "all_offered"
