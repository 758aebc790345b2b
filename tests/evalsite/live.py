"""What tests of the running servers share: addresses, clients, and waiting."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import psycopg
import redis

from evalsite.embedded import embedded_urls, redis_client_url

ROOT = Path(__file__).resolve().parent.parent.parent

START_AND_WAIT = """
import sys, time
from pathlib import Path
from evalsite.embedded import embedded_urls, start_embedded
import psycopg
servers = start_embedded(Path(sys.argv[1]), throw_away=True)
with psycopg.connect(embedded_urls(Path(sys.argv[1]))[0]) as connection:
    connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
    connection.execute("INSERT INTO kept VALUES (1)")
print(*(process.pid for process in servers.processes.values()), flush=True)
time.sleep(float(sys.argv[2]))
servers.stop()
"""


def connect(data_dir):
    return psycopg.connect(embedded_urls(data_dir)[0], autocommit=True)


def broker(data_dir):
    return redis.Redis.from_url(redis_client_url(embedded_urls(data_dir)[1]))


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def wait_until(true, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "It did not happen in time."
        time.sleep(0.02)


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
