"""Settings that do not work are said in a sentence that names the variable."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("EVALSITE_MAX_UPLOAD_BYTES", "1GB", "EVALSITE_MAX_UPLOAD_BYTES is '1GB'"),
        ("DATABASE_URL", "nonsense", "DATABASE_URL is no address of PostgreSQL"),
        ("DATABASE_URL", "mysql://a/b", "DATABASE_URL is no address of PostgreSQL"),
    ],
)
def test_a_wrong_setting_ends_in_one_sentence(name, value, words):
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_port_ends_in_one_sentence():
    done = subprocess.run(
        [sys.executable, "manage.py", "run"],
        cwd=ROOT,
        env={**os.environ, "EVALSITE_PORT": "abc"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "EVALSITE_PORT is 'abc'" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
