"""Files of trials, and what `manage.py compare` says of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from apps.engine.contracts.patterns import wildcards
from apps.engine.formats.evalsite_writer import dump
from apps.engine.trace import Trace
from apps.engine.trials import Asked
from apps.pipeline.demo import desk
from evalsite.offline.asking import asked_in_file
from evalsite.offline.comparing import Wanted, compared
from evalsite.offline.document import document_of
from evalsite.offline.trials import HowToScore
from tests.desks import FAIL, PASS, desk_trace
from tests.evalsite.calling import call_here
from tests.evalsite.test_describe import call

MEMORY = """
evalsite: 1
agents:
  memory:
    contracts:
      - {name: knows the number to call, kind: regex, pattern: ending 27}
"""


def document(*paths: Path, agents: Path | None = None, **how: Any) -> dict[str, Any]:
    """What the command prints with --json, without a process."""
    asked, names = (Asked(), {}) if agents is None else asked_in_file(agents)
    if "task" in how:
        names_of_tasks = wildcards(how.pop("task"))
        how["takes"] = lambda name: names_of_tasks.fullmatch(name) is not None
    wanted = Wanted(HowToScore(asked, **how), names)
    found = document_of(compared(paths, wanted, hear=lambda one: None))
    again: dict[str, Any] = json.loads(json.dumps(found, allow_nan=False))
    assert again == found
    return found


def compare(*words: object, **options: Any) -> tuple[int, str, str]:
    """The exit code of a process of its own, what it printed, and what it said."""
    done = call("compare", *words, **options)
    return done.returncode, done.stdout, done.stderr


def compare_here(*words: object) -> tuple[int, str, str]:
    """The same inside this process, without the time that a start takes."""
    done = call_here("compare", *words)
    return done.returncode, done.stdout, done.stderr


def write(path: Path, traces: Iterable[Trace]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(dump, traces)))
    return path


def text_in(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


PARCEL = "delayed parcel Z-5520"


def desk_in(folder: Path) -> Path:
    """Four tickets that pass though the memory agent forgets, and a parcel that forks."""
    tickets = [
        _ticket(f"ticket {n}", trial) for n in range(1, 5) for trial in (1, 2, 3)
    ]
    write(folder / "tickets.jsonl", tickets)
    write(folder / "parcel.jsonl", [_parcel(trial) for trial in range(1, 6)])
    return folder


def _ticket(task: str, trial: int) -> Trace:
    return desk_trace(
        ("triage", [("says", {"category": "refund"})]),
        ("memory", [("calls", ("search_notes", {"of": task}, [])), ("says", "None.")]),
        ("writer", [("says", "We will call the number ending 27.")]),
        task=task,
        trial=trial,
    )


def _parcel(trial: int) -> Trace:
    waits = trial in {2, 5}
    last = (
        ("close_ticket", {"note": "wait"}) if waits else ("escalate", {"to": "claims"})
    )
    return desk_trace(
        ("triage", [("says", {"category": "delivery"})]),
        (
            "escalation",
            [
                ("calls", ("get_order", {"order": "Z-5520"}, "sent")),
                ("calls", ("track_parcel", {"parcel": "Z-5520"}, "at the hub")),
                ("calls", (*last, "ok")),
                ("says", "I have told the customer."),
            ],
        ),
        task=PARCEL,
        trial=trial,
        outcome=FAIL if waits else PASS,
        asked="My parcel Z-5520 was due last Tuesday. Where is it?",
    )


def demo_in(folder: Path) -> Path:
    """The runs of the support desk that the demo holds."""
    write(folder / "support_desk.jsonl", desk.support_desk())
    write(folder / "delayed_parcel.jsonl", desk.delayed_parcel())
    return folder


def run(trial: int | None = 1, *, route: str = "billing", **more: Any) -> Trace:
    """A trial in which a router decides and a desk acts on it."""
    return desk_trace(
        ("router", [("says", {"route": route})]),
        ("desk", [("calls", ("send_mail", {"to": route}, "ok")), ("says", "Done.")]),
        trial=trial,
        **more,
    )


def ids_in(found: dict[str, Any]) -> list[str]:
    return [trial["id"] for task in found["tasks"] for trial in task["trials"]]


def task_of(found: dict[str, Any], name: str) -> dict[str, Any]:
    [task] = [one for one in found["tasks"] if one["task"] == name]
    return task


def agent_of(found: dict[str, Any], name: str) -> dict[str, Any]:
    [agent] = [one for one in found["agents"] if one["agent"] == name]
    return agent
