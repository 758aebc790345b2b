"""Regression cases as people make, see and retire them."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.review import operations as review
from apps.review.models import Signal
from apps.review.transitions import Verdict
from apps.screening.models import RegressionCase
from tests.adopting import (
    STEEP,
    adopt,
    decide,
    upload_runs,
)
from tests.factories import decay_trace, upload_traces
from tests.web.hostile import HTML
from tests.web.visiting import assert_inert, text, url


@pytest.fixture
def two(project):
    upload_runs(project, "falling", "steep")
    return project


def test_the_list_of_checks_leads_to_the_cases(web, two):
    page = web.get(url(two, "project-checks")).content.decode()
    assert f'href="{url(two, "regression")}"' in page


class TestRegressionCases:
    """A dismissed signal becomes a named case by one click."""

    @pytest.fixture
    def dismissed(self, two, reviewer) -> Signal:
        return decide("falling", reviewer, Verdict.DISMISS, "converged")

    def test_one_click_on_a_dismissed_signal_makes_a_case(self, web, two, dismissed):
        address = url(two, "signal", dismissed.pk)
        assert "Keep quiet on this" in text(web.get(address))
        page = text(web.post(url(two, "signal-keep-quiet", dismissed.pk), follow=True))
        assert "Kept as a regression case" in page
        assert "Keep quiet on this" not in page
        case = RegressionCase.objects.get()
        assert case.name == "Output-length decay on falling"
        assert (case.reason, case.trace_id) == ("converged", dismissed.trace_id)
        again = web.post(url(two, "signal-keep-quiet", dismissed.pk), follow=True)
        assert "It is a regression case already." in text(again)

    def test_other_signals_offer_and_take_none(self, web, two, reviewer):
        confirmed = decide("falling", reviewer, Verdict.CONFIRM)
        still_open = Signal.objects.get(state="open")
        for signal in (confirmed, still_open):
            assert "Keep quiet" not in text(web.get(url(two, "signal", signal.pk)))
            answer = web.post(url(two, "signal-keep-quiet", signal.pk))
            assert answer.status_code == 409
            assert "Only a dismissed signal" in text(answer)

    def test_the_list_says_what_the_key_that_counts_gives_on_each(
        self, web, two, dismissed
    ):
        web.post(url(two, "signal-keep-quiet", dismissed.pk), {"name": "Order is done"})
        page = text(web.get(url(two, "regression")))
        assert "Order is done" in page
        assert '<span class="pill amber">fails</span>' in page
        adopt(two, last_percent=30)
        page = text(web.get(url(two, "regression")))
        assert '<span class="pill green">quiet</span>' in page

    def test_a_case_says_when_its_dismissal_was_taken_back(
        self, web, two, dismissed, reviewer
    ):
        web.post(url(two, "signal-keep-quiet", dismissed.pk))
        assert "taken back" not in text(web.get(url(two, "regression")))
        review.undo(
            signal_id=dismissed.pk, user=reviewer, base_version=dismissed.version
        )
        page = text(web.get(url(two, "regression")))
        assert "That dismissal has been taken back since." in page
        assert url(two, "signal", dismissed.pk) in page

    def test_a_case_is_renamed_retired_and_restored(self, web, two, dismissed):
        web.post(url(two, "signal-keep-quiet", dismissed.pk))
        case = RegressionCase.objects.get()
        web.post(url(two, "case-rename", case.pk), {"name": HTML[:100]})
        page = web.get(url(two, "regression")).content.decode()
        assert_inert(page)
        answer = web.post(url(two, "case-retire", case.pk), follow=True)
        assert '<span class="pill ">retired</span>' in text(answer)
        answer = web.post(url(two, "case-restore", case.pk), follow=True)
        assert "Restored: it is run again." in text(answer)

    def test_an_empty_list_says_how_to_begin(self, web, project):
        assert "Keep quiet on this" in text(web.get(url(project, "regression")))

    def test_the_list_takes_the_same_queries_for_many_cases(self, web, two, reviewer):
        def queries(count: int, prefix: str) -> int:
            upload_traces(
                two,
                *(decay_trace(*STEEP, name=f"{prefix}{n}") for n in range(count)),
                name=f"{prefix}.jsonl",
            )
            for number in range(count):
                signal = decide(
                    f"{prefix}{number}", reviewer, Verdict.DISMISS, "converged"
                )
                web.post(url(two, "signal-keep-quiet", signal.pk))
            web.get(url(two, "regression"))
            with CaptureQueriesContext(connection) as seen:
                web.get(url(two, "regression"))
            return len(seen)

        assert queries(2, "a") == queries(8, "b")
