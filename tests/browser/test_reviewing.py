from __future__ import annotations

import itertools

import msgspec
import pytest
from django.urls import reverse
from playwright.sync_api import expect

from apps.accounts.permissions import Role
from apps.engine.check import Series
from apps.engine.formats.evalsite_writer import dump
from apps.figures import sequence_figure
from apps.review import operations as review
from apps.review.models import Signal
from apps.review.transitions import Verdict
from tests.browser.scenes import upload_and_read
from tests.factories import decay_trace, make_member, make_project, make_user

SIGNALS = 24
LENGTHS = (500, 420, 330, 260, 180, 120, 60)


@pytest.fixture(scope="module")
def desk(site):
    """A project with many open signals; each test takes its own."""
    project = make_project(owner=make_user(), name="A desk to review")
    traces = [
        decay_trace(*(n + number for n in LENGTHS), name=f"run {number}")
        for number in range(SIGNALS)
    ]
    upload_and_read(project, b"".join(map(dump, traces)), name="runs.jsonl")
    assert Signal.objects.filter(project=project).count() == SIGNALS
    return project


@pytest.fixture(scope="module")
def taken():
    return itertools.count()


@pytest.fixture
def signal(desk, taken) -> Signal:
    """A signal that no other test touches."""
    return Signal.objects.filter(project=desk).order_by("-pk")[next(taken)]


@pytest.fixture
def ana(desk):
    return make_member(desk, Role.REVIEWER)


@pytest.fixture
def page(open_page, ana):
    return open_page(ana)


def url_of(signal: Signal) -> str:
    return reverse("signal", args=[signal.project.slug, signal.pk])


def queue_of(desk) -> str:
    return reverse("queue", args=[desk.slug])


def verdict_of(page) -> str | None:
    chosen = page.locator("input[name=verdict]:checked")
    return chosen.get_attribute("value") if chosen.count() else None


def test_j_and_k_move_in_the_queue_and_enter_opens_the_row(page, desk):
    page.goto(queue_of(desk))
    rows = page.locator("[data-row]")
    page.keyboard.press("j")
    expect(rows.nth(0)).to_have_attribute("aria-current", "true")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(rows.nth(1)).to_have_attribute("aria-current", "true")
    expect(rows.nth(2)).not_to_have_attribute("aria-current", "true")
    expected = rows.nth(1).locator("a.row-link").get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url("**" + expected)


def test_j_on_a_signal_goes_to_the_next_in_this_order_and_k_back(page, desk):
    page.goto(queue_of(desk) + "?sort=newest")
    links = [link.get_attribute("href") for link in page.locator("a.row-link").all()]
    page.goto(links[3])
    page.keyboard.press("j")
    page.wait_for_url("**" + links[4])
    page.keyboard.press("k")
    page.wait_for_url("**" + links[3])


@pytest.mark.parametrize(
    ("key", "verdict"),
    [
        ("1", "confirm"),
        ("2", "dismiss"),
        ("3", "needs_experiment"),
        ("4", "cannot_tell"),
    ],
)
def test_a_digit_chooses_a_decision(page, signal, key, verdict):
    page.goto(url_of(signal))
    page.keyboard.press(key)
    assert verdict_of(page) == verdict


def test_digits_choose_the_reason_after_2_and_the_decision_again_after_escape(
    page, signal
):
    page.goto(url_of(signal))
    page.keyboard.press("2")
    page.keyboard.press("3")
    assert verdict_of(page) == "dismiss"
    assert page.locator("input[name=reason]:checked").count() == 1
    page.keyboard.press("2")
    page.keyboard.press("Escape")
    page.keyboard.press("4")
    assert verdict_of(page) == "cannot_tell"


def test_no_single_key_acts_while_typing_in_the_note(page, signal):
    page.goto(url_of(signal))
    page.locator("#note").click()
    page.keyboard.type("1234 jkn? uy")
    assert page.locator("#note").input_value() == "1234 jkn? uy"
    assert verdict_of(page) is None
    assert page.url.endswith(url_of(signal))
    expect(page.locator("#keys")).not_to_be_visible()


def test_the_list_of_keys_opens_and_closes(page, desk):
    page.goto(queue_of(desk))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).not_to_be_visible()
    assert page.locator("[data-row][aria-current]").count() == 0


def test_keys_can_be_switched_off_for_good(page, signal):
    page.goto(url_of(signal))
    page.keyboard.press("?")
    page.locator("[data-keys-switch]").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    page.keyboard.press("2")
    assert verdict_of(page) is None
    page.locator("input[value=cannot_tell]").check()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#messages")).to_contain_text("Decided")


def test_a_draft_survives_a_reload_and_is_called_saved_only_then(page, signal):
    page.goto(url_of(signal))
    page.keyboard.press("1")
    page.locator("#note").fill("half a thought")
    expect(page.locator("[data-saved]")).to_contain_text("Saved")
    page.reload()
    expect(page.locator("#note")).to_have_value("half a thought")
    assert verdict_of(page) == "confirm"
    expect(page.locator("[data-claim]")).to_contain_text("yours for")


def test_a_second_reviewer_sees_who_has_the_claim_and_may_only_read(
    page, open_page, desk, signal, ana
):
    page.goto(url_of(signal))
    page.get_by_role("button", name="Claim").click()
    expect(page.locator("[data-claim]")).to_contain_text("yours for")

    other = open_page(make_member(desk, Role.REVIEWER))
    other.goto(url_of(signal))
    expect(other.locator("form[data-decide]")).to_contain_text(
        f"{ana.label} is looking at this signal"
    )
    expect(other.locator("#note")).to_be_disabled()
    other.keyboard.press("1")
    assert verdict_of(other) is None
    other.goto(queue_of(desk))
    expect(other.locator("[data-rows]")).to_contain_text(ana.label)

    page.get_by_role("button", name="Let go").click()
    other.goto(url_of(signal))
    expect(other.locator("#note")).to_be_enabled()


def test_closing_the_page_lets_the_claim_go(page, signal):
    page.goto(url_of(signal))
    page.keyboard.press("1")
    expect(page.locator("[data-claim]")).to_contain_text("yours for")
    page.goto("about:blank")
    for _ in range(60):
        signal.refresh_from_db()
        if signal.state == "open":
            break
        page.wait_for_timeout(50)
    assert signal.state == "open"


def test_what_was_typed_is_kept_when_someone_else_was_faster(page, desk, signal):
    page.goto(url_of(signal))
    other = make_member(desk, Role.REVIEWER, "faster")
    review.decide(
        signal_id=signal.pk,
        user=other,
        base_version=signal.version,
        decision=review.DecisionInput(verdict=Verdict.CANNOT_TELL),
    )
    page.keyboard.press("1")
    page.locator("#note").fill("my long explanation")
    with page.expect_response(lambda r: r.url.endswith("/decide/")) as answer:
        page.keyboard.press("Control+Enter")
    assert answer.value.status == 409
    expect(page.locator("main")).to_contain_text("faster has decided meanwhile")
    expect(page.locator("main")).to_contain_text("my long explanation")


def test_a_decision_without_a_reason_is_refused_in_words(page, signal):
    page.goto(url_of(signal))
    page.keyboard.press("2")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-saved]")).to_contain_text("Saved")
    expect(page.locator("[data-refused]")).to_contain_text("why is this signal")
    signal.refresh_from_db()
    assert signal.state != "decided"


def test_the_whole_step_is_loaded_when_it_is_opened(page, signal):
    page.goto(url_of(signal))
    step = page.locator(".step", has=page.locator("details.step-more")).first
    assert step.locator("pre").count() == 0
    step.get_by_text("Whole step").click()
    expect(step.locator("pre").nth(0)).to_contain_text("answer")
    expect(step.locator("pre").nth(1)).to_contain_text("prompt")


def test_n_walks_the_evidence(page, signal):
    page.goto(url_of(signal))
    page.keyboard.press("n")
    page.keyboard.press("n")
    evidence = page.locator(".step[data-evidence]")
    expect(evidence.nth(1)).to_be_focused()
    page.keyboard.press("N")
    expect(evidence.nth(0)).to_be_focused()


def test_the_chart_is_drawn_by_plotly(page, signal):
    page.goto(url_of(signal))
    expect(page.locator("[data-chart] svg.main-svg").first).to_be_visible()
    assert page.locator("[data-chart] .bars path").count() == len(LENGTHS)


def test_what_was_not_reported_is_drawn_as_missing_and_never_as_zero(page, signal):
    page.goto(url_of(signal))
    expect(page.locator("[data-chart].is-drawn")).to_be_visible()
    series = Series(unit="output tokens", steps=(0, 1, 2, 3), values=(90, None, 60, 30))
    page.evaluate(
        """(figure) => {
          document.getElementById('figure').textContent = figure;
          document.dispatchEvent(new CustomEvent('evalsite:theme'));
        }""",
        msgspec.json.encode(sequence_figure(series)).decode(),
    )
    chart = page.locator("[data-chart]")
    expect(chart.get_by_text("not reported")).to_be_visible()
    tall = [box.bounding_box()["height"] for box in chart.locator(".bars path").all()]
    assert len(tall) == 4
    assert min(tall) > 20
    assert chart.locator("pattern").count() >= 1
