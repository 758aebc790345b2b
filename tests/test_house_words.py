"""No text says more of a signal than its level allows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from apps.engine.checks import CHECKS, OLDER
from tests.each import for_each
from tests.tree import files, text

# What only a decision or a second measure could say, and words that promise certainty.
TOO_MUCH = re.compile(
    r"\b(?:detect(?:s|ed|ion|or)?|prove[sdn]?|proof|anomal(?:y|ies|ous)"
    r"|confiden(?:t|ce)|suspicious|significant(?:ly)?(?! digits?)|root cause|definitely|certainly"
    r"|(?:true|false) (?:positive|negative)s?|hallucinat\w*|malfunction\w*|defect\w*"
    r"|degrad\w+|misbehav\w*|problem(?:s|atic)?|guarantee[sd]?)\b",
    re.IGNORECASE,
)
# That nothing is proven may be said.
DENIED = re.compile(r"\b(?:nothing|not|never|no|none)(?: \w+)? $", re.IGNORECASE)
SAYING = files(
    ".py",
    under=(
        "apps/engine/checks",
        "apps/engine/contracts",
        "apps/engine/bodies",
        "apps/engine/sequences",
        "apps/figures",
        "apps/reports",
        "apps/review",
        "apps/screening",
    ),
)
PAGES = files(".py", under=("apps/web/pages",))
# Pages about formats, the API and privacy say nothing of signals.
OF_OTHER_THINGS = {"formats.html", "api.html", "privacy.html"}
TEMPLATES = [
    path
    for path in files(".html", under=("templates/web",))
    if path.name not in OF_OTHER_THINGS
]


def too_much(words: str) -> list[str]:
    return [
        found.group()
        for found in TOO_MUCH.finditer(words)
        if not DENIED.search(words[: found.start()])
    ]


def said(path: Path) -> Iterator[str]:
    """The strings of a module that people may read: no docstrings, no patterns."""
    tree = ast.parse(text(path))
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
            and " " in node.value
        ):
            yield node.value


@for_each(
    ("words", "found"),
    [
        ("Decay detected", ["detected"]),
        ("This proves a failure", ["proves"]),
        ("nothing proves that no two calls overlapped", []),
        ("a confidence of 99 %", ["confidence"]),
        ("Output fell from 100 to 60 tokens", []),
    ],
)
def test_the_words_are_found(words, found):
    assert too_much(words) == found


@for_each("path", [*SAYING, *PAGES], ids=str)
def test_no_string_says_more_than_was_observed(path):
    for words in said(path):
        assert too_much(words) == [], words


@for_each("path", TEMPLATES, ids=str)
def test_no_page_says_more_than_was_observed(path):
    words = re.sub(r"\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", " ", text(path))
    assert too_much(words) == []


@for_each("path", SAYING, ids=str)
def test_a_check_never_calls_what_it_gives_a_finding(path):
    if path.parts[:3] not in {
        ("apps", "engine", "checks"),
        ("apps", "engine", "contracts"),
    }:
        return
    for words in said(path):
        for found in re.finditer(r"\bfindings?\b", words, re.IGNORECASE):
            assert words[: found.start()].endswith("not by itself a "), words


@for_each("check", [*CHECKS, *OLDER], ids=lambda c: f"{c.slug} {c.version}")
def test_the_texts_of_a_check_say_no_more_than_its_level(check):
    for words in (
        check.label,
        check.observes,
        check.null_model,
        check.material_when,
        check.next_step,
    ):
        assert too_much(words) == [], words
        assert not re.search(
            r"\bfinding\b", words.replace("not by itself a finding", "")
        )
