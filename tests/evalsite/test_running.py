"""The command `run` as a person calls it, with every child killed once."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from evalsite.places import Places
from evalsite.processes import CannotStart
from evalsite.running import Serving, Site, free_port, site_environment
from tests.evalsite.live import ROOT, alive, connect, wait_until

PARTS = {
    "web": "gunicorn",
    "worker": "--queues celery,short --concurrency 2",
    "short-worker": "--queues short",
    "replay-worker": "--queues replays --concurrency 2",
    "beat": "evalsite beat",
    "postgres": "bin/postgres -D",
    "valkey": "valkey-server",
}
FROM_OUTSIDE = ("DATABASE_URL", "REDIS_URL", "EVALSITE_SECRET_KEY")


class Running:
    """One `manage.py run` and what it has printed so far."""

    def __init__(self, data_dir, port):
        kept = {k: v for k, v in os.environ.items() if k not in FROM_OUTSIDE}
        # Each process of the web server imports every page.
        kept["EVALSITE_WEB_PROCESSES"] = "1"
        self.output = data_dir.parent / f"output-{time.monotonic_ns()}"
        self.data_dir = data_dir
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "run", "--port", str(port)],
                cwd=ROOT,
                env={**kept, "EVALSITE_DATA_DIR": str(data_dir)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def said(self):
        return self.output.read_text()

    def wait_for(self, words):
        wait_until(lambda: words in self.said() or self.process.poll() is not None, 60)
        assert words in self.said(), self.said()

    def parts(self):
        """Return the process id of each child, by the name of what it is."""
        found = {}
        for pid in children(self.process.pid):
            command = command_of(pid)
            for name, words in PARTS.items():
                if words in command and alive(pid):
                    found[name] = pid
        return found

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.process.wait(timeout=30)


def command_of(pid):
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    return words.replace(b"\0", b" ").decode()


def children(parent):
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(status.parent.name))
    return found


@pytest.fixture(scope="module")
def folder():
    """A folder that other accounts reach: whichever test comes first creates its site."""
    with TemporaryDirectory(prefix="evalsite-test-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


@pytest.fixture
def run(folder):
    started = []

    def run(port=18_400):
        running = Running(folder / "data", port)
        started.append(running)
        return running

    yield run
    for running in started:
        if running.process.poll() is None:
            running.process.terminate()
            running.process.wait(timeout=30)


def fetch(url):
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=5)
    try:
        connection.request("GET", "/" + path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def database_answers(data_dir):
    try:
        with connect(data_dir) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def is_kept(data_dir):
    with connect(data_dir) as connection:
        return connection.execute("SELECT n FROM kept").fetchall() == [(1,)]


def test_every_killed_part_comes_back_and_the_data_outlives_every_end(run, start):
    site = run()
    site.wait_for("Evalsite is running.")
    link = re.search(r"Sign in +(\S+)", site.said())[1]
    health = re.search(r"Address +(\S+)", site.said())[1] + "healthz"
    assert fetch(link) in {200, 302, 303}
    first = site.parts()
    assert set(first) == set(PARTS)

    second = run()
    assert second.process.wait(timeout=30) == 1
    assert f"already runs on {site.data_dir}" in second.said()

    for pid in first.values():
        os.kill(pid, signal.SIGKILL)
    wait_until(
        lambda: (
            set(site.parts()) == set(PARTS)
            and not set(site.parts().values()) & set(first.values())
        ),
        30,
    )
    wait_until(lambda: fetch(health) == 200, 30)
    wait_until(lambda: database_answers(site.data_dir), 30)
    with connect(site.data_dir) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS n")

    # Of a supervisor that is killed nothing is left; a taken port is passed over.
    parts = site.parts()
    site.process.kill()
    site.process.wait()
    with socket.create_server(("127.0.0.1", 18_410)):
        last = run(18_410)
        last.wait_for("Port 18410 is taken; using 18411.")
        last.wait_for("Evalsite is running.")
    assert not any(map(alive, parts.values()))
    assert "http://127.0.0.1:18411/" in last.said()
    assert is_kept(last.data_dir)

    parts = last.parts()
    assert set(parts) == set(PARTS)
    begun = time.monotonic()
    assert last.stop(signal.SIGTERM) == 0
    assert time.monotonic() - begun < 20
    assert "Stopped. The data is kept." in last.said()
    assert not any(map(alive, parts.values()))
    start(last.data_dir, names=["postgres"])
    assert is_kept(last.data_dir)


def test_a_stop_while_it_is_still_starting_is_heard(run):
    site = run()
    site.wait_for("Preparing the database")
    begun = time.monotonic()
    assert site.stop() == 0
    assert time.monotonic() - begun < 20
    assert "Evalsite is running." not in site.said()


def test_a_port_that_is_taken_is_passed_over():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert port < free_port("127.0.0.1", port) <= port + 20


def test_an_address_of_another_machine_cannot_be_used():
    with pytest.raises(CannotStart, match="can be used on 192"):
        free_port("192.0.2.1", 8000)


def test_a_teams_own_servers_are_handed_to_the_children(tmp_path):
    site = Site(
        data_dir=tmp_path,
        database_url="postgresql://team@db/evalsite",
        redis_url="",
        serving=Serving(),
    )
    places = Places.at(tmp_path)
    environment = site_environment(
        site, places, {"HOME": "/home/olga"}, address="http://127.0.0.1:8001"
    )
    assert environment["DATABASE_URL"] == "postgresql://team@db/evalsite"
    assert environment["REDIS_URL"].endswith("/sockets/valkey.sock")
    assert environment["EVALSITE_DATA_DIR"] == str(tmp_path)
    assert environment["HOME"] == "/home/olga"
    assert environment["EVALSITE_REPLAY_STUB_URL"] == "http://127.0.0.1:8001"


def test_agents_reach_their_stubs_where_the_operator_says(tmp_path):
    serving = Serving(replay_stub_url="https://evalsite.example")
    site = Site(data_dir=tmp_path, database_url="", redis_url="", serving=serving)
    made = site_environment(site, Places.at(tmp_path), {}, address="http://127.0.0.1")
    assert made["EVALSITE_REPLAY_STUB_URL"] == "https://evalsite.example"
