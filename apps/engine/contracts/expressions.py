"""CEL as a condition: what an expression may hold, and what it may cost at most.

CEL has no loops without an end and stops after 10,000 turns, but one turn can copy or
search a long text. So the worst that an expression can do to a value is worked out
from its tokens and charged before it is evaluated.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Any, Final

import msgspec
from cel_expr_python import cel

from apps.engine.contracts.budget import MOST_PER_STEP, Budget, Undecided, Value
from apps.engine.contracts.patterns import BadPattern, regular_expression

LONGEST_EXPRESSION: Final = 1_000
MOST_TURNS: Final = 10_000
MOST_SUMS: Final = 12
DEEPEST_LOOP: Final = 3

_TOKENS: Final = re.compile(
    r"""
    (?P<raw>(?:[rR][bB]?|[bB][rR])(?:"[^"\n]*"|'[^'\n]*'))
  | (?P<text>[bB]?(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>[0-9][A-Za-z0-9_.]*)
  | (?P<comment>//)
  | (?P<mark>\S)
    """,
    re.VERBOSE,
)
_LOOPS: Final = frozenset({"all", "exists", "exists_one", "map", "filter"})
_CONSTANTS: Final = frozenset({"true", "false", "null", "in"})
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_BODIES: Final = frozenset({"arguments", "result", "output"})


class BadExpression(ValueError):
    """An expression that is not used; the message is a sentence for its author."""


class _Token(msgspec.Struct, frozen=True):
    kind: str
    text: str


class _Weight(msgspec.Struct, frozen=True):
    """The worst that an expression can do, read off its tokens."""

    calls: int
    sums: int
    loops: int
    listed: int
    states: int
    copies: int
    products: int
    sought: int

    def cost(self, value: Value, length: int) -> int:
        """The units that the expression may need on `value`.

        Each turn of a loop can look at the whole value with every call, and each sum
        can double what it is given. A literal can hold its parts several times over,
        and a `map` over something else once for each turn: comparing such a value
        takes as long as if it were written out.
        """
        longest = max((value.longest + self.listed) * (1 + self.sums), 1)
        turns = min(MOST_TURNS, int(longest**self.loops))
        size = (value.size + length) * self.copies * int(longest**self.products)
        compared = size * (1 + self.calls) + size * self.sought // _SOUGHT_AT_ONCE
        if self.sought > LONGEST_EXPRESSION:
            compared += size * size // _SOUGHT_AT_ONCE
        # Comparing goes sixteen bytes at a time; copying for a sum does not.
        looked_at = compared << self.sums if self.sums else compared // 16
        return turns * (looked_at + size * self.states)


_SOUGHT_AT_ONCE: Final = 16
_ANY_TEXT: Final = LONGEST_EXPRESSION + 1


STEP: Final = ("step",)
"""The one variable of a condition on a step."""


class Expression:
    """A CEL expression, compiled once, over `step` or over variables of other names.

    `named` are the words that stand in it: names, fields, and texts in quotes.
    """

    def __init__(self, source: str, *, variables: tuple[str, ...] = STEP) -> None:
        """Raises `BadExpression` with a sentence."""
        self._is_of_step = variables == STEP
        self._noun = "step" if self._is_of_step else "invocation"
        if not source.strip():
            example = "step.name" if self._is_of_step else f"{variables[0]}.name"
            raise BadExpression(f'Write an expression, such as {example} == "refund".')
        if len(source) > LONGEST_EXPRESSION:
            raise BadExpression(
                f"An expression may have at most {LONGEST_EXPRESSION:,} characters; "
                f"this one has {len(source):,}."
            )
        tokens = _tokens(source)
        self._length = len(source)
        self._weight = _weighed(tokens)
        self._compiled = _compile(source, variables)
        self.named = frozenset(
            token.text.lstrip("rRbB")[1:-1]
            if token.kind in {"raw", "text"}
            else token.text
            for token in tokens
            if token.kind in {"raw", "text", "name"}
        )
        self.reads_bodies = any(
            token.kind == "name" and token.text in _BODIES for token in tokens
        ) or any(token.text == "[" for token in tokens)

    def holds(self, value: Value, budget: Budget) -> bool:
        """Whether the expression is true of a step, whose numbers are decimals.

        With other variables `value` is an object that holds each of them by its name.
        Raises `Undecided` where it fails on the step or is neither true nor false, and
        `BudgetSpent` when the trace has cost too much.
        """
        cost = self._weight.cost(value, self._length)
        if cost > MOST_PER_STEP:
            raise Undecided(
                f"the expression may need too much work on this {self._noun}"
            )
        budget.charge(cost + 1_000)
        data = {"step": value.plain} if self._is_of_step else value.plain
        try:
            answer = self._compiled.eval(data=data)
        except (RuntimeError, ValueError, TypeError, MemoryError) as error:
            raise Undecided(_in_words(str(error), self._noun)) from None
        if answer.type() == cel.Type.BOOL:
            return bool(answer.value())
        if answer.type() == cel.Type.ERROR:
            raise Undecided(_in_words(str(answer.value()), self._noun))
        raise Undecided(
            f"the expression is neither true nor false on this {self._noun}"
        )


_ENVIRONMENT: Final = cel.NewEnv(variables={"step": cel.Type.DYN})


@cache
def _environment(variables: tuple[str, ...]) -> Any:
    return cel.NewEnv(variables=dict.fromkeys(variables, cel.Type.DYN))


def _compile(source: str, variables: tuple[str, ...]) -> Any:
    try:
        compiled = _environment(variables).compile(source)
    except (RuntimeError, ValueError, TypeError) as error:
        raise BadExpression(_complaint(str(error))) from None
    if compiled.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
        raise BadExpression(
            "The expression must be true or false; this one gives "
            f"{compiled.return_type().name()}."
        )
    return compiled


def _complaint(said: str) -> str:
    """The first complaint of the compiler as a sentence with its place."""
    found = re.search(r"<input>:(-?\d+):(-?\d+): ([^\n]*)", said)
    if found is None:
        return "CEL does not understand this expression: it may be nested too deep."
    line, column, what = found.groups()
    what = what.split("(in container")[0].split(" expecting {")[0]
    what = what.replace("mismatched input '<EOF>'", "it ends too early")
    what = what.strip().rstrip(".")[:160]
    if int(column) < 1:
        return f"CEL does not understand this expression: {what}."
    place = f"character {column}" if line == "1" else f"line {line}, character {column}"
    return f"CEL does not understand this expression at {place}: {what}."


def _in_words(error: str, noun: str) -> str:
    """Why an expression failed on a step; never with what was recorded there."""
    missing = re.search(
        r'(?:Key not found in map :|No value with name) "([A-Za-z0-9_]{1,60})"', error
    )
    if missing:
        return f"the {noun} has no “{missing.group(1)}”"
    if "no matching overload" in error.lower():
        return "a value has another type than the expression expects"
    if "SELECT" in error:
        return "a field is read of a value that has no fields"
    if "budget exceeded" in error:
        return f"the expression goes on after {MOST_TURNS:,} turns"
    if "divide by zero" in error or "modulus by zero" in error:
        return "the expression divides by zero"
    return f"the expression fails on this {noun}"


def _tokens(source: str) -> list[_Token]:
    if '"""' in source or "'''" in source or "`" in source:
        raise BadExpression("Write texts in single or double quotes, on one line.")
    tokens = [
        _Token(str(found.lastgroup), found.group())
        for found in _TOKENS.finditer(source)
    ]
    if any(token.kind == "comment" for token in tokens):
        raise BadExpression("A comment cannot stand in an expression.")
    if any(token.text in {'"', "'"} for token in tokens):
        raise BadExpression("A text in quotes is not closed.")
    return tokens


def _weighed(tokens: list[_Token]) -> _Weight:
    weight = _Weight(
        calls=sum(token.text in {"(", "=", "<", ">"} for token in tokens),
        sums=sum(token.text == "+" for token in tokens),
        loops=_deepest_loop(tokens),
        listed=sum(token.text == "," for token in tokens) + 1,
        states=_states(tokens),
        copies=_copies(tokens),
        products=_products(tokens),
        sought=_sought(tokens),
    )
    if weight.sums > MOST_SUMS:
        raise BadExpression(f"An expression may hold at most {MOST_SUMS} signs “+”.")
    if weight.loops > DEEPEST_LOOP:
        raise BadExpression(
            f"all, exists, map and filter may stand {DEEPEST_LOOP} deep in each other."
        )
    return weight


def _deepest_loop(tokens: list[_Token]) -> int:
    """How many loops at most stand inside each other (or on the result of another)."""
    open_loops: list[bool] = []
    deepest = 0
    for before, token in zip([_Token("", ""), *tokens], tokens, strict=False):
        if token.text == "(":
            open_loops.append(before.text in _LOOPS)
            deepest = max(deepest, sum(open_loops))
        elif token.text == ")" and open_loops:
            open_loops.pop()
    return deepest


def _copies(tokens: list[_Token]) -> int:
    """How often at most the literals of an expression repeat what they are given.

    Literals of plain texts and numbers repeat nothing.
    """
    copies = 1
    for place, token in enumerate(tokens):
        if token.text in {"[", "{"}:
            inside = _inside(tokens, place)
            if any(map(_is_name, inside)):
                copies *= 1 + _commas(inside)
    return copies


def _commas(inside: list[_Token]) -> int:
    """The commas between the parts of a literal, not those inside its parts."""
    depth = commas = 0
    for token in inside:
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        commas += token.text == "," and depth == 0
    return commas


def _inside(tokens: list[_Token], place: int) -> list[_Token]:
    """The tokens between the bracket at `place` and the one that closes it."""
    depth = 0
    for end in range(place, len(tokens)):
        depth += (tokens[end].text in _OPENING) - (tokens[end].text in _CLOSING)
        if depth == 0:
            return tokens[place + 1 : end]
    return tokens[place + 1 :]


def _products(tokens: list[_Token]) -> int:
    """How many loops build something in each turn that is no part of the turn's own.

    `a.map(x, x.id)` gives no more than `a` holds, `a.map(x, b)` can give `b` often.
    """
    places = [
        place + 1
        for place, (before, token) in enumerate(pairwise(tokens))
        if before.text == "map" and token.text == "("
    ]
    own = {place: _inside(tokens, place) for place in places}
    return sum(_reaches_out(tokens, inside) for inside in own.values())


def _reaches_out(tokens: list[_Token], inside: list[_Token]) -> bool:
    """Whether the body of a loop names what does not come from its own variable."""
    used = [
        token.text
        for before, token, after in zip(
            inside, inside[1:], [*inside[2:], _Token("", "")], strict=False
        )
        if _is_name(token) and before.text != "." and after.text != "("
    ]
    everywhere, here = _variables(tokens), _variables(inside)
    inner = {name for name in here if here.count(name) == everywhere.count(name)}
    return not {inside[0].text, *inner}.issuperset(used) if inside else False


def _variables(tokens: list[_Token]) -> list[str]:
    """The variables of all loops, as often as each is declared."""
    return [
        name.text
        for loop, bracket, name in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if loop.text in _LOOPS and bracket.text == "("
    ]


def _is_name(token: _Token) -> bool:
    return token.kind == "name" and token.text not in _CONSTANTS


def _sought(tokens: list[_Token]) -> int:
    """The characters that `contains` looks for; very many where they are recorded."""
    sought = 0
    for place, token in enumerate(tokens):
        if token.text == "contains":
            given = tokens[place + 1 :][:3]
            is_text = len(given) == 3 and given[1].kind in {"text", "raw"}
            is_text = is_text and given[2].text == ")"
            sought += len(given[1].text) if is_text else _ANY_TEXT
    return sought


def _states(tokens: list[_Token]) -> int:
    """The states of all patterns, which must stand in the expression as texts."""
    states = 0
    for place, token in enumerate(tokens):
        if token.kind == "name" and token.text == "matches":
            states += _pattern_states(
                tokens[place - 1 : place], tokens[place + 1 :][:3]
            )
    return states


def _pattern_states(before: list[_Token], behind: list[_Token]) -> int:
    kinds = [token.kind for token in behind]
    is_called = [token.text for token in before] == ["."] and [
        token.text for token in behind[::2]
    ] == ["(", ")"]
    if not is_called or kinds[1] not in {"text", "raw"}:
        raise BadExpression('Write the pattern of “matches” as a text: x.matches("…").')
    pattern = _ENVIRONMENT.compile(behind[1].text).eval(data={}).value()
    if not isinstance(pattern, str):
        raise BadExpression('Write the pattern of “matches” as a text: x.matches("…").')
    try:
        return regular_expression(pattern).programsize
    except BadPattern as error:
        raise BadExpression(str(error)) from None
