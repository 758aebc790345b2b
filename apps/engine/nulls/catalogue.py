"""Every null model and interval of the product as one table that a page can show."""

from __future__ import annotations

from typing import Final

import msgspec


class NullModel(msgspec.Struct, frozen=True):
    """One method: what it is for, what it assumes, where it is from, who uses it.

    `functions` names what computes it (in `apps.engine.nulls`), `checked` what its
    tests compare it with.
    """

    name: str
    functions: tuple[str, ...]
    assumptions: str
    source: str
    used: str
    checked: str


NULL_MODELS: Final[tuple[NullModel, ...]] = (
    NullModel(
        name="Falling order, with ties",
        functions=("falling_order", "falling_order_floor"),
        assumptions="Exchangeable values: every order of them is equally likely.",
        source="Counting: the product of t! over the ties, by n!.",
        used="Output-length decay",
        checked="Enumeration of all orders up to 8 values.",
    ),
    NullModel(
        name="Mann-Kendall trend",
        functions=("mann_kendall",),
        assumptions="Exchangeable values. Beyond 10 values a normal approximation.",
        source="Mann 1945; Kendall 1975; MacMahon 1916 for ties.",
        used="Output-length decay, as a second figure that allows exceptions",
        checked="Enumeration up to 8 values; scipy.stats.kendalltau.",
    ),
    NullModel(
        name="Any falling run inside a longer sequence",
        functions=("any_falling_run",),
        assumptions="Exchangeable values without ties.",
        source="Exact dynamic programme over relative rank and length of the run.",
        used="Output-length decay: the price of searching for the best part",
        checked="Enumeration up to 8 values.",
    ),
    NullModel(
        name="Falling order of dependent values",
        functions=("sensitivity", "falling_under_autoregression"),
        assumptions="Stationary Gaussian autoregression of order 1.",
        source="Iterated quadrature of the joint density; seeded simulation.",
        used="Output-length decay: how much dependence may matter",
        checked="A second quadrature in the tests, and simulation.",
    ),
    NullModel(
        name="Shuffled tool calls",
        functions=("drift_null", "entropy", "entropy_lattice"),
        assumptions="Exchangeable calls: every order of the same calls is equally likely.",
        source="Shannon 1948; multivariate hypergeometric counting of both windows.",
        used="Tool-distribution drift",
        checked="Enumeration of all orders of 8 calls; scipy.stats.entropy.",
    ),
    NullModel(
        name="Shuffled tool calls that keep their transitions",
        functions=("transition_tail",),
        assumptions="Every order with the same first call and transitions is equally "
        "likely. Listed where few, else drawn with a seed and a standard error.",
        source="Kandel, Matias, Unger and Winkler 1996; Wilson 1996; Phipson and "
        "Smyth 2010.",
        used="Tool-distribution drift, as the stricter figure",
        checked="Enumeration; a chi-square test of the drawn orders.",
    ),
    NullModel(
        name="Failures in a row",
        functions=("streak_chance",),
        assumptions="Exchangeable calls: the same failures could have come in any order.",
        source="Feller 1968, chapter II; Joag-Dev and Proschan 1983.",
        used="Error streak",
        checked="Enumeration up to 10 calls; the exact sum beyond 1,000.",
    ),
    NullModel(
        name="Fisher's exact test",
        functions=("fisher_exact", "association"),
        assumptions="Independent traces; the margins of the table are given.",
        source="Fisher 1935; Freeman and Halton 1951.",
        used="Outcome beside signal, groups of traces, latest period",
        checked="scipy.stats.fisher_exact.",
    ),
    NullModel(
        name="Wilson interval",
        functions=("wilson",),
        assumptions="Independent trials with one rate.",
        source="Wilson 1927.",
        used="Every rate: fire rate, precision, outcome",
        checked="statsmodels proportion_confint.",
    ),
    NullModel(
        name="Clopper-Pearson interval",
        functions=("clopper_pearson", "binomial_at_least"),
        assumptions="Independent trials with one rate.",
        source="Clopper and Pearson 1934; Abramowitz and Stegun 1964, 26.5.8.",
        used="Rates that must be covered at least as often as said",
        checked="statsmodels proportion_confint; scipy.stats.binom.",
    ),
    NullModel(
        name="Newcombe interval of a difference",
        functions=("newcombe",),
        assumptions="Two independent samples of independent trials.",
        source="Newcombe 1998, method 10.",
        used="Two rates side by side",
        checked="statsmodels confint_proportions_2indep.",
    ),
    NullModel(
        name="How many of many tests fire",
        functions=("count_null",),
        assumptions="Independent tests, given their null models.",
        source="Poisson-binomial distribution; Volkova 1996 and Hong 2013 beyond a "
        "variance of 2,500 or 5,000 different chances.",
        used="Signals that chance alone would give, over everything screened",
        checked="Enumeration; scipy.stats.binom and poisson_binom.",
    ),
    NullModel(
        name="False discovery rate",
        functions=("benjamini_hochberg",),
        assumptions="Independent or positively dependent tests.",
        source="Benjamini and Hochberg 1995; Benjamini and Yekutieli 2001.",
        used="Order of the queue, groups, comparisons",
        checked="statsmodels multipletests.",
    ),
    NullModel(
        name="Permutation test of two samples",
        functions=("permutation_test",),
        assumptions="Exchangeable sides, within blocks and by whole clusters where "
        "given. Listed up to 5,000 splits, else drawn with a seed.",
        source="Fisher 1935; Pitman 1937; Phipson and Smyth 2010.",
        used="Two sets of traces side by side",
        checked="Enumeration; scipy.stats.permutation_test.",
    ),
    NullModel(
        name="Bootstrap interval of a difference",
        functions=("bootstrap_difference",),
        assumptions="Independent traces; too narrow below about 20 on a side.",
        source="Efron 1979, percentile method.",
        used="Differences of means, medians and ratios of two sets",
        checked="scipy.stats.bootstrap.",
    ),
    NullModel(
        name="Latency beside a baseline",
        functions=("latency_baseline", "latency_shift"),
        assumptions="By call: calls of one name are exchangeable. By trace: this trace "
        "is exchangeable with those of the baseline. Each of these is ranked without "
        "itself, this one among all: near to exact.",
        source="Wilcoxon 1945; van Elteren 1960; Besag and Clifford 1991.",
        used="Latency shift",
        checked="scipy.stats.mannwhitneyu and permutation_test.",
    ),
    NullModel(
        name="Errors beside a baseline",
        functions=("error_baseline", "error_shift"),
        assumptions="By call: failures fall on the calls of one name at random. By "
        "trace: this trace is exchangeable with those of the baseline. Each of these is "
        "set against the others, this one against all: near to exact.",
        source="Fisher 1935, the sum of hypergeometric counts over the names.",
        used="Error-rate shift",
        checked="scipy.stats.hypergeom and fisher_exact.",
    ),
)
