"""Measure upload-to-visible and parsing speed beside floors, and large files' memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from evalsite.embedded import start_embedded
from evalsite.places import PROJECT_DIR, embedded_urls


class Command(BaseCommand):
    """Starts throw-away servers (with fsync on) and runs all of `tests.benchmarks`."""

    help = (
        "Print steps per second and CPU seconds per 1,000 steps of an upload, each "
        "format's parsing speed beside a bare JSON or protobuf parse, and the peak "
        "memory of reading large files."
    )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Run the benchmark in a process of its own, so that nothing else is measured."""
        with tempfile.TemporaryDirectory(prefix="evalsite-bench-") as folder:
            # The servers' account must pass through a folder that was made for us.
            Path(folder).chmod(0o711)
            data_dir = Path(folder) / "data"
            servers = start_embedded(data_dir)
            try:
                code = self._measure(data_dir)
            finally:
                servers.stop()
        sys.exit(code)

    def _measure(self, data_dir: Path) -> int:
        database_url, redis_url = embedded_urls(data_dir)
        environment = {
            **os.environ,
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "EVALSITE_DATA_DIR": str(data_dir),
            "EVALSITE_SECRET_KEY": "only-for-benchmarks-0123456789-0123456789-0123456789",
            "EVALSITE_DEBUG": "1",
            "DJANGO_SETTINGS_MODULE": "evalsite.settings",
        }
        return (
            self._run("ingest", environment)
            or self._run("formats", environment)
            or self._run("memory", environment)
        )

    def _run(self, module: str, environment: dict[str, str]) -> int:
        words = [sys.executable, "-W", "ignore", "-m", f"tests.benchmarks.{module}"]
        done = subprocess.run(  # noqa: S603 - our own interpreter
            words, cwd=PROJECT_DIR, env=environment, check=False
        )
        return done.returncode
