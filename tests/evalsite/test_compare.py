"""`manage.py compare`: trials, tasks, agents and forks from files alone."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest

from apps.engine.trace import Outcome, OutcomeKind
from evalsite.offline.asking import CannotAsk, asked_in_file
from tests.desks import FAIL, UNKNOWN, desk_trace
from tests.evalsite.comparing import (
    MEMORY,
    PARCEL,
    agent_of,
    demo_in,
    desk_in,
    document,
    ids_in,
    run,
    task_of,
    text_in,
    write,
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return desk_in(tmp_path_factory.mktemp("desk"))


@pytest.fixture(scope="module")
def contracts(tmp_path_factory):
    return text_in(tmp_path_factory.mktemp("asked") / "agents.yaml", MEMORY)


@pytest.fixture(scope="module")
def asked(runs, contracts):
    return document(runs, agents=contracts)


def test_an_agent_that_is_red_behind_outcomes_that_passed_is_the_headline(asked):
    masking = asked["masking"]
    assert masking["headline"] == (
        "memory is red in 12 of 12 traces that passed and exercise it (15 passed in "
        "all)."
    )
    [masked] = masking["agents"]
    assert (masked["agent"], masked["colour"]) == ("memory", "red")
    assert (masked["traces"]["k"], masked["traces"]["n"]) == (12, 12)
    assert asked["agents"][0]["agent"] == "memory"
    assert asked["agents"][0]["verdict"] == "red"
    [of_task] = task_of(asked, "ticket 1")["masking"]
    assert len(of_task["trials"]) == 3
    assert of_task["sentence"].startswith("memory is red in 3 of 3 (")


def test_without_its_contract_it_is_unknown_and_not_green(runs):
    found = document(runs)
    assert agent_of(found, "memory")["verdict"] == "unknown"
    assert found["masking"]["agents"] == []
    assert all(not task["masking"] for task in found["tasks"])
    assert "memory is unknown: no contract says what it must hold." in [
        gap["sentence"] for gap in found["gaps"]
    ]


def test_the_memory_agent_of_the_demo_is_masked_and_without_contract_unknown(
    tmp_path, contracts
):
    demo = demo_in(tmp_path)
    found = document(demo, agents=contracts)
    memory = agent_of(found, "memory")
    assert found["agents"][0] == memory
    assert memory["verdict"] == "red"
    assert memory["masked"]["traces"]["k"] == memory["traces"] > 0
    assert found["masking"]["headline"].startswith("memory is red in ")
    assert agent_of(document(demo), "memory")["verdict"] == "unknown"


def test_a_fork_has_the_step_of_each_trial_and_how_each_branch_ended(asked):
    task = task_of(asked, PARCEL)
    outcome = task["outcome"]
    assert (outcome["k"], outcome["n"], outcome["colour"]) == (3, 5, "mixed")
    assert outcome["low"] == pytest.approx(0.231, abs=0.001)
    decisive = task["decisive"]
    fork = task["forks"][decisive["fork"] - 1]
    assert fork["decisive"]
    assert set(fork["steps"].values()) == {5}
    went, waited = fork["branches"]
    assert went["decision"] == "escalate(to=claims)"
    assert (went["n"], went["passed"], went["known"]) == (3, 3, 3)
    assert (waited["n"], waited["passed"]) == (2, 0)
    by_id = {trial["id"]: trial for trial in task["trials"]}
    assert {by_id[one]["trial"] for one in waited["trials"]} == {2, 5}
    assert decisive["sentence"].startswith("All 3 that went “escalate(")


def test_the_order_of_the_files_is_no_matter(tmp_path):
    files = [
        write(tmp_path / "a.jsonl", [run(2, route="sales", outcome=FAIL), run(1)]),
        write(tmp_path / "b.jsonl", [run(1, task="ticket 10"), run(3)]),
        write(tmp_path / "c.jsonl", [run(2, task="ticket 10"), run(1, task="other")]),
    ]
    found = [document(*order) for order in permutations(files)]
    assert all(one == found[0] for one in found)
    assert [task["task"] for task in found[0]["tasks"]] == [
        "other", "ticket 1", "ticket 10",
    ]  # fmt: skip
    assert [one["trial"] for one in task_of(found[0], "ticket 1")["trials"]] == [
        1, 2, 3,
    ]  # fmt: skip


def test_no_two_trials_have_one_id(tmp_path):
    same = [run(1), run(1), run(None), run(None), run(2)]
    first = write(tmp_path / "a" / "runs.jsonl", same)
    second = write(tmp_path / "b" / "runs.jsonl", [*same, run(3)])
    found = document(first, second)
    ids = ids_in(found)
    assert len(ids) == len(set(ids)) == found["traces"] == 11
    assert f"{first}: ticket 1, trial 1" in ids
    assert f"{first}: ticket 1, trial 1 (2)" in ids
    assert f"{second}: ticket 1, trial 3" in ids
    for one in (first, second):
        assert set(ids_in(document(one))) < set(ids)


def test_the_same_bytes_and_a_file_of_a_named_folder_are_read_once(tmp_path):
    folder = tmp_path / "runs"
    one = write(folder / "one.jsonl", [run(1), run(2)])
    copy = write(tmp_path / "copy.jsonl", [run(1), run(2)])
    assert document(one, copy, one)["traces"] == 2
    found = document(folder, one)
    assert found["traces"] == 2
    assert [remark["sentence"] for remark in found["remarks"]] == [
        f"It lies in {folder} and is read once."
    ]


def test_a_trace_with_an_id_of_its_own_counts_once_whatever_file_it_is_in(tmp_path):
    first, other = (
        msgspec.structs.replace(run(1, route=route), native_id="run-1")
        for route in ("billing", "sales")
    )
    a = write(tmp_path / "a.jsonl", [first, run(2)])
    b = write(tmp_path / "b.jsonl", [other, first, run(3)])
    found = document(b, a)
    assert found["traces"] == 3
    task = task_of(found, "ticket 1")
    assert task["trials"][0]["file"] == str(a)
    said = sorted(remark["sentence"] for remark in found["remarks"])
    assert said == [
        f"This trace is counted once, as {a} has it.",
        f"This trace is counted once, as {a} has it; here its content is another one.",
    ]


def unnamed(trial, **more):
    return msgspec.structs.replace(run(trial, **more), task=None, trial=None)


def test_trials_are_found_by_their_first_input_where_no_task_is_named(tmp_path):
    a = write(tmp_path / "a.jsonl", [unnamed(1), unnamed(2, asked="Where is it now?")])
    b = write(tmp_path / "b.jsonl", [unnamed(3), unnamed(4, asked="hi")])
    found = document(a, b)
    assert [(one["named_by"], len(one["trials"])) for one in found["tasks"]] == [
        ("input", 2), ("nothing", 1), ("nothing", 1),
    ]  # fmt: skip
    joined = found["tasks"][0]
    assert joined["task"].startswith("Please refund order A-4471")
    assert {trial["file"] for trial in joined["trials"]} == {str(a), str(b)}
    for single in found["tasks"][1:]:
        assert single["consistency"]["verdict"] == "insufficient"
        assert single["decisive"]["sentence"] == (
            "There is one trial, so nothing forks."
        )
    assert found["outcomes"]["tasks"]["single"] == 2
    assert agent_of(found, "router")["traces"] == 4
    assert agent_of(found, "router")["tasks"] == 1


def test_a_session_that_grew_is_no_other_trial(tmp_path):
    whole = msgspec.structs.replace(unnamed(1), session="s-1")
    half = msgspec.structs.replace(whole, steps=whole.steps[:2])
    a = write(tmp_path / "a.jsonl", [half])
    b = write(tmp_path / "b.jsonl", [whole])
    found = document(a, b)
    [task] = found["tasks"]
    assert (task["named_by"], found["traces"]) == ("nothing", 1)
    assert task["trials"][0]["file"] == str(b)
    [remark] = found["remarks"]
    assert remark["sentence"].startswith(f"{b} has more of the same session")


def test_runs_that_crash_stay_in_the_denominator(tmp_path):
    crash = [("router", [("breaks", "429")])]
    traces = [desk_trace(*crash, trial=n, outcome=FAIL) for n in range(1, 5)]
    found = document(write(tmp_path / "a.jsonl", [run(5), *traces]))
    router = task_of(found, "ticket 1")["agents"][-1]
    assert router["agent"] == "router"
    assert (router["agreement"]["k"], router["agreement"]["n"]) == (1, 5)
    assert router["verdict"] == "insufficient"
    assert sorted({one["state"] for one in router["decisions"]}) == [
        "decided", "failed",
    ]  # fmt: skip


def test_scores_and_unknown_outcomes_are_no_pass(tmp_path):
    scored = Outcome(kind=OutcomeKind.SCORE, score=0.5, out_of=1.0)
    traces = [run(1, outcome=UNKNOWN), run(2, outcome=scored), run(3)]
    path = tmp_path / "a.jsonl"
    write(path, traces)
    task = task_of(document(path), "ticket 1")
    assert [one["outcome"] for one in task["trials"]] == ["unknown", "score", "pass"]
    assert [one["verdict"] for one in task["trials"]] == ["unknown", "unknown", "green"]
    assert (task["outcome"]["k"], task["outcome"]["n"]) == (1, 1)
    asked = text_in(
        tmp_path / "agents.yaml",
        'evalsite: 1\ntasks: {"ticket *": {expect: share, at_least: 0.6}}\n',
    )
    task = task_of(document(path, agents=asked), "ticket 1")
    assert [one["verdict"] for one in task["trials"]] == ["unknown", "red", "green"]
    assert task["outcome"]["colour"] == "mixed"


def test_agents_whose_names_are_spelled_alike_are_one(tmp_path):
    acts = [("says", {"route": "billing"})]
    traces = [
        desk_trace((name, acts), trial=trial)
        for trial, name in enumerate(
            ["TriageAgent", "triage-agent", "triage_agent", "triage-agent"]
        )
    ]
    path = write(tmp_path / "a.jsonl", traces)
    found = document(path)
    [agent] = found["agents"]
    assert (agent["agent"], agent["key"]) == ("triage-agent", "triage agent")
    assert agent["traces"] == 4
    asked = text_in(
        tmp_path / "agents.yaml",
        "evalsite: 1\nagents:\n"
        "  Triage Agent: {contracts: [{name: a, kind: one_of, path: route, "
        "values: [billing]}]}\n"
        "  triage_agent: {contracts: [{name: b, kind: one_of, path: route, "
        "values: [sales]}]}\n",
    )
    [agent] = document(path, agents=asked)["agents"]
    assert agent["contracts"]["defined"] == 2
    assert (agent["contracts"]["held"], agent["contracts"]["broken"]) == (4, 4)
    assert agent["verdict"] == "red"


def test_two_decisions_of_one_agent_are_refused(tmp_path):
    decision = "decision: {{kind: jmespath, expression: {}}}"
    path = text_in(
        tmp_path / "agents.yaml",
        "evalsite: 1\nagents:\n"
        f"  Router: {{{decision.format('route')}}}\n"
        f"  router: {{{decision.format('answer')}}}\n",
    )
    with pytest.raises(CannotAsk, match="“Router” and “router” are one agent"):
        asked_in_file(path)


def test_an_agent_that_nothing_exercises_is_unknown_and_first_of_the_gaps(
    tmp_path, contracts
):
    found = document(write(tmp_path / "a.jsonl", [run(1), run(2)]), agents=contracts)
    memory = agent_of(found, "memory")
    assert (memory["verdict"], memory["traces"]) == ("unknown", 0)
    assert memory["reasons"] == ["No task exercises it."]
    assert found["gaps"][0]["sentence"] == "memory is unknown: no task exercises it."


def test_only_tasks_of_a_name_are_taken(tmp_path):
    traces = [run(n, task=task) for task in ("refund 1", "exchange") for n in (1, 2)]
    path = write(tmp_path / "a.jsonl", [*traces, unnamed(1)])
    found = document(path, task="refund*|nothing")
    assert [task["task"] for task in found["tasks"]] == ["refund 1"]
    assert found["traces"] == 2
    assert agent_of(found, "router")["traces"] == 2
    none = document(path, task="no such")
    assert none["tasks"] == none["agents"] == []
    assert [one["sentence"] for one in none["unread"]] == [
        "There is nothing to compare: no task has such a name."
    ]


def test_forks_by_text_part_what_decided_the_same(tmp_path):
    def said(trial, words):
        acts = [("says", words), ("calls", ("book", {"order": "A-1"}, "ok"))]
        return desk_trace(("desk", acts), trial=trial)

    texts = ["I look.", "Let me look.", "One moment, I look."]
    traces = [said(trial, words) for trial, words in enumerate(texts)]
    path = write(tmp_path / "a.jsonl", traces)
    assert document(path)["tasks"][0]["fork_count"] == 0
    by_text = document(path, compare="text")
    assert by_text["compared_by"] == "text"
    assert by_text["tasks"][0]["fork_count"] > 0
