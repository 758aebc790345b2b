"""Rules for secrets without a form of their own, known by the name beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from apps.engine.privacy.rule import (
    Place,
    Rule,
    has_letter_and_digit,
    is_made_of_words,
    is_stand_in,
    places_of,
)

_MIX: Final = "4bQ9xT2mZ7kV1cN8wR5yH3jL6pD0sF"

_KEY_NAME: Final = re.compile(
    r"(?:api|access|secret|private|auth|account|encryption|signing|subscription)"
    r"[_\- ]?key\Z|secret\Z|token\Z|credentials?\Z",
    re.IGNORECASE,
)
_PASSWORD_NAME: Final = re.compile(r"(?:passw(?:or)?d|pwd)\Z", re.IGNORECASE)
_OF_PAGES: Final = re.compile(
    r"(?:page|next|prev|previous|continuation|cursor|sync|stop|eos|bos|pad|unk|sep|cls|"
    r"mask|special|max|min|first|last|csrf|xsrf)[_\- ]?(?:page)?[_\- ]?tokens?\Z",
    re.IGNORECASE,
)
_KEY_ENDS: Final = (
    "key", "Key", "KEY", "ecret", "ECRET", "oken", "OKEN", "redential", "REDENTIAL",
)  # fmt: skip
_PASSWORD_ENDS: Final = (
    "assword", "ASSWORD", "asswd", "ASSWD", "pwd", "PWD",
)  # fmt: skip

# {"name": "api_key", "value": "..."}: the name and the value stand side by side.
_VALUE_NEXT: Final = r"\s?\\{0,15}\"value\\{0,15}\"\s?:"
_ASSIGNED: Final = (
    r"[sS]?(?:\\{0,15}[\"'`])?(?:\s|\\{1,2}[nrt]){0,6}(?::=|=>|[:=]|,"
    + _VALUE_NEXT
    + r")(?:\s|\\{1,2}[nrt]){0,6}(?:"
    r"\\{0,15}[\"'`](?P<quoted>[^\s\"'`\\<>{}]{LEAST,400})(?=\\{0,15}[\"'`])|"
    r"(?P<bare>[^\s\"'`\\<>{}()\[\],;&|]{LEAST,400}))"
)
_NAME_BEFORE: Final = re.compile(r"[\w.\-]{0,60}\Z")
_VALUE: Final = {
    least: re.compile(_ASSIGNED.replace("LEAST", str(least))) for least in (8, 16)
}
_CLOSES: Final = frozenset("\"'`\\,;&|)}] \t\r\n<")


def _assignments(
    text: str, ends: tuple[str, ...], least: int
) -> Iterator[tuple[str, re.Match[str]]]:
    """The names that end in one of `ends` and what is assigned to each."""
    value = _VALUE[least]
    for start, end in places_of(text, ends):
        assigned = value.match(text, end)
        if assigned:
            before = _NAME_BEFORE.search(text, max(0, start - 60), start)
            yield (before[0] if before else "") + text[start:end], assigned


def _group_of(match: re.Match[str]) -> str:
    return "bare" if match["quoted"] is None else "quoted"


def _value_of(match: re.Match[str]) -> tuple[str, bool]:
    """The value that was assigned, and whether it stands in quotes."""
    return match[_group_of(match)], match["quoted"] is not None


def _is_closed(text: str, match: re.Match[str]) -> bool:
    """Whether the value ends there: `tokens.decode2(` goes on and is code."""
    end = match.end(_group_of(match))
    return end == len(text) or text[end] in _CLOSES


def is_secret_value(value: str) -> bool:
    """Whether a value of at least 16 characters looks drawn rather than written."""
    return (
        len(value) >= 16
        and " " not in value
        and has_letter_and_digit(value)
        and not is_stand_in(value)
        and not is_made_of_words(value)
    )


def is_password_value(value: str, *, is_quoted: bool) -> bool:
    """Whether a value of at least 8 characters may be a password."""
    return (
        8 <= len(value) <= 200
        and " " not in value
        and has_letter_and_digit(value)
        and not is_stand_in(value)
        and (is_quoted or not is_made_of_words(value))
    )


def _find_keys(text: str) -> Iterator[Place]:
    for name, match in _assignments(text, _KEY_ENDS, 16):
        value, is_quoted = _value_of(match)
        if not is_quoted and ("." in value or not _is_closed(text, match)):
            continue
        if is_secret_value(value) and names_a_key(name):
            yield match.span(_group_of(match))


def _find_passwords(text: str) -> Iterator[Place]:
    for _, match in _assignments(text, _PASSWORD_ENDS, 8):
        value, is_quoted = _value_of(match)
        if not is_quoted and not _is_closed(text, match):
            continue
        if is_password_value(value, is_quoted=is_quoted):
            yield match.span(_group_of(match))


@lru_cache(maxsize=4096)
def names_a_key(name: str) -> bool:
    """Whether a field of this name holds a key, a secret or a token."""
    return bool(_KEY_NAME.search(name)) and not _OF_PAGES.search(name)


@lru_cache(maxsize=4096)
def names_a_password(name: str) -> bool:
    """Whether a field of this name holds a password."""
    return bool(_PASSWORD_NAME.search(name))


NAMED_KEY: Final = Rule(
    slug="named-key",
    label="key",
    looks_for=(
        "The value beside a name that ends in api key, secret, token, access key or "
        "credential: at least 16 characters without a blank, letters and digits, not "
        "words, not a stand-in such as YOUR_KEY. Page tokens are left."
    ),
    source="https://owasp.org/www-project-top-ten/",
    triggers=(b"key", b"ecret", b"oken", b"redential"),
    find=_find_keys,
    hits=(
        f"api_key={_MIX}",
        f'{{"clientSecret": "{_MIX}"}}',
        f'\\"x-api-key\\": \\"{_MIX}\\"',
        f"aws_secret_access_key = {_MIX}/+x9Ab3dE",
        f"SERVICE_TOKEN: {_MIX}",
    ),
    misses=(
        'api_key=os.environ["OPENAI_API_KEY_2"]',
        "token = tokenizer.decode_batch2(ids)",
        'api_key="YOUR_API_KEY_GOES_HERE_123"',
        f'"next_page_token": "{_MIX}"',
        "max_tokens: 1024, total_tokens=1234567890123456",
        "secret_key=my_secret_key_of_version_2",
        "the key: value pairs of release 2024-01-01",
    ),
)

PASSWORD: Final = Rule(
    slug="password",
    label="password",
    looks_for=(
        "The value beside a name that ends in password, passwd or pwd: at "
        "least 8 characters without a blank, letters and digits."
    ),
    source="https://owasp.org/www-project-top-ten/",
    triggers=(b"assw", b"pwd"),
    find=_find_passwords,
    hits=('password="tr0ub4dor&3"', "DB_PASSWORD=x7Kp2mQ9v", '"pwd": "s3cretPa55"'),
    misses=(
        "password = getpass()",
        '"password": "string"',
        "password=password123",
        "pwd: /home/user/project1",
        'password: "your_password_1"',
    ),
)

_BEARER: Final = re.compile(
    r"(?:bearer|authorization\\{0,15}[\"']?\s{0,2}[:=]\s{0,2}\\{0,15}[\"']?(?:basic|token))"
    r"(?:\s{1,2}|%20|\\{1,2}[nrt])(?P<value>[A-Za-z0-9._~+/\-]{16,2000}=*)",
    re.IGNORECASE,
)


def _find_bearers(text: str) -> Iterator[Place]:
    for match in _BEARER.finditer(text):
        value = match["value"]
        if is_secret_value(value):
            yield match.span("value")


BEARER: Final = Rule(
    slug="authorization",
    label="authorization",
    looks_for=(
        "What follows Bearer, or Basic and Token in an Authorization header: at least "
        "16 characters, letters and digits, not words."
    ),
    source="https://www.rfc-editor.org/rfc/rfc6750",
    triggers=(b"bearer", b"authorization"),
    find=_find_bearers,
    hits=(
        f"Authorization: Bearer {_MIX}",
        f"-H 'authorization: basic {_MIX}=='",
        f'\\"Authorization\\": \\"Token {_MIX}\\"',
    ),
    misses=(
        "Authorization: Bearer $TOKEN",
        "the bearer of this letter",
        "Bearer token-authentication-scheme-2",
        "Authorization: Bearer YOUR_API_KEY_123456",
    ),
)

_IN_URL: Final = re.compile(
    r"://[^\s/:@?#\"'<>\\]{0,100}:(?P<value>[^\s/@?#\"'<>\\]{3,200})@(?=[A-Za-z0-9\[])"
)
_PLAIN_WORDS: Final = re.compile(
    r"pass(?:word|wd)?|pwd|secret|user|token|[$%{*].*|\*+|x+", re.IGNORECASE
)


def _find_url_passwords(text: str) -> Iterator[Place]:
    for match in _IN_URL.finditer(text):
        value = match["value"]
        if not _PLAIN_WORDS.fullmatch(value) and not is_stand_in(value):
            yield match.span("value")


URL_PASSWORD: Final = Rule(
    slug="url-password",
    label="password in URL",
    looks_for=(
        "The password in addresses such as scheme://user:password@host; the user and "
        "the host are left."
    ),
    source="https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1",
    triggers=(b"://",),
    find=_find_url_passwords,
    hits=("postgresql://app:s3cr3t@db.internal:5432/x", "https://bob:hunter2@h/x"),
    misses=(
        "http://localhost:8000/@user",
        "postgresql://user:password@host:5432/database",
        "https://host:8443/a?b=c@d",
        "redis://${USER}:${PASSWORD}@host",
    ),
)

NAMED_SECRETS: Final = (BEARER, URL_PASSWORD, NAMED_KEY, PASSWORD)
