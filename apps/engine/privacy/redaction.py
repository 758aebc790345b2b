"""Replacing secrets in what people read of a trace, and counting them by rule.

Touched are the values of bodies (input, output, reasoning, attributes; also JSON that
was put into a text), error messages, metadata, labels and the reader's notes, and what
a trace is called where that is several words: some formats take its name, its task or
the wording of its outcome from what was said. Never touched are names of agents, tools
and models, ids, times and token counts, so the structure stays the same and checks
find what they compare; checks that read bodies see the redacted ones. Equal texts stay
equal, and tasks that differ in a secret stay apart. It does not claim to find every
secret: what has no known form and no name beside it stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from apps.engine.privacy.named_secrets import (
    NAMED_KEY,
    PASSWORD,
    is_password_value,
    is_secret_value,
    names_a_key,
    names_a_password,
)
from apps.engine.privacy.people import CARD, is_card
from apps.engine.privacy.prefilter import Prefilter
from apps.engine.privacy.rule import Passed, Rule, after_escape
from apps.engine.privacy.rules import RULES
from apps.engine.privacy.structure import mark_of
from apps.engine.trace import Body, Step, Trace

Counts = Counter[str]
Found = tuple[int, int, Rule]

_BARE_NUMBER: Final = re.compile(r"(\\{0,15}\")\s{0,4}:\s{0,4}\Z")
_CARD_NAME: Final = re.compile(r"card|(?:^|[_\W])(?:pan|cc)(?:$|[_\W])", re.IGNORECASE)
_CARD_RANGE: Final = range(10**12, 10**19)
SHORTEST: Final = 6
GROUP: Final = 16
KNOWN: Final = 64
REPEATED: Final = range(1_000, 65_536)
_encoder: Final = msgspec.json.Encoder()
_ALL: Final = Prefilter(RULES)


def rules_that_match(data: bytes, among: tuple[Rule, ...] = RULES) -> tuple[Rule, ...]:
    """The rules that find something in UTF-8; for most texts there is none.

    Bytes, because a Python text with one wide character is searched much slower.
    """
    low = data.lower()
    if among is RULES:
        rules = _ALL.candidates(low)
    else:
        passed: Passed = {}
        rules = [rule for rule in among if rule.may_match(low, passed)]
    if not rules:
        return ()
    text = data.decode()
    return tuple(rule for rule in rules if next(iter(rule.find(text)), None))


def redact_text(
    text: str, counts: Counts, rules: tuple[Rule, ...] | None = None
) -> str:
    """The text with a mark in the place of each secret; hits are added to `counts`."""
    if len(text) < SHORTEST:
        return text
    if rules is None:
        rules = rules_that_match(text.encode("utf-8", "replace"))
    found: list[Found] = []
    for rule in rules:
        _add(found, rule, text)
    return _replaced(text, found, counts) if found else text


def _add(found: list[Found], rule: Rule, text: str) -> None:
    for begins, end in rule.find(text):
        start = after_escape(text, begins)
        if start < end and not any(start < b and a < end for a, b, _ in found):
            found.append((start, end, rule))


def _replaced(text: str, found: Iterable[Found], counts: Counts) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, rule in sorted(found, key=lambda one: one[0]):
        counts[rule.slug] += 1
        pieces += (text[at:start], _mark_in(text, start, rule))
        at = end
    return "".join((*pieces, text[at:]))


def _mark_in(text: str, start: int, rule: Rule) -> str:
    """The mark; in quotes where a bare number of JSON stood, so that it stays JSON."""
    if rule is not CARD:
        return rule.mark
    bare = _BARE_NUMBER.search(text, max(0, start - 16), start)
    return f"{bare[1]}{rule.mark}{bare[1]}" if bare else rule.mark


class Redactor:
    """Redacts traces and texts, and counts what it replaced by rule slug."""

    def __init__(self) -> None:
        self.counts: Counts = Counter()
        self._clean = _CleanTexts()

    def text(self, text: str) -> str:
        """A text without its secrets."""
        return redact_text(text, self.counts)

    def trace(self, trace: Trace) -> Trace:
        """The trace without secrets in what people read; unchanged when it has none."""
        changed = _wording(trace)
        about = (trace.metadata, trace.labels, trace.notes)
        if any(about) and (rules := _rules_for(about)):
            walk = _Walk(self.counts, rules)
            for name, old in zip(("metadata", "labels", "notes"), about, strict=True):
                if (new := walk.value(old)) is not old:
                    changed[name] = new
        steps = self._steps(trace.steps)
        if steps is not trace.steps:
            changed["steps"] = steps
        return msgspec.structs.replace(trace, **changed) if changed else trace

    def _steps(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Steps by the group: most groups have no secret and are looked at once."""
        new: list[Step] = []
        for first in range(0, len(steps), GROUP):
            group = steps[first : first + GROUP]
            texts = [(self._clean.unseen(step), step.error_message) for step in group]
            rules = _rules_for(texts)
            if rules:
                new += [self._step(step, rules) for step in group]
            else:
                self._clean.remember(group)
                new += group
        if all(a is b for a, b in zip(new, steps, strict=True)):
            return steps
        return tuple(new)

    def _step(self, step: Step, rules: tuple[Rule, ...]) -> Step:
        body, message = step.body, step.error_message
        if body is not None:
            body = self._body(body, rules)
        if message is not None:
            message = redact_text(message, self.counts, rules)
        if body is step.body and message == step.error_message:
            return step
        return msgspec.structs.replace(step, body=body, error_message=message)

    def _body(self, body: Body, among: tuple[Rule, ...]) -> Body:
        rules = _rules_for(body, among)
        if not rules:
            return body
        walk = _Walk(self.counts, rules)
        fields = (body.input, body.output, body.reasoning, body.attributes)
        new = tuple(walk.value(field) for field in fields)
        if all(a is b for a, b in zip(new, fields, strict=True)):
            return body
        return Body(*new)


def _wording(trace: Trace) -> dict[str, Any]:
    """What is several words in how a trace is called, without its secrets.

    They are copies of what was said somewhere, so they are not counted again.
    """
    changed: dict[str, Any] = {}
    if (name := _said(trace.name)) != trace.name:
        changed["name"] = name
    if trace.task is not None and (task := _said(trace.task)) != trace.task:
        changed["task"] = f"{task} ({mark_of(trace.task)})"
    outcome = trace.outcome
    if outcome.label is not None and (label := _said(outcome.label)) != outcome.label:
        changed["outcome"] = msgspec.structs.replace(outcome, label=label)
    return changed


def _said(text: str) -> str:
    return redact_text(text, Counter()) if " " in text.strip() else text


class _CleanTexts:
    """Long texts in which no rule found anything, such as the same prompt in each trace.

    Looking one up costs a tenth of searching it again. The last few are kept.
    """

    def __init__(self) -> None:
        self._known: dict[str, None] = {}

    def unseen(self, step: Step) -> Any:
        """The body of a step for a search, without an output that is known."""
        body = step.body
        if body is None:
            return None
        said = body.output
        if isinstance(said, str) and len(said) in REPEATED and said in self._known:
            self._keep(said)
            return (body.input, body.reasoning, body.attributes)
        return body

    def remember(self, steps: Iterable[Step]) -> None:
        """Keep the long outputs of steps in which nothing was found."""
        for step in steps:
            said = step.body.output if step.body is not None else None
            if isinstance(said, str) and len(said) in REPEATED:
                self._keep(said)

    def _keep(self, text: str) -> None:
        self._known.pop(text, None)
        self._known[text] = None
        if len(self._known) > KNOWN:
            del self._known[next(iter(self._known))]


def _rules_for(value: Any, among: tuple[Rule, ...] = RULES) -> tuple[Rule, ...]:
    """The rules that find something in a JSON value written as one text."""
    try:
        return rules_that_match(_encoder.encode(value), among)
    except (UnicodeError, ValueError, TypeError, msgspec.MsgspecError):
        return among


class _Walk:
    """One walk over a JSON value with the rules that may match in it."""

    def __init__(self, counts: Counts, rules: tuple[Rule, ...]) -> None:
        self._counts = counts
        self._rules = rules
        self._by_name = NAMED_KEY in rules or PASSWORD in rules or CARD in rules

    def value(self, value: Any) -> Any:
        """The value without secrets; the very same object when it has none."""
        if isinstance(value, str):
            return redact_text(value, self._counts, self._rules)
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list | tuple):
            new = [self.value(item) for item in value]
            if all(a is b for a, b in zip(new, value, strict=True)):
                return value
            return tuple(new) if isinstance(value, tuple) else new
        return value

    def _object(self, value: dict[Any, Any]) -> dict[Any, Any]:
        is_changed = False
        new: dict[Any, Any] = {}
        for key, item in value.items():
            fresh_key = self._key(key, new)
            fresh = self._named(_name_of(key, value), item)
            is_changed |= fresh is not item or fresh_key is not key
            new[fresh_key] = fresh
        return new if is_changed else value

    def _key(self, key: Any, taken: dict[Any, Any]) -> Any:
        if not isinstance(key, str):
            return key
        fresh = redact_text(key, self._counts, self._rules)
        if fresh is key:
            return key
        name, number = fresh, 1
        while name in taken:
            number += 1
            name = f"{fresh} ({number})"
        return name

    def _named(self, name: str, item: Any) -> Any:
        rule = _rule_by_name(name, item) if self._by_name else None
        if rule is None:
            return self.value(item)
        for other in self._rules:
            # A form of its own says more than the name beside it.
            if isinstance(item, str) and (0, len(item)) in other.find(item):
                rule = other
                break
        self._counts[rule.slug] += 1
        return rule.mark


def _name_of(key: Any, within: dict[Any, Any]) -> str:
    """The name of a value: its key, or the name beside it in a pair of name and value."""
    if key == "value":
        named = within.get("name") or within.get("key")
        if isinstance(named, str):
            return named
    return key if isinstance(key, str) else ""


def _rule_by_name(name: str, item: Any) -> Rule | None:
    if isinstance(item, str):
        if is_secret_value(item) and names_a_key(name):
            return NAMED_KEY
        if is_password_value(item, is_quoted=True) and names_a_password(name):
            return PASSWORD
    elif type(item) is int and item in _CARD_RANGE:
        return CARD if _CARD_NAME.search(name) and is_card(str(item)) else None
    return None


def redact(trace: Trace) -> tuple[Trace, Counts]:
    """A trace without secrets, and how many were replaced by rule slug."""
    redactor = Redactor()
    return redactor.trace(trace), redactor.counts
