"""Who can reach the embedded servers, and what is never opened for that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from evalsite.embedded import start_embedded
from evalsite.places import Places, prepare
from evalsite.processes import CannotStart
from evalsite.programs import _reachable, find_postgres
from evalsite.unprivileged import blocking_folder, server_account
from tests.evalsite.live import (
    ROOT,
    START_AND_WAIT,
    mode,
)


def test_a_socket_folder_that_others_can_enter_is_refused_and_left_alone(open_folder):
    places = Places.at(open_folder / "data")
    places.sockets.mkdir(parents=True)
    places.sockets.chmod(0o755)
    places.data_dir.chmod(0o711)
    with pytest.raises(CannotStart, match="only user number"):
        start_embedded(places.data_dir)
    assert mode(places.sockets) == 0o755


def test_a_symlink_in_place_of_the_socket_folder_is_refused(open_folder):
    places = Places.at(open_folder / "data")
    elsewhere = open_folder / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    places.data_dir.mkdir(mode=0o711)
    places.sockets.symlink_to(elsewhere)
    with pytest.raises(CannotStart, match="only user number"):
        start_embedded(places.data_dir)


def test_as_root_a_closed_folder_above_the_data_is_named_and_stays_closed(
    only_root, open_folder
):
    home = open_folder / "home"
    home.mkdir(mode=0o700)
    with pytest.raises(CannotStart, match=rf"cannot pass through {home}\. Nothing was"):
        start_embedded(home / "below" / "data")
    assert mode(home) == 0o700
    assert mode(open_folder) == 0o711


def test_folders_that_were_there_keep_owner_and_permissions(start, open_folder):
    data = open_folder / "theirs" / "data"
    data.mkdir(parents=True)
    kept = [open_folder, data.parent, data]
    for folder in kept[1:]:
        folder.chmod(0o751)
    before = [(mode(f), f.stat().st_uid, f.stat().st_gid) for f in kept]
    start(data)
    assert [(mode(f), f.stat().st_uid, f.stat().st_gid) for f in kept] == before


def test_the_secret_key_and_the_uploads_are_for_us_alone(open_folder):
    places = Places.at(open_folder / "data")
    prepare(places, account=server_account())
    first = places.secret_key.read_text()
    prepare(places, account=server_account())
    assert places.secret_key.read_text() == first
    assert len(first) > 60
    assert mode(places.secret_key) == 0o600
    assert mode(places.uploads) == 0o700
    assert mode(places.logs) == 0o700


def test_another_user_cannot_reach_the_sockets_nor_pass_as_us_if_they_were_open(
    only_root, start, open_folder
):
    data = open_folder / "data"
    places = start(data).places
    account = server_account()
    psql = find_postgres(places, account).folder / "psql"

    def ask():
        return subprocess.run(
            [
                psql,
                "-h",
                places.sockets,
                "-U",
                "evalsite",
                "-c",
                "SELECT 1",
                "evalsite",
            ],
            user="daemon",
            group="daemon",
            extra_groups=[],
            env={"LC_ALL": "C"},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )

    assert "Permission denied" in ask().stderr
    places.sockets.chmod(0o755)
    places.postgres_socket.chmod(0o777)
    assert 'Peer authentication failed for user "evalsite"' in ask().stderr


def test_programs_in_a_closed_folder_are_copied_once_and_the_folder_stays_closed(
    only_root, open_folder
):
    places = Places.at(open_folder / "data")
    account = server_account()
    prepare(places, account=account)
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    wheel = find_postgres(places, account).folder.parent
    shutil.copytree(wheel, closed / wheel.parent.name / wheel.name, symlinks=True)
    libraries = wheel.parent.with_name(wheel.parent.name + ".libs")
    if libraries.exists():
        shutil.copytree(libraries, closed / libraries.name)
    folder = closed / wheel.parent.name / wheel.name / "bin"

    copy = _reachable(folder, "postgres", places=places, account=account)

    assert places.programs in copy.parents
    assert blocking_folder(copy / "initdb", account) is None
    assert blocking_folder(folder / "initdb", account) == closed
    assert mode(closed) == 0o700
    said = subprocess.run(
        [copy / "initdb", "--version"],
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "PostgreSQL" in said.stdout
    before = (copy / "initdb").stat().st_ino
    again = _reachable(folder, "postgres", places=places, account=account)
    assert (again / "initdb").stat().st_ino == before


def ordinary_python(entry):
    """Return an interpreter that an ordinary user reaches, of our own version."""
    version = "{}.{}".format(*sys.version_info[:2])
    for candidate in (sys.executable, f"/usr/bin/python{version}"):
        answer = subprocess.run(
            ["/bin/sh", "-c", f'exec "{candidate}" -c "import sys"'],
            user=entry.pw_uid,
            group=entry.pw_gid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=False,
        )
        if answer.returncode == 0:
            return candidate
    pytest.skip("No interpreter here can be run by another user than root.")


def test_an_ordinary_user_starts_it_below_a_closed_home_which_stays_closed(
    only_root, nobody, open_folder
):
    home = open_folder / "home"
    home.mkdir(mode=0o700)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    packages = Path(psycopg.__file__).parent.parent
    answer = subprocess.run(
        [ordinary_python(nobody), "-c", START_AND_WAIT, home / "data", "0"],
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        cwd="/",
        env={"PYTHONPATH": f"{ROOT}:{packages}", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert mode(home) == 0o700
    assert mode(home / "data") == 0o700
    assert (home / "data" / "postgres").stat().st_uid == nobody.pw_uid
    assert mode(open_folder) == 0o711


def test_an_unknown_account_for_the_servers_is_refused_by_name(only_root):
    with pytest.raises(CannotStart, match="no ordinary user no-such-person"):
        server_account("no-such-person")
    with pytest.raises(CannotStart, match="no ordinary user root"):
        server_account("root")
