"""The calibration pages: what they say, never without an interval, at constant cost."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.operations import set_blind_percent
from apps.engine.calibration import rate
from apps.engine.check import configured
from apps.engine.checks import by_slug
from apps.engine.trace import Outcome, OutcomeKind
from apps.review import blind
from apps.review import operations as review
from apps.review.blind import BlindInput
from apps.review.calibration import BlindCount, Said
from apps.review.misses import misses_of
from apps.review.models import BlindLook, Signal
from apps.review.operations import DecisionInput
from apps.review.transitions import BlindVerdict, Verdict
from apps.screening.lineup import Choice, adopt, key_of
from apps.screening.models import CheckState
from apps.web.pages.calibration_words import (
    range_mark,
    rate_in_words,
    verdict_on_precision,
    whole_percent,
)
from tests.factories import NOW, decay_trace, upload_traces
from tests.random_reviews import SLUG, furnish_at_random

PASS, FAIL = Outcome(kind=OutcomeKind.PASS), Outcome(kind=OutcomeKind.FAIL)


def page_of(web, project, query: str = "", slug: str = SLUG) -> str:
    answer = web.get(reverse("calibration", args=[project.slug, slug]) + query)
    assert answer.status_code == 200
    return answer.content.decode().replace("\u202f", " ")


def falling(number: int, **more):
    return decay_trace(100 + number, 90, 80, 70, 40, name=f"falls {number}", **more)


def level(number: int, **more):
    return decay_trace(50 + number, 60, 55, 58, 61, name=f"holds {number}", **more)


def decide(user, verdicts: list[tuple[Verdict, str]]) -> None:
    for signal, (verdict, reason) in zip(
        Signal.objects.order_by("pk"), verdicts, strict=False
    ):
        review.decide(
            signal_id=signal.pk,
            user=user,
            decision=DecisionInput(verdict=verdict, reason=reason),
            base_version=0,
        )


class TestWords:
    """Sentences about rates."""

    def test_a_rate_is_said_with_its_interval(self):
        words = rate_in_words(rate(1, 14)).replace("\u202f", " ")
        assert words == "1 of 14 (7 %, interval 1 to 31 %)"
        assert rate_in_words(rate(0, 0)) == "no decisions yet"

    @pytest.mark.parametrize(
        ("share", "words"),
        [(0, "0"), (0.002, "under 1"), (0.071, "7"), (0.9999, "over 99"), (1, "100")],
    )
    def test_a_share_is_rounded_and_never_to_none_or_all(self, share, words):
        assert whole_percent(share) == words

    @pytest.mark.parametrize(
        ("said", "part"),
        [
            (
                Said(confirmed=1, dismissed=13, reasons={"converged": 9, "other": 4}),
                "most of what it queues is dismissed, mainly as normal convergence",
            ),
            (
                Said(confirmed=0, dismissed=9, reasons={"capped": 4, "other": 5}),
                "most of what it queues is dismissed, mainly for other reasons",
            ),
            (
                Said(
                    confirmed=0,
                    dismissed=9,
                    reasons={"capped": 4, "converged": 3, "other": 2},
                ),
                "most of what it queues is dismissed.",
            ),
            (Said(confirmed=13, dismissed=1), "more than half of what it queues is"),
            (Said(confirmed=2, dismissed=2), "too few to say whether more than half"),
            (Said(), "No decisions yet on the 14 review signals"),
        ],
    )
    def test_the_verdict_follows_from_the_interval(self, said, part):
        precision = rate(said.confirmed, said.decided)
        sentence = verdict_on_precision(said, precision, 14, "review_signal")
        assert part in sentence
        assert "interval" in sentence or not said.decided

    def test_a_mark_holds_its_interval_within_its_line(self):
        mark = range_mark(rate(3, 4))
        assert 4 <= mark.low < mark.value < mark.high <= 116
        assert mark.value == 88
        assert range_mark(rate(0, 0)) is None


class TestMisses:
    """What blind looks say of the traces on which a check stayed quiet."""

    def test_the_strata_are_weighted_by_how_many_traces_they_hold(self):
        found = misses_of(
            [
                BlindCount(
                    fired=False, flagged=False, traces=900, failures=1, no_failures=9
                ),
                BlindCount(
                    fired=False, flagged=True, traces=100, failures=5, no_failures=5
                ),
                BlindCount(
                    fired=True, flagged=True, traces=50, failures=4, no_failures=1
                ),
            ]
        )
        assert (found.quiet.k, found.quiet.n) == (6, 20)
        assert (found.fired.k, found.fired.n) == (4, 5)
        assert found.weighted == pytest.approx(0.9 * 0.1 + 0.1 * 0.5)
        assert found.quiet_traces == 1000
        # The larger stratum decides: its own interval, a little wider for the other.
        assert found.interval.low == pytest.approx(
            0.14
            - ((0.9 * (0.1 - 0.01787621)) ** 2 + (0.1 * (0.5 - 0.23659309)) ** 2) ** 0.5
        )
        assert found.interval.low < found.weighted < found.interval.high

    def test_a_stratum_without_a_look_leaves_the_whole_open(self):
        found = misses_of(
            [
                BlindCount(
                    fired=False, flagged=False, traces=900, failures=1, no_failures=9
                ),
                BlindCount(fired=False, flagged=True, traces=100, cannot_tell=2),
            ]
        )
        assert (found.weighted, found.interval) == (None, None)
        assert found.cannot_tell == 2

    def test_one_stratum_alone_is_its_own_wilson_interval(self):
        found = misses_of(
            [
                BlindCount(
                    fired=False, flagged=False, traces=10, failures=1, no_failures=3
                )
            ]
        )
        assert found.interval.low == pytest.approx(found.quiet.interval.low)
        assert found.interval.high == pytest.approx(found.quiet.interval.high)


class TestOneCheck:
    """The calibration page of a check."""

    def test_it_says_what_reviewers_dismissed_and_why(self, web, project, owner):
        upload_traces(project, *[falling(n) for n in range(15)])
        dismiss = (Verdict.DISMISS, "converged")
        decide(
            owner,
            [(Verdict.CONFIRM, ""), *[dismiss] * 13, (Verdict.CANNOT_TELL, "")],
        )
        page = page_of(web, project)
        assert (
            "Reviewers confirmed 1 of 14 (7 %, interval 1 to 31 %): most of what it "
            "queues is dismissed, mainly as normal convergence." in page
        )
        assert "13 of 14 (93 %, interval 69 to 99 %)" in page
        assert "<dt>Cannot tell</dt><dd>1, not counted</dd>" in page

    def test_without_decisions_it_claims_nothing(self, web, project):
        upload_traces(project, falling(1), level(1))
        page = page_of(web, project)
        assert "No decisions yet on the 1 review signal that" in page
        assert "nobody has looked blindly" in page
        assert "100 %, interval" not in page.partition("How often it fires")[0]

    def test_groups_with_few_answers_are_shown_and_not_compared(self, web, project):
        made = [falling(n, metadata={"domain": "retail"}) for n in range(9)]
        made += [level(n, metadata={"domain": "airline"}) for n in range(3)]
        upload_traces(project, *made)
        page = page_of(web, project)
        assert "Found in the metadata of traces under domain." in page
        few = page.rpartition("domain: airline")[2].partition("</tr>")[0]
        assert "too few" in few
        assert 'class="few"' in page

    def test_a_group_that_differs_stands_out_after_the_correction(self, web, project):
        made = [falling(n, metadata={"domain": "retail"}) for n in range(12)]
        made += [level(n, metadata={"domain": "airline"}) for n in range(12)]
        upload_traces(project, *made)
        page = page_of(web, project)
        row = page.rpartition("domain: airline")[2].partition("</tr>")[0]
        assert "stands out" in row
        assert "0 of 12" in row

    def test_constant_rules_stand_beside_it_with_the_weakness_of_their_truth(
        self, web, project, owner
    ):
        upload_traces(
            project,
            *[falling(n, outcome=FAIL, task=f"t{n}") for n in range(12)],
            *[level(n, outcome=PASS, task=f"t{n}") for n in range(12)],
        )
        decide(owner, [(Verdict.CONFIRM, "")])
        page = page_of(web, project)
        for words in (
            "The recorded outcome",
            "Decisions on signals",
            "always fire",
            "fire on the longest traces",
            "fire at random",
            "More of the traces at which it fired failed than of the others: +100",
            "It judges the end of the whole run",
            "0 of 12</td><td",
            "Fisher exact p",
            "12 distinct tasks",
        ):
            assert words in page, words
        assert "Blind looks</h3>" not in page

    def test_blind_looks_tell_what_it_misses(self, web, project, owner):
        set_blind_percent(project=project, percent=100)
        upload_traces(project, *[level(n) for n in range(6)])
        for look in BlindLook.objects.all():
            blind.decide(
                look_id=look.pk,
                user=owner,
                decision=BlindInput(verdict=BlindVerdict.FAILURE, where_step=1),
                base_version=0,
            )
        page = page_of(web, project)
        assert (
            "Where it stayed quiet, blind looks found a failure in 6 of 6 (100 %, "
            "interval 61 to 100 %)" in page
        )
        assert "Weighted back to all traces" in page

    def test_every_key_that_answered_can_be_chosen_and_stand_beside(
        self, web, project, owner, reviewer
    ):
        current, other = furnish_at_random(
            project, people=[reviewer, owner], seed=7, traces=45
        )
        page = page_of(web, project)
        for key in (current, other):
            assert f'value="{key[1]}-{key[2]}"' in page
        assert "Beside another version" in page
        assert 'id="trend-fired"' in page
        assert 'id="trend-confirmed"' in page
        assert "by week of arrival" in page
        assert f">v1 · {other[2][:6]} · earlier<" in page
        page = page_of(web, project, f"?key={other[1]}-{other[2]}&beside=none")
        assert "last percent 40" in page
        assert "Beside another version" not in page
        assert "Odd ones" in page

    def test_what_came_in_one_day_is_shown_upload_by_upload(self, web, project):
        upload_traces(project, falling(1), name="first <b>.jsonl")
        upload_traces(project, level(2), name="second.jsonl")
        page = page_of(web, project)
        assert "by upload of arrival" in page
        assert "first &lt;b&gt;.jsonl" in page
        assert "<b>.jsonl" not in page

    def test_a_paused_check_and_one_that_never_answered_have_a_page(
        self, web, project, owner
    ):
        assert "It has not answered about a trace yet" in page_of(web, project)
        adopt(
            project_id=project.pk,
            choice=Choice(check=by_slug(SLUG), state=CheckState.PAUSED),
            user_id=owner.pk,
            now=NOW,
        )
        assert "paused" in page_of(web, project)

    def test_versions_are_told_apart_by_the_parameters_that_differ(
        self, web, project, owner
    ):
        upload_traces(project, falling(1))
        adopt(
            project_id=project.pk,
            choice=Choice(check=configured(by_slug(SLUG), {"last_percent": 40})),
            user_id=owner.pk,
            now=NOW,
        )
        page = page_of(web, project)
        assert ">v1 · last percent 40 · current<" in page
        assert ">v1 · last percent 60 · earlier<" in page

    def test_a_telemetry_check_is_not_judged_by_decisions(self, web, project):
        upload_traces(project, level(1))
        page = page_of(web, project, slug="input-growth")
        assert "It gives telemetry only" in page
        assert "What reviewers said" not in page

    @pytest.mark.parametrize("slug", ["no-such-check", "queue"])
    def test_a_check_that_is_not_here_is_not_found(self, web, project, slug):
        url = reverse("calibration", args=[project.slug, slug])
        assert web.get(url).status_code == 404


class TestOverview:
    """All checks on one page."""

    def test_those_of_which_most_is_dismissed_stand_first(self, web, project, owner):
        upload_traces(project, *[falling(n) for n in range(12)])
        decide(owner, [(Verdict.DISMISS, "too_sensitive")] * 9)
        answer = web.get(reverse("calibrations", args=[project.slug]))
        page = answer.content.decode().replace("\u202f", " ")
        first = page.partition("<tbody>")[2]
        assert first.index(by_slug(SLUG).label) < first.index("Tool")
        assert "most of what it queues is dismissed" in page
        assert "0 of 9 (0 %, interval 0 to 30 %)" in page
        assert page.count("<tr>") == len(answer.context["page"].checks) + 1

    def test_without_decisions_it_says_what_is_needed(self, web, project):
        page = web.get(reverse("calibrations", args=[project.slug])).content.decode()
        assert "No decisions yet." in page
        assert "Turn on blind looks" in page


@pytest.mark.parametrize("name", ["calibration", "calibrations"])
def test_more_traces_cost_no_more_queries(web, project, owner, reviewer, name):
    def queries() -> int:
        slugs = [SLUG] if name == "calibration" else []
        url = reverse(name, args=[project.slug, *slugs])
        web.get(url)
        with CaptureQueriesContext(connection) as caught:
            assert web.get(url).status_code == 200
        return len(caught)

    furnish_at_random(project, people=[reviewer, owner], seed=2, traces=9)
    few = queries()
    upload_traces(project, *[falling(500 + n) for n in range(40)], name="more.jsonl")
    assert queries() == few
    assert key_of(by_slug(SLUG))[0] == SLUG
