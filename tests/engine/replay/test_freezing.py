"""Cases out of traces: each part where it is recorded, and what is missing said."""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from hypothesis import given, settings

from apps.engine.conduct import conducts_of
from apps.engine.format import UnreadableTrace
from apps.engine.replay.case import Case, RecordedCall, ToolOffer, case_hash, hash_of
from apps.engine.replay.freezing import (
    NothingToFreeze,
    frozen_case,
    frozen_system,
    not_recorded,
)
from apps.engine.replay.recording import RunTitle, trace_of
from apps.engine.replay.run import Ending, Proof, Ran
from apps.engine.trace import (
    AgentInvocation,
    Body,
    ModelCall,
    OrderSource,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
    Via,
)
from tests.engine.random_traces import traces
from tests.engine.told import answer, said, told, used, user
from tests.formats.reading import traces_of

GET_ORDER = {
    "type": "function",
    "function": {
        "name": "get_order",
        "description": "Looks an order up",
        "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}},
    },
}
REQUEST = {
    "model": "m-1",
    "temperature": 0.3,
    "messages": [
        {"role": "system", "content": "Decide on refunds."},
        {"role": "user", "content": "I was charged twice"},
    ],
    "tools": [GET_ORDER, {"type": "function", "function": {"name": "refund"}}],
}


def step(seq, kind, invocation, **fields):
    return Step(seq=seq, kind=kind, invocation=invocation, **fields)


def support() -> tuple[Step, ...]:
    """Triage reads a memory, says something and hands over to billing, which acts."""
    return (
        step(0, StepKind.USER_MESSAGE, 0, body=said("I was charged twice")),
        step(1, StepKind.MEMORY, 0, name="notes", body=Body(input="who", output="VIP")),
        step(2, StepKind.MODEL_CALL, 0, call=ModelCall(), body=said("For billing.")),
        step(3, StepKind.HANDOFF, 0, name="handoff to billing",
             body=Body(input={"reason": "money"})),
        step(4, StepKind.RETRIEVAL, 1, name="policies",
             body=Body(input="refund", output=["30 days"])),
        step(5, StepKind.MODEL_CALL, 1, call=ModelCall(model="m-1-0125"),
             body=Body(input=REQUEST, attributes={"gen_ai.request.top_p": "0.5"})),
        step(6, StepKind.TOOL_CALL, 1, call=ToolCall(name="get_order"),
             body=Body(input='{"id": 7}', output={"status": "paid"})),
        step(7, StepKind.TOOL_CALL, 1, call=ToolCall(name="refund"),
             status=StepStatus.ERROR, error_message="Card refused",
             body=Body(input={"id": 7, "amount": 1.0})),
        step(8, StepKind.RETRIEVAL, 1, name="policies",
             body=Body(input="retry", output=["once"])),
        step(9, StepKind.TOOL_CALL, 1, call=ToolCall(name="search"), body=None),
        step(10, StepKind.RETRIEVAL, 1, parent=9, name="policies",
             body=Body(input="inner", output=[])),
        step(11, StepKind.USER_MESSAGE, 1, body=said("Hurry!")),
        step(12, StepKind.MODEL_CALL, 1, call=ModelCall(), body=said("Refunded.")),
        step(13, StepKind.MODEL_CALL, 0, call=ModelCall(), body=said("All done.")),
    )  # fmt: skip


def pipeline(name="t"):
    agents = (
        AgentInvocation(number=0, agent="triage"),
        AgentInvocation(number=1, agent="billing", parent=0, via=Via.HANDOFF),
        AgentInvocation(number=2, agent="idle"),
    )
    return Trace(name=name, steps=support(), invocations=agents, order=OrderSource.FILE)


def test_every_part_of_an_invocation_is_frozen_where_it_is_recorded():
    case = frozen_case(pipeline(name="run 1"), 1)
    assert case == Case(
        agent="billing",
        name="billing in run 1, invocation 2",
        input="I was charged twice",
        messages=tuple(REQUEST["messages"]),
        tools=(
            ToolOffer(
                name="get_order",
                description="Looks an order up",
                parameters=GET_ORDER["function"]["parameters"],
            ),
            ToolOffer(name="refund"),
            ToolOffer(name="search"),
        ),
        calls=(
            RecordedCall(
                tool="get_order",
                arguments={"id": 7},
                result={"status": "paid"},
                step=6,
            ),
            RecordedCall(
                tool="refund",
                arguments={"id": 7, "amount": 1.0},
                error="Card refused",
                writes=True,
                step=7,
            ),
            RecordedCall(tool="policies", arguments="retry", result=["once"], step=8),
            RecordedCall(tool="search", step=9),
        ),
        state={
            "memory": [{"name": "notes", "asked": "who", "given": "VIP", "step": 1}],
            "retrieved": [
                {"name": "policies", "asked": "refund", "given": ["30 days"], "step": 4}
            ],
        },
        context={
            "upstream": [{"agent": "triage", "text": "For billing.", "step": 2}],
            "handoff": {"from": "triage", "said": {"reason": "money"}, "step": 3},
            "said_later": ["Hurry!"],
        },
        model="m-1-0125",
        parameters={"top_p": 0.5, "temperature": 0.3},
    )
    assert not_recorded(case) == (
        "Users said something once more while it ran; only what was said before is "
        "an input.",
        "No schema is recorded of `refund`, `search`.",
        "Arguments are not recorded in 1 of 4 tool calls, which cannot be matched "
        "strictly.",
        "Results are not recorded in 1 of 4 tool calls.",
    )


def test_what_is_not_recorded_is_said_and_not_made_up():
    case = frozen_case(told(answer(0, None)), 0)
    assert (case.input, case.messages, case.tools, case.state) == (None, (), (), None)
    assert not_recorded(case) == (
        "What the agent was asked is not recorded.",
        "The messages of its first model call are not recorded.",
        "The model is not recorded.",
        "The temperature is not recorded.",
        "Nothing is recorded of what it remembered from before.",
    )
    built = frozen_case(told(user(0, "Refund me"), answer(1, "No.")), 0)
    assert built.messages == ({"role": "user", "content": "Refund me"},)
    assert not_recorded(built)[:2] == (
        "The messages of its first model call are not recorded; they are built from "
        "what users and systems said before it.",
        "No system prompt is recorded.",
    )
    odd = {"messages": [{"role": "user", "content": "Hi"}, {"role": "Tool Input"}]}
    kept = frozen_case(told(answer(0, "x", body={"input": odd})), 0)
    assert kept.context["request"] == odd
    assert any("could not be told" in sentence for sentence in not_recorded(kept))


def test_an_invocation_that_did_nothing_is_refused_with_a_sentence():
    with pytest.raises(NothingToFreeze, match=r"invocation 3 .* it did nothing"):
        frozen_case(pipeline(), 2)
    with pytest.raises(NothingToFreeze, match=r"invocation 10 .* there is none"):
        frozen_case(pipeline(), 9)
    with pytest.raises(NothingToFreeze, match="no steps"):
        frozen_system(told())


def test_the_whole_system_and_what_nobody_owns_are_cases_too():
    whole = frozen_case(pipeline(), None)
    assert whole == frozen_system(pipeline())
    assert (whole.agent, whole.input) == ("", "I was charged twice")
    assert [call.tool for call in whole.calls][:2] == ["policies", "get_order"]
    assert "upstream" not in whole.context
    unowned = frozen_case(
        told(used(0, "get_order", {"id": 1}, "paid", invocation=None), user(1, "Hm")),
        None,
    )
    assert [call.result for call in unowned.calls] == ["paid"]


def test_a_handoff_that_was_offered_as_a_tool_has_an_answer():
    offer = {"tools": [{"name": "transfer_to_billing_agent", "parameters": {}}]}
    handed = frozen_case(
        told(
            answer(0, None, body={"input": offer | {"messages": ["Hi"]}}),
            step(1, StepKind.HANDOFF, 0, body=Body(output="Billing Agent")),
        ),
        0,
    )
    assert handed.calls == (
        RecordedCall(
            tool="transfer_to_billing_agent",
            arguments={},
            result={"assistant": "Billing Agent"},
            step=1,
        ),
    )


def test_a_tool_that_a_project_calls_writing_writes():
    case = frozen_case(pipeline(), 1, writing_tools=frozenset({"search"}))
    assert [call.writes for call in case.calls] == [False, True, False, True]


@settings(max_examples=60)
@given(traces())
def test_any_trace_can_be_frozen_agent_by_agent(trace):
    for conduct in conducts_of(trace):
        for one in conduct.invocations:
            case = frozen_case(trace, one.number)
            json.dumps(msgspec.to_builtins(case), allow_nan=False)
            assert case.agent == conduct.agent
            assert {call.step for call in one.calls} <= {c.step for c in case.calls}
            not_recorded(case)


KINDS = ("cases", "with messages", "schemas", "calls", "upstream", "compared")
TITLE = RunTitle(name="alone")
NOTHING_DONE = Ran(ending=Ending.FINISHED, output="x", proof=Proof(level="none"))


def test_every_acting_invocation_of_every_real_file_can_be_frozen(shared_data):
    paths = [path for path in sorted(shared_data.rglob("*")) if path.is_file()]
    if not paths:
        pytest.skip("The shared trace files are absent.")
    found = dict.fromkeys(KINDS, 0)
    for path in paths:
        try:
            read = traces_of(path.read_bytes())
        except UnreadableTrace:
            continue
        for trace in read:
            for one in [i for c in conducts_of(trace) for i in c.invocations]:
                case = frozen_case(trace, one.number)
                json.dumps(msgspec.to_builtins(case), allow_nan=False)
                assert len(case_hash(case)) == 64
                found["cases"] += 1
                found["with messages"] += bool(case.messages)
                found["schemas"] += any(tool.parameters for tool in case.tools)
                found["calls"] += len(case.calls)
                found["upstream"] += "upstream" in case.context
                if case.input is not None and case.agent:
                    found["compared"] += 1
                    (alone,) = conducts_of(trace_of(case, NOTHING_DONE, TITLE))
                    assert hash_of(alone.invocations[0].input) == hash_of(one.input)
    assert found["cases"] > 700
    assert found["compared"] > 200
    assert found["with messages"] > 550
    assert found["schemas"] > 100
    assert found["calls"] > 2_000
    assert found["upstream"] > 100


def test_freezing_a_long_trace_takes_time_in_proportion_to_it():
    steps = [user(0, "Begin")]
    for number in range(1, 40_000, 2):
        steps.append(answer(number, f"Step {number}"))
        steps.append(used(number + 1, "get", {"n": number}, "x" * 100))
    trace = told(*steps)
    begun = time.perf_counter()
    assert len(frozen_case(trace, 0).calls) == 20_000
    # Half a second here; a search for each call among all would take a minute.
    assert time.perf_counter() - begun < 8
