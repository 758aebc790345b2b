"""Calls `manage.py screen` on small files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from apps.engine.formats.evalsite_writer import dump
from apps.engine.trace import Trace
from tests.evalsite.calling import call_here


def screened(*words: object) -> tuple[list[dict[str, Any]], int, str]:
    done = call_here("screen", "--json", *words)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return lines, done.returncode, done.stderr


def sarif(*words: object) -> tuple[dict[str, Any], int]:
    done = call_here("screen", "--sarif", *words)
    return json.loads(done.stdout), done.returncode


def file_of(folder: Path, *traces: Trace, name: str = "made.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"".join(dump(trace) for trace in traces))
    return path
