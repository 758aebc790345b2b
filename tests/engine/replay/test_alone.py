"""From a recorded trace to a run alone and back: frozen, stubbed, recorded, compared."""

from __future__ import annotations

import pytest

from apps.engine.replay.beside import Standing, beside
from apps.engine.replay.case import hash_of
from apps.engine.replay.freezing import frozen_case
from apps.engine.replay.recording import RunTitle, trace_of
from apps.engine.replay.run import Ending, Proof, Ran, ToolCalled
from apps.engine.replay.stub_plan import decoded_plan
from apps.engine.replay.stubs import StubSession
from apps.engine.trials import score_trace
from tests.engine.told import answer, told, used, user


def refunds(case, *, limit):
    """An agent that looks at the order first and refunds up to a limit."""
    stubs = StubSession(case, decoded_plan({"misses": "empty"}))
    order = stubs.answer("get_order", {"id": 7.0})
    stubs.answer("refund", '{"amount": 40, "id": 7}')
    events = tuple(
        ToolCalled(tool=one.tool, arguments=one.arguments, answer=one.answer)
        for one in stubs.answered
    )
    said = "refund" if order.result["amount"] <= limit else "escalate"
    return Ran(
        ending=Ending.FINISHED,
        output={"decision": said},
        events=events,
        proof=Proof(
            level="none",
            input_before=hash_of(case.input),
            unconsumed=stubs.unconsumed,
            missed_calls=len(stubs.misses),
            intended_writes=len(stubs.intended_writes),
        ),
    )


def recorded(decision):
    return told(
        user(0, "I was charged twice for order 7"),
        answer(1, "Let me look."),
        used(2, "get_order", {"id": 7}, {"amount": 40}),
        used(3, "refund", {"id": 7, "amount": 40}, "done"),
        answer(4, {"decision": decision}),
    )


def decided(trace):
    (conduct,) = score_trace(trace).conducts
    return conduct.decided


@pytest.mark.parametrize(
    ("limit", "standing", "sentence"),
    [
        (50, Standing.SAME, "alone it decides “refund” in 5 of 5. All runs of both"),
        (10, Standing.DIFFER, "alone it decides “escalate” in 5 of 5. They differ"),
    ],
)
def test_what_an_agent_does_alone_is_compared_with_what_it_did(
    limit, standing, sentence
):
    pipeline = recorded("refund")
    case = frozen_case(pipeline, 0)
    runs = [
        trace_of(case, refunds(case, limit=limit), RunTitle(name="r", trial=number))
        for number in range(5)
    ]
    replay = runs[0].metadata["replay"]["proof"]
    assert (replay["missed_calls"], replay["intended_writes"]) == (0, 1)
    assert replay["unconsumed"] == ()
    found = beside([decided(pipeline)] * 4, [decided(run) for run in runs])
    assert found.standing is standing
    assert sentence in found.sentence
    # The same input, so the comparison has nothing to say about it.
    assert found.reasons == ()
