"""Contracts of agents in plain English: what is read, and what must hold of it."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from apps.engine.agent_contracts.spec import (
    AgentContractSpec,
    Kind,
    Language,
    Rule,
    Subject,
    When,
)
from apps.engine.contracts.spec import Scope
from apps.engine.contracts.wording import plain_sentence as temporal_sentence

_LONGEST_SHOWN: Final = 160
_MOST_SHOWN: Final = 6
_SUBJECTS: Final = {
    Subject.OUTPUT: "the output",
    Subject.INPUT: "the input",
    Subject.DECISION: "the decision",
}


def plain_sentence(spec: AgentContractSpec) -> str:
    """What must hold, and for which tasks and inputs, as one sentence."""
    before = []
    if spec.tasks:
        before.append(f"in tasks named {names_in(spec.tasks)}")
    if spec.applies_when is not None:
        before.append(f"for inputs of which {when_words(spec.applies_when)}")
    said = ", ".join([*before, _asked(spec)])
    return f"{said[:1].upper()}{said[1:]}."


def _asked(spec: AgentContractSpec) -> str:
    if spec.temporal is not None:
        inner = msgspec.structs.replace(spec.temporal, scope=Scope.INVOCATION)
        sentence = temporal_sentence(inner).rstrip(".")
        return f"{sentence[:1].lower()}{sentence[1:]}"
    if spec.when is not None and spec.then is not None:
        where = "" if spec.when.language is Language.CEL else f" of the {spec.when.of}"
        return f"where {when_words(spec.when)}{where}, {rule_words(spec.then)}"
    return rule_words(spec)


def when_words(when: When) -> str:
    """A condition in a sentence: `“plan == 'gold'” is true`."""
    return f"“{cut(when.expression)}” is true"


def rule_words(rule: Rule) -> str:
    """What is read and what must hold of it, without a full stop."""
    if rule.kind is Kind.CEL:
        return f"“{cut(rule.expression)}” must be true"
    return f"{place_words(rule)} {ask_words(rule)}"


def place_words(rule: Rule) -> str:
    """What is read: `“amount” of the arguments of each call of “refund”`."""
    if rule.subject is Subject.CALLS:
        whole = f"the arguments of each call of {names_in(rule.tool)}"
    else:
        whole = _SUBJECTS[rule.subject]
    return f"“{cut(rule.path)}” of {whole}" if rule.path else whole


def ask_words(rule: Rule) -> str:
    """What must hold: `must be “billing”`."""
    if rule.kind is Kind.EQUALITY:
        return f"must be {shown(rule.expected)}{_after(rule)}"
    if rule.kind is Kind.ONE_OF:
        listed = ", ".join(shown(value) for value in rule.values[:_MOST_SHOWN])
        rest = len(rule.values) - _MOST_SHOWN
        more = f" or {rest} more" if rest > 0 else ""
        return f"must be one of {listed}{more}{_after(rule)}"
    if rule.kind is Kind.RANGE:
        return f"must be a number {_bounds(rule)}{_after(rule)}"
    if rule.kind is Kind.REGEX:
        verb = "be all of the pattern" if rule.full else "hold the pattern"
        return f"must {verb} “{cut(rule.pattern)}”"
    if rule.kind is Kind.SUBSET:
        return f"must contain {shown(rule.expected)}{_after(rule)}"
    return "must fit the JSON Schema of the contract"


def _bounds(rule: Rule) -> str:
    bounds = []
    if rule.minimum is not None:
        word = "above" if rule.exclusive_minimum else "of at least"
        bounds.append(f"{word} {rule.minimum:,}")
    if rule.maximum is not None:
        word = "below" if rule.exclusive_maximum else "of at most"
        bounds.append(f"{word} {rule.maximum:,}")
    return " and ".join(bounds)


def _after(rule: Rule) -> str:
    """Which differences do not count, where the contract declares some."""
    if not rule.normalisers:
        return ""
    named = ", ".join(one.replace("_", " ") for one in rule.normalisers)
    return f" (differences in {named} do not count)"


def names_in(pattern: str) -> str:
    """Names with their alternatives: `“refund” or “credit*”`."""
    return " or ".join(f"“{name.strip()}”" for name in pattern.split("|"))


def shown(value: Any) -> str:
    """A value for a sentence: a text in quotes, anything else as JSON; never long."""
    if isinstance(value, str):
        return f"“{cut(value)}”"
    try:
        return cut(json.dumps(value, ensure_ascii=False, default=str))
    except (ValueError, RecursionError):
        return "a value that is nested too deep to show"


def cut(text: str) -> str:
    """A text on one line, at most 160 characters of it."""
    # Long texts are cut before their blanks are looked at.
    line = " ".join(text[: 4 * _LONGEST_SHOWN].split())
    is_cut = len(line) > _LONGEST_SHOWN or len(text) > 4 * _LONGEST_SHOWN
    return f"{line[:_LONGEST_SHOWN]}…" if is_cut else line
