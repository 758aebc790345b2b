"""Any trace that a reader may produce, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from apps.engine.trace import (
    AgentInvocation,
    Body,
    FinishReason,
    ModelCall,
    OrderSource,
    Outcome,
    OutcomeKind,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
    Usage,
    UsageState,
    Via,
)

# What the readers let through: no NUL and no lone surrogate.
CHARACTERS = st.characters(exclude_characters="\0", exclude_categories=("Cs",))
WORDS = st.text(CHARACTERS, min_size=1, max_size=30)
MAYBE = st.none() | WORDS
BIG = 2**63 - 1
COUNTS = st.none() | st.integers(0, BIG)
TIMES = st.none() | st.integers(-BIG, BIG)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(CHARACTERS, max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(CHARACTERS, max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
# PostgreSQL keeps numbers of jsonb as decimals: floats of any size come back as such.
STORED_JSON = st.dictionaries(
    WORDS, st.none() | st.booleans() | st.integers() | WORDS | st.lists(WORDS)
)
BODIES = st.none() | st.builds(
    Body,
    input=JSON_VALUES,
    output=JSON_VALUES,
    reasoning=JSON_VALUES,
    attributes=st.none() | st.dictionaries(WORDS, JSON_VALUES, max_size=2),
)
WITHOUT_COUNTS = (UsageState.MISSING, UsageState.ZERO_SUSPECT)
WITH_COUNTS = tuple(state for state in UsageState if state not in WITHOUT_COUNTS)
USAGES = st.builds(Usage, state=st.sampled_from(WITHOUT_COUNTS)) | st.builds(
    Usage,
    state=st.sampled_from(WITH_COUNTS),
    input_total=COUNTS,
    input_cached=COUNTS,
    input_cache_write=COUNTS,
    output_total=COUNTS,
    output_reasoning=COUNTS,
    total=COUNTS,
    source=MAYBE,
)
PLACES = st.none() | st.integers(0, 5)
MODEL_CALLS = st.builds(
    ModelCall,
    provider=MAYBE,
    model=MAYBE,
    finish=st.sampled_from(FinishReason),
    finish_raw=MAYBE,
    usage=USAGES,
    response_id=MAYBE,
    conversation=MAYBE,
    retry_of=PLACES,
    is_placeholder=st.booleans(),
    resets_context=st.booleans(),
    tool_call_ids=st.lists(WORDS, max_size=3).map(tuple),
)
TOOL_CALLS = st.builds(ToolCall, name=WORDS, call_id=MAYBE, requested_by=PLACES)


@st.composite
def steps(draw: st.DrawFn, seq: int) -> Step:
    kind = draw(st.sampled_from(StepKind))
    calls = {StepKind.MODEL_CALL: MODEL_CALLS, StepKind.TOOL_CALL: TOOL_CALLS}
    return Step(
        seq=seq,
        kind=kind,
        invocation=draw(PLACES),
        parent=draw(PLACES),
        name=draw(MAYBE),
        start_ns=draw(TIMES),
        end_ns=draw(TIMES),
        status=draw(st.sampled_from(StepStatus)),
        error_type=draw(MAYBE),
        error_message=draw(MAYBE),
        native_id=draw(MAYBE),
        native_kind=draw(MAYBE),
        call=draw(calls.get(kind, st.none())),
        body=draw(BODIES),
    )


@st.composite
def invocations(draw: st.DrawFn, number: int) -> AgentInvocation:
    return AgentInvocation(
        number=number,
        agent=draw(MAYBE),
        parent=draw(PLACES),
        via=draw(st.sampled_from(Via)),
        start_ns=draw(TIMES),
        end_ns=draw(TIMES),
        status=draw(st.sampled_from(StepStatus)),
        native_id=draw(MAYBE),
    )


OUTCOMES = st.builds(
    Outcome,
    kind=st.sampled_from(OutcomeKind),
    score=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    out_of=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    label=MAYBE,
    source=MAYBE,
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    return Trace(
        name=draw(WORDS),
        steps=tuple(draw(steps(seq)) for seq in range(draw(st.integers(0, 5)))),
        invocations=tuple(
            draw(invocations(number)) for number in range(draw(st.integers(0, 2)))
        ),
        session=draw(MAYBE),
        start_ns=draw(TIMES),
        end_ns=draw(TIMES),
        order=draw(st.sampled_from(OrderSource)),
        outcome=draw(OUTCOMES),
        task=draw(MAYBE),
        trial=draw(st.none() | st.integers(0, 2**31 - 1)),
        metadata=draw(STORED_JSON),
        labels=draw(STORED_JSON),
        notes=tuple(draw(st.lists(WORDS, max_size=2))),
    )
