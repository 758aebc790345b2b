"""Reader of Harbor trial folders: the trajectory of the agent and its result together.

The result says which task was tried and what the verifier thought of it. All other
files of a trial (logs, sessions of the agent, the verifier's output) belong to the
same run and are claimed with it, so that no run is counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.format import Folder, Item, Note
from apps.engine.reading.atif.traces import Trial, is_trajectory, trace_of_trajectory
from apps.engine.reading.group_files import GroupFiles, has_name, names_below
from apps.engine.reading.json_gate import Record, demand_a_trace
from apps.engine.reading.json_peek import first_record

_TRAJECTORY: Final = "agent/trajectory.json"
_RESULT: Final = "result.json"


class HarborTrial:
    """The format `harbor-trial`."""

    slug = "harbor-trial"
    label = "Harbor trial"
    version = 1
    description = (
        "A folder of Harbor with one folder for each trial: agent/trajectory.json and "
        "result.json. The verifier's reward is the outcome; trials of one task belong "
        "together."
    )

    def groups(self, folder: Folder) -> Iterator[tuple[str, ...]]:
        """Yield the files of each trial, the trajectory first."""
        names = folder.names
        for name in names:
            if name != _TRAJECTORY and not name.endswith("/" + _TRAJECTORY):
                continue
            if is_trajectory(first_record(folder.source(name))):
                below = names_below(names, name.removesuffix(_TRAJECTORY))
                yield (name, *[one for one in below if not _is_main(one)])

    def read_group(self, folder: Folder, names: tuple[str, ...]) -> Iterator[Item]:
        """Yield the trace of one trial; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _trial(folder, names), nothing="The trial holds no trajectory."
        )


def _is_main(name: str) -> bool:
    return f"/{name}".endswith("/" + _TRAJECTORY)


class _Place(msgspec.Struct):
    """Where a trajectory stands: the folder of its trial, and its step of several."""

    root: str
    step: str | None = None


def _place(main: str, names: tuple[str, ...]) -> _Place:
    root = main.removesuffix(_TRAJECTORY)
    above, mark, step = f"/{root.rstrip('/')}".rpartition("/steps/")
    above = f"{above}/".removeprefix("/")
    if (
        mark
        and not has_name(names, root + _RESULT)
        and has_name(names, above + _RESULT)
    ):
        return _Place(above, step)
    return _Place(root)


def _trial(folder: Folder, names: tuple[str, ...]) -> Iterator[Item]:
    main = names[0]
    everything = folder.names
    place = _place(main, everything)
    start = main.removesuffix("json")
    others = [
        one for one in names[1:] if one.startswith(start) and one.endswith(".json")
    ]
    files_of = GroupFiles(folder)
    found: dict[str, dict[str, Any]] = {}
    for name in others:
        yield from files_of.keep(name, found)
    files = {key: value for key, value in found.items() if is_trajectory(value)}
    if has_name(everything, place.root + _RESULT):
        yield from files_of.keep(place.root + _RESULT, found)
    trial = Trial(
        result=_of_step(found.get(_RESULT, {}), place.step),
        files=files,
        number=_number(everything, place.root),
    )

    def trace(record: Record) -> Iterator[Item]:
        yield trace_of_trajectory(record.value, number=record.number, trial=trial)

    yield from files_of.read(main, trace, unroll=True)
    unread = len(names) - 1 - len(others) - (place.root + _RESULT in names)
    if unread:
        words = "Files of Harbor trials beside the trajectory that are not read."
        yield Note("harbor_other_files", words, unread)


def _of_step(result: dict[str, Any], step: str | None) -> dict[str, Any]:
    """Return the result of one step of a trial of several, each with its own verdict."""
    if step is None:
        return result
    told = result.get("step_results")
    parts = [
        one
        for one in (told if isinstance(told, list) else [])
        if isinstance(one, dict) and one.get("step_name") == step
    ]
    part = parts[0] if parts else {}
    return {
        **result,
        "id": None,
        "task_name": f"{result.get('task_name')}, step {step}",
        "trial_name": f"{result.get('trial_name')}, step {step}",
        "verifier_result": part.get("verifier_result"),
        "exception_info": part.get("exception_info"),
    }


def _number(names: tuple[str, ...], root: str) -> int | None:
    """Return the place of a trial among those of its task, from 1, by their names.

    Harbor names a trial by its task and a random ending, so the order means nothing;
    it only tells the trials apart. A folder without such a name has no number.
    """
    above, _, name = root.rstrip("/").rpartition("/")
    task, ending, _ = name.rpartition("__")
    if not ending:
        return None
    start = f"{above}/{task}__" if above else f"{task}__"
    siblings = sorted(
        {
            one[: one.index("/", len(start))]
            for one in names_below(names, start)
            if "/" in one[len(start) :]
        }
    )
    own = root.rstrip("/")
    return siblings.index(own) + 1 if own in siblings else None
