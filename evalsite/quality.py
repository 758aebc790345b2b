"""What `check-code` and `fix-code` run: style, types, floors, migrations, templates."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
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
    is_check = command == "check-code"
    # Checks change nothing, so they need not wait for each other; repairs do.
    at_once = (os.cpu_count() or 1) if is_check else 1
    ended = _run_all(_CHECKS if is_check else _FIXES, at_once)
    failed = [name for name, code in ended if code]
    if failed:
        _say(f"\nNot clean: {', '.join(failed)}.")
        return 1
    _say("\nEverything is clean.")
    return 0


def _run_all(
    parts: Mapping[str, tuple[str, ...]], at_once: int
) -> Iterator[tuple[str, int]]:
    """Yield the name and exit code of each part in order, and print what it said."""
    with ThreadPoolExecutor(at_once) as pool:
        runs = {name: pool.submit(_run, words) for name, words in parts.items()}
        for name, run in runs.items():
            _say(f"· {name}")
            answer = run.result()
            sys.stdout.buffer.write(answer.stdout)
            sys.stdout.flush()
            yield name, answer.returncode


def _run(words: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    colours = {"FORCE_COLOR": "1"} if sys.stdout.isatty() else {}
    return subprocess.run(  # noqa: S603
        _command(words),
        cwd=PROJECT_DIR,
        env={**os.environ, **colours},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


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
