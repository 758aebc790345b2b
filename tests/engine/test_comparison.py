"""Two sets of traces side by side: what is claimed, what is missing, what is too few."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from apps.engine.comparison import TraceFigures, compare
from apps.engine.nulls import newcombe

SLUGS = [
    "outcome", "duration", "latency", "errors", "traces-with-errors", "input-tokens",
    "output-tokens", "model-calls", "tool-calls", "tool-mix",
]  # fmt: skip


def figures(number, source, *, factor=1.0, **fields):
    calls = source.randint(4, 15)
    return TraceFigures(
        trace=number,
        **{
            "task": f"task {number % 12}",
            "passed": source.random() < 0.5,
            "duration_s": source.lognormvariate(2, 0.7) * factor,
            "latency_s": source.lognormvariate(0, 0.4) * factor,
            "calls": calls,
            "told": calls,
            "failed": sum(source.random() < 0.1 for _ in range(calls)),
            "model_calls": calls,
            "input_tokens": source.randint(1_000, 9_000),
            "output_tokens": source.randint(100, 900),
            "tools": {source.choice("abcde"): source.randint(1, 4) for _ in range(3)},
        }
        | fields,
    )


def many(count, *, seed, **fields):
    source = random.Random(seed)
    return [figures(seed * 10_000 + n, source, **fields) for n in range(count)]


def metrics(first, second, seed=1):
    return {metric.slug: metric for metric in compare(first, second, seed=seed).metrics}


def test_every_figure_is_compared_in_one_order():
    found = compare(many(20, seed=1), many(25, seed=2), seed=1)
    assert [metric.slug for metric in found.metrics] == SLUGS
    assert (found.first, found.second) == (20, 25)
    for metric in found.metrics:
        assert metric.sentence.endswith(".")
        assert metric.label.partition(" ")[0] in metric.sentence
        assert metric.test.p <= metric.q <= 1


def test_a_slower_set_is_slower_and_nothing_else():
    found = metrics(many(60, seed=1), many(60, seed=2, factor=3.0))
    for slug in ("duration", "latency"):
        assert found[slug].difference > 0
        assert found[slug].interval.low > 0
        assert found[slug].q < 0.05
    for slug in set(SLUGS) - {"duration", "latency"}:
        assert found[slug].q > 0.01


def test_the_difference_is_the_second_set_minus_the_first():
    one, other = many(30, seed=1), many(30, seed=2)
    there, back = metrics(one, other), metrics(other, one)
    for slug in set(SLUGS) - {"tool-mix"}:
        assert there[slug].difference == pytest.approx(-back[slug].difference)
        assert there[slug].first == back[slug].second


def test_a_rate_of_traces_has_the_newcombe_interval():
    one = [figures(n, random.Random(n), passed=n < 1) for n in range(22)]
    other = [figures(100 + n, random.Random(n), passed=n < 12) for n in range(39)]
    found = metrics(one, other)["outcome"]
    assert (found.first.value, found.second.value) == (1 / 22, 12 / 39)
    assert found.interval == newcombe((12, 39), (1, 22))
    assert "4.5 % (n = 22)" in found.sentence


def test_errors_are_counted_over_calls_and_drawn_by_trace():
    one = [figures(n, random.Random(n), calls=10, failed=n % 3) for n in range(30)]
    other = [figures(99 + n, random.Random(n), calls=20, failed=0) for n in range(30)]
    found = metrics(one, other)["errors"]
    assert found.first.value == pytest.approx(30 / 300)
    assert found.second.value == 0
    assert "Newcombe" in found.interval.method
    assert "calls of one trace taken as independent" in found.interval.method
    outcome = metrics(one, other)["outcome"]
    assert outcome.interval.method == "Newcombe hybrid score"
    again = metrics(one, one[:15] + many(15, seed=3))["errors"]
    assert "bootstrap" in again.interval.method


def test_what_is_missing_is_counted_and_never_zero():
    one = many(10, seed=1, input_tokens=None)[:4] + many(6, seed=2, input_tokens=500)
    other = many(8, seed=3, input_tokens=700)
    found = metrics(one, other)["input-tokens"]
    assert (found.first.value, found.first.n, found.first.missing) == (500, 6, 4)
    assert found.difference == 200
    assert "missing in 4" in found.sentence


@pytest.mark.parametrize(
    ("duration", "words"),
    [(999.6, "1,000 s"), (1_234.5, "1,234 s"), (12.34, "12.3 s"), (0.0456, "0.0456 s")],
)
def test_an_amount_is_written_out(duration, words):
    found = metrics(many(5, seed=1, duration_s=duration), many(5, seed=2))
    assert f"trace: {words} (n = 5)" in found["duration"].sentence


def test_a_set_without_a_recorded_end_has_no_share_of_failures():
    one, other = many(8, seed=1), many(9, seed=2, told=0, failed=0)
    for slug in ("errors", "traces-with-errors"):
        found = metrics(one, other)[slug]
        assert (found.first.n, found.second.n, found.second.missing) == (8, 0, 9)
        assert found.second.value is None
        assert found.q is None
    # Where one call of the set says how it ended, silence of the others tells more.
    some = [*other, *many(1, seed=3)]
    assert metrics(one, some)["errors"].second.n == 10


def test_a_recorded_zero_is_a_zero():
    found = metrics(many(5, seed=1, output_tokens=0), many(5, seed=2, output_tokens=0))
    assert found["output-tokens"].first.value == 0
    assert found["output-tokens"].difference == 0
    assert found["output-tokens"].test.p == 1


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 30), (30, 1), (0, 30)])
def test_fewer_than_two_traces_are_too_few_to_compare(first, second):
    for metric in compare(many(first, seed=1), many(second, seed=2), seed=1).metrics:
        assert metric.too_few
        assert "too few" in metric.sentence
        found = (metric.difference, metric.interval, metric.test, metric.q)
        assert found == (None, None, None, None)


def test_a_figure_that_one_set_lacks_is_too_few_while_others_are_compared():
    found = metrics(many(9, seed=1, duration_s=None), many(9, seed=2))
    assert found["duration"].too_few
    assert found["duration"].first.missing == 9
    assert found["duration"].first.value is None
    assert not found["latency"].too_few


def test_harder_tasks_are_no_difference_where_tasks_are_shared():
    source = random.Random(1)

    def side(start, easy, hard):
        easy_ones = [
            figures(start + n, source, task="easy", duration_s=source.gauss(10, 1))
            for n in range(easy)
        ]
        return easy_ones + [
            figures(start + 50 + n, source, task="hard", duration_s=source.gauss(90, 1))
            for n in range(hard)
        ]

    one, other = side(0, 30, 8), side(500, 8, 30)
    found = compare(one, other, seed=1)
    assert (found.within_tasks, found.shared_tasks) == (True, 2)
    duration = {m.slug: m for m in found.metrics}["duration"]
    assert duration.difference > 50
    assert duration.test.p > 0.05
    assert "within shared tasks" in duration.sentence
    assert "harder task" in found.notes[0]


def test_sets_of_other_tasks_are_compared_as_they_are_and_say_so():
    one = many(20, seed=1, task="a")
    other = many(20, seed=2, task="b")
    found = compare(one, other, seed=1)
    assert (found.within_tasks, found.shared_tasks) == (False, 0)
    assert "may be one of the tasks" in found.notes[0]
    assert not compare(many(9, seed=1, task=None), other, seed=1).within_tasks


def test_one_common_task_of_many_does_not_decide_for_all():
    one = [*many(20, seed=1, task="a"), *many(1, seed=3, task="x")]
    other = [*many(20, seed=2, task="b"), *many(1, seed=4, task="x")]
    found = compare(one, other, seed=1)
    assert (found.within_tasks, found.shared_tasks) == (False, 1)


def test_a_figure_that_no_shared_task_has_keeps_its_interval_and_gets_no_p():
    def side(seed):
        shared = many(6, seed=seed, task="x", duration_s=None)
        return [*shared, *many(5, seed=seed + 1, task=f"own {seed}")]

    found = compare(side(1), side(3), seed=1)
    duration = {m.slug: m for m in found.metrics}["duration"]
    assert found.within_tasks
    assert duration.interval is not None
    assert (duration.test, duration.q) == (None, None)
    assert duration.sentence.endswith(").")


def test_the_tool_mix_is_a_distance_with_the_shares_of_each_tool():
    one = [figures(n, random.Random(n), tools={"a": 3, "b": 1}) for n in range(10)]
    other = [
        figures(50 + n, random.Random(n), tools={"a": 1, "c": 3}) for n in range(9)
    ]
    found = compare(one, other, seed=1)
    mix = found.metrics[-1]
    assert mix.difference == pytest.approx(0.75)
    assert mix.test.observed == pytest.approx(0.75)
    assert mix.test.p < 0.01
    shares = {row.name: (row.first, row.second, row.change) for row in found.tools}
    assert shares == {"c": (0, 27, 0.75), "a": (30, 9, -0.5), "b": (10, 0, -0.25)}
    assert [row.name for row in found.tools] == ["c", "a", "b"]


def test_traces_without_tools_have_no_mix_and_sets_without_tools_no_shares():
    one = many(5, seed=1, tools={})
    found = compare(one, many(5, seed=2), seed=1)
    assert found.metrics[-1].too_few
    assert found.metrics[-1].first.missing == 5
    assert all(row.change is None for row in found.tools)
    assert compare(one, one, seed=1).tools == ()


def test_tools_beyond_the_first_hundred_are_compared_as_one():
    tools = {f"tool {n}": 1 + n for n in range(150)}
    other = {f"tool {n}": 1 + n for n in range(40, 150)} | {"new": 9_000}
    found = compare(many(4, seed=1, tools=tools), many(4, seed=2, tools=other), seed=1)
    assert len(found.tools) == 151
    assert found.metrics[-1].test.p <= 0.1


@given(st.randoms(use_true_random=False))
@settings(max_examples=10, deadline=None)
def test_traces_in_any_order_give_the_same_comparison(source):
    one, other = many(12, seed=1), many(9, seed=2)
    expected = compare(one, other, seed=4)
    source.shuffle(one)
    source.shuffle(other)
    assert compare(one, other, seed=4) == expected


def test_another_seed_changes_only_what_was_drawn():
    one, other = many(40, seed=1), many(40, seed=2)
    first, second = compare(one, other, seed=1), compare(one, other, seed=2)
    assert first != second
    for a, b in zip(first.metrics, second.metrics, strict=True):
        assert (a.first, a.second, a.difference) == (b.first, b.second, b.difference)


def test_a_set_beside_itself_differs_in_nothing():
    one = many(20, seed=1)
    for metric in compare(one, one, seed=1).metrics:
        assert metric.difference == 0
        assert metric.test.p == 1


def test_under_the_null_intervals_hold_zero_about_as_often_as_they_say():
    held, trials = dict.fromkeys(SLUGS[:-1], 0), 20
    for seed in range(trials):
        found = metrics(many(25, seed=2 * seed), many(25, seed=2 * seed + 1))
        for slug in held:
            interval = found[slug].interval
            held[slug] += interval.low <= 0 <= interval.high
    # No more misses than 5 % gives with probability 0.9995.
    fewest = stats.binom.ppf(0.0005, trials, 0.93)
    assert min(held.values()) >= fewest


def test_a_thousand_traces_a_side_stay_quick():
    one, other = many(1_000, seed=1), many(1_000, seed=2)
    began = time.process_time()
    compare(one, other, seed=1)
    # 1.4 s on an idle core.
    assert time.process_time() - began < 8
