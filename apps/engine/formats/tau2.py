"""Reader of tau2-bench results: {info, tasks, simulations}, or one simulation a file.

Two models talk: the agent and the simulated user, which may call tools of its own.
Each is an agent invocation, so that their calls are never in one sequence. A greeting
that was written beforehand is no model call. The definition of the task and the checks
of the reward hold the expected actions: they go into the labels only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Folder, Item, Rejected, Source
from apps.engine.reading.group_files import GroupFiles, names_below
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.rewards import outcome_of_reward
from apps.engine.reading.tau2_messages import Talk
from apps.engine.reading.text_limits import LABEL, Remarks, clip
from apps.engine.reading.token_counts import whole_number
from apps.engine.reading.unique_ids import unique_id
from apps.engine.trace import OrderSource, Trace

_INFO_KEYS: Final = frozenset(
    {"user_info", "agent_info", "environment_info", "num_trials"}
)
_TOLD_OF_RUN: Final = (
    "termination_reason", "seed", "mode", "duration", "agent_cost", "user_cost",
    "hallucination_retries_used", "provider_session_id", "speech_environment",
)  # fmt: skip
_LABELS: Final = (
    "reward_info", "review", "user_only_review", "auth_classification",
    "hallucination_check",
)  # fmt: skip
_TOLD_OF_FILE: Final = ("git_commit", "num_trials", "max_steps", "seed")
_NO_MESSAGES: Final = (
    "The simulation has no list of messages; ticks of a voice run are pieces of audio, "
    "not model calls, and are not read."
)


def _is_results(record: Any) -> bool:
    if not isinstance(record, dict):
        return False
    info = record.get("info")
    if isinstance(info, dict) and not _INFO_KEYS.isdisjoint(info):
        return True
    return "tasks" in record and "simulations" in record


def _is_simulation(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and "task_id" in record
        and "termination_reason" in record
    )


class Tau2:
    """The format `tau2`."""

    slug = "tau2"
    label = "tau2-bench results"
    version = 1
    description = (
        "Results of tau2-bench as one JSON file with info, tasks and simulations, or a "
        "single simulation. The agent and the simulated user are two agents, each with "
        "its own calls."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins like results of tau2-bench or one simulation."""
        record = first_record(source)
        return _is_results(record) or _is_simulation(record)

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each simulation; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            read_each(source, _traces, unroll=True),
            nothing="The file holds no simulation of tau2-bench.",
        )


class Tau2Folder:
    """The format `tau2-folder`: results.json beside a folder of simulations."""

    slug = "tau2-folder"
    label = "tau2-bench results folder"
    version = 1
    description = (
        "A folder of tau2-bench with results.json and one file for each simulation "
        "below simulations/."
    )

    def groups(self, folder: Folder) -> Iterator[tuple[str, ...]]:
        """Yield each results.json with the simulations that stand beside it."""
        for name in folder.names:
            if name.rsplit("/", 1)[-1] != "results.json":
                continue
            below = name.removesuffix("results.json") + "simulations/"
            runs = [
                one for one in names_below(folder.names, below) if one.endswith(".json")
            ]
            if runs and _is_results(first_record(folder.source(name))):
                yield (name, *runs)

    def read_group(self, folder: Folder, names: tuple[str, ...]) -> Iterator[Item]:
        """Yield one trace for each simulation; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _runs_of(folder, names), nothing="The folder holds no simulation."
        )


def _runs_of(folder: Folder, names: tuple[str, ...]) -> Iterator[Item]:
    files = GroupFiles(folder)
    kept: dict[str, dict[str, Any]] = {}
    yield from files.keep(names[0], kept)
    about = _About(kept.get("results.json", {}))

    def run(record: Record) -> Iterator[Item]:
        yield trace_of(record.value, about)

    for name in names[1:]:
        yield from files.read(name, run, unroll=True)


class _About:
    """What a results file says of all its simulations."""

    def __init__(self, results: dict[str, Any]) -> None:
        info = results.get("info")
        self.info = info if isinstance(info, dict) else {}
        tasks = results.get("tasks")
        self.tasks = {
            str(task["id"]): task
            for task in (tasks if isinstance(tasks, list) else [])
            if isinstance(task, dict) and isinstance(task.get("id"), str | int)
        }

    def part(self, key: str) -> dict[str, Any]:
        """Return one of the objects of `info`; empty where it is not recorded."""
        found = self.info.get(key)
        return found if isinstance(found, dict) else {}


def _traces(record: Record) -> Iterator[Item]:
    value = record.value
    if _is_simulation(value):
        yield trace_of(value, _About({}))
        return
    if not isinstance(value, dict):
        raise RefusedRecord("Results of tau2-bench are an object.", "$")
    runs = value.get("simulations")
    if not isinstance(runs, list):
        raise RefusedRecord(
            "The results hold no simulations; where they are files of a folder, upload "
            "the folder as a zip file.",
            "$.simulations",
        )
    about = _About(value)
    for index, run in enumerate(runs):
        path = f"$.simulations[{index}]"
        try:
            yield trace_of(run, about)
        except RefusedRecord as refusal:
            place = f"{record.place}, {path}{refusal.path.removeprefix('$')}"
            yield Rejected(place, refusal.reason)


def trace_of(run: Any, about: _About) -> Trace:
    """Return the trace of one simulation; raise `RefusedRecord` for what is none."""
    if not isinstance(run, dict):
        raise RefusedRecord("A simulation is an object.", "$")
    messages = run.get("messages")
    if not isinstance(messages, list):
        raise RefusedRecord(_NO_MESSAGES, "$.messages")
    remarks = Remarks()
    task_id = clip(run.get("task_id"), LABEL // 2, remarks) or "(unnamed)"
    task = about.tasks.get(str(run.get("task_id")))
    talk = Talk(
        remarks, agent=about.part("agent_info"), user=about.part("user_info"), task=task
    )
    for index, message in enumerate(messages):
        talk.add(message, f"$.messages[{index}]")
    steps, invocations = talk.finished()
    domain = clip(about.part("environment_info").get("domain_name"), 60, remarks)
    trial = whole_number(run.get("trial"))
    key = f"{domain}/{task_id}" if domain else task_id
    return Trace(
        name=key if trial is None else f"{key}, trial {trial}",
        steps=steps,
        invocations=invocations,
        native_id=unique_id(run.get("id")),
        start_ns=talk.time(run.get("start_time")),
        end_ns=talk.time(run.get("end_time")),
        order=OrderSource.FILE,
        outcome=outcome_of_reward(_reward(run), "reward_info.reward"),
        task=key,
        trial=trial,
        metadata=_metadata(run, about),
        labels=_labels(run, task),
        notes=remarks.sentences(),
    )


def _reward(run: dict[str, Any]) -> Any:
    checks = run.get("reward_info")
    return checks.get("reward") if isinstance(checks, dict) else None


def _metadata(run: dict[str, Any], about: _About) -> dict[str, Any]:
    told = {key: about.info[key] for key in _TOLD_OF_FILE if key in about.info}
    for part, keys in (
        ("agent_info", ("implementation", "llm", "llm_args")),
        ("user_info", ("implementation", "llm", "llm_args")),
    ):
        found = about.part(part)
        told |= {f"{part}.{key}": found[key] for key in keys if key in found}
    told |= {key: run[key] for key in _TOLD_OF_RUN if run.get(key) is not None}
    return told


def _labels(run: dict[str, Any], task: Any) -> dict[str, Any]:
    labels = {key: run[key] for key in _LABELS if run.get(key) is not None}
    return labels if task is None else {"task": task, **labels}
