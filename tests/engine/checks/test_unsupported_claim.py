"""Claims without support: numbers from nowhere, and all the numbers that are none."""

from __future__ import annotations

import time

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.unsupported_claim import UnsupportedClaim
from tests.engine.told import (
    answer,
    failed,
    system,
    told,
    turned_round,
    used,
    user,
    without_bodies,
)

FLIGHTS = [{"flight": "HAT136", "price": 187}, {"flight": "HAT039", "price": 1254.5}]


def of(trace, **parameters):
    (found,) = UnsupportedClaim(**parameters).run(trace)
    return found


def claim(
    text, result=FLIGHTS, asked="Please book a flight for 3 people.", **parameters
):
    """The answer of the check about an answer that ends a run with one tool result."""
    trace = told(
        system(0, "A bag costs 35 dollars; members save 15%."),
        user(1, asked),
        used(2, "search", {"q": "SEA", "limit": 9876}, result),
        answer(3, text),
    )
    return of(trace, **parameters)


def test_a_number_from_nowhere_is_a_signal_that_names_it():
    found = claim("The total is $8,432.17 for your party.")
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
    assert found.evidence.facts["without_support"] == ["8,432.17"]
    assert found.evidence.chance is None
    assert found.evidence.steps == (3,)
    assert "8,432.17" in found.headline
    assert "A fact about texts" in found.reason


@pytest.mark.parametrize(
    "text",
    [
        "It costs 1254.5 dollars.",
        "It costs $1,254.50.",
        "It costs 1.254,50 EUR.",
        "It costs 1 254.50 francs.",
        "It costs 1'254.50 francs.",
        "It costs about 1,255 dollars.",
        "It costs roughly $1,300.",
        "It costs 1.25k.",
        "It costs \u0661\u0662\u0665\u0664.\u0665 dirham.",
    ],
)
def test_a_number_is_found_in_every_notation_and_rounded(text):
    assert claim(text).answer is Answer.QUIET


@pytest.mark.parametrize(
    "text",
    [
        "Together they cost $1,441.50.",
        "The second costs $1,067.50 more.",
        "Three tickets cost $561.",
        "With the bag it is $222.",
        "As a member you pay $158.95.",
        "You save $28.05.",
        "The first is 14.9 % of the second.",
        "One third of it is 62.33.",
    ],
)
def test_what_follows_from_two_numbers_is_quiet(text):
    assert claim(text).reason_code == "supported"


def test_a_total_that_the_answer_derives_step_by_step_is_quiet():
    result = "It is 1487 for one, 2691 for two and 4393 for three."
    steps = "1487 + 2691 = 4178, and 4178 + 4393 = 8571."
    assert claim(steps, result).answer is Answer.QUIET
    assert claim("The total is 8571.", result).answer is Answer.SIGNAL


@pytest.mark.parametrize(
    "text",
    [
        "It leaves on 2024-05-26 at 17:45.",
        "It leaves on May 26, 2024 at 5:45 pm, or on the 27th of May.",
        "It leaves on 26.05.2024, arrives 5/27.",
        "In 1987 it was founded; since 2019 it flies.",
        "Your reservation is XQ77B1, order #W4817233, user_8842.",
        "1. Book\n2. Pay\n14. Fly\n(15) Land",
        "See step 43, section 7.12, page 318 and line 77.",
        "Call 555-867-5309 or +1 (555) 867 5309.",
        "Version 12.4.77 runs on Python 3.11, iOS 17 and node 22.",
        "Run `sleep 4711` or\n```\nfor i in range(7319): pass\n```",
        "Read https://example.org/a/8823?x=9917 for more.",
        "The file src/lib.rs:4127 and /tmp/9182/x.",
        "Code 007 and zip 09127 are fine.",
        "The trip takes 7 hours 43 minutes.",
        "It is open 24 hours, for the next 48 hours or 12 months.",
        "I found 2 items and 7 seats.",
        "It is the 23rd of 400 and 5000.",
        "A 3f9c81d77 hash.",
    ],
)
def test_what_is_no_amount_is_not_looked_up(text):
    found = claim(text)
    assert (found.answer, found.reason_code) == (Answer.QUIET, "no_numbers")


def test_the_last_digits_of_a_longer_number_are_how_people_name_it():
    result = {"payment": "gift_card_7091784"}
    assert claim("Paid with the card ending in 1784.", result).answer is Answer.QUIET
    assert claim("Paid with the card ending in 7091.", result).answer is Answer.SIGNAL


def test_the_size_of_a_list_is_a_number_that_was_given():
    options = [{"id": f"a{n}"} for n in range(23)]
    assert claim("There are 23 options.", options).answer is Answer.QUIET


def test_the_total_and_the_mean_of_a_list_follow_from_it():
    prices = [{"price": 1487}, {"price": 2691}, {"price": 4393}, {"price": 77.5}]
    assert claim("All four cost 8648.50.", prices).answer is Answer.QUIET
    assert claim("On average 2162.125.", prices).answer is Answer.QUIET
    assert claim("All four cost 9648.50.", prices).answer is Answer.SIGNAL
    assert claim("8571 in all", [1487, 2691, 4393]).answer is Answer.QUIET


def test_numbers_that_the_user_wrote_in_words_are_given():
    asked = "We are twenty-seven people."
    assert claim("A table for 27.", FLIGHTS, asked).answer is Answer.QUIET


def test_a_share_is_the_percentage_it_means():
    assert claim("The rate is 73.5 %.", {"rate": 0.735}).answer is Answer.QUIET


def test_the_sign_of_a_number_and_a_range_are_no_part_of_it():
    assert claim("It falls by -187, or 187-1254.5.").answer is Answer.QUIET


def test_arguments_that_the_model_wrote_support_nothing():
    assert claim("I searched through 9876 flights.").answer is Answer.SIGNAL


def test_an_earlier_answer_supports_nothing():
    trace = told(
        used(0, "get", {}, "x"), answer(1, "It costs 4711."), answer(2, "So 4711.")
    )
    assert of(trace).answer is Answer.SIGNAL


def test_the_assistant_in_a_recorded_request_supports_nothing_and_others_do():
    def asked(role):
        messages = [{"role": role, "content": "It costs 4711."}]
        return told(
            used(0, "get", {}, "x"),
            answer(1, "So 4711.", body={"input": {"messages": messages}}),
        )

    assert of(asked("assistant")).answer is Answer.SIGNAL
    assert of(asked("user")).answer is Answer.QUIET
    assert of(asked("tool")).answer is Answer.QUIET


def test_a_result_that_came_after_the_answer_supports_nothing():
    trace = told(
        used(0, "get", {}, "x"), answer(1, "It is 4711."), used(2, "get", {}, "4711")
    )
    assert of(trace).answer is Answer.SIGNAL


def test_json_inside_a_text_is_opened():
    assert claim("It costs $1,254.50.", '{"price": 1254.5}').answer is Answer.QUIET


def test_a_run_without_sources_is_not_applicable():
    found = of(told(user(0, "How high is it?"), answer(1, "It is 8849 metres.")))
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "no_sources")


def test_a_missing_result_is_not_applicable_and_a_failed_call_is_none():
    trace = told(used(0, "get", {}, None), answer(1, "It is 8849 metres."))
    assert of(trace).reason_code == "results_missing"
    trace = told(failed(used(0, "get", {}, None)), answer(1, "It is 8849 metres."))
    assert of(trace).answer is Answer.SIGNAL


def test_an_image_among_the_sources_is_not_applicable():
    image = [{"type": "image_url", "image_url": {"url": "data:..."}}]
    assert claim("It is 8849 metres.", image).reason_code == "images"


def test_numbers_that_are_found_do_not_need_the_missing_results():
    trace = told(
        used(0, "get", {}, None), used(1, "get", {"n": 1}, "4711"), answer(2, "4711!")
    )
    assert of(trace).answer is Answer.QUIET


@pytest.mark.parametrize("where", [0, 1])
def test_one_source_that_is_too_long_alone_is_not_applicable(where):
    long = "word " * 120_000 + "418.50"
    results = ["x", "y"]
    results[where] = long
    steps = [used(seq, "get", {}, each) for seq, each in enumerate(results)]
    found = of(told(*steps, answer(2, "Your refund is 418.50.")))
    assert (found.answer, found.reason_code) in {
        (Answer.NOT_APPLICABLE, "too_much_text"),
        (Answer.QUIET, "supported"),
    }
    assert of(told(*steps, answer(2, "It is 731.85."))).reason_code == "too_much_text"


def test_an_answer_is_not_cut_through_a_number():
    text = ("It is 1254.5 now. " * 4_000)[:65_530] + " 1254.5 and more of it"
    found = claim(text)
    assert found.evidence.facts["numbers"] == ["1254.5"]
    assert found.answer is Answer.QUIET


def test_an_answer_of_which_not_all_was_looked_up_says_so():
    beginning = "It is 1254.5 now. " * 4_000
    found = claim(beginning + "It costs 4711.33.")
    assert found.answer is Answer.QUIET
    assert "Only the first 65,536 of its 72,017 characters were read" in found.reason
    wordy = claim("word " * 20_000 + "4711.33")
    assert wordy.headline == (
        "The beginning of the final answer states no number to look up"
    )
    many = claim(" and ".join(f"{n}.75" for n in range(1000, 1101)))
    assert "Only its first 100 numbers were looked up" in many.reason
    fewer = claim(" and ".join(f"{n}.75" for n in range(1000, 1100)))
    assert "Only" not in fewer.reason


@pytest.mark.parametrize(
    "text",
    [
        "退款金额为418.57元",
        "您的退款418.57元已处理",
        "合計4187円です",
        "환불 금액은 418,570원입니다",
        "\u0627\u0644\u0645\u0628\u0644\u063a \u0664\u0661\u0668\u066b\u0665\u0667 \u0631\u064a\u0627\u0644",
        "Rückerstattung: 1.418,57 EUR",
        "Remboursement : 1 418,57 €",
        "Refund: USD418.57",
        "Refund: Rs.418.57",
        "Total:418.57",
        "refund=418.57",
        "Your refund is 42.00 EUR.",
        "It is $0.57 more, so $16.57",
    ],
)
def test_an_amount_from_nowhere_is_found_in_many_notations(text):
    assert claim(text, {"price": 187.25}, "Hello").answer is Answer.SIGNAL


@pytest.mark.parametrize(
    "text",
    [
        "Am 12. März 2024 um 14 Uhr",
        "Le 25 décembre 2024 à 14h30",
        "El 25 de diciembre",
        "2024年12月25日 14时30分 第128步",
        "2024년 12월 25일, 제128조",
        "Popular in the 1990s and 1980s",
        "Tel. 0221-123456, ext. 4127",
        "ISO 27001 and a Boeing 737",
        "§ 312 BGB, Artikel 128, Seite 4127, página 318",
        "A screen of 1920x1080",
    ],
)
def test_what_is_no_amount_in_other_languages_is_not_looked_up(text):
    found = claim(text, digits=2)
    assert (found.answer, found.reason_code) == (Answer.QUIET, "no_numbers")


def test_two_digits_are_too_few_to_say_something_unless_a_project_wants_them():
    trace = told(used(0, "get", {}, "x"), answer(1, "You have 47 points."))
    assert of(trace).reason_code == "no_numbers"
    assert of(trace, digits=2).answer is Answer.SIGNAL
    assert "60 % of those with two digits" in " ".join(of(trace).evidence.not_modelled)


def test_sources_that_are_too_long_are_not_applicable():
    long = " ".join(map(str, range(100_000, 130_000)))
    assert claim("It is 8849.25 metres.", long).reason_code == "too_much_text"


def test_structure_only_and_missing_answers_are_not_applicable():
    trace = told(used(0, "get", {}, "x"), answer(1, "It is 4711."))
    assert of(without_bodies(trace)).reason_code == "no_bodies"
    assert of(told(used(0, "get", {}, "x"), answer(1, None))).reason_code == "no_text"
    assert of(told(user(0, "Hi"))).reason_code == "no_answer"


def test_a_span_that_repeats_the_answer_does_not_support_it():
    text = "The total is 4711 dollars."
    trace = told(used(0, "get", {}, "x"), used(1, "log", {}, text), answer(2, text))
    assert of(trace).answer is Answer.SIGNAL


@pytest.mark.parametrize("text", ["1784", "$1,784", {"total": 1784}, "1784 m"])
def test_an_answer_of_a_number_alone_is_held_by_the_source_that_holds_it(text):
    assert claim(text, "The total is 1784 m in all.").answer is Answer.QUIET
    assert claim(text, "The total is 1785.25 m in all.").answer is Answer.SIGNAL


def test_digits_and_claims_are_parameters_with_limits():
    text = "It costs 48.6 and 4711.33."
    assert claim(text, "x", digits=4).evidence.facts["numbers"] == ["4711.33"]
    assert claim(text, "x", claims=2).answer is Answer.SIGNAL
    few = claim(text, "x", claims=3)
    assert few.answer is Answer.QUIET
    assert few.reason_code == "few_not_found"
    assert few.headline == "2 of 2 numbers in the answer not found, too few to queue"
    assert "2 of 2 numbers of the final answer are not found" in few.reason
    one = claim("It costs 48.6 and 1254.5.", claims=2)
    assert "1 of 2 numbers of the final answer is not found" in one.reason
    assert "found in its sources" not in one.headline
    assert claim(text, "x").input_hash == claim(text, "x", digits=4).input_hash
    assert "4 or more significant digits" in UnsupportedClaim(digits=4).material_when
    for wrong in ({"digits": 1}, {"digits": 7}, {"claims": 0}, {"claims": 51}):
        with pytest.raises(ValueError, match="must be"):
            UnsupportedClaim(**wrong)


def test_steps_in_any_order_give_the_same_answer():
    trace = told(
        user(0, "Hi 12"), used(1, "get", {}, FLIGHTS), answer(2, "4711.5 and 188.25")
    )
    assert of(turned_round(trace)) == of(trace)


@pytest.mark.parametrize(
    "text",
    ["1" * 50_000, "1,1" * 20_000, "```" + "`1 " * 20_000, "- " * 30_000 + "12",
     "1:" * 30_000, "(" * 60_000 + "12", "+1 " * 20_000, "Jan 1 " * 10_000,
     "12 345 " * 8_000],
)  # fmt: skip
def test_no_text_makes_it_slow(text):
    started = time.process_time()
    assert claim(text, text)
    assert time.process_time() - started < 2
