"""The supervisor with small children of its own, and with the real servers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psycopg
import pytest
import redis

from evalsite.embedded import (
    embedded_urls,
    postgres_plan,
    redis_client_url,
    valkey_plan,
    wait_for_postgres,
    wait_for_valkey,
)
from evalsite.places import Places, held, prepare
from evalsite.processes import (
    CannotStart,
    ProcessPlan,
    StopStep,
    end_leftovers,
    marked_with,
    rotate_log,
)
from evalsite.supervisor import GaveUp, LogEcho, StopRequest, Supervisor
from evalsite.unprivileged import server_account
from tests.evalsite.live import ROOT, alive, wait_until

SLEEPS = "import time; time.sleep(60)"
# Says when it is asked to stop; the handler stands before the file that says so.
NOTES = """
import pathlib, signal, sys, time
name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
def leave(number, frame):
    with (folder / "order").open("a") as order:
        order.write(name + "\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
(folder / name).touch()
time.sleep(60)
"""
DEAF = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
time.sleep(60)
"""
# It takes a while to end: its environment is gone long before its memory is.
HOLDS_MUCH = """
import pathlib, sys, time
held = b"x" * 300_000_000
pathlib.Path(sys.argv[1]).touch()
time.sleep(60)
"""
HAS_CHILD = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
time.sleep(60)
"""
FAILS = "import sys; print('the disk is on fire'); sys.exit(3)"
SUPERVISES = """
import sys, time
from pathlib import Path
from evalsite.processes import ProcessPlan
from evalsite.supervisor import Supervisor
folder = Path(sys.argv[1])
supervisor = Supervisor(say=print)
for name in ("one", "two"):
    supervisor.start(ProcessPlan(
        name=name, command=(sys.executable, "-c", "import time; time.sleep(60)"),
        log=folder / name, environment={},
    ), rank=0)
print(supervisor.pid("one"), supervisor.pid("two"), flush=True)
supervisor.keep(lambda: False)
"""


@pytest.fixture
def said():
    return []


@pytest.fixture
def supervisor(said):
    supervisor = Supervisor(say=said.append, delays=(0.0, 0.02, 0.04))
    yield supervisor
    supervisor.stop(hurried=lambda: True)


@pytest.fixture
def plan(tmp_path):
    def plan(name, source, *words, **options):
        return ProcessPlan(
            name=name,
            command=(sys.executable, "-c", source, *map(str, words)),
            log=tmp_path / f"{name}.log",
            environment=options.pop("environment", {}),
            **options,
        )

    return plan


def test_a_killed_child_comes_back_and_it_is_said(supervisor, plan, said):
    supervisor.start(plan("web", SLEEPS), rank=0)
    first = supervisor.pid("web")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: supervisor.tend() or supervisor.pid("web") != first)
    assert alive(supervisor.pid("web"))
    assert said == ["web was killed by signal 9; starting it again."]


def test_what_a_killed_child_had_started_is_gone_before_it_comes_back(
    supervisor, plan, tmp_path
):
    note = tmp_path / "grandchild"
    supervisor.start(plan("worker", HAS_CHILD, note), rank=0)
    wait_until(lambda: note.exists() and note.read_text())
    grandchild = int(note.read_text())
    first = supervisor.pid("worker")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: supervisor.tend() or supervisor.pid("worker") != first)
    wait_until(lambda: not alive(grandchild))


def test_a_child_that_fails_at_every_start_is_given_up_with_the_end_of_its_log(
    supervisor, plan, said
):
    supervisor.start(plan("beat", FAILS), rank=0)
    with pytest.raises(
        GaveUp, match=r"(?s)beat ended with code 3, 4 times in a row.*disk is on fire"
    ):
        supervisor.keep(lambda: False)
    assert said == ["beat ended with code 3; starting it again."] * 3


def test_a_child_that_lived_for_a_while_gets_all_its_tries_again(
    supervisor, plan, monkeypatch
):
    monkeypatch.setattr("evalsite.supervisor._STARTED_SECONDS", 0.0)
    supervisor.start(plan("beat", FAILS), rank=0)
    pids = set()
    wait_until(
        lambda: supervisor.tend() or pids.add(supervisor.pid("beat")) or len(pids) > 6
    )


def test_higher_ranks_stop_before_lower_ones(supervisor, plan, tmp_path):
    for name, rank in (("database", 0), ("broker", 1), ("site", 2)):
        supervisor.start(plan(name, NOTES, name, tmp_path), rank=rank)
    wait_until(lambda: all((tmp_path / n).exists() for n in ("database", "site")))
    wait_until((tmp_path / "broker").exists)
    supervisor.stop()
    assert (tmp_path / "order").read_text().split() == ["site", "broker", "database"]


def test_a_child_that_does_not_listen_is_killed_after_its_seconds(
    supervisor, plan, tmp_path
):
    steps = (StopStep(signal.SIGTERM, 0.3),)
    process = supervisor.start(
        plan("deaf", DEAF, tmp_path / "up", stop_steps=steps), rank=0
    )
    wait_until((tmp_path / "up").exists)
    begun = time.monotonic()
    supervisor.stop()
    assert 0.3 <= time.monotonic() - begun < 3
    assert process.ending() == "was killed by signal 9"


def test_a_second_request_shortens_the_wait(supervisor, plan, tmp_path):
    steps = (StopStep(signal.SIGTERM, 60),)
    supervisor.start(plan("deaf", DEAF, tmp_path / "up", stop_steps=steps), rank=0)
    wait_until((tmp_path / "up").exists)
    begun = time.monotonic()
    supervisor.stop(hurried=lambda: True)
    assert time.monotonic() - begun < 5


def test_children_do_not_outlive_a_killed_supervisor(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISES, tmp_path],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as supervising:
        pids = [int(word) for word in supervising.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(alive, pids))
        supervising.kill()
    wait_until(lambda: not any(map(alive, pids)))


def test_marked_leftovers_of_an_earlier_start_are_ended_and_no_others(
    supervisor, plan, tmp_path
):
    mark = {"EVALSITE_SUPERVISED": str(tmp_path)}
    left = supervisor.start(plan("left", SLEEPS, environment=mark), rank=0)
    other = {"EVALSITE_SUPERVISED": str(tmp_path) + "-other"}
    kept = supervisor.start(plan("kept", SLEEPS, environment=other), rank=0)
    wait_until(lambda: marked_with("EVALSITE_SUPERVISED", str(tmp_path)) == [left.pid])

    def found():
        pids = marked_with("EVALSITE_SUPERVISED", str(tmp_path))
        return [pid for pid in pids if alive(pid)]

    end_leftovers(found, patience=0)
    assert left.ended()
    assert not kept.ended()


def test_a_leftover_is_waited_for_until_it_holds_nothing_any_more(
    supervisor, plan, tmp_path
):
    mark = {"EVALSITE_SUPERVISED": str(tmp_path)}
    big = plan("big", HOLDS_MUCH, tmp_path / "up", environment=mark)
    left = supervisor.start(big, rank=0)
    wait_until((tmp_path / "up").exists)
    end_leftovers(lambda: marked_with("EVALSITE_SUPERVISED", str(tmp_path)), patience=0)
    assert left.ended()


def test_error_lines_of_a_log_are_echoed_once(tmp_path):
    log = tmp_path / "worker.log"
    echo = LogEcho(log)
    assert echo.new_errors() == []
    log.write_text(
        "[12:00: INFO] fine\n"
        "12:00 FATAL:  the database system is starting up\n"
        "[12:01: ERROR/Main] broken\n"
    )
    assert echo.new_errors() == ["[12:01: ERROR/Main] broken"]
    assert echo.new_errors() == []


def test_the_log_of_the_start_before_is_kept_beside(tmp_path):
    log = tmp_path / "web.log"
    for words in ("first", "second", "third"):
        rotate_log(log)
        log.write_text(words)
    assert log.read_text() == "third"
    assert (tmp_path / "web.log.1").read_text() == "second"


def test_a_program_that_does_not_exist_is_named(supervisor, tmp_path):
    missing = ProcessPlan(
        name="web",
        command=("/no/such/program",),
        log=tmp_path / "web.log",
        environment={},
    )
    with pytest.raises(CannotStart, match="web could not be started from /no/such"):
        supervisor.start(missing, rank=0)


def test_signals_are_counted_as_requests_to_stop():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    stop = StopRequest()
    try:
        stop.listen()
        assert not stop.wanted()
        signal.raise_signal(signal.SIGINT)
        assert stop.wanted()
        assert not stop.hurried()
        signal.raise_signal(signal.SIGTERM)
        assert stop.hurried()
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def test_postgres_and_valkey_come_back_with_their_data_when_killed(
    supervisor, open_folder, said
):
    places = Places.at(open_folder / "data")
    account = server_account()
    prepare(places, account=account)
    database_url, redis_url = embedded_urls(places.data_dir)
    with held(places):
        postgres = supervisor.start(postgres_plan(places, account=account), rank=0)
        valkey = supervisor.start(valkey_plan(places, account=account), rank=1)
        wait_for_postgres(places, postgres)
        wait_for_valkey(places, valkey)
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS n")
        with redis.Redis.from_url(redis_client_url(redis_url)) as client:
            client.set("kept", "42")
            # The promise of `everysec`: what is older than a second is on disk.
            time.sleep(1.2)
        first = {name: supervisor.pid(name) for name in ("postgres", "valkey")}
        for pid in first.values():
            os.kill(pid, signal.SIGKILL)
        wait_until(
            lambda: (
                supervisor.tend()
                or all(supervisor.pid(name) != pid for name, pid in first.items())
            )
        )

        def database_answers():
            supervisor.tend()
            try:
                with psycopg.connect(database_url) as connection:
                    return connection.execute("SELECT n FROM kept").fetchone() == (42,)
            except psycopg.OperationalError:
                return False

        def broker_answers():
            supervisor.tend()
            try:
                with redis.Redis.from_url(redis_client_url(redis_url)) as client:
                    return client.get("kept") == b"42"
            except redis.ConnectionError:
                return False

        wait_until(database_answers)
        wait_until(broker_answers)
        assert len([line for line in said if line.endswith("starting it again.")]) == 2
        supervisor.stop()
