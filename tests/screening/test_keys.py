"""The names under which answers are stored: one that changes orphans every answer."""

from __future__ import annotations

import pytest

from apps.engine.check import (
    Answer,
    Basis,
    Check,
    Evidence,
    Judgement,
    Level,
    configured,
    hash_of_inputs,
)
from apps.engine.checks import CHECKS, by_slug
from apps.engine.contracts import definition_check
from apps.screening.answering import answers_of
from apps.screening.lineup import key_of, parameters_hash
from tests.engine.traces import outputs_trace, tools_trace, trace_of

DEFAULTS = {
    "output-decay": "6d0aed3f5a139190",
    "tool-drift": "3b4db84a1ed3ccd6",
    "repeated-call": "cb41dbbda7580b10",
    "no-progress": "83bc3ea1626167c1",
    "repeated-side-effect": "8e13cb7f2626accd",
    "error-streak": "44aed05b1fd9232a",
    "retry-storm": "455594d1a0cf9dbc",
    "truncation": "0dc4de954cfba126",
    "tool-not-offered": "44136fa355b3678a",
    "handoff-ping-pong": "154bc0ea6330157f",
    "final-answer": "44136fa355b3678a",
    "unsupported-claim": "7de3fa3dc92e69dd",
    "latency-shift": "1f1b99237049bb89",
    "error-rate-shift": "54d3ad1146f0bd75",
    "duplicate-calls": "e43b1427317ef73d",
    "unused-result": "52e816fdc979b240",
    "input-growth": "26fd88982659191e",
    "single-tool": "93dcb4bf610df91d",
    "no-self-check": "8e13cb7f2626accd",
    "missing-usage": "44136fa355b3678a",
}
NO_DELETE = {"operator": "never", "select": {"name": "delete"}}
BOOKING = {"value": "XK7Q2P", "probe": "booking", "normaliser": "id"}


def test_the_parameters_of_every_check_keep_the_name_of_their_stored_answers():
    assert {check.slug: parameters_hash(check) for check in CHECKS} == DEFAULTS


@pytest.mark.parametrize(
    ("slug", "changes", "name"),
    [
        ("output-decay", {"last_percent": 30}, "d3f3814072d293f0"),
        ("tool-drift", {"collapse_at": 0.25, "window": 5}, "d693b3d5e00c198e"),
        ("no-self-check", {"writing_tools": ["zap", "rub_out"]}, "96a071e19886aeb3"),
        ("latency-shift", {"slower_at": 2}, "2541fd959701cd90"),
    ],
)
def test_changed_parameters_keep_their_name_too(slug, changes, name):
    assert parameters_hash(configured(by_slug(slug), changes)) == name


@pytest.mark.parametrize(
    ("kind", "spec", "name"),
    [
        ("contract", NO_DELETE, "124f340e23d02b27"),
        ("planted-fact", BOOKING, "97993e21719ec3c1"),
    ],
)
def test_a_definition_is_stored_under_the_name_of_its_spec(kind, spec, name):
    check = definition_check(kind=kind, slug="own", label="Own", version=3, spec=spec)
    assert key_of(check) == (f"{kind}-own", 3, name)


class OfItsOwn:
    """A check on no base at all: what the protocol asks for and nothing else."""

    slug = "of-its-own"
    label = "Of its own"
    version = 7
    level = Level.TELEMETRY
    basis = Basis.FACT
    observes = "How many steps there are."
    null_model = "None: they are counted."
    material_when = "There is one."
    next_step = "Nothing is queued."
    needs_bodies = False
    parameters = {"a": 1}
    limits = ()

    def run(self, trace):
        said = Judgement(Answer.QUIET, "counted", "Counted", "They are counted.")
        evidence = Evidence(scope="trace", length=len(trace.steps))
        yield said.with_evidence(evidence, hash_of_inputs(len(trace.steps)))


class TestACheckOnNoBase:
    """Whatever satisfies the protocol is screened like any other."""

    def test_it_answers_and_its_parameters_have_a_name(self):
        made: Check = OfItsOwn()
        for trace in (trace_of(), outputs_trace(3, 2, 1), tools_trace(*"abc")):
            (found,) = answers_of(made, trace)
            assert found.evidence.length == len(trace.steps)
        assert key_of(made) == ("of-its-own", 7, parameters_hash(made))

    def test_it_has_no_parameters_to_change(self):
        made = OfItsOwn()
        assert configured(made, {}) is made
        with pytest.raises(ValueError, match="“Of its own” has no parameter “most”"):
            configured(made, {"most": 3})
