"""What is asked of the agents of the support desk, and the fact that a customer tells.

The writer is asked nothing, so nothing can be said of it; the translator is an agent of
the desk that no sample trace exercises.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from apps.agents.models import Agent
from apps.agents.operations import (
    Asked,
    add_agent,
    define_agent,
    find_agents,
    name_writing_tools,
    rename_agent,
)
from apps.engine.agent_contracts import canonical, decoded_agent_contract
from apps.engine.agent_names import agent_key
from apps.engine.extraction import decoded_decision, encoded
from apps.screening.definitions import Wanted, define

NOTE = "Written for the demo."

AGENTS = {
    "triage": "Names the category of a ticket and how sure it is.",
    "notes": "Keeps a note of each ticket for whoever comes next.",
    "memory": "Says what is known of a customer, from the notes.",
    "billing": "Refunds and invoices.",
    "shipping": "Replacements, and where a parcel goes.",
    "escalation": "Decides whether a person takes a ticket.",
    "writer": "Writes the last message to the customer.",
}
UNSEEN = {"translator": "Translates tickets. No sample trace exercises it."}

CATEGORIES = (
    "account", "damage", "delivery", "exchange", "invoice", "redirect", "refund",
)  # fmt: skip

DECISIONS: dict[str, dict[str, Any]] = {
    "triage": {"kind": "regex", "expression": r"Category: (\w+)"},
    "notes": {"kind": "last_tool_call", "tool": "save_note"},
    "memory": {"kind": "label", "labels": ["ending 27", "hold no number"]},
    "billing": {"kind": "last_tool_call", "tool": "create_refund|send_invoice"},
    "shipping": {
        "kind": "last_tool_call",
        "tool": "send_replacement|redirect_parcel|hold_parcel",
    },
    "escalation": {
        "kind": "last_tool_call",
        "tool": "escalate|answer_ticket|close_ticket",
    },
}

WRITING_TOOLS = {
    "shipping": ("hold_parcel", "redirect_parcel", "send_replacement"),
    "escalation": ("answer_ticket", "close_ticket", "escalate"),
}
"""What changes something though its name does not say so."""

CONTRACTS: dict[str, tuple[dict[str, Any], ...]] = {
    "triage": (
        {
            "name": "a category of the desk",
            "kind": "one_of",
            "subject": "decision",
            "values": list(CATEGORIES),
        },
    ),
    "memory": (
        {
            "name": "gives back the call-back number",
            "kind": "regex",
            "pattern": r"\bending 27\b",
            "applies_when": {"expression": "contains(@, 'number')"},
            "sentence": "The customer told the number in the first message.",
        },
    ),
    "billing": (
        {
            "name": "looks at the order before a refund",
            "kind": "temporal",
            "temporal": {
                "operator": "precedes",
                "select": {"kind": "tool_call", "name": "create_refund"},
                "before": {"kind": "tool_call", "name": "get_order"},
            },
        },
        {
            "name": "refunds up to 100",
            "kind": "range",
            "subject": "calls",
            "tool": "create_refund",
            "path": "amount",
            "minimum": 0,
            "exclusive_minimum": True,
            "maximum": 100,
        },
    ),
    "shipping": (
        {
            "name": "looks at the order before a parcel moves",
            "kind": "temporal",
            "temporal": {
                "operator": "precedes",
                "select": {"kind": "tool_call", "name": DECISIONS["shipping"]["tool"]},
                "before": {"kind": "tool_call", "name": "get_order"},
            },
        },
    ),
    "escalation": (
        {
            "name": "more than five silent days go to a person",
            "kind": "when_then",
            "when": {
                "language": "cel",
                "expression": 'calls.exists(c, c.tool == "track_parcel" && '
                "c.result.days_silent > 5)",
            },
            "then": {"kind": "cel", "expression": '"escalate" in tools'},
        },
        {
            "name": "a queue of the desk",
            "kind": "one_of",
            "subject": "calls",
            "tool": "escalate",
            "path": "queue",
            "values": ["carrier claims", "second line"],
        },
    ),
}

CALL_BACK_NUMBER = Wanted(
    kind="planted-fact",
    label="Call-back number",
    spec={
        "value": "27",
        "plant": "number ending",
        "probe": "which number will you call",
        "sentence": "A customer who names a number is called on that number.",
    },
)


def ask(*, project_id: int, user_id: int, now: datetime) -> None:
    """Name the agents of the desk and write down what is asked, before any trace is."""
    find_agents(project_id=project_id, recorded=AGENTS, now=now)
    for name in UNSEEN:
        add_agent(project_id=project_id, name=name, now=now)
    for name, description in (AGENTS | UNSEEN).items():
        agent = Agent.objects.get(project_id=project_id, key=agent_key(name))
        rename_agent(agent=agent, name=name, description=description)
        if name in WRITING_TOOLS:
            name_writing_tools(agent=agent, tools=WRITING_TOOLS[name])
        if name in DECISIONS:
            define_agent(agent=agent, asked=asked_of(name), user_id=user_id, now=now)
    define(project_id=project_id, wanted=CALL_BACK_NUMBER, user_id=user_id, now=now)


def asked_of(name: str) -> Asked:
    """What is asked of one agent, as the engine accepts it."""
    return Asked(
        decision=encoded(decoded_decision(DECISIONS[name])),
        held=tuple(
            [canonical(decoded_agent_contract(one)) for one in CONTRACTS.get(name, ())]
        ),
        note=NOTE,
    )
