"""A contract in plain English, made from its spec."""

from __future__ import annotations

from typing import Final

from apps.engine.contracts.spec import (
    Condition,
    ContractSpec,
    Language,
    Operator,
    Scope,
    Selector,
    Subject,
)

KINDS: Final = {
    "": "step",
    "model_call": "model call",
    "tool_call": "tool call",
    "handoff": "handoff",
    "agent": "agent step",
    "retrieval": "retrieval",
    "guardrail": "guardrail",
    "user_message": "user message",
    "system": "system step",
    "memory": "memory step",
    "other": "other step",
}
_LONGEST_SHOWN: Final = 160


def plain_sentence(spec: ContractSpec) -> str:
    """What must hold, as one sentence with a full stop."""
    chosen = phrase(spec.select)
    if spec.operator is Operator.ALWAYS and spec.then is not None:
        said = f"every {chosen} must also be {with_article(phrase(spec.then))}"
    elif spec.operator is Operator.PRECEDES and spec.before is not None:
        said = f"before every {chosen}, there must be an earlier {phrase(spec.before)}"
    elif spec.operator is Operator.AT_MOST:
        times = "once" if spec.n == 1 else f"{spec.n:,} times"
        said = f"{with_article(chosen)} may come at most {times}"
    elif spec.operator is Operator.EVENTUALLY:
        said = f"there must be at least one {chosen}"
    else:
        said = f"there must be no {chosen}"
    where = "in each trace" if spec.scope is Scope.TRACE else "in each agent invocation"
    return f"{where.capitalize()}, {said}."


def phrase(selector: Selector) -> str:
    """The steps that a selector names, in the singular and without an article."""
    parts = [KINDS[selector.kind]]
    if selector.name:
        parts.append(f"named {_names(selector.name)}")
    if selector.agent:
        parts.append(f"of agent {_names(selector.agent)}")
    if selector.model:
        parts.append(f"to model {_names(selector.model)}")
    ends = []
    if selector.status:
        ends.append(f"whose status is “{selector.status}”")
    if selector.condition is not None:
        ends.append(_condition(selector.condition))
    return " ".join([*parts, " and ".join(ends)]).strip()


def with_article(noun: str) -> str:
    """`a tool call …`, `an agent step …`."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def _names(pattern: str) -> str:
    return " or ".join(f"“{name.strip()}”" for name in pattern.split("|"))


def _condition(condition: Condition) -> str:
    if condition.language is Language.CEL:
        shown = " ".join(condition.expression.split())
        if len(shown) > _LONGEST_SHOWN:
            shown = shown[:_LONGEST_SHOWN] + "…"
        return f"of which “{shown}” is true"
    if condition.subject is Subject.STEP:
        return "that fits the JSON Schema of the contract"
    verb = "fit" if condition.subject is Subject.ARGUMENTS else "fits"
    return f"whose {condition.subject.value} {verb} the JSON Schema of the contract"
