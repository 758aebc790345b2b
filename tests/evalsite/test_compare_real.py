"""`manage.py compare` over real files: what is known of them is what it says."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.evalsite.comparing import agent_of, document, ids_in, task_of

AIRLINE = "tau_bench_results/gpt-4o-airline.json"


@pytest.fixture(scope="module")
def airline(shared_data):
    return document(shared_data / AIRLINE)


def mixed(found):
    return [one for one in found["tasks"] if one["outcome"]["colour"] == "mixed"]


class TestTheAirlineFile:
    """50 tasks with 4 trials each: 84 passed, 116 failed, 26 tasks are mixed."""

    def test_its_tasks_trials_and_outcomes(self, airline):
        assert airline["traces"] == len(set(ids_in(airline))) == 200
        assert len(airline["tasks"]) == 50
        assert [one["task"] for one in airline["tasks"]][:3] == [
            "task 0",
            "task 1",
            "task 2",
        ]
        for task in airline["tasks"]:
            assert [one["trial"] for one in task["trials"]] == [0, 1, 2, 3]
        outcomes = Counter(
            trial["outcome"] for task in airline["tasks"] for trial in task["trials"]
        )
        assert outcomes == {"pass": 84, "fail": 116}
        assert airline["outcomes"]["traces"]["k"] == 84
        assert airline["outcomes"]["tasks"] == {
            "green": 10,
            "red": 14,
            "mixed": 26,
            "unknown": 0,
            "single": 0,
        }

    def test_each_mixed_task_names_its_decisive_fork_or_says_that_there_is_none(
        self, airline
    ):
        assert len(mixed(airline)) == 26
        without = []
        for task in mixed(airline):
            number = task["decisive"]["fork"]
            if number is None:
                without.append(task["task"])
                assert task["decisive"]["sentence"].startswith("No fork is decisive")
                continue
            fork = task["forks"][number - 1]
            assert fork["decisive"]
            assert len(fork["branches"]) >= 2
            shares = {
                one["passed"] / one["known"] for one in fork["branches"] if one["known"]
            }
            assert len(shares) > 1, "the sides ended differently"
            assert all(one["decision"] for one in fork["branches"])
        assert len(without) <= 2

    def test_masking_is_said_of_tasks_that_passed_though_trials_do_not_agree(
        self, airline
    ):
        [agent] = airline["agents"]
        assert agent["verdict"] == "unstable"
        masked = agent["masked"]["tasks"]
        assert (masked["k"], masked["n"]) == (5, 10)
        assert len([one for one in airline["tasks"] if one["masking"]]) == 5

    def test_text_would_part_all_trials_at_once_and_decisions_do_not(
        self, airline, shared_data
    ):
        by_text = document(shared_data / AIRLINE, compare="text")
        at_once = [one for one in by_text["tasks"] if one["first_fork"] == 2]
        # Step 1 is the system prompt, step 2 what the simulated user says first.
        assert len(at_once) >= 32
        assert not [one for one in airline["tasks"] if one["first_fork"] in {1, 2}]
        assert len([one for one in airline["tasks"] if not one["fork_count"]]) >= 5
        assert by_text["agents"] == airline["agents"], "agreement is no matter of forks"


def test_inspect_logs_have_their_samples_as_tasks_and_their_epochs_as_trials(
    shared_data,
):
    folder = shared_data / "inspect_eval_zip"
    [log] = folder.glob("gen_logs*.eval")
    found = document(log)
    for name, outcome in (("support/dup-charge", "pass"), ("support/refund", "fail")):
        task = task_of(found, name)
        assert [one["trial"] for one in task["trials"]] == [1, 2, 3, 4, 5]
        assert {one["outcome"] for one in task["trials"]} == {outcome}
    billing = agent_of(found, "billing_agent")
    assert (billing["traces"], billing["tasks"]) == (10, 2)
    assert billing["consistency"]["stable_but_wrong"] == 1
    streamed = document(folder / "log__test_eval_log__log_streaming.eval")
    trials = task_of(streamed, "popularity/1")["trials"]
    assert [(one["trial"], one["outcome"]) for one in trials] == [
        (1, "fail"),
        (2, "pass"),
    ]


def test_trials_of_one_sample_in_several_logs_are_told_apart(shared_data):
    logs = sorted((shared_data / "inspect_eval_zip").iterdir())
    found = document(*logs)
    task = task_of(found, "popularity/1")
    assert [one["trial"] for one in task["trials"]] == [1, 1, 2]
    assert len({one["id"] for one in task["trials"]}) == 3
    assert len({one["file"] for one in task["trials"]}) == 2
    assert document(*reversed(logs)) == found


def job_of(shared_data: Path, folder: Path) -> dict[str, float]:
    """A folder as Harbor leaves it, of the trials that are there; their rewards."""
    rewards = {}
    for trajectory in (shared_data / "atif_harbor").glob("kimi__*.json"):
        trial = trajectory.stem.removeprefix("kimi__")
        (folder / trial / "agent").mkdir(parents=True)
        shutil.copyfile(trajectory, folder / trial / "agent" / "trajectory.json")
        result = shared_data / "harbor_trials_kimi" / f"{trial}.result.json"
        shutil.copyfile(result, folder / trial / "result.json")
        rewards[trial] = json.loads(result.read_bytes())["verifier_result"]["rewards"][
            "reward"
        ]
    return rewards


def test_harbor_trials_have_their_tasks_and_their_rewards(shared_data, tmp_path):
    rewards = job_of(shared_data, tmp_path)
    assert len(rewards) == 7
    again = tmp_path / "crack-7z-hash__again"
    shutil.copytree(tmp_path / "crack-7z-hash__qM5scQs", again)
    result = json.loads((again / "result.json").read_bytes())
    result |= {"id": "another", "trial_name": again.name}
    result["verifier_result"] = {"rewards": {"reward": 1.0}}
    (again / "result.json").write_text(json.dumps(result))
    found = document(tmp_path)
    assert found["traces"] == 8
    assert len(found["tasks"]) == 7
    for task in found["tasks"]:
        for trial in task["trials"]:
            assert trial["trace"].startswith(task["task"])
            expected = 1.0 if trial["trace"] == again.name else rewards[trial["trace"]]
            assert trial["score"] == expected
            assert trial["outcome"] == ("pass" if expected else "fail")
    crack = task_of(found, "crack-7z-hash")
    assert sorted(one["trial"] for one in crack["trials"]) == [1, 2]
    assert crack["outcome"]["colour"] == "mixed"
    assert not crack["fork_count"]
    assert crack["decisive"]["fork"] is None


def test_trajectories_without_results_are_single_and_of_unknown_outcome(shared_data):
    found = document(shared_data / "atif_harbor")
    assert found["traces"] == found["outcomes"]["tasks"]["single"] == 8
    for task in found["tasks"]:
        [trial] = task["trials"]
        assert (task["named_by"], trial["outcome"]) == ("nothing", "unknown")
        assert task["consistency"]["verdict"] == "insufficient"
    assert found["masking"]["headline"] == (
        "No trace is known to have passed, so nothing can be masked."
    )


def test_results_without_trajectories_are_unread(shared_data):
    found = document(shared_data / "harbor_trials_kimi")
    assert (found["traces"], len(found["unread"])) == (0, 13)
    assert all("Harbor trial" in one["sentence"] for one in found["unread"])
