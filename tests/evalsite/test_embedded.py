"""The embedded servers, as real processes on folders that are thrown away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

import pytest
from kombu import Connection

from evalsite.embedded import embedded_urls, redis_client_url, start_embedded
from evalsite.places import Places, default_data_dir, prepare
from evalsite.processes import CannotStart, working_in
from evalsite.programs import find_postgres, find_valkey
from evalsite.unprivileged import server_account
from tests.evalsite.live import (
    ROOT,
    START_AND_WAIT,
    broker,
    connect,
    mode,
    wait_until,
)


@pytest.fixture(scope="module")
def cluster():
    """A data folder of PostgreSQL as a first start leaves it."""
    with TemporaryDirectory(prefix="evalsite-test-", dir="/tmp") as folder:
        data = Path(folder) / "data"
        Path(folder).chmod(0o711)
        start_embedded(data, names=["postgres"], throw_away=True).stop()
        yield Places.at(data).postgres


@pytest.fixture
def start_used(start, cluster):
    """Start servers on a folder as on one that was used before, which is quicker."""

    def start_used(data_dir, **options):
        used_before(data_dir, cluster)
        return start(data_dir, **options)

    return start_used


def used_before(data_dir, cluster):
    places = Places.at(data_dir)
    prepare(places, account=server_account())
    # With owners and permissions.
    subprocess.run(["cp", "-a", cluster, places.postgres], check=True)


def test_both_servers_keep_their_data_over_a_restart_with_settings_that_sync(
    open_folder,
):
    data = open_folder / "data"
    servers = start_embedded(data)
    with connect(data) as connection, broker(data) as client:
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
        assert connection.execute("SHOW data_checksums").fetchone() == ("on",)
        assert connection.execute("SHOW server_encoding").fetchone() == ("UTF8",)
        connection.execute("CREATE TABLE kept (word text)")
        connection.execute("INSERT INTO kept VALUES ('naïve 漢字')")
        assert client.config_get("appendonly")["appendonly"] == "yes"
        assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"
        client.set("kept", "yes")
    servers.stop()
    assert not working_in(Places.at(data).postgres)

    servers = start_embedded(data)
    with connect(data) as connection, broker(data) as client:
        assert connection.execute("SELECT * FROM kept").fetchall() == [("naïve 漢字",)]
        assert client.get("kept") == b"yes"
    servers.stop()


def test_the_product_connects_with_a_role_that_is_not_a_superuser(
    start_used, open_folder
):
    start_used(open_folder / "data", names=["postgres"])
    with connect(open_folder / "data") as connection:
        role = connection.execute(
            "SELECT rolname, rolsuper, rolcreatedb FROM pg_roles "
            "WHERE rolname = current_user"
        ).fetchone()
    assert role == ("evalsite", False, True)


def listening_inodes():
    lines = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        lines += (
            Path(table).read_text().splitlines()[1:] if Path(table).exists() else []
        )
    return {line.split()[9] for line in lines if line.split()[3] == "0A"}


def test_neither_server_listens_on_a_tcp_port(start_used, open_folder):
    servers = start_used(open_folder / "data")
    for process in servers.processes.values():
        opened = Path(f"/proc/{process.pid}/fd").iterdir()
        links = [str(descriptor.readlink()) for descriptor in opened]
        sockets = {link[8:-1] for link in links if link.startswith("socket:[")}
        assert sockets, "A server has its unix socket open."
        assert not sockets & listening_inodes()


def test_a_second_start_on_the_same_folder_is_refused_with_the_first_one_named(
    start_used, open_folder
):
    start_used(open_folder / "data")
    with pytest.raises(
        CannotStart, match=rf"already runs on .*\(process {os.getpid()}\)"
    ):
        start_embedded(open_folder / "data")
    with connect(open_folder / "data") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_path_too_long_for_a_socket_gets_a_short_private_folder(
    start_used, open_folder
):
    data = open_folder / ("long" * 30) / "data"
    places = Places.at(data)
    assert len(str(places.postgres_socket)) <= 103
    assert places.data_dir not in places.sockets.parents
    start_used(data)
    assert mode(places.sockets) == 0o700
    with connect(data) as connection, broker(data) as client:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert client.ping()


def test_a_process_id_file_that_names_a_living_stranger_does_not_stop_the_start(
    start, start_used, open_folder
):
    data = open_folder / "data"
    start_used(data, names=["postgres"]).stop()
    account = server_account()
    owner = {"user": account.uid, "group": account.gid} if account else {}
    with subprocess.Popen(["sleep", "60"], **owner) as stranger:
        stale = Places.at(data).postgres / "postmaster.pid"
        stale.write_text(f"{stranger.pid}\n{stale.parent}\n1\n5432\n\n\n")
        start(data, names=["postgres"])
        assert stranger.poll() is None
        stranger.kill()


def test_an_interrupted_creation_is_begun_again(start, open_folder):
    places = Places.at(open_folder / "data")
    prepare(places, account=server_account())
    unfinished = places.data_dir / "postgres.unfinished"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    start(places.data_dir, names=["postgres"])
    assert not unfinished.exists()


def test_data_of_another_version_is_refused_with_both_versions_named(open_folder):
    places = Places.at(open_folder / "data")
    prepare(places, account=server_account())
    places.postgres.mkdir()
    (places.postgres / "PG_VERSION").write_text("9\n")
    with pytest.raises(CannotStart, match=r"written by PostgreSQL 9, and only version"):
        start_embedded(places.data_dir)
    assert (places.postgres / "PG_VERSION").read_text() == "9\n"


def test_a_server_that_will_not_start_is_quoted_from_its_log(start_used, open_folder):
    data = open_folder / "data"
    start_used(data, names=["postgres"]).stop()
    with (Places.at(data).postgres / "postgresql.conf").open("a") as settings:
        settings.write("no_such_setting = 1\n")
    with pytest.raises(CannotStart, match="no_such_setting"):
        start_embedded(data)
    assert not working_in(Places.at(data).valkey)


def test_servers_die_with_their_owner_and_the_next_start_finds_the_data(
    start, cluster, open_folder
):
    data = open_folder / "data"
    used_before(data, cluster)
    with subprocess.Popen(
        [sys.executable, "-c", START_AND_WAIT, data, "60"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) == 2
        owner.kill()
    servers = start(data)
    assert not {p.pid for p in servers.processes.values()} & set(pids)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    with connect(data) as connection:
        assert connection.execute("SELECT n FROM kept").fetchall() == [(1,)]


def test_a_killed_server_leaves_nothing_that_hinders_the_next_start(
    start, start_used, open_folder
):
    data = open_folder / "data"
    first = start_used(data)
    os.kill(first.processes["postgres"].pid, signal.SIGKILL)
    os.kill(first.processes["valkey"].pid, signal.SIGKILL)
    first.stop()
    start(data)
    with connect(data) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_addresses_are_computed_without_starting_or_creating_anything(open_folder):
    data = open_folder / "a b%c" / "data"
    database_url, redis_url = embedded_urls(data)
    assert unquote(database_url).endswith(f"?host={data}/sockets")
    assert redis_url.startswith("redis+socket:///")
    assert redis_client_url(redis_url).startswith("unix:///")
    assert redis_client_url("redis://cache:6379/1") == "redis://cache:6379/1"
    assert not data.parent.exists()


def test_a_path_with_a_blank_and_a_percent_sign_works_for_both_clients(
    start_used, open_folder
):
    data = open_folder / "a b%c" / "data"
    start_used(data)
    with connect(data) as connection, broker(data) as client:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert client.ping()


def test_celery_reaches_the_embedded_broker_by_its_address(start, open_folder):
    data = open_folder / "a b" / "data"
    start(data, names=["valkey"])
    with Connection(embedded_urls(data)[1]) as connection:
        queue = connection.SimpleQueue("letters")
        queue.put(json.dumps({"id": 7}))
        assert json.loads(queue.get(timeout=5).payload) == {"id": 7}
        queue.close()


def test_root_keeps_data_outside_of_the_checkout_and_others_inside():
    if os.geteuid() == 0:
        assert default_data_dir().parent == Path("/var/lib/evalsite")
    else:
        assert default_data_dir() == ROOT / ".evalsite"


def test_without_any_program_the_sentence_names_the_way_out(open_folder, monkeypatch):
    monkeypatch.setattr("evalsite.programs._postgres_folders", lambda: iter(()))
    monkeypatch.setattr("evalsite.programs._valkey_programs", lambda: iter(()))
    places = Places.at(open_folder / "data")
    with pytest.raises(CannotStart, match="or set DATABASE_URL"):
        find_postgres(places, None)
    with pytest.raises(CannotStart, match="or set REDIS_URL"):
        find_valkey(places, None)


def test_without_the_wheels_programs_of_the_machine_are_used(open_folder, monkeypatch):
    monkeypatch.setattr("evalsite.programs._wheel", lambda _name: None)
    places = Places.at(open_folder / "data")
    try:
        found = find_postgres(places, None)
    except CannotStart:
        pytest.skip("This machine has no PostgreSQL of its own.")
    assert (found.folder / "initdb").exists()
    assert "site-packages" not in str(found.folder)
