"""The support desk: its memory agent forgets, and the pipeline passes all the same.

Each function returns the traces of one sample file. The memory agent is asked for a
fact that the customer stated in the first turn; it finds nothing, because the note of
the ticket was kept without it, and the writer copes because the fact still stands in
its own prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from apps.engine.trace import Outcome, OutcomeKind, Trace
from apps.pipeline.demo.writing import Script

PASS = Outcome(kind=OutcomeKind.PASS, label="resolved", source="desk.resolution")
FAIL = Outcome(kind=OutcomeKind.FAIL, label="reopened", source="desk.resolution")

TRIALS = 5
CALL_BACK = "Please call me back only on the number ending 27."
ASKED_BY_CUSTOMER = "Thank you. Which number will you call me back on?"
ASKED_BY_DESK = "Which number does this customer want to be called back on?"


class Ticket(msgspec.Struct, frozen=True):
    """What a customer of the desk writes, and the category that it belongs to."""

    order: str
    problem: str
    note: str
    category: str

    @property
    def message(self) -> str:
        """The first message of the customer."""
        return f"Hello, {self.problem}. {CALL_BACK}"


TICKETS = (
    Ticket("A-4471", "I was charged twice for order A-4471", "charged twice", "refund"),
    Ticket(
        "B-2093",
        "order B-2093 came in the wrong colour",
        "wrong colour, wants blue",
        "exchange",
    ),
    Ticket(
        "C-8810",
        "I cannot find the invoice of order C-8810",
        "invoice not found",
        "invoice",
    ),
    Ticket(
        "D-1367",
        "please give order D-1367 to my neighbour",
        "parcel to the neighbour",
        "redirect",
    ),
)


def support_desk() -> Iterator[Trace]:
    """Four tickets, five trials each: triage, notes, billing or shipping, memory, writer."""
    for place, ticket in enumerate(TICKETS):
        for trial in range(TRIALS):
            script = Script(number=place * TRIALS + trial).agent("triage")
            _take_in(script, ticket, trial)
            if ticket.category in {"refund", "invoice"}:
                _bill(script, ticket, trial)
            else:
                _ship(script, ticket, trial)
            _ask_memory(script, ticket, trial, by_customer=place == 0)
            _write(script, ticket, trial, after_customer=place == 0)
            yield script.trace(
                f"ticket {place + 1}: {ticket.category}",
                outcome=PASS,
                task=f"ticket {place + 1}: {ticket.problem}",
                trial=trial + 1,
            )


def _take_in(script: Script, ticket: Ticket, trial: int) -> None:
    """Triage names a category, and a note is kept that leaves out the number."""
    script.user(ticket.message)
    script.says(
        f"Category: {ticket.category}. The customer names order {ticket.order}.",
        tokens=41 + 3 * trial,
        reasoning="One order is named and one wish: a single category is enough.",
    )
    script.handoff("notes")
    script.says(
        "I keep a note of the ticket.",
        tokens=16 + trial,
        given=("Keep what the next person needs, in a few words.", ticket.message),
    )
    script.calls(
        "save_note",
        {"saved": True},
        customer=ticket.order[0],
        order=ticket.order,
        note=ticket.note,
    )


def _bill(script: Script, ticket: Ticket, trial: int) -> None:
    order = ticket.order
    script.handoff("billing")
    script.calls(
        "get_order", {"order": order, "state": "delivered", "paid": 2}, order=order
    )
    if ticket.category == "invoice":
        script.says("The invoice is in the archive.", tokens=33 + 2 * trial)
        script.calls("send_invoice", {"sent": True}, order=order)
        return
    if trial == 3:
        # One look more than in the other trials, and the same decision.
        script.calls("get_payment", {"payments": 2, "amount": 38.5}, order=order)
    script.says(f"Order {order} was paid twice: refund one.", tokens=33 + 2 * trial)
    script.calls(
        "create_refund", {"refund": "R-1", "state": "booked"}, order=order, amount=38.5
    )


def _ship(script: Script, ticket: Ticket, trial: int) -> None:
    """Without a neighbour's name the parcel goes one way or the other; both do."""
    order = ticket.order
    script.handoff("shipping")
    script.calls("get_order", {"order": order, "state": "packed"}, order=order)
    if ticket.category == "exchange":
        script.says("The blue one is in stock.", tokens=30 + 2 * trial)
        script.calls("send_replacement", {"sent": True}, order=order, colour="blue")
    elif trial in {1, 4}:
        script.says(
            "The parcel waits in the shop.",
            tokens=38 + 2 * trial,
            reasoning="No neighbour is named, so the carrier could not hand it over.",
        )
        script.calls("hold_parcel", {"until": "Monday"}, order=order, place="shop")
    else:
        script.says(
            "The carrier tries next door.",
            tokens=35 + 2 * trial,
            reasoning="The carrier takes any neighbour of the same house.",
        )
        script.calls("redirect_parcel", {"accepted": True}, order=order, to="neighbour")


def _ask_memory(
    script: Script, ticket: Ticket, trial: int, *, by_customer: bool
) -> None:
    question = ASKED_BY_CUSTOMER if by_customer else ASKED_BY_DESK
    script.handoff("memory", asked=None if by_customer else question)
    if by_customer:
        script.user(question)
    script.calls(
        "search_notes",
        [{"order": ticket.order, "note": ticket.note}],
        customer=ticket.order[0],
        topic="call back",
    )
    script.says(
        "The notes hold no number for a call back.",
        tokens=19 + trial,
        reasoning="One note, and it is about the order only.",
        given=("Answer from the notes only.", question),
    )


def _write(script: Script, ticket: Ticket, trial: int, *, after_customer: bool) -> None:
    script.handoff("writer")
    given = ["Tell the customer what was done.", ticket.message]
    if after_customer:
        given.append("Then take the one from my first message.")
        script.user(given[-1])
    script.says(
        f"Your {ticket.category} for order {ticket.order} is under way. "
        "We will call the number ending 27.",
        tokens=58 - trial,
        given=given,
    )


def delayed_parcel() -> Iterator[Trace]:
    """One task, five trials that fork after the carrier's answer; two of them fail."""
    for trial in range(5):
        script = Script(number=20 + trial)
        script.agent("triage").user(
            "My parcel Z-5520 was due last Tuesday. Where is it?"
        )
        script.says("Category: delivery. Confidence 0.46.", tokens=22)
        script.handoff(
            "escalation",
            asked={
                "confidence": 0.46,
                "category": "delivery",
                "language": "en",
                "channel": "chat",
                "amount": 24.0,
            },
        )
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
            script.calls(
                "escalate", {"queued": True}, queue="carrier claims", parcel="Z-5520"
            )
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
    script.calls("get_order", {"order": "A-4471", "paid": 2}, order="A-4471")
    refund = {"order": "A-4471", "amount": 38.5}
    script.fails("create_refund", "The ledger is locked until 09:00.", **refund)
    script.says("The ledger is locked; I will try again later.", tokens=24)
    script.calls("create_refund", {"refund": "R-9", "state": "booked"}, **refund)
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
