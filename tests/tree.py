"""The project's own files, as the rules about the code itself see them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.conftest import ROOT

OURS = ("apps", "evalsite", "tests", "templates", "static")
NOT_OURS = ("static/vendor", "static/fonts", "apps/reports/fonts", "static/screenshots")


@cache
def files(*suffixes: str, under: tuple[str, ...] = OURS) -> tuple[Path, ...]:
    """Files of ours with one of the suffixes, relative to the root of the project."""
    found = (
        path.relative_to(ROOT)
        for folder in under
        for path in sorted((ROOT / folder).rglob("*"))
        if path.is_file() and path.suffix in suffixes
    )
    return tuple(
        path
        for path in found
        if "__pycache__" not in path.parts and not path.as_posix().startswith(NOT_OURS)
    )


def text(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(text(path), filename=str(path))


def imports(path: Path) -> Iterator[str]:
    """The full names of everything that a module imports."""
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def dotted(node: ast.AST) -> str:
    """`a.b.c` of an attribute chain; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""
