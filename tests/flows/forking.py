"""The process that has imported what the product stands on, and forks its programs.

Run as a module by warm.py, with the number of its end of the line to the tests. Nothing
here may look at settings: they are those of each program.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import socket
import sys
from typing import Any

STOOD_ON = (
    *("celery.bin.celery", "celery.apps.worker", "celery.apps.beat"),
    *("celery.concurrency.prefork", "celery.fixups.django", "kombu.transport.redis"),
    *("django.db.models", "django.db.backends.postgresql.base", "django.forms"),
    *("django.core.management", "django.template.defaultfilters", "django.urls"),
    *("gunicorn.app.wsgiapp", "gunicorn.workers.gthread"),
    *("psycopg_pool", "pydantic_settings", "httpx", "jsonschema", "zstandard"),
    *("apps.engine.checks", "apps.engine.formats", "apps.engine.memory_tests"),
    *("apps.engine.agent_contracts.stored", "apps.engine.replay.run"),
    *("apps.isolation.http_agent", "apps.isolation.sandbox.scratch"),
)
MOST_BYTES = 1_000_000


def serve(line: socket.socket) -> None:
    """Answer until the tests hang up: with process ids, and with how they ended."""
    while True:
        request, [*files], *_ = socket.recv_fds(line, MOST_BYTES, 1)
        if not request:
            return
        asked = json.loads(request)
        answer = _ending(asked["pid"]) if "pid" in asked else _fork(asked, line, files)
        line.send(json.dumps(answer).encode())


def _ending(pid: int) -> int | None:
    """Its exit code, negative for a signal; None while it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _fork(asked: dict[str, Any], line: socket.socket, files: list[int]) -> int:
    [log] = files
    if pid := os.fork():
        os.close(log)
        return pid
    line.close()
    os.setsid()
    for number in (1, 2):
        os.dup2(log, number)
    os.close(log)
    os.environ.clear()
    os.environ.update(asked["environment"])
    module, *words = asked["words"]
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit()


def main() -> None:
    line = socket.socket(fileno=int(sys.argv[1]))
    for name in STOOD_ON:
        importlib.import_module(name)
    # What stands now stays: looking through it for garbage would copy its pages.
    gc.collect()
    gc.freeze()
    with line:
        serve(line)


if __name__ == "__main__":
    main()
