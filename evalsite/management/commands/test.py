"""Run all tests with pytest, on servers of their own and in a real browser."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO, Any

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
        sys.exit(_run_all(runs))

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Refuse: the arguments belong to pytest and are read from the command line."""
        raise CommandError("Call it from the command line: python3 manage.py test")


def runs_of(arguments: Sequence[str]) -> list[list[str]]:
    """Return the words of each run of pytest; they run at the same time.

    Without arguments everything runs on all cores: what needs no browser, and beside it
    the browser tests in one process, which keeps a furnished site. Both wait for servers
    and pages much of the time.

    Raises:
        CannotStart: Browser tests are wanted and there is no Chromium.
    """
    extra = browser_arguments(arguments)
    if arguments:
        return [[*extra, *arguments]]
    without = f"--ignore={BROWSER_TESTS}"
    first = [without, *on_all_cores(spare=1)]
    second = [BROWSER_TESTS]
    return [first] if without in extra else [first, second]


def _run_all(runs: Sequence[Sequence[str]]) -> int:
    """Run pytest with each of these words; the first code that is not 0.

    The first run is seen as it goes on, what the others say comes after it.
    """
    first, *others = runs
    with ExitStack() as stack:
        outputs = [stack.enter_context(TemporaryFile()) for _ in others]
        started = [
            stack.enter_context(_started(words, output))
            for words, output in zip(others, outputs, strict=True)
        ]
        codes = [_started(first, None).wait()]
        for process, output in zip(started, outputs, strict=True):
            codes.append(process.wait())
            output.seek(0)
            sys.stdout.write(output.read().decode(errors="replace"))
            sys.stdout.flush()
    return next((code for code in codes if code), 0)


def _started(words: Sequence[str], output: IO[bytes] | None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", "pytest", *words],
        cwd=PROJECT_DIR,
        env=with_bytecode(os.environ),
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
    )


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
