"""Unused results: counted where everything that follows is known, never queued."""

from __future__ import annotations

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.unused_result import UnusedResult
from tests.engine.told import answer, failed, told, turned_round, used, without_bodies

WEATHER = {"city": "Zurich", "temperature": 23, "summary": "cloudy with showers"}


def of(trace, **parameters):
    (found,) = UnusedResult(**parameters).run(trace)
    return found


def result(value, said, **parameters):
    return of(told(used(0, "look", {}, value), answer(1, said)), **parameters)


def test_a_result_of_which_nothing_is_said_is_counted_and_never_queued():
    found = result(WEATHER, "I do not know.")
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.TELEMETRY)
    assert found.evidence.facts["unused"] == [{"step": 0, "tool": "look"}]
    assert found.evidence.effect == 1


@pytest.mark.parametrize(
    "said",
    ["It is Cloudy.", "23 degrees.", {"content": "ZURICH"}, {"temp": [23]}],
)
def test_one_word_or_number_is_enough_to_be_used(said):
    found = result(WEATHER, said)
    assert (found.answer, found.reason_code) == (Answer.QUIET, "all_used")


def test_names_of_fields_are_no_words_of_a_result():
    assert result(WEATHER, "The temperature and summary?").answer is Answer.SIGNAL


def test_arguments_of_a_later_call_and_reasoning_are_uses():
    trace = told(
        used(0, "look", {}, WEATHER), used(1, "book", {"at": "zurich"}), answer(2, "ok")
    )
    assert of(trace).answer is Answer.QUIET
    trace = told(
        used(0, "look", {}, WEATHER),
        answer(1, "ok", body={"reasoning": "It is cloudy"}),
    )
    assert of(trace).answer is Answer.QUIET


def test_what_was_said_before_is_no_use():
    trace = told(answer(0, "Cloudy?"), used(1, "look", {}, WEATHER), answer(2, "Bye."))
    assert of(trace).answer is Answer.SIGNAL


def test_an_empty_answer_after_a_result_says_nothing():
    assert result(WEATHER, "").reason_code == "no_results_to_judge"


def test_an_echo_of_its_own_arguments_is_no_use():
    trace = told(
        used(
            0,
            "look",
            {"city": "Zurich"},
            {"city": "Zurich", "text": "cloudy with showers", "n": 77},
        ),
        answer(1, "About Zurich I know nothing."),
    )
    assert of(trace).answer is Answer.SIGNAL


def test_a_result_with_few_words_is_not_judged():
    found = result("done well", "Goodbye then.")
    assert (found.answer, found.reason_code) == (
        Answer.NOT_APPLICABLE,
        "no_results_to_judge",
    )


def test_failed_calls_and_confirmations_of_writes_are_not_judged():
    call = used(0, "look", {}, WEATHER)
    assert (
        of(told(failed(call), answer(1, "Goodbye."))).reason_code
        == "no_results_to_judge"
    )
    trace = told(used(0, "create_ticket", {}, WEATHER), answer(1, "Goodbye."))
    assert of(trace).reason_code == "no_results_to_judge"


def test_the_last_result_is_not_judged_where_nothing_follows():
    assert of(told(answer(0, "Hello"), used(1, "look", {}, WEATHER))).answer is (
        Answer.NOT_APPLICABLE
    )


def test_an_answer_that_is_not_kept_leaves_everything_before_it_open():
    trace = told(used(0, "look", {}, WEATHER), answer(1, None), answer(2, "Goodbye."))
    assert of(trace).reason_code == "no_results_to_judge"


def test_another_agent_may_use_the_result():
    trace = told(
        used(0, "look", {}, WEATHER),
        answer(1, "It is cloudy.", invocation=1),
        agents=("one", "two"),
    )
    assert of(trace).answer is Answer.QUIET


def test_a_result_that_is_cut_is_used_or_not_judged():
    long = " ".join(f"word{n}" for n in range(9_000))
    assert result(long, "It is word7.").answer is Answer.QUIET
    assert result(long, "It is word8999.").reason_code == "no_results_to_judge"


def test_structure_only_is_not_applicable():
    trace = told(used(0, "look", {}, WEATHER), answer(1, "Goodbye."))
    assert of(without_bodies(trace)).reason_code == "no_bodies"
    assert of(told()).reason_code == "no_tool_calls"


def test_scripts_without_capitals_have_words_too():
    assert result("東京 は 晴れ です 気温", "東京 です。").answer is Answer.QUIET


def test_how_many_words_a_result_needs_is_a_parameter_with_limits():
    assert result("cloudy", "Goodbye.", words=1).answer is Answer.SIGNAL
    assert "with 5 or more telling words" in UnusedResult(words=5).material_when
    for wrong in (0, 101):
        with pytest.raises(ValueError, match="must be"):
            UnusedResult(words=wrong)


def test_steps_in_any_order_give_the_same_answer():
    trace = told(
        used(0, "look", {}, WEATHER),
        answer(1, "It is cloudy."),
        used(2, "look", {"n": 1}, {"text": "sunny mountains everywhere"}),
        answer(3, "Goodbye."),
    )
    assert of(turned_round(trace)) == of(trace)
    assert of(trace).evidence.steps == (2,)


def test_it_speaks_of_one_result_in_good_english():
    assert result(WEATHER, "I do not know.").headline == (
        "Nothing of the only result judged is said later"
    )
    assert result(WEATHER, "It is cloudy.").headline == (
        "Something of the only result judged is said later"
    )
    assert result("ok", "Fine.").reason.startswith("The only tool call has no result")
