"""Python literals as people find them in cells: read without running anything.

Data frames write lists and objects with Python's own spelling, numpy arrays without
commas. Reading them is a walk over tokens with a stack: no evaluation, no recursion,
at most `MAX_TOKENS` tokens and 128 levels.
Grammar: https://docs.python.org/3/reference/lexical_analysis.html#literals
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from apps.engine.reading.json_words import MAX_DEPTH, visible

MAX_TOKENS: Final = 500_000
_LONGEST_NUMBER: Final = 400
_TOKENS: Final = re.compile(
    r"""\s*+(?:
    (?P<text>(?P<prefix>[bBuU]?)(?:'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+"))
    |(?P<number>[+-]?(?:\d[\d_]*+(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?\d++)?+)
    |(?P<call>[A-Za-z_][\w.]*+)\s*+\(
    |(?P<word>[+-]?[A-Za-z_][\w.]*+)
    |(?P<open>[\[{(])
    |(?P<close>[\]})])
    |(?P<mark>[,:=])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))",
    re.DOTALL,
)
_SIMPLE: Final = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
    "\n": "",
}  # fmt: skip
_WORDS: Final = {
    "None": None, "True": True, "False": False, "true": True, "false": False,
    "null": None, "nan": None, "NaN": None, "NaT": None, "inf": None, "-inf": None,
    "NA": None, "object": "object",
}  # fmt: skip
_CLOSES: Final = {"[": "]", "{": "}", "(": ")"}
_FIRST_ARGUMENT: Final = frozenset(
    {
        "array", "Timestamp", "Timedelta", "UUID", "Decimal", "str", "float64",
        "float32", "int64", "int32", "str_", "bool_", "set", "frozenset", "tuple",
        "list", "deque",
    }
)  # fmt: skip
_OBJECTS: Final = frozenset({"OrderedDict", "dict", "defaultdict", "mappingproxy"})


class NotALiteral(ValueError):
    """The text is no Python literal that is read here."""


class _Frame:
    """One open bracket: its kind, the name before a call, what stands in it so far."""

    def __init__(self, bracket: str, call: str = "") -> None:
        self.closes = _CLOSES[bracket]
        self.call = call
        self.items: list[Any] = []
        self.keys: list[Any] = []
        self.keyword: str | None = None
        self.is_bare = True
        self.had_comma = False

    def add(self, value: Any) -> None:
        """Take a value; what stands behind a keyword's `=` is not needed."""
        if self.keyword is None:
            self.items.append(value)
        self.keyword = None
        self.is_bare = False

    def mark(self, mark: str) -> None:
        """Take a comma or a colon."""
        if mark == ":":
            if self.closes != "}" or self.is_bare:
                raise NotALiteral("A colon stands outside an object.")
            self.keys.append(self.items.pop())
        elif self.is_bare:
            raise NotALiteral("A comma stands where a value belongs.")
        self.had_comma = mark == ","
        self.is_bare = True

    def value(self) -> Any:
        """Return what the closed bracket holds."""
        if self.call:
            return _called(self.call.rsplit(".", 1)[-1], self.items)
        if self.closes == "}" and (self.keys or not self.items):
            if len(self.keys) != len(self.items):
                raise NotALiteral("An object has a key without a value.")
            pairs = zip(self.keys, self.items, strict=True)
            return {_key(key): item for key, item in pairs}
        if self.closes == ")" and len(self.items) == 1 and not self.had_comma:
            return self.items[0]
        return self.items


def literal(text: str) -> Any:
    """Return the value of a Python literal as JSON values: tuples and sets as lists.

    Raises `NotALiteral` for everything else, and for what is deeper than 128 levels
    or has more than `MAX_TOKENS` tokens. Dates become ISO texts; nan is `None`.
    """
    root = _Frame("(")
    stack = [root]
    at, end = 0, len(text.rstrip())
    for _ in range(MAX_TOKENS):
        if at >= end:
            break
        token = _TOKENS.match(text, at)
        if token is None:
            raise NotALiteral("This is not a Python literal.")
        at = token.end()
        _take(stack, token)
    else:
        raise NotALiteral("The literal has too many parts.")
    if len(stack) != 1 or len(root.items) != 1:
        raise NotALiteral("The literal is cut off, or more than one stands here.")
    return root.items[0]


def _take(stack: list[_Frame], token: re.Match[str]) -> None:
    kind = token.lastgroup
    if kind in _OPENERS:
        _OPENERS[kind](stack, token)
    elif kind == "close":
        _close(stack, token.group("close"))
    elif kind == "mark":
        _mark(stack[-1], token.group("mark"))
    elif kind == "word":
        _word(stack[-1], token.group("word"))
    else:
        stack[-1].add(_scalar(token))


def _push(stack: list[_Frame], frame: _Frame) -> None:
    if len(stack) > MAX_DEPTH:
        raise NotALiteral("The literal is nested too deep.")
    stack.append(frame)


def _open(stack: list[_Frame], token: re.Match[str]) -> None:
    _push(stack, _Frame(token.group("open")))


def _open_call(stack: list[_Frame], token: re.Match[str]) -> None:
    _push(stack, _Frame("(", token.group("call")))


_OPENERS: Final[dict[str | None, Callable[[list[_Frame], re.Match[str]], None]]] = {
    "open": _open,
    "call": _open_call,
}


def _close(stack: list[_Frame], bracket: str) -> None:
    frame = stack.pop()
    if not stack or frame.closes != bracket:
        raise NotALiteral("Brackets do not match.")
    stack[-1].add(frame.value())


def _mark(frame: _Frame, mark: str) -> None:
    if mark != "=":
        frame.mark(mark)
        return
    if not frame.call or not frame.items or not isinstance(frame.items[-1], _Name):
        raise NotALiteral("An equals sign stands outside a call.")
    frame.keyword = frame.items.pop()


class _Name(str):
    """A word that is a keyword of a call, or nothing that can be read."""

    __slots__ = ()


def _word(frame: _Frame, word: str) -> None:
    if word in _WORDS:
        frame.add(_WORDS[word])
    elif frame.call:
        frame.add(_Name(word))
    else:
        raise NotALiteral(f"The name {word[:40]} is no literal.")


def _scalar(token: re.Match[str]) -> Any:
    digits = token.group("number")
    return _number(digits) if digits else _text(token)


def _number(digits: str) -> int | float | None:
    if len(digits) > _LONGEST_NUMBER:
        raise NotALiteral("A number has hundreds of digits.")
    try:
        return int(digits)
    except ValueError:
        number = float(digits)
    return number if math.isfinite(number) else None


def _text(token: re.Match[str]) -> str:
    written = token.group("text")
    inner = written[len(token.group("prefix")) + 1 : -1]
    if "\\" in inner:
        inner = _ESCAPES.sub(_unescaped, inner)
    return visible(inner)


def _unescaped(escape: re.Match[str]) -> str:
    short, four, eight, octal, simple = escape.groups()
    if simple is not None:
        return _SIMPLE.get(simple, simple if simple in "\\'\"" else escape.group())
    code = int(octal, 8) if octal else int(short or four or eight, 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool | int | float):
        return str(key)
    raise NotALiteral("A key of an object is a list or an object.")


def _called(name: str, arguments: list[Any]) -> Any:
    """Return the value of `name(arguments)` for the few names that hold plain data."""
    if any(isinstance(item, _Name) for item in arguments):
        raise NotALiteral(f"The call of {name[:40]} holds a name.")
    if name in _FIRST_ARGUMENT:
        return arguments[0] if arguments else []
    if name in _OBJECTS:
        return _object(arguments)
    if name == "datetime" and 3 <= len(arguments) <= 7:
        return _moment(arguments)
    if name in {"timezone", "tzlocal", "tzutc", "ZoneInfo", "timedelta", "dtype"}:
        return None
    raise NotALiteral(f"The call of {name[:40]} is no literal.")


def _object(arguments: list[Any]) -> Any:
    pairs = arguments[-1] if arguments else {}
    if isinstance(pairs, dict):
        return pairs
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list) and len(pair) == 2 for pair in pairs
    ):
        raise NotALiteral("An object is not written as pairs.")
    return {_key(key): item for key, item in pairs}


def _moment(parts: list[Any]) -> str:
    """Return the ISO text of year, month, day and so on to microseconds."""
    if not all(isinstance(part, int) and 0 <= part < 10**6 for part in parts):
        raise NotALiteral("A time has parts that are no whole numbers.")
    year, month, day, hour, minute, second, micro = [*parts, 0, 0, 0, 0][:7]
    clock = f"{hour:02}:{minute:02}:{second:02}.{micro:06}"
    return f"{year:04}-{month:02}-{day:02} {clock}"
