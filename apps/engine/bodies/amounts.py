"""Numbers in texts: those that an answer claims, and all readings of those it may use.

A claim is read strictly: dates, times, ids, versions, list numbers, years and code are
no amounts. What supports a claim is read generously: any run of digits counts, in
every style of separators, so that a doubt never becomes a claim without support.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from apps.engine.bodies.scripts import is_unspaced

_MONTHS: Final = (
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march"
    r"|april|june|july|august|september|october|november|december"
    r"|januar|februar|märz|mai|juni|juli|oktober|dezember"
    r"|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre"
    r"|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre"
    r"|diciembre|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre"
    r"|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro"
    r"|januari|februari|maart|mei|augustus)\b\.?"
)
_LABELS: Final = (
    r"(?:step|section|figure|fig|table|chapter|page|pages|line|lines|version|item|option"
    r"|question|part|phase|level|number|no|nr|id|rfc|issue|port|http|error|code|status"
    r"|room|gate|flight|seat|exit|python|windows|test|case|task|attempt|round|trial"
    r"|ios|macos|android|ubuntu|debian|node|java|swift|swiftui|php|ruby|chrome|firefox"
    r"|iso|din|ext|extension|tel|telefon|phone|fax|boeing|airbus"
    r"|schritt|artikel|art|kapitel|seite|zeile|abschnitt|absatz|abs|ziffer|abbildung"
    r"|tabelle|étape|numéro|chapitre|página|paso|capítulo|artículo"
    r"|gpt|claude|gemini|llama|es|http|vue|react|angular|postgres|postgresql|mysql"
    r"|sample|example|exercise|article|rule|note|ticket|order|account|zip|day|week|top)"
)
# Every alternative is bounded or cannot give back what it took, so that no text makes
# the search slow. What is looked for ahead of them holds wherever one of them begins
# (a digit, a mark, a word with a number or “://” behind it): it changes nothing but the
# time, most of which went into words.
_NOT_AMOUNTS: Final = re.compile(
    r"(?=[`\n§第제+(\d]|\b\w{1,12}(?:://|\W{0,6}\d)|\A)(?:"
    r"```.*?(?:```|\Z)"
    r"|`[^`\n]{0,400}`"
    r"|\b(?:https?|ftp|file)://[^\s<>\"')\]]{1,2000}"
    r"|(?:^|\n)[\s>*#|\-]{0,12}\(?\d{1,3}[.):](?=\s)"
    r"|\b\d{4}-\d{1,2}(?:-\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?Z?)?)?\b"
    r"|\b\d{1,4}/\d{1,4}(?:/\d{2,4})?\b"
    r"|\b\d{1,2}\.\d{1,2}\.\d{2,4}\b"
    r"|\b\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,9})?(?:\s?[ap]\.?m\b)?"
    r"|\b\d{1,2}\s?[ap]\.?m\b"
    r"|\b\d{1,2}\s?(?:uhr\b|h\d{2}\b)|\b0\d{1,5}[\s/\-]\d{3,10}\b|§{1,2}\s?\d{1,5}\b"
    r"|\b[1-9]\d{3}s\b|\b\d{3,5}[x\u00d7]\d{3,5}\b"
    r"|[第제]\s?\d{1,6}|\d{1,4}\s?[年月日号號時时点點分秒년월일시초호]"
    rf"|\b(?=\w{{3,12}}\b\.?\s{{1,3}}\d){_MONTHS}\s{{1,3}}\d{{1,2}}(?:st|nd|rd|th)?\b(?:\s?[-\u2013]\s?\d{{1,2}}\b)?"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th|\.|er)?\s{{1,3}}(?:(?:of|de)\s{{1,3}})?{_MONTHS}"
    r"|\b(?:24|48|72)[\s-]?(?:h|hrs?|hours?)\b|\b60[\s-]?(?:mins?|minutes?|secs?|seconds?)\b"
    r"|\b12[\s-]?months?\b|\b365[\s-]?days?\b"
    r"|\b\d{1,3}\s?(?:h|hrs?|hours?)\s?,?(?:and\s)?\s?\d{1,2}\s?(?:m|mins?|minutes?)\b"
    r"|\+\d[\d\s().\-]{6,20}\d"
    r"|\(?\b\d{3}\)?[\s.\-]\d{3}[\s.\-]\d{4}\b"
    r"|\bv?\d{1,6}(?:\.\d{1,6}){2,6}\b"
    r"|\b(?=\w{2,12}\b\.?\s{0,2}[#:]?\s{0,2}\d)"
    rf"{_LABELS}\b\.?\s{{0,2}}[#:]?\s{{0,2}}\d[\d,.\-]{{0,12}})",
    re.IGNORECASE | re.DOTALL,
)
_NUMBER: Final = re.compile(r"\d+(?:[.,'\u2019_\u00a0\u202f\u2009]\d+)*")
_SPACED: Final = re.compile(
    r"(?<![\d.,])\d{1,3}(?: \d{3}){1,5}(?!\d)(?:[.,]\d{1,2}(?!\d))?"
)
_MONEY_BEFORE: Final = re.compile(
    r"(?<![^\W\d_])(?:USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|BRL"
    r"|Rs\.?|R\$|kr\.?)\Z"
)
_MONEY: Final = re.compile(r"\d{1,12}(?:[.,]\d{3})*[.,]\d{2}")
_ARABIC_MARKS: Final = str.maketrans({"\u066b": ".", "\u066c": ","})
_TWO_DIGITS: Final = re.compile(r"\d.?\d")
_LIST: Final = re.compile(r"\d+(?:,\d+)+")
_AFTER: Final = re.compile(r"\s?(%|percent\b|per cent\b|[A-Za-zµ°]{1,12})?")
_SCALES: Final = {
    "k": 1e3, "thousand": 1e3, "m": 1e6, "mm": 1e6, "mn": 1e6, "million": 1e6,
    "millions": 1e6, "b": 1e9, "bn": 1e9, "billion": 1e9, "trillion": 1e12,
}  # fmt: skip
_ORDINALS: Final = frozenset({"st", "nd", "rd", "th"})
_UNITS: Final = frozenset(
    {
        "x", "ms", "s", "sec", "secs", "min", "mins", "h", "hr", "hrs", "kg", "g", "mg",
        "km", "m", "cm", "mm", "mi", "ft", "in", "lb", "lbs", "oz", "kb", "mb", "gb",
        "tb", "kib", "mib", "gib", "c", "f", "usd", "eur", "gbp", "chf", "k", "b", "bn",
        "mn", "w", "kw", "kwh", "mph", "hz", "ghz", "mhz", "l", "ml", "d", "pp", "pt",
        "px", "percent", "%", "°", "°c", "°f",
    }
)  # fmt: skip
_CURRENCY: Final = "$€£¥₹"
_ID_BEFORE: Final = frozenset("#@/\\=&?_~")
_YEARS: Final = range(1800, 2101)
_LONGEST: Final = 15
_WORDS: Final = {
    "ten": 10, "eleven": 11, "twelve": 12, "dozen": 12, "thirteen": 13, "fourteen": 14,
    "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90, "hundred": 100, "thousand": 1000, "half": 50,
    "quarter": 25, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
    "seven": 7, "eight": 8, "nine": 9,
}  # fmt: skip
_WORD_NUMBER: Final = re.compile(
    r"\b(?:(twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[- ])?("
    + "|".join(_WORDS)
    + r")\b",
    re.IGNORECASE,
)


class Claim(msgspec.Struct, frozen=True):
    """A number that a text states.

    `readings` are the values it may mean (1.234 is a thousand or about one), each with
    half a unit of its last shown digit. `digits` counts the significant digits of the
    text: 42.00 has four, 0.50 two, 4200 two. `pieces` are the numbers of a list without blanks
    (`12,13`).
    """

    text: str
    readings: tuple[tuple[float, float], ...]
    digits: int
    is_percent: bool
    pieces: tuple[float, ...] = ()


def claims_in(text: str) -> list[Claim]:
    """The amounts of two or more digits that `text` states, in order, each text once.

    None where no two digits stand together.
    """
    if _TWO_DIGITS.search(text) is None:
        return []
    masked = _NOT_AMOUNTS.sub(_blank, _with_plain_marks(text))
    found: dict[str, Claim] = {}
    for match in _tokens(masked):
        claim = _claim(masked, match)
        if claim is not None:
            found.setdefault(claim.text, claim)
    return list(found.values())


def _with_plain_marks(text: str) -> str:
    """The text with a point and a comma for the marks of Arabic numbers."""
    return text if text.isascii() else text.translate(_ARABIC_MARKS)


def _blank(match: re.Match[str]) -> str:
    # Not a blank: digits on both sides of what is masked must not come together.
    return "\n" * (match.end() - match.start())


def _tokens(text: str) -> Iterator[re.Match[str]]:
    """Numbers from left to right; thousands with blanks count as one number."""
    spaced = {match.start(): match for match in _SPACED.finditer(text)}
    reach = 0
    for match in _NUMBER.finditer(text):
        if match.start() < reach:
            continue
        match = spaced.get(match.start(), match)
        reach = match.end()
        yield match


def _claim(text: str, match: re.Match[str]) -> Claim | None:
    token, start = match.group(), match.start()
    after = _AFTER.match(text, match.end())
    unit = ((after.group(1) if after else None) or "").casefold()
    beyond = text[match.end() : match.end() + 1]
    is_glued = beyond.isalpha() and not is_unspaced(beyond)
    if _is_id(text, start, token) or (is_glued and unit not in _UNITS):
        return None
    digits = re.sub(r"\D", "", token)
    if len(digits) > _LONGEST or _is_code(token, digits):
        return None
    if _is_year(token, unit) and text[start - 1 : start] not in _CURRENCY:
        return None
    scale = _SCALES.get(unit, 1.0)
    plain = [(value, half) for value, half in readings_of(token)]
    scaled = [(value * scale, half * scale) for value, half in plain]
    return Claim(
        text=token + ("%" if unit in {"%", "percent", "per cent"} else ""),
        readings=tuple(dict.fromkeys(scaled + plain)),
        digits=_significant(token, digits),
        is_percent=unit in {"%", "percent", "per cent"},
        pieces=_pieces(token),
    )


def _significant(token: str, digits: str) -> int:
    """How many digits say something: zeros do behind a decimal mark only."""
    parts = re.split(r"\D", token)
    marks = {char for char in token if not char.isdigit()}
    is_decimal = len(marks) == 2 or (len(parts) == 2 and len(parts[1]) != 3)
    has_fraction = is_decimal and digits.strip("0")
    return len(digits.lstrip("0") if has_fraction else digits.strip("0"))


def _pieces(token: str) -> tuple[float, ...]:
    return tuple(map(float, token.split(","))) if _LIST.fullmatch(token) else ()


def _is_id(text: str, start: int, token: str = "") -> bool:
    """Whether what stands before a number makes it a part of an id or a path."""
    if start == 0 or _MONEY_BEFORE.search(text, max(start - 4, 0), start):
        return False
    before = text[start - 1]
    # `total=418.50` and `Total:418.50` are amounts, `id=418` and `a:418` are not.
    if before in "=:" and _MONEY.fullmatch(token):
        return False
    if (before.isalnum() and not is_unspaced(before)) or before in _ID_BEFORE:
        return True
    if before in "-\u2013.:":
        further = text[start - 2 : start - 1] if start > 1 else ""
        return further.isalpha() or (before == ":" and further.isalnum())
    return False


def _is_code(token: str, digits: str) -> bool:
    """Whether a number begins with a zero that no amount has: 007."""
    return len(digits) > 1 and token[0] == "0" and token[1].isdigit()


def _is_year(token: str, unit: str) -> bool:
    return (
        len(token) == 4
        and token.isdecimal()
        and int(token) in _YEARS
        and unit not in _UNITS
    )


def readings_of(token: str) -> tuple[tuple[float, float], ...]:
    """The values that a token of digits and separators may mean, each with its half unit.

    `1,234` is 1234 or 1.234; `1.234,56` is 1234.56; `1,23,456` is 123456.
    """
    marks = [char for char in token if not char.isdigit()]
    if not marks:
        return ((float(token), _half_of_whole(token)),)
    digits = "".join(char if char.isdigit() else " " for char in token)
    parts = digits.split()
    whole = "".join(parts)
    found = []
    if all(len(part) in {2, 3} for part in parts[1:]) and len(parts[-1]) == 3:
        found.append((float(whole), _half_of_whole(whole)))
    if marks[-1] in ".," and marks.count(marks[-1]) == 1:
        fraction = parts[-1]
        value = float("".join(parts[:-1]) + "." + fraction)
        found.append((value, 0.5 * 10.0 ** -len(fraction)))
    return tuple(found) or ((float(whole), 0.5),)


def _half_of_whole(digits: str) -> float:
    """Half a unit of the last digit that is not zero: 1500 may be 1,460 rounded."""
    zeros = len(digits) - len(digits.rstrip("0"))
    # 0.5 alone would let 41.5 stand for both 41 and 42, which is what rounding does.
    return 0.5 * 10.0 ** min(zeros, max(len(digits) - 2, 0))


def values_in(text: str) -> Iterator[float]:
    """Every value that digits in `text` may mean, in any style, without signs."""
    text = _with_plain_marks(text)
    for match in _NUMBER.finditer(text):
        token = match.group()
        if token.isdecimal():
            if len(token) <= _LONGEST:
                yield float(token)
            continue
        if len(token) > 4 * _LONGEST:
            continue
        for value, _ in readings_of(token):
            yield value
        pieces = re.split(r"\D", token)
        yield from (float(piece) for piece in pieces if len(piece) <= _LONGEST)
    for match in _SPACED.finditer(text):
        for value, _ in readings_of(match.group()):
            yield value


def amounts_in(text: str) -> Iterator[tuple[float, bool]]:
    """Yield what may be amounts in `text`, and whether each is a percentage.

    Judged by the characters beside each number alone, which is quick: parts of ids,
    dates and times are left out, and so are years.
    """
    text = _with_plain_marks(text)
    for match in _NUMBER.finditer(text):
        start, end = match.span()
        token = match.group()
        if len(token) > _LONGEST or _is_joined(text, start, end):
            continue
        if (len(token) > 1 and token[0] == "0" and token.isdecimal()) or _is_year(
            token, ""
        ):
            continue
        is_percent = text.startswith(("%", " %", " percent"), end)
        for value, _ in readings_of(token):
            yield value, is_percent


def _is_joined(text: str, start: int, end: int) -> bool:
    """Whether a number is a part of something longer: an id, a date, a time."""
    if _is_id(text, start):
        return True
    before, after = text[max(start - 2, 0) : start], text[end : end + 2]
    if before[-1:] in {"-", ":", "/"} and before[:1].isdigit():
        return True
    return after[:1] in {"-", ":", "/"} and after[1:].isdigit()


def words_in(text: str) -> Iterator[float]:
    """Numbers written as English words: twelve, twenty-five, half (of a hundred)."""
    for match in _WORD_NUMBER.finditer(text):
        tens, own = match.groups()
        value = _WORDS[own.casefold()]
        yield float(value + (_WORDS[tens.casefold()] if tens and value < 10 else 0))
