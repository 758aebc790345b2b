"""The support desk: its memory agent forgets, and the pipeline passes all the same.

Each function returns the traces of one sample file. The memory agent is asked for a
fact that the customer stated in the first turn; it answers that it knows nothing, and
the writer copes because the fact still stands in its own prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from apps.engine.trace import FinishReason, Outcome, OutcomeKind, Trace
from apps.pipeline.demo.writing import Script

PASS = Outcome(kind=OutcomeKind.PASS, label="resolved", source="desk.resolution")
FAIL = Outcome(kind=OutcomeKind.FAIL, label="reopened", source="desk.resolution")

_TICKETS = (
    ("A-4471", "charged twice for order A-4471", "refund", 38.5),
    ("B-2093", "received the wrong colour in order B-2093", "exchange", 0.0),
    ("C-8810", "cannot find the invoice of order C-8810", "invoice", 0.0),
    ("D-1367", "wants order D-1367 sent to a neighbour", "redirect", 0.0),
)


def support_desk() -> Iterator[Trace]:
    """Four tickets, three trials each: triage, memory, billing, writer."""
    for ticket, (order, problem, action, amount) in enumerate(_TICKETS):
        for trial in range(3):
            yield _ticket(ticket, trial, (order, problem, action, amount))


def _ticket(ticket: int, trial: int, facts: tuple[str, str, str, float]) -> Trace:
    order, problem, action, amount = facts
    script = Script(number=ticket * 3 + trial)
    script.agent("triage")
    script.user(
        f"Hello, I have {problem}. Please call me back only on the number ending 27."
    )
    script.says(
        f"Category: {action}. The customer names order {order}.",
        tokens=41 + 3 * trial,
        reasoning="One order is named and one wish: a single category is enough.",
    )
    script.handoff("memory")
    script.calls("search_notes", [], customer=order[0], topic="call back number")
    script.says(
        "There are no notes about how this customer wants to be called back.",
        tokens=19 + trial,
        reasoning="The search came back empty, so nothing was stored.",
    )
    script.handoff("billing")
    script.calls(
        "get_order", {"order": order, "state": "delivered", "paid": 2}, order=order
    )
    script.says(f"Order {order} qualifies for: {action}.", tokens=33 + 2 * trial)
    if amount:
        script.calls("create_refund", {"refund": "R-1", "amount": amount}, order=order)
    script.handoff("writer")
    script.says(
        f"Your {action} for order {order} is under way. "
        "We will call the number ending 27.",
        tokens=58 - trial,
        finish=FinishReason.STOP,
    )
    return script.trace(
        f"ticket {ticket + 1}: {action}",
        outcome=PASS,
        task=f"ticket {ticket + 1}: {problem}",
        trial=trial + 1,
    )


def delayed_parcel() -> Iterator[Trace]:
    """One task, five trials that fork after the carrier's answer; two of them fail."""
    for trial in range(5):
        script = Script(number=20 + trial)
        script.agent("triage").user(
            "My parcel Z-5520 was due last Tuesday. Where is it?"
        )
        script.says("Category: delivery. Confidence 0.46.", tokens=22)
        script.handoff("escalation")
        script.calls("get_order", {"order": "Z-5520", "state": "sent"}, order="Z-5520")
        script.calls(
            "track_parcel", {"last_seen": "hub", "days_silent": 6}, parcel="Z-5520"
        )
        if trial in {1, 4}:
            script.says(
                "The parcel moves; I ask the customer to wait.",
                tokens=47,
                reasoning="Six days are long, but the hub has scanned it.",
            )
            script.calls("close_ticket", {"closed": True}, note="wait for the carrier")
            outcome = FAIL
        else:
            script.says(
                "Six silent days: this goes to a person.",
                tokens=44,
                reasoning="The rule says more than five silent days.",
            )
            script.calls("escalate", {"queue": "carrier claims"}, parcel="Z-5520")
            outcome = PASS
        script.says("I have told the customer what happens next.", tokens=29)
        yield script.trace(
            "delayed parcel",
            outcome=outcome,
            task="delayed parcel Z-5520",
            trial=trial + 1,
        )


_AUDIT_LENGTHS = (412, 371, 330, 264, 201, 150, 96)
_FALSE_ALARM = (784, 700, 646)
_TOOLS = (
    "list_accounts",
    "get_account",
    "get_invoice",
    "get_payment",
    "search_notes",
    "get_order",
    "track_parcel",
    "get_ledger",
    "get_ledger",
    "get_ledger",
    "get_ledger",
    "get_ledger",
)


def long_runs() -> Iterator[Trace]:
    """A true output decay, the 784/700/646 false alarm, and a tool mix that narrows."""
    script = Script(number=40).agent("auditor")
    script.user("Check the ledger of February against the bank statement.")
    for part, tokens in enumerate(_AUDIT_LENGTHS):
        script.says(f"Findings of part {part + 1} of 7.", tokens=tokens)
        script.calls("get_ledger", {"rows": 40 - part}, part=part + 1)
    yield script.trace("ledger audit, seven parts", outcome=PASS, task="ledger audit")

    script = Script(number=41).agent("writer")
    script.user("Summarise the three complaints of this morning.")
    for part, tokens in enumerate(_FALSE_ALARM):
        script.says(f"Summary of complaint {part + 1}.", tokens=tokens)
    yield script.trace("three summaries", outcome=PASS, task="morning summary")

    script = Script(number=42).agent("auditor")
    script.user("Why does account 88 not balance?")
    for number, tool in enumerate(_TOOLS):
        script.calls(tool, {"rows": 3}, account=88, page=number + 1)
    script.says("I could not find the difference.", tokens=31)
    yield script.trace("account 88", outcome=FAIL, task="account 88")

    script = Script(number=43).agent("billing")
    script.user("Refund order A-4471, please.")
    script.fails("create_refund", "The ledger is locked until 09:00.", order="A-4471")
    script.says("The ledger is locked; I will try again later.", tokens=24)
    script.calls("create_refund", {"refund": "R-9", "amount": 38.5}, order="A-4471")
    script.says("The refund R-9 is booked.", tokens=17)
    yield script.trace("refund with a locked ledger", outcome=PASS, task="late refund")


def usage_missing() -> bytes:
    """One conversation as OpenAI chat messages: no call reports its usage."""
    messages: list[dict[str, object]] = [
        {"role": "system", "content": "You are the night desk. Be brief."},
        {"role": "user", "content": "The shop says my card was declined, why?"},
    ]
    for number in range(1, 6):
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {
                "name": "get_payment",
                "arguments": json.dumps({"attempt": number}),
            },
        }
        messages += [
            {
                "role": "assistant",
                "content": f"I look at attempt {number}.",
                "tool_calls": [call],
            },
            {
                "role": "tool",
                "tool_call_id": f"call_{number}",
                "content": json.dumps({"attempt": number, "code": "do not honour"}),
            },
        ]
    messages.append({"role": "assistant", "content": "Your bank declined all five."})
    return (json.dumps({"messages": messages}) + "\n").encode()
