"""The pages of trace sets: making them, what they say, the baseline, who may what."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from apps.accounts.permissions import Role
from apps.pipeline.baselines import make_baseline
from apps.traces.models import Trace, TraceSet, Upload
from apps.traces.operations import allow_erasing_history
from tests.factories import NOW, make_member, make_project, upload_traces
from tests.traces.set_traces import random_trace
from tests.web.hostile import HTML
from tests.web.set_pages import keys, save, side_by_side, text_of
from tests.web.visiting import assert_inert


@pytest.fixture
def filled(project):
    upload_traces(project, *[random_trace(n) for n in range(40)], name="one.jsonl")
    upload_traces(project, *[random_trace(n) for n in range(90, 120)], name="two.jsonl")
    return project


class TestMakingASet:
    def test_the_list_of_traces_leads_to_a_set_of_what_it_shows(self, web, filled):
        page = text_of(web.get(reverse("traces", args=[filled.slug]) + "?outcome=fail"))
        link = reverse("set-new", args=[filled.slug]) + "?outcome=fail"
        assert f'href="{link}"' in page
        count = Trace.objects.filter(outcome="fail").count()
        page = text_of(web.get(link))
        assert f"{count} traces" in page
        assert "Outcome fail." in page
        answer = save(web, filled, query="?outcome=fail")
        found = TraceSet.objects.get()
        assert answer["Location"] == reverse(
            "trace-set", args=[filled.slug, found.slug]
        )
        assert found.trace_count == count
        page = text_of(web.get(answer["Location"]))
        assert f"{count} traces frozen as a set" in page
        assert "outcome fail" in page

    def test_ids_are_counted_before_they_are_saved(self, web, filled):
        ids = list(Trace.objects.values_list("pk", flat=True)[:3])
        typed = f"{ids[0]}, {ids[1]}\n{ids[2]} 999999999"
        answer = save(web, filled, ids=typed, act="count")
        assert answer.status_code == 200
        assert '<p class="lead">3 traces</p>' in text_of(answer)
        assert not TraceSet.objects.exists()
        assert save(web, filled, ids=typed).status_code == 302
        assert TraceSet.objects.get().trace_count == 3

    @pytest.mark.parametrize(
        ("fields", "sentence"),
        [
            ({"name": ""}, "required"),
            ({"name": "x" * 81}, "at most 80"),
            ({"ids": "1, two"}, "“two” is no trace id"),
            ({"ids": " ".join(map(str, range(1_001)))}, "At most 1,000 ids"),
            ({"ids": "999999999"}, "No trace matches"),
        ],
    )
    def test_what_cannot_be_saved_is_said_and_kept(self, web, filled, fields, sentence):
        answer = save(web, filled, **fields)
        assert answer.status_code == 422
        page = text_of(answer)
        assert sentence in page
        assert not TraceSet.objects.exists()
        assert str(fields.get("name", "Release 4")) in page

    def test_a_name_is_taken_once(self, web, filled):
        save(web, filled)
        answer = save(web, filled, name="release 4")
        assert answer.status_code == 422
        assert "here already" in text_of(answer)

    def test_a_hostile_name_is_text_wherever_it_stands(self, web, filled):
        save(web, filled, name=HTML[:80], note=HTML)
        slug = TraceSet.objects.get().slug
        for name in ("trace-set", "set-delete"):
            assert_inert(text_of(web.get(reverse(name, args=[filled.slug, slug]))))
        assert_inert(text_of(web.get(reverse("sets", args=[filled.slug]))))
        answer = side_by_side(web, filled, slug, keys()[0])
        assert answer.status_code == 200
        assert_inert(text_of(answer))
        markdown = text_of(
            side_by_side(web, filled, slug, keys()[0], "compare-markdown")
        )
        [line] = [one for one in markdown.splitlines() if one.startswith("- First")]
        assert re.match(r"- First: (`+) ?[^`]*<script>.*\1, 70 traces compared", line)


class TestOneSet:
    def test_it_lists_its_traces_page_by_page(self, web, filled):
        save(web, filled)
        page = reverse("trace-set", args=[filled.slug, "release-4"])
        seen, following = set(), ""
        for _ in range(2):
            text = text_of(web.get(page + following))
            seen |= set(re.findall(rf"/projects/{filled.slug}/traces/(\d+)/", text))
            found = re.search(r'href="(\?after=\d+)" rel="next"', text)
            following = found.group(1) if found else ""
        assert following == ""
        assert seen == {str(pk) for pk in Trace.objects.values_list("pk", flat=True)}

    def test_it_says_which_traces_are_gone(self, web, filled):
        save(web, filled)
        allow_erasing_history()
        Trace.objects.filter(upload=Upload.objects.first()).delete()
        page = text_of(web.get(reverse("trace-set", args=[filled.slug, "release-4"])))
        assert "40 of 70 traces have been removed since." in page
        assert "40 removed" in text_of(web.get(reverse("sets", args=[filled.slug])))

    def test_it_is_renamed_and_deleted_after_a_question(self, web, filled):
        save(web, filled)
        save(web, filled, name="Other")
        rename = reverse("set-rename", args=[filled.slug, "release-4"])
        page = text_of(
            web.post(rename, {"name": "Release 5", "note": "n"}, follow=True)
        )
        assert "<h1>Release 5</h1>" in page
        assert web.post(rename, {"name": "other"}).status_code == 409
        assert web.post(rename, {"name": ""}).status_code == 400
        delete = reverse("set-delete", args=[filled.slug, "release-4"])
        assert "70 traces stay" in text_of(web.get(delete))
        assert TraceSet.objects.count() == 2
        assert "still here" in text_of(web.post(delete, follow=True))
        assert Trace.objects.count() == 70
        assert TraceSet.objects.get().name == "Other"

    def test_without_sets_the_list_says_how_they_are_made(self, web, project):
        page = text_of(web.get(reverse("sets", args=[project.slug])))
        assert "No trace set yet" in page

    def test_a_set_that_is_not_here_is_not_found(self, web, filled, owner):
        save(web, filled)
        other = make_project(owner=owner, name="Other")
        for name in ("trace-set", "set-delete"):
            url = reverse(name, args=[other.slug, "release-4"])
            assert web.get(url).status_code == 404
        for name in ("set-rename", "set-baseline", "set-delete"):
            url = reverse(name, args=[other.slug, "release-4"])
            assert web.post(url, {"name": "x", "act": "choose"}).status_code == 404


class TestBaseline:
    def test_choosing_it_shows_how_far_it_is_and_then_what_is_compared(
        self, web, filled
    ):
        save(web, filled)
        act = reverse("set-baseline", args=[filled.slug, "release-4"])
        page = text_of(web.post(act, {"act": "choose"}, follow=True))
        assert "0 of 70 traces" in page
        assert "becoming the baseline" in text_of(
            web.get(reverse("sets", args=[filled.slug]))
        )
        url = reverse("trace-set", args=[filled.slug, "release-4"])
        part = text_of(web.get(url, headers={"HX-Request": "true"}))
        assert part.lstrip().startswith('<section id="baseline"')
        assert 'hx-trigger="every 2s"' in part
        make_baseline(trace_set_id=TraceSet.objects.get().pk, clock=lambda: NOW)
        part = text_of(web.get(url, headers={"HX-Request": "true"}))
        assert "hx-trigger" not in part
        assert "the baseline of this project" in part
        assert "too large, never too small" in part
        page = text_of(web.get(reverse("set-delete", args=[filled.slug, "release-4"])))
        assert "It is the baseline." in page
        page = text_of(web.post(act, {"act": "clear"}, follow=True))
        assert "no baseline now" in page
        assert not TraceSet.objects.filter(is_baseline=True).exists()

    def test_a_reviewer_makes_sets_and_no_baseline(self, client, web, filled):
        save(web, filled)
        client.force_login(make_member(filled, Role.REVIEWER, "rita"))
        act = reverse("set-baseline", args=[filled.slug, "release-4"])
        assert client.post(act, {"act": "choose"}).status_code == 403
        url = reverse("trace-set", args=[filled.slug, "release-4"])
        assert "Only a maintainer or higher" in text_of(client.get(url))
        assert save(client, filled, name="Mine").status_code == 302
        TraceSet.objects.filter(slug="release-4").update(
            is_baseline=True,
            baseline={
                "key": "k",
                "latencies": {"samples": {}, "medians": {}, "scores": []},
                "failures": {"counts": {}, "scores": []},
            },
        )
        delete = reverse("set-delete", args=[filled.slug, "release-4"])
        assert client.post(delete).status_code == 403
        assert TraceSet.objects.count() == 2

    def test_a_viewer_sees_and_makes_nothing(self, client, web, filled):
        save(web, filled)
        client.force_login(make_member(filled, Role.VIEWER, "vera"))
        assert save(client, filled, name="Mine").status_code == 403
        page = text_of(client.get(reverse("traces", args=[filled.slug])))
        assert "Make a set" not in page
        url = reverse("trace-set", args=[filled.slug, "release-4"])
        assert "make and change trace sets" in text_of(client.get(url))
