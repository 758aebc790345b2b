"""Makes the virtual environment and installs the locked dependencies into it.

Only the standard library, and only syntax that an old Python 3 can read: it must get far
enough to say that it is too old. It does not install anything outside the environment.
"""

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROJECT_DIR = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
RUN_LOCK = "requirements.lock"
DEV_LOCK = "requirements-dev.lock"
DEVELOPER_COMMANDS = frozenset({"test", "check-code", "fix-code", "bench", "shot"})


class CannotPrepare(Exception):
    """The environment cannot be made; the text is a sentence for the person."""


def enter(argv: "list[str]") -> None:
    """Return inside the project's environment; else make it and start again there.

    Args:
        argv: The command line, as in `sys.argv`.

    Raises:
        CannotPrepare: Python is too old, or the environment cannot be made.
    """
    refuse_old_python(sys.version_info)
    venv = venv_dir(os.environ)
    if Path(sys.prefix).resolve() == venv.resolve():
        return
    with _alone():
        prepare(venv, lock_for(argv[1:2]))
    python = str(venv / "bin" / "python")
    sys.stdout.flush()
    os.execv(python, [python, *argv])  # noqa: S606 - our own interpreter


def refuse_old_python(version: "tuple[Any, ...]") -> None:
    """Raise CannotPrepare when this Python is older than 3.11."""
    if tuple(version[:2]) < OLDEST:
        found = "{}.{}".format(*version[:2])
        raise CannotPrepare(
            f"Evalsite needs Python 3.11 or newer, and this is {found}. Call a newer "
            "one, for instance: python3.11 manage.py run"
        )


def venv_dir(environ: "Mapping[str, str]") -> Path:
    """Return the folder of the environment: EVALSITE_VENV, else .venv here."""
    chosen = environ.get("EVALSITE_VENV", "")
    return Path(chosen).expanduser().absolute() if chosen else PROJECT_DIR / ".venv"


def lock_for(words: "Sequence[str]") -> str:
    """Return the name of the lock file that a command needs."""
    return DEV_LOCK if set(words) & DEVELOPER_COMMANDS else RUN_LOCK


def prepare(venv: Path, lock: str) -> None:
    """Make the environment if needed and install the lock if it has changed.

    Safe to run twice. Raises CannotPrepare.
    """
    if not (venv / "bin" / "python").exists():
        _create(venv)
    wanted = _digest(lock)
    if _stamp(venv, lock) == wanted:
        return
    _install(venv, lock)
    # The developers' lock holds everything of the other one, in the same versions.
    locks = (DEV_LOCK, RUN_LOCK) if lock == DEV_LOCK else (RUN_LOCK,)
    for name in locks:
        _stamp_path(venv, name).write_text(_digest(name))
    if lock == RUN_LOCK:
        _forget(_stamp_path(venv, DEV_LOCK))


@contextmanager
def _alone() -> "Iterator[None]":
    """Let one bootstrap of this checkout work at a time, without leaving a file."""
    descriptor = os.open(str(PROJECT_DIR), os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _create(venv: Path) -> None:
    if venv.exists() and any(venv.iterdir()) and not (venv / "pyvenv.cfg").exists():
        raise CannotPrepare(
            f"{venv} is not empty and not a virtual environment. Nothing in it was "
            "touched; set EVALSITE_VENV to another folder."
        )
    if importlib.util.find_spec("ensurepip") is None:
        version = "{}.{}".format(*sys.version_info[:2])
        raise CannotPrepare(
            "This Python cannot make virtual environments, because its module ensurepip "
            f"is missing. On Debian and Ubuntu: apt install python{version}-venv"
        )
    _say(f"Making a virtual environment in {venv}")
    made = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "venv", "--clear", str(venv)], check=False
    )
    if made.returncode:
        raise CannotPrepare(f"The virtual environment {venv} could not be made.")


def _install(venv: Path, lock: str) -> None:
    _say(f"Installing the dependencies of {lock} (once; about 15 to 60 seconds)")
    installed = subprocess.run(  # noqa: S603
        [
            str(venv / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            *_compiling(),
            "--no-input",
            "--disable-pip-version-check",
            "--require-hashes",
            "--requirement",
            str(PROJECT_DIR / lock),
        ],
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if installed.returncode:
        raise CannotPrepare(
            f"The dependencies of {lock} could not be installed; pip says why above. "
            "Without a network, point pip at a mirror with PIP_INDEX_URL or at a folder "
            "of wheels with PIP_NO_INDEX=1 and PIP_FIND_LINKS, and call this again."
        )


def _compiling() -> "tuple[str, ...]":
    # Half of the time of an installation goes into compiling modules of which most are
    # never imported. Python compiles the others once, unless it is told to keep none.
    return () if sys.dont_write_bytecode else ("--no-compile",)


def _digest(lock: str) -> str:
    return hashlib.sha256((PROJECT_DIR / lock).read_bytes()).hexdigest()


def _stamp_path(venv: Path, lock: str) -> Path:
    return venv / (lock + ".sha256")


def _stamp(venv: Path, lock: str) -> str:
    try:
        return _stamp_path(venv, lock).read_text()
    except FileNotFoundError:
        return ""


def _forget(path: Path) -> None:
    try:
        path.unlink()
    except FileNotFoundError:
        return


def _say(sentence: str) -> None:
    sys.stderr.write(sentence + "\n")
    sys.stderr.flush()
