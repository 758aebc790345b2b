"""The pages of checks: what each one is, and what it gave in a project."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.permissions import Role
from apps.engine.check import Basis
from apps.engine.checks import CHECKS, by_slug
from apps.engine.trace import Outcome, OutcomeKind
from apps.review import operations as review
from apps.review.models import Signal
from apps.review.operations import DecisionInput
from apps.review.transitions import Verdict
from apps.screening.lineup import Choice, adopt
from apps.screening.models import CheckState, Screening
from apps.web.pages.check import parameter_rows
from tests.factories import (
    NOW,
    decay_trace,
    make_member,
    make_project,
    tools_trace,
    upload_bytes,
    upload_traces,
)

THIN = "\u202f"


def words(answer) -> str:
    """The text of a page, its white space made plain."""
    text = unescape(re.sub(r"<[^>]*>", " ", answer.content.decode()))
    return re.sub(r"\s+", " ", text.replace(THIN, " "))


def of(web, project, slug):
    return web.get(reverse("project-check", args=[project.slug, slug]))


def embedded(answer, name):
    """The JSON that a chart is drawn from."""
    found = re.search(
        rf'<script id="{name}" type="application/json">(.*?)</script>',
        answer.content.decode(),
    )
    return json.loads(found.group(1)) if found else None


class TestReference:
    """Pages made from the class of a check."""

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.slug)
    def test_each_check_says_what_it_is(self, web, check):
        said = words(web.get(reverse("check", args=[check.slug])))
        basis = "statistic with" if check.basis is Basis.STATISTIC else "fact without"
        assert basis in said
        assert f"v{check.version}" in said
        for limit, row in zip(check.limits, parameter_rows(check), strict=True):
            assert limit.label in said
            assert row.allowed.replace(THIN, " ") in said

    def test_it_links_to_the_projects_of_the_reader_only(self, web, project):
        other = make_project()
        page = web.get(reverse("check", args=["output-decay"])).content.decode()
        mine = reverse("project-check", args=[project.slug, "output-decay"])
        theirs = reverse("project-check", args=[other.slug, "output-decay"])
        assert mine in page
        assert theirs not in page

    def test_a_check_that_is_not_there_is_not_found(self, web, project):
        assert web.get(reverse("check", args=["nothing"])).status_code == 404
        assert of(web, project, "nothing").status_code == 404


class TestProject:
    """What the checks gave in one project."""

    @pytest.mark.parametrize("slug", ["latency-shift", "error-rate-shift"])
    def test_a_check_without_a_baseline_says_where_to_choose_one(
        self, web, place, slug
    ):
        answer = of(web, place, slug)
        assert "this project has none" in words(answer)
        assert reverse("sets", args=[place.slug]) in answer.content.decode()
        assert "this project has none" not in words(of(web, place, "output-decay"))

    def test_the_list_has_every_check_of_the_line_up(self, web, place):
        said = words(web.get(reverse("project-checks", args=[place.slug])))
        for check in CHECKS:
            assert check.label in said
        assert "1 of 1" in said
        assert "no decisions yet" in said

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.slug)
    def test_every_check_has_a_page_here(self, web, place, check):
        answer = of(web, place, check.slug)
        assert answer.status_code == 200
        assert check.label in words(answer)

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.slug)
    def test_every_check_has_a_page_in_an_empty_project(self, web, project, check):
        assert "Applied to nothing here" in words(of(web, project, check.slug))

    def test_a_paused_check_says_so(self, web, place, owner):
        choice = Choice(by_slug("output-decay"), state=CheckState.PAUSED)
        adopt(project_id=place.pk, choice=choice, user_id=owner.pk, now=NOW)
        said = words(web.get(reverse("project-checks", args=[place.slug])))
        assert "paused" in said
        assert "nothing of it is queued" in words(of(web, place, "output-decay"))

    def test_decisions_give_a_share_with_its_interval(self, web, place, owner):
        signal = Signal.objects.get()
        review.decide(
            signal_id=signal.pk,
            user=owner,
            decision=DecisionInput(verdict=Verdict.CONFIRM),
            base_version=0,
        )
        said = words(of(web, place, "output-decay"))
        assert "1 of 1 (100 %), 95 % interval 20.7 % to 100 %" in said

    def test_a_check_without_a_null_model_counts_and_expects_nothing(
        self, web, project
    ):
        upload_traces(project, decay_trace(100, None, 90, name="gap"))
        said = words(of(web, project, "missing-usage"))
        assert "no null model: a fact, counted, not expected" in said
        assert "Group p" not in said

    def test_more_than_chance_gives_is_said_too(self, web, project):
        falls = [
            decay_trace(200 + n, 180, 160, 140, 120, 100, 50, name=str(n))
            for n in range(4)
        ]
        upload_traces(project, *falls)
        said = words(of(web, project, "output-decay"))
        assert (
            "4 signals from 4 applicable sequences; chance alone would give less than "
            "0.01 (0 to 0): more than chance gives." in said
        )

    def test_the_outcome_is_told_upload_by_upload(self, web, project):
        for name, kind in (
            ("a.jsonl", OutcomeKind.PASS),
            ("b.jsonl", OutcomeKind.FAIL),
        ):
            made = decay_trace(
                100, 90, 80, 70, 60, name=name, outcome=Outcome(kind=kind)
            )
            upload_traces(project, made, name=name)
        said = words(of(web, project, "output-decay"))
        assert "a.jsonl Of 1 with a signal 1 passed" in said
        assert "b.jsonl Of 1 with a signal 0 passed" in said

    def test_a_project_of_others_is_not_found(self, client, project):
        client.force_login(make_member(make_project(), Role.OWNER, "eve"))
        assert of(client, project, "output-decay").status_code == 404

    def test_more_traces_cost_no_more_queries(self, web, project):
        def ask(name, *more):
            with CaptureQueriesContext(connection) as caught:
                answer = web.get(reverse(name, args=[project.slug, *more]))
            assert answer.status_code == 200
            return len(caught)

        pages = [("project-check", "tool-drift"), ("project-checks",), ("queue",)]
        upload_traces(project, *_many(3, "few"), name="few.jsonl")
        upload_traces(project, *_many(3, "some"), name="some.jsonl")
        ask("overview")
        few = [ask(*page) for page in pages]
        for n in range(3):
            upload_traces(project, *_many(20, f"many{n}"), name=f"many{n}.jsonl")
        assert [ask(*page) for page in pages] == few


def _many(count, prefix):
    fail = Outcome(kind=OutcomeKind.FAIL)
    return [
        tools_trace(*"abcdefgh", *"h" * 6, name=f"{prefix}{n}", outcome=fail)
        for n in range(count)
    ]


class TestTheAirlineFile:
    """The public file, through the page: what is published, and what it is worth."""

    @pytest.fixture
    def said(self, web, project, shared_data):
        path = shared_data / "tau_bench_results/gpt-4o-airline.json"
        upload_bytes(project, path.read_bytes(), name=path.name)
        return of(web, project, "tool-drift")

    def test_its_figures_stand_on_the_page(self, said):
        text = words(said)
        assert (
            "22 signals from 61 applicable sequences; chance alone would give about "
            "19.3 (12 to 27): within what chance gives." in text
        )
        assert "Observed 22 of 61 36.1 %" in text
        # Shuffling gave 31.6 % as published; counting all orders gives 31.70 %.
        assert "By chance alone about 19.3 (12 to 27) 31.7 % of 61" in text
        assert said.context["page"].summary.by_chance.expected / 61 == pytest.approx(
            0.316, abs=0.0015
        )
        group = re.search(r"Group p ([\d.]+) %", text)
        assert float(group.group(1)) == pytest.approx(26.5, abs=1)
        assert "chance alone gives 22 or more in" in text

    def test_four_are_rare_one_by_one(self, said):
        """Published as 5: one of them moved the other way, to a broader mix."""
        page = said.context["page"]
        assert page.rare == 4
        rare = Screening.objects.filter(answer="signal", check_slug="tool-drift")
        chances = sorted(rare.values_list("chance", flat=True))
        assert chances[3] <= 0.05 < chances[4] < 0.06
        assert page.rare_quiet == 1
        assert "Rare one by one 4 of 61" in words(said)
        assert "1 quiet answer too: the other way, or too small a change" in words(said)

    def test_what_is_queued_has_the_q_of_all_that_were_tested_this_way(self, said):
        queued = Signal.objects.filter(check_slug="tool-drift")
        assert queued.count() == 4
        for q in queued.values_list("q", flat=True):
            assert 0.43 < q < 0.44

    def test_the_lattice_shows_the_only_possible_sizes(self, said):
        page = said.context["page"]
        assert [row.size for row in page.lattice_rows] == [
            "0", "0.1308", "0.3466", "0.4774", "0.5623", "0.6931", "0.8240",
            "1.0397", "1.3863",
        ]  # fmt: skip
        at_least = [row for row in page.lattice_rows if float(row.size) >= 0.3]
        assert sum(row.narrowed for row in at_least) == 22
        assert sum(row.widened for row in at_least) == 12
        assert (
            sum(row.narrowed + row.widened for row in page.lattice_rows)
            == page.summary.counts.applicable
            == 61
        )
        drawn = embedded(said, "lattice-figure")
        assert sum(drawn["data"][0]["y"]) == 61
        assert len(drawn["data"][1]["x"]) == 17

    def test_the_picture_of_chance_holds_the_observed_number(self, said):
        drawn = embedded(said, "chance-figure")
        numbers, shares = drawn["data"][0]["x"], drawn["data"][0]["y"]
        assert sum(shares) == pytest.approx(100, abs=0.1)
        mean = sum(n * share for n, share in zip(numbers, shares, strict=True)) / 100
        assert mean == pytest.approx(19.3, abs=0.1)
        assert drawn["layout"]["annotations"][0]["text"] == "observed: 22"

    def test_the_outcome_stands_beside_it_with_its_tasks(self, said):
        text = words(said)
        assert "with a signal 1 21 22" in text
        assert "without one 12 27 39" in text
        assert "Fisher exact p = 2.16 %" in text
        assert "25 distinct tasks, so the traces are not independent" in text
        assert "trials of one task are not independent" in text
