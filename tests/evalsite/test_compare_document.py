"""The document of `manage.py compare`, field by field."""

from __future__ import annotations

import pytest

from tests.evalsite.comparing import MEMORY, desk_in, document, text_in


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("desk")
    contracts = text_in(tmp_path_factory.mktemp("asked") / "agents.yaml", MEMORY)
    return document(desk_in(folder), agents=contracts)


SHARE = {"k", "n", "low", "high"}
FIELDS = {
    "": {
        *("evalsite_compare", "compared_by", "traces", "masking", "outcomes"),
        *("agents", "tasks", "gaps", "patterns", "unread", "remarks"),
    },
    "task": {
        *("task", "key", "named_by", "trials", "outcome", "consistency", "agents"),
        *("forks", "fork_count", "first_fork", "decisive", "detours", "statements"),
        *("masking", "is_gap"),
    },
    "trial": {
        *("id", "file", "member", "trace", "trial", "outcome", "score", "out_of"),
        *("verdict", "reason", "state", "decision"),
    },
    "outcome": {*SHARE, "trials", "colour"},
    "consistency": {
        *SHARE,
        *("verdict", "label", "regime", "decided", "missing", "failed"),
        *("not_compared", "no_bodies", "answers", "distinct", "without", "exact"),
        *("structural", "majority", "no_majority", "outliers", "contradictions"),
        *("inputs", "is_stable_but_wrong", "reasons"),
    },
    "agent in a task": {
        *("agent", "key", "decisions", "agreement", "exact", "structural", "verdict"),
        *("label", "answers", "distinct_inputs", "consistency_reasons", "colour"),
        *("reasons", "gaps", "masked", "contracts"),
    },
    "decision": {"trial", "state", "decision", "how", "step", "colour"},
    "fork": {"kind", "steps", "branches", "decisive", "p", "separates", "sentence"},
    "branch": {
        *("decision", "tool", "trials", "n", "passed", "known", "low", "high"),
        *("writes", "is_end", "is_straight"),
    },
    "agent": {
        *("agent", "key", "verdict", "reasons", "gaps", "traces", "tasks"),
        *("invocations", "failed", "masked", "contracts", "consistency", "tools"),
        "models",
    },
    "contracts": {
        *SHARE,
        *("defined", "applied", "held", "broken", "undecided", "not_applying"),
    },
    "patterns": {
        *SHARE,
        *("sentence", "tasks", "features", "rules", "smallest_p", "alpha", "found"),
    },
}


def test_every_part_of_the_document_has_its_fields_and_no_other(asked):
    assert set(asked) == FIELDS[""]
    assert asked["traces"] == 17
    assert set(asked["masking"]) == {"headline", "agents"}
    for one in asked["masking"]["agents"]:
        assert set(one) == {
            *("agent", "colour", "traces", "tasks", "sentence", "reasons"),
        }
    assert set(asked["outcomes"]["traces"]) == {*SHARE, "unknown"}
    assert asked["outcomes"]["tasks"] == {
        **dict.fromkeys(("red", "unknown", "single"), 0),
        "green": 4,
        "mixed": 1,
    }
    for agent in asked["agents"]:
        assert set(agent) == FIELDS["agent"]
        assert set(agent["contracts"]) == FIELDS["contracts"]
        assert set(agent["masked"]["traces"]) == SHARE
    for gap in asked["gaps"]:
        assert set(gap) == {"kind", "agent", "sentence", "found"}
    assert set(asked["patterns"]) == {"unstable", "failing"}
    for pattern in asked["patterns"].values():
        assert set(pattern) == FIELDS["patterns"]


def test_every_task_of_the_document_has_its_fields_and_no_other(asked):
    for task in asked["tasks"]:
        assert set(task) == FIELDS["task"]
        assert set(task["outcome"]) == FIELDS["outcome"]
        assert set(task["consistency"]) == FIELDS["consistency"]
        assert set(task["decisive"]) == {"fork", "sentence", "by_chance"}
        ids = {trial["id"] for trial in task["trials"]}
        for trial in task["trials"]:
            assert set(trial) == FIELDS["trial"]
        for agent in task["agents"]:
            assert set(agent) == FIELDS["agent in a task"]
            assert set(agent["agreement"]) == set(agent["exact"]) == SHARE
            assert set(agent["contracts"]) == {"held", "broken", "undecided"}
            for decision in agent["decisions"]:
                assert set(decision) == FIELDS["decision"]
                assert decision["trial"] in ids
        for fork in task["forks"]:
            assert set(fork) == FIELDS["fork"]
            assert set(fork["steps"]) <= ids
            for branch in fork["branches"]:
                assert set(branch) == FIELDS["branch"]
                assert set(branch["trials"]) <= ids
