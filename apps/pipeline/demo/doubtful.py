"""Tickets that triage is more or less sure of: where it is in doubt, escalation wavers.

Below 0.40 a person takes the ticket and from 0.50 on it is answered, in every trial.
Between the two the trials of a ticket do not agree. Language, channel and amount have
no part in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from apps.engine.trace import Trace
from apps.pipeline.demo.desk import FAIL, PASS
from apps.pipeline.demo.writing import Script

FIRST_NUMBER = 60
ESCALATED, REOPENED = "E", "R"


class Doubt(msgspec.Struct, frozen=True):
    """A ticket and what came of its trials.

    `trials` has a letter for each: `E` a person took it, `A` it was answered, `R` it
    was answered and the customer wrote again.
    """

    text: str
    category: str
    confidence: float
    language: str
    channel: str
    amount: float
    trials: str

    @property
    def given(self) -> dict[str, Any]:
        """What triage hands over."""
        return {
            "confidence": self.confidence,
            "category": self.category,
            "language": self.language,
            "channel": self.channel,
            "amount": self.amount,
        }


DOUBTS = (
    Doubt("It hums, then it stops.", "damage", 0.18, "en", "mail", 59.0, "EEEE"),
    Doubt("So geht das nicht weiter!", "delivery", 0.22, "de", "chat", 14.5, "EEEE"),
    Doubt("Same as last year, please.", "exchange", 0.25, "en", "chat", 120.0, "EEEE"),
    Doubt("Rien ne va avec ce colis.", "damage", 0.28, "fr", "mail", 33.0, "EEEE"),
    Doubt("You wrote to my old firm.", "account", 0.31, "en", "form", 0.0, "EEEE"),
    Doubt("Two bills, one lamp?", "invoice", 0.33, "en", "mail", 84.0, "EEEE"),
    Doubt("No es lo que esperaba.", "exchange", 0.36, "es", "form", 19.9, "EEEE"),
    Doubt("It was a gift, so how now?", "refund", 0.38, "en", "chat", 45.0, "EEEE"),
    Doubt("Die Tasse kam, der Rest nicht.", "delivery", 0.39, "de", "form", 62.0, "EEEE"),
    Doubt("The box was open already.", "damage", 0.41, "en", "chat", 27.5, "ERER"),
    Doubt("Ich will nur mein Geld.", "refund", 0.43, "de", "mail", 71.0, "EEAR"),
    Doubt("One shoe of each size came.", "exchange", 0.44, "en", "form", 96.0, "REEA"),
    Doubt("Toujours pas de nouvelles.", "delivery", 0.47, "fr", "chat", 12.0, "RERE"),
    Doubt("My login shows other orders.", "account", 0.49, "en", "mail", 0.0, "EARE"),
    Doubt("Please cancel the second lamp.", "refund", 0.52, "en", "form", 84.0, "AAAA"),
    Doubt("Wo bleibt meine Rechnung?", "invoice", 0.55, "de", "chat", 38.0, "AAAA"),
    Doubt("The parcel is at the wrong door.", "redirect", 0.58, "en", "mail", 17.0, "AAAA"),
    Doubt("Quiero cambiar la talla.", "exchange", 0.63, "es", "chat", 49.0, "AAAA"),
    Doubt("The jug arrived with a crack.", "damage", 0.66, "en", "form", 22.0, "ARAA"),
    Doubt("Send it to my office instead.", "redirect", 0.71, "en", "chat", 130.0, "AAAA"),
    Doubt("Je voudrais ma facture.", "invoice", 0.77, "fr", "form", 54.0, "AAAA"),
    Doubt("I forgot my password.", "account", 0.82, "en", "mail", 0.0, "AAAA"),
    Doubt("Bitte die Jacke in Blau.", "exchange", 0.88, "de", "mail", 89.0, "AAAA"),
    Doubt("I want my money back.", "refund", 0.93, "en", "chat", 31.0, "AAAA"),
)  # fmt: skip


def escalation_trials() -> Iterator[Trace]:
    """Each ticket four times: triage, then escalation with what triage hands over."""
    number = FIRST_NUMBER
    for place, ticket in enumerate(DOUBTS, 1):
        for trial, way in enumerate(ticket.trials, 1):
            yield _trial(f"short ticket {place}", ticket, (number, trial, way))
            number += 1


def _trial(name: str, ticket: Doubt, facts: tuple[int, int, str]) -> Trace:
    number, trial, way = facts
    script = Script(number=number).agent("triage").user(ticket.text)
    script.says(
        f"Category: {ticket.category}. Confidence {ticket.confidence:.2f}.",
        tokens=20 + trial,
    )
    script.handoff("escalation", asked=ticket.given)
    if way == ESCALATED:
        script.says("I would rather have a person look.", tokens=26 + trial)
        script.calls("escalate", {"queued": True}, queue="second line")
    else:
        script.says("The usual answer fits.", tokens=23 + trial)
        script.calls("answer_ticket", {"sent": True}, template=ticket.category)
    outcome = FAIL if way == REOPENED else PASS
    return script.trace(
        name, outcome=outcome, task=f"{name}: {ticket.text}", trial=trial
    )
