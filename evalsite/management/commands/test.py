"""Run all tests with pytest, on servers of their own and in a real browser."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evalsite.chromium import ensure_chromium
from evalsite.places import PROJECT_DIR
from evalsite.processes import CannotStart

BROWSER_TESTS = "tests/browser"
MOST_PROCESSES = 4


class Command(BaseCommand):
    """Hands every argument to pytest, so `test -k queue -x` means what it says."""

    help = "Run the tests; all arguments go to pytest."

    def run_from_argv(self, argv: list[str]) -> None:
        """Exit with the code of pytest; 2 when Chromium is missing."""
        arguments = argv[2:]
        try:
            runs = runs_of(arguments)
        except CannotStart as error:
            self.stderr.write(str(error))
            sys.exit(2)
        codes = [_pytest(words) for words in runs]
        sys.exit(next((code for code in codes if code), 0))

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Refuse: the arguments belong to pytest and are read from the command line."""
        raise CommandError("Call it from the command line: python3 manage.py test")


def runs_of(arguments: Sequence[str]) -> list[list[str]]:
    """Return the words of each run of pytest, one after another.

    Without arguments everything runs on all cores: what needs no browser, then the
    browser tests, of which each process keeps a furnished site.

    Raises:
        CannotStart: Browser tests are wanted and there is no Chromium.
    """
    extra = browser_arguments(arguments)
    if arguments:
        return [[*extra, *arguments]]
    without = f"--ignore={BROWSER_TESTS}"
    first = [without, *on_all_cores(spare=1)]
    second = [BROWSER_TESTS, *on_all_cores()]
    return [first] if without in extra else [first, second]


def _pytest(words: Sequence[str]) -> int:
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", "pytest", *words],
        cwd=PROJECT_DIR,
        env=with_bytecode(os.environ),
        check=False,
    )
    return done.returncode


def with_bytecode(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which Python keeps what it has compiled.

    The tests start hundreds of processes of ours, and each would compile every module
    of the product anew where a machine's settings forbid to keep it.
    """
    return {
        name: value
        for name, value in environ.items()
        if name != "PYTHONDONTWRITEBYTECODE"
    }


def on_all_cores(*, spare: int = 0) -> list[str]:
    """Return what pytest needs to hear to run files on up to four cores.

    A file stays with one process, which has servers of its own.

    Args:
        spare: How many processes more than cores there are, where much of the time is
            waiting for servers and workers.
    """
    cores = os.cpu_count() or 1
    processes = min(cores + spare, MOST_PROCESSES)
    if cores == 1:
        return []
    # In the order of tests/conftest.py, which begins with the files that take longest.
    return ["-n", str(processes), "--dist", "loadfile", "--no-loadscope-reorder"]


def browser_arguments(arguments: Sequence[str]) -> list[str]:
    """Return what pytest needs to hear about the browser tests.

    Sets EVALSITE_CHROMIUM for them. With EVALSITE_SKIP_BROWSER=1 they are left out, and
    that is said.

    Raises:
        CannotStart: They are wanted and there is no Chromium.
    """
    if os.environ.get("EVALSITE_SKIP_BROWSER") == "1":
        sys.stderr.write("The browser tests are left out: EVALSITE_SKIP_BROWSER=1.\n")
        return [f"--ignore={BROWSER_TESTS}"]
    if wants_browser(arguments):
        os.environ["EVALSITE_CHROMIUM"] = ensure_chromium()
    return []


def wants_browser(arguments: Sequence[str]) -> bool:
    """Say whether paths among the arguments (none means all) have browser tests."""
    browser = PROJECT_DIR / BROWSER_TESTS
    named = [PROJECT_DIR / word.partition("::")[0] for word in arguments]
    paths = [path.resolve() for path in named if path.exists()]
    return not paths or any(
        browser.is_relative_to(path) or path.is_relative_to(browser) for path in paths
    )
