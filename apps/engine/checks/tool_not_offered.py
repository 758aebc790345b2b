"""Tools that were not offered: a model asked for a tool that its request did not hold.

Read only where the offer is recorded. It does not say what became of the request: most
frameworks answer it with an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from apps.engine.bodies.numerals import counted
from apps.engine.bodies.offers import (
    UNNAMED_TOOL,
    Offer,
    asked_in,
    offer_of,
    plain_name,
    together,
)
from apps.engine.bodies.recorded import NO_BODIES, REDACTED, has_bodies
from apps.engine.check import (
    Answer,
    Basis,
    Evidence,
    Judgement,
    Level,
    Screening,
    hash_of_inputs,
)
from apps.engine.rules import Rule, nothing_read
from apps.engine.sequences import Removal, recorded_calls
from apps.engine.sequences.owners import INVOCATION, agent_of, owner_in_words
from apps.engine.trace import Step, StepKind, ToolCall, Trace

_NOT_CALLS: Final = frozenset({Removal.PLACEHOLDER, Removal.WRAPPER, Removal.DUPLICATE})
_SHOWN: Final = 20
_NOT_MODELLED: Final = (
    "Tools that a provider or a framework adds after the request was recorded.",
)


class _Request(msgspec.Struct, frozen=True):
    """One model call: what it was offered and what it asked for."""

    step: int
    offer: Offer | None
    asked: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        """What it asked for and was not offered; nothing where the offer is open."""
        if self.offer is None or self.offer.is_open:
            return []
        return [name for name in self.asked if not self.offer.holds(name)]


@dataclass(frozen=True)
class ToolNotOffered(Rule):
    """Finds requested tools that are missing from the recorded offer of their call."""

    slug = "tool-not-offered"
    label = "Tool that was not offered"
    version = 1
    level = Level.REVIEW_SIGNAL
    basis = Basis.FACT
    needs_bodies = True
    observes = (
        "For each model call whose request is recorded: the names of the tools that it "
        "was offered, and the names of the tools that its answer asks for."
    )
    null_model = (
        "None: whether a name stands in a list is a fact, not a statistic, and nothing "
        "is shuffled."
    )
    material_when = (
        "At least one requested name is missing from the offer. Names are compared as "
        "providers send them (without a prefix such as “functions.”, other characters "
        "as _). Servers of tools make an offer open: then nothing is said."
    )
    next_step = (
        "Compare the requested name with the offered ones: it may be made up, taken "
        "from the prompt, or lost when the list of tools was built."
    )

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer for each owner of model calls, or one that there are none."""
        owned = recorded_calls(trace)
        if not owned or not has_bodies(trace):
            yield _nothing_read(has_calls=bool(owned))
            return
        by_request = _tools_by_request(trace)
        of_agents = _offers_of_agents(trace)
        for scope, entries in owned.items():
            agent_offer = of_agents.get(scope[1]) if scope[0] == INVOCATION else None
            requests = [
                _request(entry.step, by_request.get(entry.step.seq, ()), agent_offer)
                for entry in entries
                if entry.removed not in _NOT_CALLS
            ]
            evidence = Evidence(
                scope=owner_in_words(scope),
                invocation=scope[1] if scope[0] == INVOCATION else None,
                agent=agent_of(trace, scope),
                length=len(requests),
                not_modelled=_NOT_MODELLED,
            )
            yield _answer(requests, evidence)


def _nothing_read(*, has_calls: bool) -> Screening:
    if has_calls:
        said = Judgement(
            Answer.NOT_APPLICABLE, "no_bodies", "No bodies kept", NO_BODIES
        )
    else:
        said = Judgement(
            Answer.NOT_APPLICABLE,
            "no_model_calls",
            "No model calls recorded",
            "The trace holds no model call that could have been offered a tool.",
        )
    return nothing_read(said, "tool-not-offered")


def _tools_by_request(trace: Trace) -> dict[int, tuple[str, ...]]:
    """The names of the tool calls that steps say were asked for, by model call."""
    found: dict[int, list[tuple[int, str]]] = {}
    for step in trace.steps:
        call = step.call
        if isinstance(call, ToolCall) and call.requested_by is not None:
            found.setdefault(call.requested_by, []).append((step.seq, call.name))
    return {by: tuple([n for _, n in sorted(names)]) for by, names in found.items()}


def _offers_of_agents(trace: Trace) -> dict[int, Offer]:
    """What the steps of agents say their agent may call, by invocation."""
    found: dict[int, Offer] = {}
    for step in trace.steps:
        if step.kind is StepKind.AGENT and step.invocation is not None:
            offer = together([found.get(step.invocation), offer_of(step.body)])
            if offer is not None:
                found[step.invocation] = offer
    return found


def _request(step: Step, joined: tuple[str, ...], of_agent: Offer | None) -> _Request:
    offer = offer_of(step.body)
    if offer is None and of_agent is not None:
        # An agent lists its tools without those that hand over to other agents.
        offer = msgspec.structs.replace(
            of_agent, built_in=of_agent.built_in | {"transfer_to", "handoff"}
        )
    if offer is None:
        return _Request(step.seq, None, ())
    output = None if step.body is None else step.body.output
    if output is None and not joined:
        # Without the answer nobody knows what it asked for.
        return _Request(step.seq, None, ())
    asked = dict.fromkeys((*asked_in(output), *joined))
    return _Request(step.seq, offer, tuple(filter(_is_name, asked)))


def _is_name(name: str) -> bool:
    """Whether it is a recorded name, which neither is missing nor was redacted."""
    return name != UNNAMED_TOOL and REDACTED not in name


def _answer(requests: list[_Request], evidence: Evidence) -> Screening:
    read = [one for one in requests if one.offer is not None and not one.offer.is_open]
    hashed = hash_of_inputs(
        "tool-not-offered",
        evidence.scope,
        [
            (one.asked, sorted(one.offer.names), sorted(one.offer.built_in))
            for one in read
            if one.offer is not None and one.asked
        ],
        (len(read), len(requests)),
    )
    missing = [one for one in read if one.missing]
    if missing:
        evidence = _with_names(evidence, missing, read)
    return _judged(requests, read, missing).with_evidence(evidence, hashed)


def _judged(
    requests: list[_Request], read: list[_Request], missing: list[_Request]
) -> Judgement:
    n = len(requests)
    if not read:
        has_open = any(one.offer is not None for one in requests)
        why = (
            "the offers hold servers of tools, or definitions that cannot be read"
            if has_open
            else "the file keeps no list of tools, or not what the answers asked for"
        )
        return Judgement(
            Answer.NOT_APPLICABLE,
            "offer_open" if has_open else "offer_not_recorded",
            "What was offered is not recorded",
            f"No complete offer is recorded for {'the only model call' if n == 1 else f'any of {n} model calls'}: {why}.",
        )
    asked = sum(len(one.asked) for one in read)
    rest = (
        f" Of {counted(n - len(read), 'more call')} the offer or the answer is not recorded."
        if n > len(read)
        else ""
    )
    calls = counted(len(read), "model call")
    if not asked:
        return Judgement(
            Answer.QUIET,
            "none_asked_for",
            f"No tool asked for in {calls}",
            f"The offer is recorded for {calls}, and no tool was asked for.{rest}",
        )
    if not missing:
        tools = counted(asked, "requested tool")
        return Judgement(
            Answer.QUIET,
            "all_offered",
            f"{tools}, {'' if asked == 1 else 'all '}offered",
            f"{calls} asked for {counted(asked, 'tool')}, and no name is missing from "
            f"the offer of its call.{rest}",
        )
    names = list(dict.fromkeys(name for one in missing for name in one.missing))
    shown = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
    who = (
        "The only model call with a recorded offer"
        if len(read) == 1
        else f"{len(missing)} of {calls}"
    )
    return Judgement(
        Answer.SIGNAL,
        "not_offered",
        f"Asked for a tool that was not offered: {shown}",
        f"{who} asked for a tool that the recorded offer does not hold: {shown}.{rest} A fact about two lists; what "
        "the request led to is for a person to see.",
        Level.REVIEW_SIGNAL,
    )


def _with_names(
    evidence: Evidence, missing: list[_Request], read: list[_Request]
) -> Evidence:
    first = missing[0].offer
    requests = [
        {"step": one.step, "not_offered": one.missing} for one in missing[:_SHOWN]
    ]
    return msgspec.structs.replace(
        evidence,
        effect=len(missing) / len(read),
        steps=tuple([one.step for one in missing]),
        facts={
            "requests": requests,
            "offered": sorted(first.names)[:100] if first else [],
            "compared_as": sorted(
                {plain_name(name) for one in missing for name in one.missing}
            )[:_SHOWN],
        },
    )
