"""The pages of trace sets and of comparisons: what they say, to whom, at what cost."""

from __future__ import annotations

import hashlib
import json
import re

import msgspec
import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.engine.comparison import compare
from apps.engine.trace import Outcome, OutcomeKind
from apps.traces import comparing
from apps.traces.figures_of_traces import figures_of_traces
from apps.traces.models import Trace, Upload
from apps.web.pages.compare import amount, metric_lines, signed
from tests.engine.test_comparison import many
from tests.factories import (
    decay_trace,
    tools_trace,
    upload_traces,
)
from tests.traces.set_traces import figures_of, random_trace
from tests.web.set_pages import keys, save, side_by_side, text_of

FAIL = Outcome(kind=OutcomeKind.FAIL)


@pytest.fixture(autouse=True)
def nothing_kept():
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def filled(project):
    upload_traces(project, *[random_trace(n) for n in range(40)], name="one.jsonl")
    upload_traces(project, *[random_trace(n) for n in range(90, 120)], name="two.jsonl")
    return project


class TestComparing:
    def test_the_numbers_are_those_of_the_engine(self, web, filled):
        first, second = keys()
        uploads = Upload.objects.order_by("pk")
        one, other = (
            [figures_of(row) for row in Trace.objects.filter(upload=upload)]
            for upload in uploads
        )
        document = side_by_side(web, filled, first, second, "compare-json").json()
        seed = seed_of(one, other)
        wanted = compare(one, other, seed=seed)
        assert document["metrics"] == json.loads(msgspec.json.encode(wanted.metrics))
        assert document["tools"] == json.loads(msgspec.json.encode(wanted.tools))
        page = text_of(side_by_side(web, filled, first, second)).replace("&#x27;", "'")
        for metric in wanted.metrics:
            assert metric.sentence in page
            if metric.test is not None and metric.first.value is not None:
                assert amount(metric.first.value, metric.unit) in page
                assert signed(metric.difference, metric.unit) in page
                assert metric.test.method in page
        for note in (*wanted.notes, "after Benjamini and Hochberg"):
            assert note in page

    def test_the_rates_of_outcomes_have_wilson_intervals(self, web, project):
        upload_traces(
            project,
            *[
                decay_trace(
                    n,
                    1,
                    name=f"a{n}",
                    outcome=FAIL if n > 1 else Outcome(kind=OutcomeKind.PASS),
                )
                for n in range(22)
            ],
            name="a.jsonl",
        )
        upload_traces(
            project,
            *[
                decay_trace(
                    n,
                    2,
                    name=f"b{n}",
                    outcome=FAIL if n > 11 else Outcome(kind=OutcomeKind.PASS),
                )
                for n in range(39)
            ],
            name="b.jsonl",
        )
        page = text_of(side_by_side(web, project, *keys()))
        assert "2 of 22 (9.1 %; 95 % interval 2.5 % to 27.8 %)" in page
        assert "12 of 39 (30.8 %; 95 % interval 18.6 % to 46.4 %)" in page

    def test_models_and_sets_stand_beside_each_other_too(self, web, filled):
        save(web, filled, query="?outcome=fail")
        answer = side_by_side(web, filled, "release-4", "model:m1")
        page = text_of(answer)
        assert answer.status_code == 200
        assert "model m1" in page
        save_link = reverse("set-new", args=[filled.slug]) + "?model=m1"
        assert f'href="{save_link}"' in page

    def test_traces_on_both_sides_are_said(self, web, filled):
        save(web, filled)
        page = text_of(side_by_side(web, filled, "release-4", keys()[0]))
        assert "40 traces are in both sets" in page
        assert "in both sets and count" not in text_of(
            side_by_side(web, filled, *keys())
        )

    def test_one_trace_on_both_sides_is_said_in_the_singular(self, web, filled):
        one = Trace.objects.filter(project=filled).first()
        save(web, filled, ids=str(one.pk))
        page = text_of(side_by_side(web, filled, "release-4", keys()[0]))
        assert "1 trace is in both sets and counts on both sides" in page

    def test_a_set_beside_itself_is_a_sentence(self, web, filled):
        key = keys()[0]
        page = text_of(side_by_side(web, filled, key, key))
        assert "Both sides are the same" in page
        assert side_by_side(web, filled, key, key, "compare-json").status_code == 400

    def test_too_few_traces_are_said_and_not_compared(self, web, project):
        upload_traces(project, decay_trace(9, 8, name="a"), name="a.jsonl")
        upload_traces(project, tools_trace("x", name="b"), name="b.jsonl")
        page = text_of(side_by_side(web, project, *keys()))
        assert "too few to compare" in page
        assert "records how it ended" in page

    def test_tasks_that_both_sides_have_are_said(self, web, project):
        for part in ("a", "b"):
            upload_traces(
                project,
                *[
                    decay_trace(n, 2, name=f"{part}{n}", task=f"t{n % 4}")
                    for n in range(12)
                ],
                name=f"{part}.jsonl",
            )
        page = text_of(side_by_side(web, project, *keys()))
        assert "only within the 4 tasks that both sets have" in page
        assert "within shared tasks" in page

    @pytest.mark.parametrize("page", ["compare", "compare-json", "compare-markdown"])
    def test_a_side_that_is_not_here_is_not_found(self, web, filled, page):
        for key in ("nothing", "model:none", "upload:0", "upload:x"):
            assert side_by_side(web, filled, keys()[0], key, page).status_code == 404
            assert side_by_side(web, filled, key, keys()[0], page).status_code == 404

    def test_files_ask_for_two_sides(self, web, filled):
        for page in ("compare-json", "compare-markdown"):
            answer = side_by_side(web, filled, keys()[0], "", page)
            assert answer.status_code == 400
            assert "Choose two sides" in text_of(answer)

    def test_without_traces_it_says_what_to_do(self, web, project):
        page = text_of(web.get(reverse("compare", args=[project.slug])))
        assert "Nothing to compare yet" in page
        upload_traces(project, decay_trace(9, 8))
        page = text_of(web.get(reverse("compare", args=[project.slug])))
        assert "Choose two sides" in page
        assert '<optgroup label="Models">' in page

    def test_the_same_figures_are_compared_once(self, web, filled, monkeypatch):
        calls = []

        def counted(*args, **more):
            calls.append(1)
            return compare(*args, **more)

        monkeypatch.setattr(comparing, "compare", counted)
        pages = [text_of(side_by_side(web, filled, *keys())) for _ in range(2)]
        assert len(calls) == 1
        token = re.compile(r'(value|content)="\w{64}"')
        assert token.sub("", pages[0]) == token.sub("", pages[1])
        Trace.objects.filter(outcome="pass").update(outcome="fail")
        side_by_side(web, filled, *keys())
        assert len(calls) == 2

    def test_a_sample_is_said(self, web, filled, monkeypatch):
        monkeypatch.setattr(
            comparing,
            "figures_of_traces",
            lambda traces: comparing_figures(traces, most=20),
        )
        page = text_of(side_by_side(web, filled, *keys()))
        assert "The first set has 40 traces." in page
        assert "20 of them compared" in page

    def test_the_markdown_holds_the_same(self, web, filled):
        page = text_of(side_by_side(web, filled, *keys(), "compare-markdown"))
        assert page.startswith("# Two sets of traces side by side")
        assert "Median duration of a trace" in page
        assert "| `search` |" in page


def comparing_figures(traces, *, most):
    return figures_of_traces(traces, most=most)


def seed_of(one, other) -> int:
    def ordered(side):
        rows = Trace.objects.filter(pk__in=[f.trace for f in side])
        order = {
            pk: n
            for n, pk in enumerate(
                rows.order_by("content_hash", "pk").values_list("pk", flat=True)
            )
        }
        return sorted(side, key=lambda f: order[f.trace])

    read = msgspec.json.encode((comparing.COMPARING, ordered(one), ordered(other)))
    return int(hashlib.sha256(read).hexdigest()[:12], 16)


@pytest.mark.parametrize("page", ["sets", "compare", "trace-set", "set-new"])
def test_twice_as_much_takes_as_many_queries(web, project, page):
    asked = []
    for first, last in ((0, 10), (10, 20)):
        upload_traces(
            project,
            *[random_trace(n) for n in range(first, last)],
            name=f"{first}.jsonl",
        )
        save(web, project, name=f"Set {first}")
        upload_traces(
            project,
            *[random_trace(n) for n in range(100 + first, 100 + last)],
            name=f"{first}-b.jsonl",
        )
        slug = ["set-0"] if page == "trace-set" else []
        url = reverse(page, args=[project.slug, *slug])
        if page == "compare":
            url += "?first=model:m1&second=model:m2"
        web.get(url)
        with CaptureQueriesContext(connection) as queries:
            assert web.get(url).status_code == 200
        asked.append(len(queries))
    assert asked[0] == asked[1] <= 25


def test_the_difference_that_a_p_is_about_stands_beside_it():
    found = compare(many(24, seed=1), many(24, seed=2, model_calls=9), seed=3)
    assert found.within_tasks
    lines = {line.label: line for line in metric_lines(found)}
    [calls] = [one for one in found.metrics if one.slug == "model-calls"]
    line = lines[calls.label]
    assert line.tested == signed(calls.test.observed, calls.unit)
    assert line.interval_method == calls.interval.method
    assert "; within shared tasks " in calls.sentence
    assert lines["Tool mix"].tested == ""
    apart = msgspec.structs.replace(found, within_tasks=False)
    assert {line.tested for line in metric_lines(apart)} == {""}
