"""Commands without settings, called inside of the process of the tests."""

from __future__ import annotations

import importlib
import io
import subprocess
from contextlib import redirect_stderr, redirect_stdout


def call_here(name: str, *words: object) -> subprocess.CompletedProcess[str]:
    """What `manage.py <name> <words>` ends with and says, without the time of a start."""
    command = importlib.import_module(f"evalsite.management.commands.{name}").Command()
    # Else a wrong option raises what only other code would catch.
    command._called_from_command_line = True
    arguments = list(map(str, words))
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            parser = command.create_parser("manage.py", name)
            command.handle(**vars(parser.parse_args(arguments)))
        except SystemExit as ended:
            code = int(ended.code or 0)
        out.flush()
    printed = out.buffer.getvalue().decode()
    return subprocess.CompletedProcess(arguments, code, printed, err.getvalue())
