"""What `check-code` and `fix-code` run: style, types, floors, migrations, templates."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from evalsite.places import PROJECT_DIR

_CHECKS = {
    "style": ("ruff", "check"),
    "format": ("ruff", "format", "--check"),
    "types": ("mypy", "apps", "evalsite"),
    "floors": ("lint-imports",),
    "settings": ("manage", "check"),
    "migrations": ("manage", "makemigrations", "--check", "--dry-run"),
    "templates": ("djlint", "templates", "--lint", "--quiet"),
}
_FIXES = {
    "style": ("ruff", "check", "--fix"),
    "format": ("ruff", "format"),
}


def main(command: str) -> int:
    """Run every part of a command and return 1 if one of them failed, else 0."""
    parts = _CHECKS if command == "check-code" else _FIXES
    failed = [name for name, words in parts.items() if _run(name, words)]
    if failed:
        _say(f"\nNot clean: {', '.join(failed)}.")
        return 1
    _say("\nEverything is clean.")
    return 0


def _run(name: str, words: tuple[str, ...]) -> int:
    _say(f"· {name}")
    answer = subprocess.run(  # noqa: S603
        _command(words),
        cwd=PROJECT_DIR,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return answer.returncode


def _command(words: tuple[str, ...]) -> list[str]:
    """Return a tool of this environment, or our own manage.py, as a command."""
    tool, *arguments = words
    if tool == "manage":
        # No database is wanted here, and Django would warn that none answers.
        quiet = "-Wignore::RuntimeWarning"
        return [sys.executable, quiet, str(PROJECT_DIR / "manage.py"), *arguments]
    return [str(Path(sys.executable).with_name(tool)), *arguments]


def _say(sentence: str) -> None:
    sys.stderr.write(sentence + "\n")
    sys.stderr.flush()
