"""A batch that is looked at while it runs: it goes on under the eyes and nothing jumps."""

from __future__ import annotations

from django.urls import reverse

from apps.replays.models import Run
from tests.replays.ended import decided
from tests.replays.making import make_frozen_case, new_batch, run_out
from tests.replays.rows import make_agent


def test_a_batch_is_brought_up_to_date_without_a_jump_and_can_be_resumed(page, project):
    agent = make_agent(project)
    cases = [
        make_frozen_case(agent, name=f"Case {n}", input=f"{n}?") for n in range(12)
    ]
    batch = new_batch(agent, *cases, name="Live", repeats=3)
    run_out(batch, lambda run: decided("yes") if run.number < 2 else None)
    page.goto(reverse("replay-batch", args=[project.slug, batch.pk]))
    far = page.locator(".far")
    assert "12 of 36 runs executed" in far.inner_text()
    page.locator("#group-9").focus()
    page.evaluate("scrollTo(0, 400)")
    Run.objects.filter(batch=batch, state="waiting").update(not_before=None)
    run_out(batch, lambda run: decided("yes") if run.number < 3 else None)
    page.locator(".far", has_text="24 of 36 runs executed").wait_for()
    assert page.evaluate("document.activeElement.id") == "group-9"
    assert page.evaluate("scrollY") == 400
    page.locator("#cancel-button").click()
    calls = page.locator("#cap-calls")
    calls.fill("777")
    with page.expect_response(lambda answer: "/progress/" in answer.url):
        pass
    assert calls.input_value() == "777"
    page.locator("#resume-button").click()
    page.get_by_text("It goes on: 12 runs wait for a worker.").wait_for()
    batch.refresh_from_db()
    assert (batch.state, batch.max_calls) == ("running", 777)
