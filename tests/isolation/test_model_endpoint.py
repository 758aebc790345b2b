"""A model behind an endpoint is asked alone, and what it was told to do is reported."""

from __future__ import annotations

import json
import time

import msgspec
import pytest

from apps.engine.replay.case import Case, ToolOffer
from apps.engine.replay.run import (
    AnswerSource,
    Ending,
    ErrorKind,
    Limits,
    Regime,
    RegimeKind,
)
from apps.engine.replay.turns import Api
from apps.engine.trace import FinishReason, UsageState
from apps.isolation.masking import MARK
from tests.isolation.endpoint_runs import CASE, KEY, LOOKUP, Stubs, models, ran, tools
from tests.model_server import (
    MALFORMED,
    SHAPES,
    USAGES,
    Answer,
    call,
    calls,
    model_server,
)
from tests.model_server.faults import TEXT_COMES

FORMS = [(api, streamed) for api in Api for streamed in (False, True)]


class TestTheLoop:
    """The recorded messages and tools are the input, and the tools are answered here."""

    @pytest.mark.parametrize(("api", "is_streamed"), FORMS)
    def test_it_runs_until_the_model_says_something(self, api, is_streamed):
        script = [
            Answer(tools=call("lookup", number=7).tools, reasoning="Which one?"),
            calls(("lookup", {"number": 9}), ("launch", {})),
            "It is open.",
        ]
        stubs = Stubs()
        with model_server("scripted", answers=script) as server:
            run = ran(server, api=api, is_streamed=is_streamed, stubs=stubs)
            sent = server.stats.bodies
            assert server.stats.headers[0]["Authorization"] == f"Bearer {KEY}"
        assert (run.ending, run.output, run.error) == (
            Ending.FINISHED,
            "It is open.",
            None,
        )
        assert stubs.asked == [
            ("lookup", {"number": 7}),
            ("lookup", {"number": 9}),
            ("launch", {}),
        ]
        first, second, third = models(run)
        assert (first.output, first.reasoning) == (None, "Which one?")
        assert first.call_ids == ("call_1",)
        assert first.finish is FinishReason.TOOL_CALLS
        assert third.finish is FinishReason.STOP
        assert third.usage.state is UsageState.REPORTED
        assert third.usage.output_total == 3
        assert first.usage.output_reasoning == 2
        assert [one.request for one in (first, second, third)] == sent
        assert len(run.events) == 6
        assert KEY not in repr(run)
        assert run.proof.input_before == run.proof.input_after != ""
        assert (run.proof.stubbed_calls, run.proof.missed_calls) == (1, 2)
        assert run.proof.unconsumed == (1,)
        assert run.proof.level == "no local code"

    def test_the_request_is_what_was_recorded_in_the_words_of_the_api(self):
        regime = Regime(kind=RegimeKind.SAMPLING, temperature=0.7)
        case = msgspec.structs.replace(
            CASE,
            parameters={
                "temperature": 1, "max_tokens": 300, "top_p": 0.5, "top_k": 40,
                "tool_choice": "required", "reasoning_effort": "low",
            },
        )  # fmt: skip
        script = [call("lookup", number=7), "It is open."]
        with model_server("scripted", answers=script) as server:
            ran(server, case=case, regime=regime, seed=5, parameters={"user": "x"})
            ran(server, case=case, regime=regime, api=Api.RESPONSES, seed=5)
            chat, after, responses, after_responses = server.stats.bodies
        assert chat == {
            "model": "recorded-model",
            "messages": list(CASE.messages),
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "lookup",
                        "description": "Looks up an invoice.",
                        "parameters": LOOKUP.parameters,
                    },
                }
            ],
            "top_p": 0.5,
            "reasoning_effort": "low",
            "tool_choice": "required",
            "user": "x",
            "max_tokens": 300,
            "temperature": 0.7,
            "seed": 5,
        }
        # A choice of tool that was forced is of the first request only.
        assert "tool_choice" not in after
        assert "tool_choice" not in after_responses
        assert after["messages"][2:] == [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "lookup", "arguments": '{"number": 7}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": '{"open": true}'},
        ]
        assert responses["input"] == list(CASE.messages)
        assert responses["max_output_tokens"] == 300
        assert responses["reasoning"] == {"effort": "low"}
        assert responses["store"] is False
        assert responses["tools"][0]["name"] == "lookup"
        assert after_responses["input"][2:] == [
            {
                "type": "function_call",
                "call_id": "call_1",
                "name": "lookup",
                "arguments": '{"number": 7}',
            },
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": '{"open": true}',
            },
        ]

    def test_the_targets_own_settings_go_first_but_never_over_the_limits(self):
        with model_server() as server:
            ran(
                server,
                model="own-model",
                parameters={
                    "max_completion_tokens": 9_999, "temperature": None, "n": 4,
                    "messages": [], "stream": True,
                },
            )  # fmt: skip
            (body,) = server.stats.bodies
        assert body["model"] == "own-model"
        assert body["max_completion_tokens"] == Limits().output_tokens
        assert body.keys() == {"model", "messages", "tools", "max_completion_tokens"}

    @pytest.mark.parametrize("api", Api)
    def test_the_regime_says_the_temperature_whatever_the_target_has(self, api):
        own = {"temperature": 0.9, "top_k": 5}
        with model_server() as server:
            run = ran(server, api=api, parameters=own, seed=3)
            (body,) = server.stats.bodies
        assert (body["temperature"], body["top_k"]) == (0.0, 5)
        assert models(run)[0].temperature == 0.0

    def test_what_a_filter_cut_is_no_answer(self):
        with model_server(answer=Answer("It is", finish="content_filter")) as server:
            run = ran(server)
        assert (run.ending, run.error.kind) == (Ending.FAILED, ErrorKind.TARGET)
        assert "content filter" in run.error.sentence

    def test_a_key_in_other_signs_among_arguments_is_masked(self):
        odd = "".join(f"\\u{ord(sign):04x}" for sign in KEY)
        asks = Answer(tools=(("lookup", f'{{"number": "{odd}"}}', "c1"),))
        stubs = Stubs()
        with model_server("scripted", answers=[asks, "Done."]) as server:
            run = ran(server, stubs=stubs)
        assert stubs.asked == [("lookup", {"number": MARK})]
        assert tools(run)[0].arguments == {"number": MARK}

    def test_what_a_case_by_hand_knows_is_told(self):
        case = Case(agent="a", input={"amount": 5}, context={"plan": "gold"}, model="m")
        with model_server() as server:
            ran(server, case=case, system="Be brief.")
            (body,) = server.stats.bodies
        system, known, asked = body["messages"]
        assert system == {"role": "system", "content": "Be brief."}
        assert '"plan": "gold"' in known["content"]
        assert asked == {"role": "user", "content": '{"amount": 5}'}

    def test_a_case_without_anything_to_ask_is_not_sent(self):
        with model_server() as server:
            run = ran(server, case=Case(agent="a", model="m"))
            assert server.stats.calls == 0
        assert run.error.kind is ErrorKind.OURS

    def test_names_that_an_api_does_not_take_are_sent_in_another_form(self):
        odd = (ToolOffer(name="crm.look up"), ToolOffer(name="crm_look_up"))
        case = msgspec.structs.replace(CASE, tools=odd)
        script = [calls(("crm_look_up_2", {}), ("crm_look_up", {})), "Done."]
        with model_server("scripted", answers=script) as server:
            run = ran(server, case=case)
            offered = [
                one["function"]["name"] for one in server.stats.bodies[0]["tools"]
            ]
        assert offered == ["crm_look_up_2", "crm_look_up"]
        assert [one.tool for one in tools(run)] == ["crm.look up", "crm_look_up"]


class TestOddTools:
    """What cannot be done is recorded and answered, and nothing is executed."""

    def test_arguments_that_are_no_object_are_answered_here(self):
        stubs = Stubs()
        with model_server("tool_bad_arguments") as server:
            run = ran(server, stubs=stubs)
        (one,) = tools(run)
        assert stubs.asked == []
        assert one.arguments == '{"number": 7'
        assert one.answer.source is AnswerSource.MISS
        assert "nothing was done" in one.answer.error
        assert run.ending is Ending.FINISHED
        assert "no JSON object" in run.output

    def test_an_unknown_tool_is_a_miss(self):
        with model_server("tool_unknown") as server:
            run = ran(server)
        (one,) = tools(run)
        assert (one.tool, one.answer.source) == ("launch_missiles", AnswerSource.MISS)
        assert run.proof.missed_calls == 1

    def test_one_id_for_two_calls_gives_two_answers(self):
        with model_server("tool_twice") as server:
            run = ran(server)
            told = server.stats.bodies[1]["messages"][2:]
        assert [one.call_id for one in tools(run)] == ["call_1", "call_1_2"]
        assert [one.get("tool_call_id") for one in told] == [None, "call_1", "call_1_2"]

    @pytest.mark.parametrize(
        ("limits", "words"),
        [
            (Limits(model_calls=4), "limit of 4 model calls"),
            (Limits(tool_calls=3), "limit of 3 tool calls"),
        ],
    )
    def test_a_loop_without_end_is_ended(self, limits, words):
        with model_server("tool_loop") as server:
            run = ran(server, limits=limits)
            assert server.stats.calls == 4
        assert (run.ending, run.error.kind) == (Ending.FAILED, ErrorKind.LIMIT)
        assert words in run.error.sentence

    def test_a_stub_can_end_the_run(self):
        with model_server("scripted", answers=[call("lookup", number=7)]) as server:
            run = ran(server, stubs=Stubs(stops=True, note="A miss."))
        assert (run.ending, run.error.kind) == (Ending.STOPPED, ErrorKind.STOPPED)
        assert len(tools(run)) == 1


class TestAnswers:
    """What is no answer is called so; what was not counted is not zero."""

    @pytest.mark.parametrize("variant", MALFORMED)
    def test_every_malformed_answer_ends_with_a_sentence(self, variant):
        began = time.monotonic()
        with model_server("malformed", variant=variant) as server:
            run = ran(server)
        assert time.monotonic() - began < 5
        if variant in TEXT_COMES:
            assert run.ending is Ending.FINISHED
            assert run.output in {"fine", "a\ufffdb"}
            return
        assert run.ending is Ending.FAILED
        assert run.error.kind in {
            ErrorKind.BAD_ANSWER, ErrorKind.TOO_LARGE, ErrorKind.CONNECTION,
        }  # fmt: skip
        assert run.error.sentence.endswith(".")
        assert all(one.error for one in models(run))
        assert len(models(run)) == (3 if run.error.kind is ErrorKind.CONNECTION else 1)
        assert len(msgspec.json.encode(run)) < 50_000

    def test_no_shape_without_an_answer_is_one(self):
        for variant in SHAPES:
            for api in Api:
                with model_server("shape", variant=variant) as server:
                    run = ran(server, api=api)
                assert run.error is not None, variant
                assert run.error.kind is ErrorKind.BAD_ANSWER, variant
                assert "no text in the answer" in run.error.sentence, variant
        assert len(SHAPES) >= 12

    USAGE = {
        "zero": (UsageState.ZERO_SUSPECT, None),
        "digits": (UsageState.REPORTED, 7),
        "output_only": (UsageState.PARTIAL, 7),
    }

    def test_usage_is_what_was_written_and_never_zero_for_missing(self):
        for variant in USAGES:
            with model_server(usage=variant) as server:
                run = ran(server)
            assert run.ending is Ending.FINISHED
            usage = models(run)[0].usage
            expected = self.USAGE.get(variant, (UsageState.MISSING, None))
            assert (usage.state, usage.output_total) == expected, variant
        assert len(USAGES) >= 10

    @pytest.mark.parametrize(("api", "is_streamed"), FORMS)
    def test_a_cut_answer_and_a_refusal_are_told_apart(self, api, is_streamed):
        def one(answer):
            with model_server(answer=answer) as server:
                return ran(server, api=api, is_streamed=is_streamed)

        cut = one(Answer(text="It is", finish="length"))
        assert (cut.ending, cut.error.kind) == (Ending.FAILED, ErrorKind.LIMIT)
        assert cut.output == "It is"
        refused = one(Answer(refusal="I cannot help with that."))
        assert refused.ending is Ending.FINISHED
        assert refused.output == "I cannot help with that."
        assert "refusal" in json.dumps(models(refused)[0].response)

    @pytest.mark.parametrize("api", Api)
    def test_a_stream_that_stops_early_is_no_answer(self, api):
        with model_server(cut=True) as server:
            run = ran(server, api=api, is_streamed=True)
            assert server.stats.calls == 3
        assert run.error.kind is ErrorKind.CONNECTION
        assert "before the answer did" in run.error.sentence

    @pytest.mark.parametrize("api", Api)
    def test_a_stream_that_is_not_closed_ends_with_its_answer(self, api):
        began = time.monotonic()
        with model_server(open=True) as server:
            run = ran(server, api=api, is_streamed=True)
        assert run.ending is Ending.FINISHED
        assert time.monotonic() - began < 5
