"""Finds Chromium for the browser tests, and installs it from Debian's packages."""

from __future__ import annotations

import os
import shutil
import subprocess

from evalsite.processes import CannotStart

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    """Return the path of a Chromium on this machine; EVALSITE_CHROMIUM comes first."""
    chosen = os.environ.get("EVALSITE_CHROMIUM", "")
    return shutil.which(chosen) if chosen else _on_path()


def ensure_chromium() -> str:
    """Return the path of Chromium, installed with apt-get when root and absent.

    Raises:
        CannotStart: There is none and it cannot be installed.
    """
    if found := find_chromium():
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        _install()
        if found := find_chromium():
            return found
    raise CannotStart(
        "The browser tests need Chromium, and there is none on PATH. Install it (on "
        "Debian: apt install chromium), name one in EVALSITE_CHROMIUM, or set "
        "EVALSITE_SKIP_BROWSER=1 to leave these tests out."
    )


def _on_path() -> str | None:
    return next(filter(None, map(shutil.which, _NAMES)), None)


def _install() -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (
        ["update", "-qq"],
        ["install", "-y", "-qq", "--no-install-recommends", "chromium"],
    ):
        answer = subprocess.run(  # noqa: S603
            ["apt-get", *words],  # noqa: S607 - wherever the system keeps it
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if answer.returncode:
            raise CannotStart(
                f"Chromium could not be installed: apt-get {words[0]} failed."
            )
