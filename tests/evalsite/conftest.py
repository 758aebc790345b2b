"""Folders that the servers' account can reach, and people who are not root."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from pathlib import Path

import pytest

from evalsite.embedded import start_embedded
from evalsite.places import Places


@pytest.fixture
def uploads_dir():
    """Nothing here needs the settings of Django."""


@pytest.fixture
def open_folder():
    """A folder of our own below /tmp that any account may pass through.

    pytest's tmp_path will not do: as root it lies in a folder closed to others.
    """
    folder = Path(tempfile.mkdtemp(prefix="evalsite-test-", dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    for places in (Places.at(path) for path in folder.glob("**/data")):
        if folder not in places.sockets.parents:
            shutil.rmtree(places.sockets, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def only_root():
    if os.geteuid() != 0:
        pytest.skip("Only root can act for two accounts.")


@pytest.fixture
def nobody():
    return pwd.getpwnam("nobody")


@pytest.fixture
def start():
    """Start throw-away servers on a folder; they stop with the test."""
    running = []

    def start(data_dir, **options):
        servers = start_embedded(data_dir, throw_away=True, **options)
        running.append(servers)
        return servers

    yield start
    for servers in running:
        servers.stop()
