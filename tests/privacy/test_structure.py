"""Structure only: what is counted stays, what was said goes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue

from apps.engine.format import Rejected
from apps.engine.formats.evalsite_writer import dump
from apps.engine.privacy.exports import structure_of_export
from apps.engine.privacy.structure import SENTENCE, structure_of, wordless
from apps.engine.trace import (
    Body,
    ModelCall,
    Outcome,
    OutcomeKind,
    Step,
    StepKind,
    Trace,
)
from tests.factories import decay_trace

CANARY = "the canary sings of pay and illness"


def full_trace() -> Trace:
    step = Step(
        seq=0,
        kind=StepKind.MODEL_CALL,
        name=CANARY,
        error_type=CANARY * 2,
        error_message=CANARY,
        native_kind=CANARY,
        call=ModelCall(model="gpt-4o", finish_raw=CANARY),
        body=Body(CANARY, [CANARY], {"a": CANARY}, {CANARY: CANARY}),
    )
    return Trace(
        name=CANARY,
        steps=(step,),
        task=CANARY,
        outcome=Outcome(OutcomeKind.FAIL, label=CANARY, source="reward"),
        metadata={"m": CANARY},
        labels={"l": CANARY},
        notes=(
            f"The name “{CANARY}” was cut.",
            f'Found "{CANARY}"; a text was expected.',
        ),
    )


class TestTraces:
    def test_nothing_that_was_said_is_left(self):
        assert "canary" not in dump(structure_of(full_trace())).decode()

    def test_it_says_so_once_however_often_it_is_done(self):
        once = structure_of(full_trace())
        assert once.notes[0] == SENTENCE
        assert structure_of(once) == once

    def test_the_facts_that_checks_read_are_unchanged(self):
        trace = decay_trace(100, 90, 80)
        new = structure_of(trace)
        assert [step.call for step in new.steps] == [step.call for step in trace.steps]
        assert [s.start_ns for s in new.steps] == [s.start_ns for s in trace.steps]
        assert new.invocations == trace.invocations
        assert new.outcome == trace.outcome
        assert all(step.body is None for step in new.steps)

    def test_trials_of_one_task_in_words_still_share_it(self):
        one, two = structure_of(full_trace()), structure_of(full_trace())
        assert one.task == two.task
        assert one.task is not None
        assert one.task.startswith("text ")

    def test_a_name_that_was_said_is_a_hash_and_another_stays(self):
        said = Step(seq=0, kind=StepKind.OTHER, body=Body(input="fix my bill"))
        assert structure_of(Trace("fix my bill", (said,))).name.startswith("text ")
        assert structure_of(Trace("refund flow", (said,))).name == "refund flow"

    def test_a_rejected_record_has_no_excerpt_and_no_value(self):
        item = Rejected("line 3", f'Found "{CANARY}"; a number was expected.', CANARY)
        assert wordless(item) == Rejected("line 3", "Found …; a number was expected.")


def text(value: str) -> AnyValue:
    return AnyValue(string_value=value)


def request_of(attributes: dict[str, AnyValue]) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.append(KeyValue(key="user.email", value=text(CANARY)))
    span = group.scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.name = b"1" * 16, b"2" * 8, "chat gpt-4o"
    span.start_time_unix_nano, span.end_time_unix_nano = 5, 9
    span.status.code, span.status.message = 2, CANARY
    span.trace_state = CANARY
    for key, value in attributes.items():
        span.attributes.append(KeyValue(key=key, value=value))
    event = span.events.add()
    event.name = "exception"
    event.attributes.append(KeyValue(key="exception.message", value=text(CANARY)))
    span.links.add().attributes.append(KeyValue(key="x", value=text(CANARY)))
    return request


class TestLiveRequests:
    def kept(self, attributes):
        new = structure_of_export(request_of(attributes))
        [span] = new.resource_spans[0].scope_spans[0].spans
        return new, span, {one.key: one.value for one in span.attributes}

    def test_what_a_span_is_stays_and_what_it_says_goes(self):
        given_attributes = {
            "gen_ai.request.model": text("gpt-4o"),
            "gen_ai.operation.name": text("chat"),
            "gen_ai.usage.output_tokens": AnyValue(int_value=43),
            "ai.usage.promptTokens": text("62"),
            "gen_ai.response.finish_reasons": AnyValue(
                array_value=ArrayValue(values=[text("stop")])
            ),
            "gen_ai.input.messages": text(CANARY),
            "gen_ai.usage.comment": text(CANARY),
            "gen_ai.agent.name": text(CANARY),
            "custom": text(CANARY),
        }
        new, span, kept = self.kept(given_attributes)
        assert b"canary" not in new.SerializeToString()
        assert kept["gen_ai.request.model"].string_value == "gpt-4o"
        assert kept["gen_ai.usage.output_tokens"].int_value == 43
        assert kept["ai.usage.promptTokens"].string_value == "62"
        assert kept["gen_ai.agent.name"].string_value.startswith("text ")
        assert "custom" not in kept
        assert (span.trace_id, span.status.code, span.end_time_unix_nano) == (
            b"1" * 16,
            2,
            9,
        )
        assert [event.name for event in span.events] == ["exception"]

    def test_the_request_itself_is_left_as_it_is(self):
        request = request_of({"custom": text(CANARY)})
        before = request.SerializeToString(deterministic=True)
        structure_of_export(request)
        assert request.SerializeToString(deterministic=True) == before

    @given(st.text(alphabet="abc._", min_size=1, max_size=30))
    def test_no_attribute_outside_the_list_survives(self, key):
        new, _, _ = self.kept({"x" + key: text(CANARY)})
        assert b"canary" not in new.SerializeToString()
