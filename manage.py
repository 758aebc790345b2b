#!/usr/bin/env python3
"""The one door to every command: `python3 manage.py run`, `test`, and Django's own.

Works with a bare Python: the first call makes the virtual environment and installs the
locked dependencies, then goes on inside of it.
"""

import importlib
import os
import sys

from evalsite import bootstrap

# Commands that need neither a database nor a server work without the site's settings,
# on any machine, and start at once.
WITHOUT_SETTINGS = frozenset({"compare", "describe", "replay", "screen", "upload"})


def main() -> None:
    """Go into the virtual environment, then do what was asked."""
    try:
        bootstrap.enter(sys.argv)
    except bootstrap.CannotPrepare as error:
        sys.exit(str(error))
    if sys.argv[1:2] and sys.argv[1] in WITHOUT_SETTINGS:
        _run_without_settings(sys.argv[1])
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    from django.core.exceptions import (  # noqa: PLC0415 - exists only inside
        ImproperlyConfigured,
    )

    try:
        import evalsite.settings  # noqa: F401, PLC0415 - read before Django hides why
    except ImproperlyConfigured as error:
        sys.exit(f"The settings do not work. {error}")
    if sys.argv[1:2] in (["check-code"], ["fix-code"]):
        from evalsite import quality  # noqa: PLC0415 - exists only inside

        sys.exit(quality.main(sys.argv[1]))
    from django.core.management import (  # noqa: PLC0415 - exists only inside
        execute_from_command_line,
    )

    execute_from_command_line(sys.argv)


def _open_streams() -> None:
    """A standard stream that is closed is as good as empty: nothing breaks for it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def _run_without_settings(name: str) -> None:
    _open_streams()
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)
    command = importlib.import_module(f"evalsite.management.commands.{name}")
    try:
        command.Command().run_from_argv(sys.argv)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
