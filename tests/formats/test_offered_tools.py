"""What models were offered: names kept by readers, so that a check can compare them."""

from __future__ import annotations

import json

import pytest

from apps.engine.bodies.offers import offer_of
from apps.engine.check import Answer
from apps.engine.checks.final_answer import FinalAnswerCheck
from apps.engine.checks.tool_not_offered import ToolNotOffered
from apps.engine.privacy.structure import structure_of
from apps.engine.reading.offered import offered_tools
from tests.formats import claude_files as claude
from tests.formats import provider_samples as providers
from tests.formats.reading import as_json, lines, traces_of
from tests.formats.transcript_parts import calls, one

SECRET = "How to find a parcel, in words that nobody needs twice."
CHAT_TOOL = {
    "type": "function",
    "function": {"name": "find_parcel", "description": SECRET, "parameters": {}},
}
OTHER_TOOL = {"type": "function", "function": {"name": "send_mail"}}
CHAT = [*providers.ASKED, providers.LOOKED, providers.FOUND,
        {"role": "assistant", "content": "It is in Graz."}]  # fmt: skip


def chat(tools, **more):
    return {"messages": CHAT, **({"tools": tools} if tools else {}), **more}


def log(tools):
    return [
        record | {"request": record["request"] | {"tools": tools}}
        for record in providers.REQUEST_LOG
    ]


def litellm(tools):
    return [
        {
            "id": "1",
            "call_type": "acompletion",
            "model_parameters": {"tools": tools},
            "messages": providers.ASKED,
            "response": providers.completion(
                None, tool_calls=providers.LOOKED["tool_calls"]
            ),
        }
    ]


def litellm_kwargs(tools):
    [record] = litellm(tools)
    kept = {key: record[key] for key in ("messages", "response")}
    return [kept | {"tools": tools, "kwargs": {"tools": tools}, "timestamp": 1.0}]


def anthropic(tools):
    named = [
        {"name": tool["function"]["name"], "description": SECRET, "input_schema": {}}
        for tool in tools
    ]
    return providers.ANTHROPIC | {"tools": named}


def responses(tools):
    own = [
        {"type": "function", "name": tool["function"]["name"], "description": SECRET}
        for tool in tools
    ]
    return [
        {
            "id": "resp_1",
            "object": "response",
            "status": "completed",
            "model": "gpt-x",
            "tools": own,
            "output": [
                {
                    "type": "function_call",
                    "id": "fc_1",
                    "call_id": "call_1",
                    "name": "find_parcel",
                    "arguments": "{}",
                }
            ],
        }
    ]


def response_request(tools):
    own = [{"type": "function", "name": tool["function"]["name"]} for tool in tools]
    return {"model": "gpt-x", "tools": own, "input": providers.RESPONSE_ITEMS}


def batch(tools):
    return [
        {
            "custom_id": "req-1",
            "method": "POST",
            "body": {"messages": providers.ASKED, "tools": tools},
            "response": {
                "status_code": 200,
                "body": providers.completion(
                    None, tool_calls=providers.LOOKED["tool_calls"]
                ),
            },
        }
    ]


FILES = {
    "chat": chat,
    "chat functions": lambda tools: chat(
        None, functions=[tool["function"] for tool in tools]
    ),
    "request log": log,
    "litellm payload": litellm,
    "litellm completion": litellm_kwargs,
    "anthropic request": anthropic,
    "responses": responses,
    "responses request": response_request,
    "batch": batch,
}


def answers(trace):
    return [found.answer for found in ToolNotOffered().run(trace)]


@pytest.mark.parametrize("name", FILES)
def test_the_names_of_the_tools_of_a_request_are_kept_and_compared(name):
    trace = one(FILES[name]([CHAT_TOOL, OTHER_TOOL]))
    for call in calls(trace):
        assert call.body.attributes["tools"] == ["find_parcel", "send_mail"]
    assert answers(trace) == [Answer.QUIET]
    assert answers(one(FILES[name]([OTHER_TOOL]))) == [Answer.SIGNAL]


@pytest.mark.parametrize("name", FILES)
def test_what_the_tools_do_is_not_kept_with_the_calls(name):
    trace = one(FILES[name]([CHAT_TOOL]))
    kept = json.dumps(
        [(call.body.attributes or {}).get("tools") for call in calls(trace)]
    )
    assert "find_parcel" in kept
    assert SECRET not in kept
    assert all(step.body is None for step in structure_of(trace).steps)


@pytest.mark.parametrize("name", FILES)
def test_a_request_without_tools_offers_nothing_that_is_recorded(name):
    for call in calls(one(FILES[name]([]))):
        held = None if call.body is None else call.body.attributes
        assert "tools" not in (held or {})


def init(*tools, **more):
    return {"type": "system", "subtype": "init", "session_id": "s1",
            "tools": list(tools)} | more  # fmt: skip


def session(first, *blocks):
    told = claude.answer("m1", *(blocks or [claude.use("t1")]), stop="tool_use")
    return claude.read(first, *claude.stream(told, claude.result("t1"))[1:])


def test_an_init_line_of_claude_code_is_the_offer_of_the_main_agent():
    trace = session(init("Bash", "Read"))
    [call] = calls(trace)
    assert {"Bash", "Read"} <= set(call.body.attributes["tools"])
    assert answers(trace) == [Answer.QUIET]
    assert answers(session(init("Read"))) == [Answer.SIGNAL]


def test_one_tool_of_claude_code_has_two_names():
    assert answers(session(init("Task"), claude.use("t1", "Agent"))) == [Answer.QUIET]
    assert answers(session(init("Read"), claude.use("t1", "Agent"))) == [Answer.SIGNAL]


def test_a_server_that_may_still_join_leaves_the_offer_of_claude_code_open():
    for status, expected in (
        ("connected", Answer.SIGNAL),
        ("failed", Answer.SIGNAL),
        ("pending", Answer.NOT_APPLICABLE),
    ):
        servers = [{"name": "mail", "status": status}]
        trace = session(init("Read", mcp_servers=servers))
        assert answers(trace) == [expected]


def test_what_the_provider_ran_itself_is_not_missing_from_the_offer():
    search = {"type": "server_tool_use", "id": "t1", "name": "web_search", "input": {}}
    assert answers(session(init("Read"), search)) == [Answer.NOT_APPLICABLE]


def test_a_subagent_of_claude_code_is_not_taken_for_offered_what_its_caller_is():
    task = claude.use("t1", "Task", prompt="look", subagent_type="Explore")
    own = claude.answer("m2", claude.use("t2", "Odd"), stop="tool_use",
                        parent_tool_use_id="t1")  # fmt: skip
    trace = claude.read(
        init("Task"),
        *claude.stream(claude.answer("m1", task, stop="tool_use"), own)[1:],
    )
    first, second = calls(trace)
    assert "tools" in first.body.attributes
    assert second.body is None or "tools" not in (second.body.attributes or {})


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ([{"type": "web_search_preview"}], [{"type": "web_search_preview"}]),
        ([{"type": "custom", "custom": {"name": "zap"}}], ["zap"]),
        ([{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}], ["a", "b"]),
        ([{"googleSearch": {}}], ["googleSearch"]),
        (json.dumps([{"name": "a"}]), ["a"]),
        ([{"name": "a"}, {"name": "a"}], ["a"]),
        ([{"type": "mcp", "server_label": "x"}, {"name": "a"}], ["a", {"more": 1}]),
        ([{"name": "a"}, 7], ["a", {"more": 1}]),
        ([{"name": "a" * 200}], [{"more": 1}]),
        ([{}], [{"more": 1}]),
        ([], []),
        (None, []),
    ],
)
def test_every_shape_of_a_list_of_tools_gives_its_names(tools, expected):
    assert offered_tools({"tools": tools}) == expected


def test_a_list_of_many_tools_is_cut_and_says_so():
    offered = offered_tools({"tools": [{"name": f"t{n}"} for n in range(600)]})
    assert (len(offered), offered[-1]) == (513, {"more": 1})
    trace = one(chat([{"name": f"t{n}"} for n in range(600)]))
    assert offer_of(calls(trace)[0].body).is_open
    assert answers(trace) == [Answer.NOT_APPLICABLE]


def test_servers_beside_the_tools_leave_the_offer_open():
    assert offered_tools({"tools": ["a"], "mcp_servers": [{"url": "x"}]}) == [
        "a",
        {"more": 1},
    ]


def test_tools_that_run_code_may_be_called_by_other_names():
    tools = [{"type": "code_execution_20250825", "name": "code_execution"}]
    assert "bash_code_execution" in offered_tools({"tools": tools})


EMPTY_ANSWERS = {
    "completion": [{"messages": providers.ASKED, "response": providers.completion("")}],
    "completion null": [
        {"messages": providers.ASKED, "response": providers.completion(None)}
    ],
    "anthropic": [providers.anthropic_answer(1, 0) | {"content": []}],
    "anthropic text": [
        providers.anthropic_answer(1, 0) | {"content": [{"type": "text", "text": ""}]}
    ],
    "anthropic request": providers.ANTHROPIC
    | {
        "messages": [
            *providers.ANTHROPIC["messages"][:3],
            {"role": "assistant", "content": []},
        ]
    },
    "responses": [
        {"id": "r", "object": "response", "status": "completed", "output": []}
    ],
    "gemini": {
        "candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}],
        "modelVersion": "g",
    },
    "ollama": {"model": "l", "done": True, "done_reason": "stop",
               "message": {"role": "assistant", "content": ""}},
    "bedrock": {"output": {"message": {"role": "assistant", "content": []}},
                "stopReason": "end_turn"},
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY_ANSWERS)
def test_an_answer_without_content_is_an_empty_answer(name):
    [trace] = traces_of(as_json(EMPTY_ANSWERS[name]))
    assert calls(trace)[-1].body.output == ""
    [found] = FinalAnswerCheck().run(trace)
    assert (found.answer, found.reason_code) == (Answer.SIGNAL, "empty")


def test_an_answer_of_claude_code_without_content_is_an_empty_answer():
    trace = claude.read(*claude.stream(claude.said("go"), claude.answer("m1")))
    assert calls(trace)[0].body.output == ""


def test_an_answer_of_which_no_content_is_kept_stays_unknown():
    bare = providers.completion("x")
    bare["choices"][0]["message"] = {"role": "assistant"}
    [trace] = traces_of(lines({"messages": providers.ASKED, "response": bare}))
    assert calls(trace)[-1].body.output is None
    [found] = FinalAnswerCheck().run(trace)
    assert found.reason_code == "answer_not_recorded"


def test_an_answer_that_asks_for_a_tool_says_nothing_and_is_not_empty():
    [trace] = traces_of(as_json(litellm([CHAT_TOOL])))
    assert calls(trace)[0].body.output is None
