"""The trace of a run: read by the same rules as every recorded trace."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.bodies import tool_lanes
from apps.engine.bodies.offers import offer_of
from apps.engine.checks import CHECKS
from apps.engine.conduct import conducts_of, temperature_of, whole_conduct
from apps.engine.extraction import DecisionKind, DecisionSpec, DecisionState, extracted
from apps.engine.replay.case import Case, RecordedCall, case_hash
from apps.engine.replay.recording import STATUSES, RunTitle, trace_of
from apps.engine.replay.run import (
    UNKNOWN,
    AnswerSource,
    Effect,
    EffectKind,
    Ending,
    ErrorKind,
    Message,
    ModelCalled,
    Proof,
    Ran,
    Regime,
    RegimeKind,
    RunError,
    StateSeen,
    TargetKind,
    ToolAnswer,
    ToolCalled,
)
from apps.engine.root_input import root_input
from apps.engine.trace import (
    FinishReason,
    ModelCall,
    OrderSource,
    StepKind,
    StepStatus,
    ToolCall,
    Usage,
    UsageState,
)

CASE = Case(
    agent="billing",
    name="double charge",
    input="I was charged twice",
    calls=(RecordedCall(tool="get_order", arguments={"id": 7}, result="paid"),),
)
TITLE = RunTitle(
    name="billing alone, run 1",
    task="replay 3",
    trial=1,
    regime=Regime(kind=RegimeKind.DETERMINISM, temperature=0.0),
    target=TargetKind.OPENAI,
    target_name="staging",
)
USAGE = Usage(state=UsageState.REPORTED, input_total=20, output_total=9)
REQUEST = {
    "messages": [{"role": "user", "content": "I was charged twice"}],
    "tools": [{"type": "function", "function": {"name": "get_order"}}],
}


def model(**fields):
    return ModelCalled(
        **{"request": REQUEST, "model": "m-1", "temperature": 0.0, "usage": USAGE}
        | fields
    )


def tool(name="get_order", arguments=None, call_id=None, **answer):
    filled = {"source": AnswerSource.RECORDED} | answer
    return ToolCalled(
        tool=name,
        arguments={"id": 7} if arguments is None else arguments,
        answer=ToolAnswer(**filled),
        call_id=call_id,
    )


BUSY = RunError(kind=ErrorKind.RATE_LIMITED, sentence="The target asked to wait 2 s.")
RAN = Ran(
    ending=Ending.FINISHED,
    output={"decision": "refund"},
    events=(
        model(error=BUSY),
        model(retry_of=0, call_ids=("c1", "c2"), finish=FinishReason.TOOL_CALLS,
              reasoning="Look first."),
        tool(call_id="c1", result="paid", matched=0),
        tool("refund", call_id="c2", source=AnswerSource.MISS, writes=True,
             error="This call has no prepared answer.", note="No call is recorded."),
        StateSeen(state={"seen": 1}, turn=1),
        model(output="Refund it.", finish=FinishReason.STOP),
    ),
    effects=(
        Effect(kind=EffectKind.FILE_WRITE, what="/etc/x", after=2),
        Effect(kind=EffectKind.FILE_READ, what="/usr/lib/x.py", after=0,
               is_breach=False, was_stopped=False),
        Effect(kind=EffectKind.SOCKET, what="10.0.0.1:80", was_stopped=None),
    ),
    proof=Proof(level="namespaces", not_walled=("CPU contention",), unconsumed=(0,)),
    printed="debug",
    start_ns=1_000,
    end_ns=9_000,
)  # fmt: skip


def test_a_run_is_a_trace_that_is_read_like_any_other():
    trace = trace_of(CASE, RAN, TITLE)
    kinds = [(step.kind, step.name) for step in trace.steps]
    assert kinds == [
        (StepKind.AGENT, "billing"),
        (StepKind.OTHER, "attempted: file_read /usr/lib/x.py"),
        (StepKind.MODEL_CALL, "m-1"),
        (StepKind.MODEL_CALL, "m-1"),
        (StepKind.OTHER, "attempted: file_write /etc/x"),
        (StepKind.TOOL_CALL, "get_order"),
        (StepKind.TOOL_CALL, "refund"),
        (StepKind.MEMORY, "state"),
        (StepKind.MODEL_CALL, "m-1"),
        (StepKind.OTHER, "attempted: socket 10.0.0.1:80"),
    ]
    (conduct,) = conducts_of(trace)
    (one,) = conduct.invocations
    assert (conduct.agent, one.input, one.output) == (
        "billing",
        "I was charged twice",
        {"decision": "refund"},
    )
    assert one.status is StepStatus.OK
    assert temperature_of(conduct) == 0.0
    assert extracted(conduct).shown == "refund"
    assert root_input(trace) == "I was charged twice"
    assert (trace.task, trace.trial, trace.order) == ("replay 3", 1, OrderSource.FILE)


def test_calls_answers_and_retries_are_linked():
    steps = trace_of(CASE, RAN, TITLE).steps
    failed, retried = steps[2], steps[3]
    assert (failed.status, failed.error_type) == (StepStatus.ERROR, "rate_limited")
    assert failed.error_message == "The target asked to wait 2 s."
    assert isinstance(retried.call, ModelCall)
    assert retried.call.retry_of == failed.seq
    assert retried.call.usage == USAGE
    assert (retried.body.reasoning, retried.body.input) == ("Look first.", REQUEST)
    assert offer_of(retried.body).holds("get_order")
    known, missed = steps[5], steps[6]
    assert isinstance(known.call, ToolCall)
    assert known.call.requested_by == missed.call.requested_by == retried.seq
    assert (known.status, known.body.output) == (StepStatus.OK, "paid")
    assert known.body.attributes == {"stub": "recorded", "recording": 1}
    assert (missed.status, missed.error_type) == (StepStatus.ERROR, "stub_miss")
    assert missed.body.attributes == {
        "stub": "miss",
        "note": "No call is recorded.",
        "intended_write": True,
    }
    (lane,) = tool_lanes(trace_of(CASE, RAN, TITLE))
    assert [len(one.calls) for one in lane.rounds] == [2]


def test_attempted_effects_are_errors_where_they_are_breaches():
    steps = trace_of(CASE, RAN, TITLE).steps
    assert [(s.status, s.error_message) for s in steps if s.kind is StepKind.OTHER] == [
        (StepStatus.OK, None),
        (
            StepStatus.ERROR,
            "The agent attempted file_write /etc/x. It was held back.",
        ),
        (
            StepStatus.ERROR,
            "The agent attempted socket 10.0.0.1:80. It is not known whether it was "
            "held back.",
        ),
    ]


def test_metadata_and_notes_say_how_the_run_was_made():
    trace = trace_of(CASE, RAN, TITLE)
    replay = trace.metadata["replay"]
    assert replay["case"] == {"name": "double charge", "hash": case_hash(CASE)}
    assert replay["target"] == {"kind": "openai", "name": "staging"}
    assert replay["regime"] == {
        "kind": "determinism",
        "temperature": 0.0,
        "paraphrase": "",
    }
    assert (replay["level"], replay["has_breach"]) == ("namespaces", True)
    assert replay["proof"]["real_calls"] == 0
    assert trace.notes == (
        "The agent tried to reach outside of its run 2 times: file_write /etc/x, "
        "socket 10.0.0.1:80.",
        "1 of 2 tool calls had no prepared answer: `refund`.",
        "1 call of tools that change something was intended and not done.",
        "1 recorded tool call was not made.",
        "Isolation level reached: namespaces.",
        "What isolation leaves open: CPU contention.",
    )


def test_a_run_of_which_no_record_came_back_is_not_said_to_have_called_nothing():
    error = RunError(kind=ErrorKind.CRASHED, sentence="It ended its worker 3 times.")
    ran = Ran(ending=Ending.FAILED, error=error, proof=Proof(level=UNKNOWN))
    trace = trace_of(CASE, ran, TITLE)
    assert set(trace.metadata["replay"]["proof"]) == {"level", "limits"}
    assert trace.notes[-1] == (
        "No record came back: neither isolation nor calls of tools are known."
    )


@pytest.mark.parametrize("ending", [one for one in Ending if one != Ending.FINISHED])
def test_a_run_that_did_not_finish_has_no_decision_and_is_counted(ending):
    error = RunError(kind=ErrorKind.TIMED_OUT, sentence="It was killed after 120 s.")
    for events in ((), RAN.events):
        ran = Ran(
            ending=ending,
            output={"decision": "refund"},
            error=error,
            events=events,
            proof=Proof(level="none"),
        )
        trace = trace_of(CASE, ran, TITLE)
        (conduct,) = conducts_of(trace)
        assert conduct.invocations[0].has_failed
        assert extracted(conduct).state is DecisionState.FAILED
        assert trace.invocations[0].status is STATUSES[ending]
        whole = trace.steps[0]
        assert whole.error_message == "It was killed after 120 s."
        assert whole.body.attributes["unfinished_output"] == {"decision": "refund"}
        assert "It was killed after 120 s. It has no decision." in trace.notes[0]


def test_a_run_that_gave_nothing_back_has_no_decision_and_is_counted():
    for events in ((), (model(output="I would refund it."),)):
        ran = Ran(ending=Ending.FINISHED, events=events, proof=Proof(level="none"))
        (conduct,) = conducts_of(trace_of(CASE, ran, TITLE))
        assert not extracted(conduct).is_decided
        found = extracted(conduct, DecisionSpec(kind=DecisionKind.WHOLE_OUTPUT))
        assert found.state is DecisionState.MISSING


def test_the_whole_system_has_no_name_of_an_agent():
    trace = trace_of(msgspec.structs.replace(CASE, agent=""), RAN, TITLE)
    assert trace.invocations[0].agent is None
    assert [one.agent for one in conducts_of(trace)] == [""]
    assert whole_conduct(trace).invocations[0].input == "I was charged twice"


def test_an_agent_without_a_name_decides_alone_also_where_it_asked_nothing():
    ran = Ran(ending=Ending.FINISHED, output={"decision": "refund"}, proof=RAN.proof)
    trace = trace_of(msgspec.structs.replace(CASE, agent=""), ran, TITLE)
    (conduct,) = conducts_of(trace)
    assert extracted(conduct).is_decided


small = st.sampled_from([None, "", "paid", {"id": 7}, [1], 0, True, "x" * 400])
texts = st.sampled_from(["", "get_order", "c1", "c2", "\ud800", "n" * 400])
errors = st.builds(
    RunError,
    kind=st.sampled_from(ErrorKind),
    sentence=st.sampled_from(["", "It broke."]),
)
times = st.none() | st.integers(0, 10**18)
events = st.one_of(
    st.builds(Message, role=st.sampled_from(["user", "system", "assistant", ""]),
              content=small, at_ns=times),
    st.builds(ModelCalled, request=small, response=small, output=small, model=texts,
              call_ids=st.lists(texts, max_size=2).map(tuple),
              error=st.none() | errors, retry_of=st.none() | st.integers(-1, 6),
              temperature=st.sampled_from([None, 0.0, 1.0]), start_ns=times),
    st.builds(ToolCalled, tool=texts, arguments=small, call_id=st.none() | texts,
              answer=st.builds(ToolAnswer, source=st.sampled_from(AnswerSource),
                               result=small, error=st.sampled_from(["", "Bad"]),
                               matched=st.none() | st.just(0), writes=st.booleans())),
    st.builds(StateSeen, state=small, turn=st.integers(0, 3), at_ns=times),
)  # fmt: skip
effects = st.builds(
    Effect, kind=st.sampled_from(EffectKind), what=texts,
    after=st.none() | st.integers(-1, 9), is_breach=st.booleans(),
    was_stopped=st.sampled_from([True, False, None]),
)  # fmt: skip
runs = st.builds(
    Ran, ending=st.sampled_from(Ending), output=small, state=small,
    error=st.none() | errors, events=st.lists(events, max_size=6).map(tuple),
    effects=st.lists(effects, max_size=3).map(tuple), printed=texts, start_ns=times,
    proof=st.builds(Proof, level=texts, unconsumed=st.just((0,))),
)  # fmt: skip


@settings(max_examples=120)
@given(runs, st.sampled_from(["I was charged twice", {"q": 1}, None]))
def test_any_run_gives_a_valid_trace_of_exactly_this_agent(ran, asked):
    case = msgspec.structs.replace(CASE, input=asked)
    trace = trace_of(case, ran, TITLE)
    assert trace == trace_of(case, ran, TITLE)
    assert [step.seq for step in trace.steps] == list(range(len(trace.steps)))
    assert len(trace.steps) == 1 + len(ran.events) + len(ran.effects)
    json.dumps(msgspec.to_builtins(trace))
    (conduct,) = conducts_of(trace)
    assert conduct.agent == "billing"
    failed = ran.ending is not Ending.FINISHED
    assert conduct.invocations[0].has_failed is failed
    if failed:
        assert extracted(conduct).state is DecisionState.FAILED
    for step in trace.steps:
        if isinstance(step.call, ToolCall):
            assert step.call.name
            assert step.body.attributes["stub"] in set(AnswerSource)
        if isinstance(step.call, ModelCall) and step.call.retry_of is not None:
            assert step.call.retry_of < step.seq


def test_the_checks_read_a_run_like_any_trace():
    trace = trace_of(CASE, RAN, TITLE)
    answers = [outcome for check in CHECKS for outcome in check.run(trace)]
    assert answers
