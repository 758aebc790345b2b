"""Files beside traces are answered in a sentence; folders of any content are survived."""

from __future__ import annotations

import json
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.format import Item, Opened, Rejected, UnreadableTrace
from tests.formats.archives import archive_items, zip_of
from tests.formats.benchmark_files import (
    INSPECT_RUN,
    UUID,
    atif_step,
    inspect_log,
    sample,
    sdk_action,
    sdk_seen,
    tau2_results,
    tau2_run,
    tokens,
    trajectory,
)
from tests.formats.changed_files import ANYTHING, QUICK, places, replaced
from tests.formats.reading import as_json, notes_of, refusal_of, rejected_of

BESIDE = [
    ({"id": UUID, "n_total_trials": 2, "stats": {}}, "result of a Harbor job"),
    ({"trial_name": "a__b", "task_name": "a", "agent_info": {}}, "Harbor trial"),
    ({"trial_name": "a", "is_resolved": True}, "Terminal-Bench trial"),
    ({"n_resolved": 1, "results": [], "id": UUID}, "Terminal-Bench run"),
    ([{"traj_id": "t", "stages": [], "solved": True}], "only labels"),
    ([{"instance_id": "i", "model_patch": "diff"}], "predictions"),
    ({"description": "d", "events": [{"event": "model"}]}, "test fixtures"),
    ({"id": UUID, "agent": {}, "execution_status": "idle"}, "without its events"),
]


@pytest.mark.parametrize(("value", "words"), BESIDE)
def test_a_file_beside_traces_says_what_it_is(value, words):
    sentence = refusal_of(as_json(value))
    assert words in sentence
    assert sentence.endswith(".")


BELONGING = [0, 3, 4, 5]
"""Of `BESIDE` those that count or label traces which lie beside them."""

CHAT = {"messages": [{"role": "user", "content": "q"},
                     {"role": "assistant", "content": "a"}]}  # fmt: skip


@pytest.mark.parametrize("at", BELONGING)
def test_what_belongs_beside_traces_is_no_rejected_record_of_an_archive(at):
    items = read({"runs/a.json": CHAT, "result.json": BESIDE[at][0]})
    assert not rejected_of(items)
    note = notes_of(items)["not_traces"]
    assert (note.count, note.sentence.count("result.json")) == (1, 1)


@pytest.mark.parametrize("at", sorted({*range(len(BESIDE))} - {*BELONGING}))
def test_what_says_that_steps_are_missing_is_rejected_in_an_archive_too(at):
    value, words = BESIDE[at]
    [rejected] = rejected_of(read({"runs/a.json": CHAT, "result.json": value}))
    assert words in rejected.reason


@pytest.mark.parametrize(
    "config",
    [
        {"job_name": "j", "jobs_dir": "jobs", "n_attempts": 1},
        {"trial_name": "a__b", "trials_dir": "jobs/j", "task": {"path": "a"}},
    ],
)
def test_a_configuration_of_harbor_belongs_beside_traces(config):
    assert "configuration of a Harbor job" in refusal_of(as_json(config))
    assert not rejected_of(read({"a.json": CHAT, "config.json": config}))


def test_an_archive_of_nothing_but_counts_says_what_they_are():
    with pytest.raises(
        UnreadableTrace, match=r"result\.json: This is the result of a Ha"
    ):
        read({"result.json": BESIDE[0][0]})


def test_a_group_carries_how_many_files_it_has():
    items = [one for one in read(FOLDERS["harbor-trial"]) if isinstance(one, Opened)]
    assert [one.files for one in items] == [3]


FOLDERS = {
    "harbor-trial": {
        "a__b/agent/trajectory.json": trajectory(
            atif_step(1, "x", metrics=tokens(5)),
            continued_trajectory_ref="trajectory.cont-1.json",
        ),
        "a__b/agent/trajectory.cont-1.json": trajectory(atif_step(1, "y")),
        "a__b/result.json": {
            "id": UUID, "task_name": "a", "trial_name": "a__b",
            "verifier_result": {"rewards": {"reward": 1}},
            "exception_info": {"exception_type": "E", "occurred_at": "x"},
        },
    },
    "inspect-eval": {
        "header.json": {**inspect_log(), "results": {"scores": [{"name": "match"}]}},
        "samples/q_epoch_1.json": sample(*INSPECT_RUN),
    },
    "openhands-conversation": {
        "events/event-00000-a.json": sdk_action("e1", "r", "c"),
        "events/event-00001-b.json": sdk_seen("e2", "c"),
        "base_state.json": {
            "id": UUID, "agent": {"llm": {"model": "m", "usage_id": "agent"}},
            "stats": {"usage_to_metrics": {"agent": {"token_usages": [
                {"response_id": "r", "prompt_tokens": 1, "completion_tokens": 2}]}}},
        },
    },
    "tau2-folder": {
        "results.json": tau2_results(),
        "simulations/a.json": tau2_run([{"role": "user", "content": "q"}]),
    },
}  # fmt: skip


def read(files: dict) -> list[Item]:
    packed = {name: json.dumps(value).encode() for name, value in files.items()}
    return archive_items(zip_of(packed, zipfile.ZIP_STORED))


@pytest.mark.parametrize("slug", FOLDERS)
def test_each_folder_is_read_as_one_trace_by_its_reader(slug):
    items = read(FOLDERS[slug])
    assert [one.format for one in items if hasattr(one, "format")] == [slug]
    assert sum(hasattr(one, "steps") for one in items) == 1
    assert not rejected_of(items)


@QUICK
@given(st.sampled_from(sorted(FOLDERS)), st.data(), ANYTHING)
def test_any_value_of_any_file_of_a_folder_may_be_anything(slug, draw, new):
    files = dict(FOLDERS[slug])
    name = draw.draw(st.sampled_from(sorted(files)))
    path = draw.draw(st.sampled_from(list(places(files[name]))))
    files[name] = replaced(files[name], path, new)
    said = [one.reason for one in rejected_of(read_or_nothing(files))]
    assert not [words for words in said if "broke" in words]


def read_or_nothing(files: dict) -> list[Item]:
    """What is read, or the sentence of the refusal as the only rejected record."""
    try:
        return read(files)
    except UnreadableTrace as refusal:
        return [Rejected("the archive", str(refusal))]
