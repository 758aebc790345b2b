"""Addresses and forms of targets, cases and planners: who may, and what they may send."""

from __future__ import annotations

from apps.accounts.models import Project
from apps.accounts.permissions import Role
from apps.replays.models import ReplayCase, Target
from apps.traces.models import Trace
from tests.replays.rows import make_case, make_target
from tests.web.agent_fields import memory_of

REPLAY_ROLES = {
    "replays": ("get", Role.VIEWER),
    "replay-batch": ("get", Role.VIEWER),
    "replay-batch-progress": ("get", Role.VIEWER),
    "replay-batch-jsonl": ("get", Role.VIEWER),
    "replay-batch-cancel": ("post", Role.REVIEWER),
    "replay-batch-resume": ("post", Role.REVIEWER),
    "replay-group": ("get", Role.VIEWER),
    "replay-run": ("get", Role.VIEWER),
    "replay-targets": ("get", Role.VIEWER),
    "replay-target": ("get", Role.VIEWER),
    "replay-target-new": ("get", Role.MAINTAINER),
    "replay-target-rename": ("post", Role.MAINTAINER),
    "replay-target-key": ("post", Role.MAINTAINER),
    "replay-target-again": ("post", Role.MAINTAINER),
    "replay-target-retire": ("post", Role.MAINTAINER),
    "replay-cases": ("get", Role.VIEWER),
    "replay-cases-jsonl": ("get", Role.VIEWER),
    "replay-cases-file": ("post", Role.REVIEWER),
    "replay-cases-chosen": ("post", Role.REVIEWER),
    "replay-case": ("get", Role.VIEWER),
    "replay-case-new": ("get", Role.REVIEWER),
    "replay-case-rename": ("post", Role.REVIEWER),
    "replay-case-retire": ("post", Role.REVIEWER),
    "replay-plan": ("get", Role.REVIEWER),
    "replay-memory": ("get", Role.REVIEWER),
    "trace-freeze": ("post", Role.REVIEWER),
    "task-freeze": ("post", Role.REVIEWER),
}
REPLAY_ALSO_POST = {
    "replay-target": Role.MAINTAINER,
    "replay-target-new": Role.MAINTAINER,
    "replay-case-new": Role.REVIEWER,
    "replay-plan": Role.REVIEWER,
    "replay-memory": Role.REVIEWER,
}
_SETTINGS = {
    "base_url": "https://models.example/v1",
    "model": "small",
    "api": "responses",
    "max_tokens": "10",
    "parameters": "{}",
    "seconds": "9",
    "concurrency": "1",
    "requests_per_minute": "0",
}
REPLAY_FORMS = {
    "replay-target": _SETTINGS,
    "replay-target-new": {**_SETTINGS, "name": "T", "agent": "1", "key": "k"},
    "replay-target-rename": {"name": "T"},
    "replay-target-key": {"key": "k", "act": "set"},
    "replay-target-again": {"version": "1"},
    "replay-target-retire": {"act": "restore"},
    "replay-cases-file": {"text": '{"agent": "memory", "input": "x"}', "agent": ""},
    "replay-cases-chosen": {"case": "1", "act": "retire"},
    "replay-case-new": {
        "agent": "1",
        "name": "n",
        "given": "g",
        "system": "s",
        "tools": "[]",
        "calls": "[]",
        "state": "1",
        "context": "{}",
        "model": "m",
        "parameters": "{}",
    },
    "replay-case-rename": {"name": "n"},
    "replay-case-retire": {"act": "retire", "back": "trace"},
    "trace-freeze": {"invocation": "", "back": "trace"},
    "task-freeze": {"agent": "1"},
    "replay-plan": {
        "act": "look",
        "name": "n",
        "target": "1",
        "case": "1",
        "repeats": "2",
        "temperatures": "0.5",
        "paraphrases": "polite",
        "declared": "d",
        "max_money": "1",
        "seed": "1",
        "signal": "1",
        "least_isolation": "namespaces",
        "tool-0-name": "lookup",
        "tool-0-kind": "expression",
        "tool-0-expression": "1",
    },
    "replay-memory": {
        "act": "look",
        "name": "n",
        "target": "1",
        "depths": "1, 2",
        "repeats": "2",
        "texts": "hm",
        "filler": "typed",
        "certain": "80",
        "fact-0-value": "K-1",
        "fact-0-telling": "It is {value}.",
        "fact-0-probe": "What is it?",
        "fact-0-decoys": "K-2 | {value}",
        "fact-0-expected": "x",
    },
}
_OF_A_TARGET = tuple(
    f"replay-target{one}" for one in ("", "-rename", "-key", "-again", "-retire")
)
_OF_A_CASE = ("replay-case-rename", "replay-case-retire")


def target_of(project: Project) -> Target:
    """A target of the project."""
    found = Target.objects.filter(project=project).first()
    return found or make_target(memory_of(project))


def case_of_project(project: Project) -> ReplayCase:
    """A case of the project."""
    found = ReplayCase.objects.filter(project=project).first()
    return found or make_case(memory_of(project))


def places_of_replays(project: Project) -> dict[str, list[object]]:
    """What stands in the address of each form that is of a target, a case or a trace."""
    return {
        **{name: [target_of(project).pk] for name in _OF_A_TARGET},
        **{name: [case_of_project(project).pk] for name in _OF_A_CASE},
        "trace-freeze": [Trace.objects.filter(project=project).first().pk],
    }


def filled(project: Project, form: str) -> dict[str, object]:
    """The fields of a form, with the ids of what is there."""
    fields: dict[str, object] = dict(REPLAY_FORMS[form])
    ids = {
        "agent": memory_of(project).pk,
        "target": target_of(project).pk,
        "case": case_of_project(project).pk,
    }
    return {name: ids.get(name, value) if value == "1" else value
            for name, value in fields.items()}  # fmt: skip
