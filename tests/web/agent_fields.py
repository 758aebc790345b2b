"""The forms of agents as somebody may send them, and where."""

from __future__ import annotations

from apps.accounts.models import Project
from apps.agents.models import Agent
from tests.agents.making import make_agent

AGENT_FORMS = {
    "agent-new": {"name": "Escalation"},
    "agent-rename": {"name": "Notes", "description": "d"},
    "agent-tools": {"tool": "refund", "tools": "pay\nsend"},
    "agent-remove": {},
    "agent-merge": {"into": "1"},
    "agent-name": {"key": "memory", "to": "own"},
    "agent-restore": {"version": "1", "number": "2"},
    "agent-contract-remove": {"number": "2"},
    "agent-contract": {
        "act": "save",
        "name": "knows it",
        "applies_when_expression": "plan",
        "subject": "calls",
        "tool": "refund",
        "path": "amount",
        "pattern": "27",
        "number": "2",
    },
    "agent-decision": {"act": "preview", "of": "first", "normalisers": "case"},
    "agent-outcomes": {
        "act": "save",
        "task": "*",
        "expect": "share",
        "at_least": "0.5",
    },
    "agent-outcomes-remove": {"task": "*"},
    "agent-outcomes-restore": {"version": "1"},
    "agent-file": {"act": "take", "text": "evalsite: 1", "seen": "x"},
}
_OF_AN_AGENT = (
    "agent-rename",
    "agent-tools",
    "agent-remove",
    "agent-merge",
    "agent-name",
    "agent-restore",
    "agent-decision",
)
_OF_A_CONTRACT = ("agent-contract", "agent-contract-remove")


def memory_of(project: Project) -> Agent:
    """An agent of the project with a contract."""
    found = Agent.objects.filter(project=project, key="memory").first()
    return found or make_agent(project)


def places_of_agents(project: Project) -> dict[str, list[object]]:
    """What stands in the address of each form that is of one agent."""
    pk = memory_of(project).pk
    return {
        **{name: [pk] for name in _OF_AN_AGENT},
        **{name: [pk, 1] for name in _OF_A_CONTRACT},
    }
