"""Rules for what points at people: e-mail addresses and payment cards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from apps.engine.privacy.rule import Place, Rule

_LOCAL: Final = re.compile(r"[A-Za-z0-9À-ɏ][A-Za-z0-9À-ɏ._%+'\-]{0,63}\Z")
_DOMAIN: Final = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?\.){1,5}(?P<top>[A-Za-z]{2,10})"
    r"(?![A-Za-z0-9\-_])"
)
_TOPS: Final = frozenset(
    [
        "com",
        "org",
        "net",
        "edu",
        "gov",
        "mil",
        "int",
        "info",
        "biz",
        "name",
        "pro",
        "dev",
        "app",
        "xyz",
        "online",
        "site",
        "tech",
        "store",
        "cloud",
        "email",
        "agency",
        "digital",
        "global",
        "group",
        "life",
        "live",
        "media",
        "network",
        "news",
        "solutions",
        "studio",
        "systems",
        "team",
        "today",
        "tools",
        "work",
        "works",
        "world",
        "zone",
        "academy",
        "bank",
        "blog",
        "chat",
        "club",
        "company",
        "design",
        "energy",
        "expert",
        "finance",
        "health",
        "law",
        "ltd",
        "inc",
        "mobi",
        "museum",
        "shop",
        "space",
        "support",
        "travel",
        "video",
        "wiki",
        "jobs",
        "tel",
        "asia",
        "coop",
        "aero",
        "example",
        "test",
        "invalid",
    ]
)
# Endings of file names and of code that are countries too, or no country at all.
_NO_COUNTRIES: Final = frozenset(
    [
        "py",
        "js",
        "ts",
        "rb",
        "cs",
        "go",
        "md",
        "sh",
        "gz",
        "db",
        "so",
        "ml",
        "vb",
        "mm",
        "id",
        "jl",
        "kt",
        "hs",
        "ex",
        "fn",
        "ok",
        "tf",
        "ui",
        "vm",
    ]
)
_PATH_FOLLOWS: Final = re.compile(r":[~/\w.$]|[ ][^\]\n]{0,80}\][$#]")
_ACCOUNTS: Final = frozenset({"git", "hg", "root", "ubuntu", "ec2-user"})


def _find_addresses(text: str) -> Iterator[Place]:
    at = text.find("@")
    while at >= 0:
        place = _address(text, at)
        if place is not None:
            yield place
        at = text.find("@", at + 1)


def _address(text: str, at: int) -> Place | None:
    domain = _DOMAIN.match(text, at + 1)
    if domain is None or not _is_top(domain["top"].lower()):
        return None
    local = _LOCAL.search(text, max(0, at - 64), at)
    if local is None or _is_login(text, local.start(), at, domain.end()):
        return None
    return local.start(), domain.end()


def _is_top(top: str) -> bool:
    return top in _TOPS or (len(top) == 2 and top not in _NO_COUNTRIES)


def _is_login(text: str, start: int, at: int, end: int) -> bool:
    """Whether this is `user@host` of ssh, git or a shell's prompt, or in a URL."""
    if text[start:at] in _ACCOUNTS or text[max(0, start - 3) : start] == "://":
        return True
    return bool(_PATH_FOLLOWS.match(text, end)) and (
        text[end] == ":" or text[start - 1 : start] == "["
    )


EMAIL: Final = Rule(
    slug="e-mail",
    label="e-mail",
    looks_for=(
        "Addresses name@host.top whose last part is a country or a common top-level "
        "domain. Logins (git@…, user@host:path, shell prompts) are left."
    ),
    source="https://www.rfc-editor.org/rfc/rfc5322#section-3.4.1",
    triggers=(b"@",),
    find=_find_addresses,
    hits=(
        "write to jane.doe+eval@mail.acme.com.",
        '{"to": "o\'neil@uni.ac.uk"}',
        "JOSÉ@empresa.es",
        "a\\nbob@acme.org",
    ),
    misses=(
        "foo@v1.2",
        "user@host:~$ ls",
        "git@github.com:org/repo.git",
        "@decorator.name",
        "@pytest.fixture",
        "react@18.2.0",
        "image@2x.png",
        "[root@web01.acme.com etc]# ls",
        "scp deploy@web.acme.com:/srv/x .",
        "handler@module.py",
        "x @ y.T",
        "https://token@git.acme.com/x",
    ),
)

_CARD: Final = re.compile(
    r"[2-6](?:\d{3}([ \-]?)\d{4}\1\d{4}\1\d{1,7}|\d{3}([ \-]?)\d{6}\2\d{4,5})(?!\d)"
)
_BEFORE_NOT: Final = re.compile(r"[\w.\-#/+%$€£=&?@~]")
_ABOUT_CARDS: Final = re.compile(
    r"card|visa|master|amex|discover|maestro|payment|\bpan\b|\bcc\b|credit|debit",
    re.IGNORECASE,
)
_LENGTHS: Final = (
    # issuer prefixes: first and last value, and the lengths that are in use
    ("4", "4", {13, 16, 19}), ("51", "55", {16}), ("2221", "2720", {16}),
    ("34", "34", {15}), ("37", "37", {15}), ("6011", "6011", {16, 19}),
    ("644", "649", {16, 19}), ("65", "65", {16, 19}), ("3528", "3589", {16, 19}),
    ("300", "305", {14}), ("36", "36", {14}), ("38", "39", {14}), ("62", "62", {16, 19}),
)  # fmt: skip


def has_issuer(digits: str) -> bool:
    """Whether an issuer gives out numbers of this beginning and length."""
    return any(
        first <= digits[: len(first)] <= last and len(digits) in lengths
        for first, last, lengths in _LENGTHS
    )


def passes_luhn(digits: str) -> bool:
    """Whether the last digit fits the others (ISO/IEC 7812-1, annex B)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 * (value > 9)
    return total % 10 == 0


def is_card(digits: str) -> bool:
    """Whether these digits are a payment card: issuer, length and check digit."""
    return has_issuer(digits) and passes_luhn(digits) and len(set(digits)) > 1


def _find_cards(text: str) -> Iterator[Place]:
    for match in _CARD.finditer(text):
        start, end = match.span()
        digits = match[0].replace(" ", "").replace("-", "")
        if not is_card(digits) or not _stands_alone(text, start, end):
            continue
        is_grouped = len(digits) < end - start
        if is_grouped or len(digits) in {15, 16} or _speaks_of_cards(text, start):
            yield start, end


def _stands_alone(text: str, start: int, end: int) -> bool:
    before = text[start - 1 : start]
    if before and _BEFORE_NOT.match(before) and not _is_escape(text, start):
        return False
    after = text[end : end + 2]
    return not after or not (
        after[0].isalnum()
        or after[0] in "_/%"
        or (after[0] in ".-" and after[1:].isalnum())
    )


def _is_escape(text: str, start: int) -> bool:
    return text[start - 2 : start - 1] == "\\" and text[start - 1] in "nrtbf"


def _speaks_of_cards(text: str, start: int) -> bool:
    return bool(_ABOUT_CARDS.search(text, max(0, start - 60), start))


_DIGITS_TO_0: Final = bytes(48 if 48 <= byte <= 57 else byte for byte in range(256))
_LOOKS_OF_CARDS: Final = (b"0000000000000", b"0000 0000", b"0000-0000")


def _has_long_number(low: bytes) -> bool:
    zeros = low.translate(_DIGITS_TO_0)
    return any(look in zeros for look in _LOOKS_OF_CARDS)


CARD: Final = Rule(
    slug="payment-card",
    label="payment card",
    looks_for=(
        "13 to 19 digits, together or in the groups printed on cards, with the prefix "
        "and length of an issuer (Visa, Mastercard, American Express, Discover, JCB, "
        "Diners, UnionPay) and a right check digit. 13, 14 or 19 digits in one piece "
        "count only where cards are spoken of shortly before."
    ),
    source="https://www.iso.org/standard/70484.html",
    triggers=(b"",),
    gate=_has_long_number,
    find=_find_cards,
    hits=(
        "card 4111 1111 1111 1111.",
        "4242-4242-4242-4242",
        '"number": "5555555555554444"',
        "378282246310005",
        "Visa: 4222222222222",
    ),
    misses=(
        "4111 1111 1111 1112",
        "order 1234567890123456",
        "1735689600000000000",
        "2024-01-01T12:00:00.000000",
        "trace 4bf92f3577b34da6a3ce929d0e0e4736",
        "+49 151 2345 6789",
        "4242424242424242.5",
        "#4111111111111111",
        "4222222222222",
        "0000 0000 0000 0000",
        "0.4111111111111111",
    ),
)

PEOPLE: Final = (EMAIL, CARD)
