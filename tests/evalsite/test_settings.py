"""Settings: nothing serves with a secret key that only one process knows."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from evalsite.secret_key import lasting_key
from tests.conftest import ROOT

WEB = ["-c", "import evalsite.wsgi"]
WORKER = ["-m", "celery", "-A", "evalsite", "worker", "-c", "1", "-l", "ERROR"]


def run(data_dir, *words: str, key: str = "") -> subprocess.CompletedProcess[str]:
    """A process of the site on this data folder, with this key set."""
    environment = {
        **os.environ,
        "EVALSITE_DATA_DIR": str(data_dir),
        "EVALSITE_SECRET_KEY": key,
        # A socket that nobody listens on: only a process that starts would look for it.
        "REDIS_URL": f"redis+socket://{data_dir}/nobody.sock",
        "DJANGO_SETTINGS_MODULE": "evalsite.settings",
        # The checks of Django, which come before the key is asked for, import every page.
        "CELERY_SKIP_CHECKS": "1",
    }
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def beat(data_dir) -> list[str]:
    schedule = str(data_dir / "beat")
    return ["-m", "celery", "-A", "evalsite", "beat", "-s", schedule, "--pidfile="]


@pytest.mark.parametrize("what", ["web", "worker", "beat"])
def test_nothing_serves_without_a_lasting_key(tmp_path, what):
    words = {"web": WEB, "worker": WORKER, "beat": beat(tmp_path)}[what]
    ended = run(tmp_path, *words)
    assert ended.returncode != 0
    assert "Set EVALSITE_SECRET_KEY" in ended.stderr


def test_the_web_server_starts_with_a_key_that_was_set(tmp_path):
    ended = run(tmp_path, *WEB, key="a-long-text-for-this-test-0123456789-0123456789")
    assert ended.returncode == 0, ended.stderr


def test_the_web_server_starts_with_the_key_in_the_data_folder(tmp_path):
    (tmp_path / "secret-key").write_text("kept-0123456789-0123456789-0123456789-01\n")
    ended = run(tmp_path, *WEB)
    assert ended.returncode == 0, ended.stderr


def test_a_command_that_serves_nobody_needs_no_key(tmp_path):
    ended = run(tmp_path, "manage.py", "check", "--tag", "models")
    assert ended.returncode == 0, ended.stderr


def test_the_key_that_was_set_comes_before_the_kept_one(tmp_path):
    assert lasting_key("", tmp_path) == ""
    (tmp_path / "secret-key").write_text("kept\n")
    assert lasting_key("", tmp_path) == "kept"
    assert lasting_key("given", tmp_path) == "given"
