"""The pages of shadows and of the line-up, as people use them."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.permissions import Role
from apps.engine.check import Parameter
from apps.engine.checks.output_decay import OutputDecay
from apps.review.models import Signal
from apps.review.transitions import Verdict
from apps.screening import shadows as shadows_module
from apps.screening.models import Adoption, RegressionCase, Shadow
from apps.traces.models import Trace
from apps.web.pages.parameter_fields import typed_values
from tests.adopting import (
    STEEP,
    adopt,
    caught_up,
    decide,
    make_regression_case,
    shadowed,
    upload_runs,
)
from tests.factories import NOW, decay_trace, make_member, upload_traces
from tests.web.hostile import HTML
from tests.web.visiting import assert_inert, text, url


@pytest.fixture
def two(project):
    upload_runs(project, "falling", "steep")
    return project


class TestTheForm:
    """Every parameter with its range and its value; what is wrong is said in place."""

    def test_it_shows_each_parameter_as_it_counts_now(self, web, two):
        page = text(web.get(url(two, "shadows", "output-decay")))
        for limit in OutputDecay().limits:
            assert limit.label in page
        assert 'name="last_percent" value="60" min="1" max="99" step="1"' in page
        assert "5 to 1000 calls. Counts now: 5" in page

    @pytest.mark.parametrize(
        ("typed", "sentence"),
        [
            ("2", "must be at least 5 and at most 1,000"),
            ("6.5", "must be a whole number"),
            ("many", "must be a number"),
            ("1_0", "must be a number"),
            ("nan", "must be a number"),
            ("1e999", "must be a number"),
            ("", "must be a number"),
        ],
    )
    def test_a_value_out_of_range_is_refused_in_a_sentence(
        self, web, two, typed, sentence
    ):
        values = {"min_calls": typed, "last_percent": "41", "max_chance": "0.05"}
        answer = web.post(url(two, "shadows", "output-decay"), values)
        assert answer.status_code == 422
        page = text(answer)
        assert sentence in page
        assert 'name="last_percent" value="41"' in page
        assert not Shadow.objects.exists()

    def test_the_key_that_counts_is_refused_in_a_sentence(self, web, two):
        values = {"min_calls": "5", "last_percent": "60", "max_chance": "0.05"}
        answer = web.post(url(two, "shadows", "output-decay"), values)
        assert answer.status_code == 422
        assert "counts already" in text(answer)

    def test_a_valid_one_begins_a_shadow_and_shows_it(self, web, two):
        values = {"min_calls": "5", "last_percent": "30", "max_chance": "0.05"}
        answer = web.post(url(two, "shadows", "output-decay"), values)
        shadow = Shadow.objects.get()
        assert answer["Location"] == url(two, "shadow", "output-decay", shadow.pk)
        assert shadow.parameters["last_percent"] == 30
        again = web.post(url(two, "shadows", "output-decay"), values, follow=True)
        assert "being tried already" in text(again)
        assert Shadow.objects.count() == 1

    def test_names_are_split_at_lines_and_commas(self):
        class Named:
            limits = (Parameter("writing", "Tools that write", high=3, names=True),)

        values, errors = typed_values(Named(), {"writing": "a, b\n\n c ,"})
        assert (values, errors) == ({"writing": ["a", "b", "c"]}, {})
        _, errors = typed_values(Named(), {"writing": "a,b,c,d"})
        assert errors == {"writing": "“Tools that write” may hold at most 3 names."}

    def test_a_newer_version_is_offered_and_chosen_by_its_number(
        self, web, two, monkeypatch
    ):
        newer = OutputDecay()
        object.__setattr__(newer, "version", 2)
        monkeypatch.setattr(
            shadows_module, "versions_of", lambda slug: (newer, OutputDecay())
        )
        page = text(web.get(url(two, "project-check", "output-decay")))
        assert "Version 2 is available." in page
        assert url(two, "shadows", "output-decay") + "?version=2" in page
        page = text(web.get(url(two, "shadows", "output-decay") + "?version=2"))
        assert '<option value="2" selected>version 2' in page
        assert '<input type="hidden" name="version" value="2">' in page

    def test_a_reviewer_is_told_who_may_do_it(self, two):
        client = Client()
        client.force_login(make_member(two, Role.REVIEWER, "rena"))
        page = text(client.get(url(two, "shadows", "output-decay")))
        assert "Only a maintainer or higher may change which checks count" in page
        assert "<form" not in page.split('id="try"')[1].split("</section>")[0]

    def test_a_check_that_is_not_here_is_not_found(self, web, two):
        assert web.get(url(two, "shadows", "no-such-check")).status_code == 404


class TestTheResult:
    """Live while it runs, then both keys side by side with the decisions taken."""

    def test_while_it_runs_it_asks_for_itself_again(self, web, two):
        web.post(
            url(two, "shadows", "output-decay"),
            {"min_calls": "5", "last_percent": "30", "max_chance": "0.05"},
        )
        address = url(two, "shadow", "output-decay", Shadow.objects.get().pk)
        page = text(web.get(address))
        assert f'hx-get="{address}"' in page
        assert f'href="{address}"' in page
        assert "0 of 2 traces are answered." in page
        part = text(web.get(address, headers={"HX-Request": "true"}))
        assert "<html" not in part
        assert part.startswith('<div id="shadow"')

    def test_it_can_be_cancelled(self, web, two):
        web.post(
            url(two, "shadows", "output-decay"),
            {"min_calls": "5", "last_percent": "30", "max_chance": "0.05"},
        )
        shadow = Shadow.objects.get()
        answer = web.post(
            url(two, "shadow-cancel", "output-decay", shadow.pk), follow=True
        )
        assert "Cancelled. What it has answered stays." in text(answer)
        shadow.refresh_from_db()
        assert shadow.state == "cancelled"

    def test_it_says_what_appears_vanishes_and_persists(self, web, two):
        shadow = shadowed(two, last_percent=30)
        page = text(web.get(url(two, "shadow", "output-decay", shadow.pk)))
        assert 'hx-get="' not in page
        for title, count in (("Appear", 0), ("Vanish", 1), ("Persist", 1)):
            assert f'{title} <span class="n">{count}</span>' in page
        assert "no decisions yet" in page
        assert "falling" in page.split('id="changes"')[1]

    def test_it_warns_of_confirmed_signals_that_would_be_lost(self, web, two, reviewer):
        decide("falling", reviewer, Verdict.CONFIRM)
        decide("steep", reviewer, Verdict.DISMISS, "converged")
        shadow = shadowed(two, last_percent=30)
        address = url(two, "shadow", "output-decay", shadow.pk)
        page = text(web.get(address + "?show=vanish"))
        assert "You would lose 1 confirmed signal" in page
        assert "1 of 2 confirmed" in page
        assert "0 of 1 confirmed" in page
        page = text(web.get(address + "?show=persist"))
        assert "1 dismissed as normal convergence" in page
        assert "dismiss: normal convergence" in page

    def test_long_lists_go_on_on_another_page(self, web, project):
        upload_traces(
            project, *(decay_trace(*STEEP, name=f"run {n:02}") for n in range(30))
        )
        shadow = shadowed(project, last_percent=30)
        address = url(project, "shadow", "output-decay", shadow.pk)
        first = text(web.get(address + "?show=persist"))
        query = first.split('rel="next"')[0].rsplit('href="', 1)[1].split("#")[0]
        second = text(web.get(address + query.replace("&amp;", "&")))
        names = {f"run {n:02}" for n in range(30)}
        shown = [
            {name for name in names if name in page.split('id="changes"')[1]}
            for page in (first, second)
        ]
        assert [len(some) for some in shown] == [25, 5]
        assert shown[0] | shown[1] == names

    def test_a_shadow_is_found_under_its_own_check_only(self, web, two):
        shadow = shadowed(two, last_percent=30)
        assert web.get(url(two, "shadow", "tool-drift", shadow.pk)).status_code == 404

    def test_it_takes_the_same_queries_for_many_signals(self, web, two):
        def queries() -> int:
            shadow = shadowed(two, last_percent=30)
            address = url(two, "shadow", "output-decay", shadow.pk)
            web.get(address)
            with CaptureQueriesContext(connection) as seen:
                web.get(address)
            return len(seen)

        few = queries()
        upload_traces(
            two,
            *(decay_trace(*STEEP, name=f"more {n}") for n in range(12)),
            name="more.jsonl",
        )
        assert queries() == few


class TestAdopting:
    """One click, with the history and the way back on the next page."""

    def adopt(self, web, project, **fields):
        shadow = Shadow.objects.latest("pk")
        values = {"seen": "1", "note": "Too many.", **fields}
        address = url(project, "shadow-adopt", "output-decay", shadow.pk)
        return web.post(address, values, follow=True)

    def test_it_says_what_happens_next(self, web, two):
        shadowed(two, last_percent=30)
        page = text(self.adopt(web, two))
        assert "Adopted. 2 traces are brought up to date in the background" in page
        assert "Catching up: 2 of 2 traces are not yet answered" in page
        assert "Too many." in page
        assert "Version 1 adopted" in page
        assert "olga" in page
        caught_up(two)
        assert Signal.objects.filter(state="open").count() == 1
        page = text(web.get(url(two, "shadows", "output-decay")))
        assert "Catching up" not in page

    def test_the_earlier_key_is_adopted_again_from_the_history(self, web, two):
        adopt(two, last_percent=30)
        page = text(web.get(url(two, "shadows", "output-decay")))
        assert "Adopt again" in page
        answer = web.post(
            url(two, "check-adopt", "output-decay"),
            {"number": "1", "seen": "2"},
            follow=True,
        )
        assert "Adopted." in text(answer)
        last = Adoption.objects.filter(check_slug="output-decay").latest("number")
        assert (last.number, last.parameters["last_percent"]) == (3, 60)

    def test_a_key_that_fails_a_case_is_blocked_with_its_name(self, web, two, reviewer):
        adopt(two, last_percent=30)
        dismissed = decide("steep", reviewer, Verdict.DISMISS, "converged")
        case = make_regression_case(two, dismissed)
        RegressionCase.objects.update(name="Ends well")
        shadowed(two, last_percent=50)
        answer = self.adopt(web, two, seen="2")
        assert answer.status_code == 409
        page = text(answer)
        assert "1 regression case would be a signal again" in page
        assert "retire it first" in page
        assert f"#case-{case.pk}" in page
        assert "Ends well" in page
        assert Adoption.objects.filter(check_slug="output-decay").count() == 2
        web.post(url(two, "case-retire", case.pk))
        assert "Adopted." in text(self.adopt(web, two, seen="2"))

    def test_one_who_saw_an_older_history_is_told_to_look_again(self, web, two):
        shadowed(two, last_percent=30)
        adopt(two, last_percent=40)
        answer = self.adopt(web, two, seen="1")
        assert answer.status_code == 409
        assert "since you opened the page" in text(answer)

    def test_a_number_that_is_not_in_the_history_is_refused(self, web, two):
        for number in ("99", "", "x", "9" * 30):
            answer = web.post(
                url(two, "check-adopt", "output-decay"), {"number": number, "seen": "1"}
            )
            assert answer.status_code == 400
            assert "not in the history" in text(answer)

    def test_a_check_is_paused_and_let_go_on_from_its_page(self, web, two):
        address = url(two, "check-pause", "output-decay")
        page = text(web.post(address, {"act": "pause"}, follow=True))
        assert "Paused. 2 traces are brought up to date" in page
        caught_up(two)
        assert not Signal.objects.filter(state="open").exists()
        page = text(web.get(url(two, "project-check", "output-decay")))
        assert "nothing of it is queued" in page
        assert web.post(address, {"act": "pause"}).status_code == 409
        page = text(web.post(address, {"act": "resume"}, follow=True))
        assert "Resumed." in page
        caught_up(two)
        assert Signal.objects.filter(state="open").count() == 2

    def test_the_part_of_the_line_up_is_asked_for_again_while_it_catches_up(
        self, web, two
    ):
        Trace.objects.update(screened_as="")
        address = url(two, "shadows", "output-decay")
        page = text(web.get(url(two, "project-check", "output-decay")))
        assert f'hx-get="{address}"' in page
        part = text(web.get(address, headers={"HX-Request": "true"}))
        assert part.startswith('<section id="line-up"')
        assert "2 of 2 traces" in part


def test_what_people_write_about_an_adoption_is_text(web, two):
    shadow = shadowed(two, last_percent=30)
    web.post(
        url(two, "shadow-adopt", "output-decay", shadow.pk), {"seen": "1", "note": HTML}
    )
    for name in ("shadows", "project-check"):
        assert_inert(web.get(url(two, name, "output-decay")).content.decode())
    assert Adoption.objects.filter(adopted_at__gt=NOW).exists()


@pytest.mark.parametrize(
    ("stored", "sentence"),
    [
        (
            {"parameters": {"last_percent": 150, "min_calls": 5, "max_chance": 0.05}},
            "cannot be used by this release of Evalsite (“last_percent”): those shown",
        ),
        ({"parameters": {"strength": 3}}, "(“strength”): those shown here count"),
        ({"parameters": [7]}, "(all of them): those shown here count"),
        (
            {"check_version": 99},
            "Version 99 was adopted and is not part of this release of Evalsite",
        ),
    ],
)
def test_what_was_adopted_and_cannot_count_any_more_is_said_on_its_page(
    web, two, stored, sentence
):
    adopt(two, last_percent=30)
    page = text(web.get(url(two, "project-check", "output-decay")))
    assert "It is not what was adopted." not in page
    last = Adoption.objects.filter(check_slug="output-decay").latest("number")
    for name, value in {"pk": None, "number": last.number + 1, **stored}.items():
        setattr(last, name, value)
    last.save(force_insert=True)
    for name in ("project-check", "shadows"):
        page = text(web.get(url(two, name, "output-decay")))
        assert "It is not what was adopted." in page
        assert sentence in page
