"""Calls `manage.py screen` on small files, as a process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from apps.engine.formats.evalsite_writer import dump
from apps.engine.trace import Trace
from tests.evalsite.test_describe import call


def screened(*words: object) -> tuple[list[dict[str, Any]], int, str]:
    done = call("screen", "--json", *words)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return lines, done.returncode, done.stderr


def sarif(*words: object) -> tuple[dict[str, Any], int]:
    done = call("screen", "--sarif", *words)
    return json.loads(done.stdout), done.returncode


def file_of(folder: Path, *traces: Trace, name: str = "made.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"".join(dump(trace) for trace in traces))
    return path
