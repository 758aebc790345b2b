"""Measure uploads, parsing, memory, checks, labels, patterns, forks, scoring, replays."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from evalsite.embedded import start_embedded
from evalsite.places import PROJECT_DIR, embedded_urls

PARTS = (
    "ingest",
    "formats",
    "memory",
    "checks",
    "labels",
    "patterns",
    "branching",
    "scoring",
    "replays",
)
WITH_SERVERS = frozenset({"ingest", "scoring", "replays"})


class Command(BaseCommand):
    """Runs parts of `tests.benchmarks`, all of them unless some are named.

    Starts throw-away servers (with fsync on) for the parts that need them.
    """

    help = (
        "Print steps per second and CPU seconds per 1,000 steps of an upload, each "
        "format's parsing speed beside a bare JSON or protobuf parse, the peak memory "
        "of reading large files, CPU time of the checks per trace and per step, and how "
        "often signals point at the step that people have labelled; and how often a "
        "planted pattern or fork is found, and chance alone gives none; and CPU time of "
        "scoring 20,000 traces and of the pages that show the scores; and what replays of "
        "each kind cost beside their agents alone, one and 1,000 over several workers."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Which parts to run."""
        names = ", ".join(PARTS)
        parser.add_argument(
            "parts", nargs="*", metavar="PART", help=f"{names}; without any, all"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Run each part in a process of its own, so that nothing else is measured."""
        parts = options["parts"] or PARTS
        unknown = [part for part in parts if part not in PARTS]
        if unknown:
            names = ", ".join(PARTS)
            self.stderr.write(f"There is no part “{unknown[0]}”. There are: {names}.")
            sys.exit(2)
        code = 0
        if with_servers := [part for part in parts if part in WITH_SERVERS]:
            code = self._on_servers(with_servers)
        for part in parts:
            if part not in WITH_SERVERS:
                code = code or _run(part, dict(os.environ))
        sys.exit(code)

    def _on_servers(self, parts: Sequence[str]) -> int:
        with tempfile.TemporaryDirectory(prefix="evalsite-bench-") as folder:
            # The servers' account must pass through a folder that was made for us.
            Path(folder).chmod(0o711)
            data_dir = Path(folder) / "data"
            servers = start_embedded(data_dir)
            try:
                environment = _environment(data_dir)
                return max(_run(part, environment) for part in parts)
            finally:
                servers.stop()


def _environment(data_dir: Path) -> dict[str, str]:
    database_url, redis_url = embedded_urls(data_dir)
    return {
        **os.environ,
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "EVALSITE_DATA_DIR": str(data_dir),
        "EVALSITE_SECRET_KEY": "only-for-benchmarks-0123456789-0123456789-0123456789",
        "EVALSITE_DEBUG": "1",
        "DJANGO_SETTINGS_MODULE": "evalsite.settings",
    }


def _run(module: str, environment: dict[str, str]) -> int:
    words = [sys.executable, "-W", "ignore", "-m", f"tests.benchmarks.{module}"]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        words, cwd=PROJECT_DIR, env=environment, check=False
    )
    return done.returncode
