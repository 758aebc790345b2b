"""The way from a bare Python into the project's environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evalsite import bootstrap
from evalsite.bootstrap import DEV_LOCK, RUN_LOCK, CannotPrepare

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout whose lock files ask for nothing, so that pip needs no network."""
    for name in (RUN_LOCK, DEV_LOCK):
        (tmp_path / name).write_text("# nothing\n")
    monkeypatch.setattr(bootstrap, "PROJECT_DIR", tmp_path)
    return tmp_path


@pytest.fixture
def installs(monkeypatch):
    """Lock files that were installed, in order; nothing is really installed."""
    installed = []
    monkeypatch.setattr(
        bootstrap, "_install", lambda _venv, lock: installed.append(lock)
    )
    return installed


@pytest.fixture
def made_venv(checkout):
    venv = checkout / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    return venv


def pins(name):
    text = (ROOT / name).read_text()
    return dict(re.findall(r"^([\w.\[\],-]+)==([^\s;]+)", text, re.MULTILINE))


def test_an_old_python_is_told_which_one_is_needed():
    with pytest.raises(CannotPrepare, match=r"needs Python 3\.11 or newer.*is 3\.9\."):
        bootstrap.refuse_old_python((3, 9, 2, "final", 0))
    bootstrap.refuse_old_python((3, 11, 0, "final", 0))
    bootstrap.refuse_old_python((4, 0, 0, "final", 0))


def test_tests_and_checks_install_the_developers_lock_and_the_rest_the_other():
    for command in ("test", "check-code", "fix-code", "bench", "shot"):
        assert bootstrap.lock_for([command]) == DEV_LOCK
    for words in (["run"], ["migrate"], []):
        assert bootstrap.lock_for(words) == RUN_LOCK


def test_the_environment_lies_in_the_checkout_unless_another_place_is_named(tmp_path):
    assert bootstrap.venv_dir({}) == ROOT / ".venv"
    chosen = {"EVALSITE_VENV": str(tmp_path / "env")}
    assert bootstrap.venv_dir(chosen) == tmp_path / "env"


def test_the_developers_lock_holds_the_other_one_in_the_same_versions():
    run, dev = pins(RUN_LOCK), pins(DEV_LOCK)
    assert len(run) > 20
    assert {name: dev.get(name) for name in run} == run


def test_the_locks_carry_hashes_and_name_no_host():
    for name in (RUN_LOCK, DEV_LOCK):
        text = (ROOT / name).read_text()
        assert "://" not in text
        assert text.count("--hash=sha256:") >= len(pins(name))


def test_a_lock_is_installed_once_and_again_only_when_it_changes(
    checkout, made_venv, installs
):
    bootstrap.prepare(made_venv, RUN_LOCK)
    bootstrap.prepare(made_venv, RUN_LOCK)
    assert installs == [RUN_LOCK]
    (checkout / RUN_LOCK).write_text("# something\n")
    bootstrap.prepare(made_venv, RUN_LOCK)
    assert installs == [RUN_LOCK, RUN_LOCK]


def test_after_the_developers_lock_the_other_one_needs_no_install(made_venv, installs):
    bootstrap.prepare(made_venv, DEV_LOCK)
    bootstrap.prepare(made_venv, RUN_LOCK)
    assert installs == [DEV_LOCK]


def test_a_new_run_lock_makes_the_developers_lock_due_again(
    checkout, made_venv, installs
):
    bootstrap.prepare(made_venv, DEV_LOCK)
    (checkout / RUN_LOCK).write_text("# something\n")
    bootstrap.prepare(made_venv, RUN_LOCK)
    bootstrap.prepare(made_venv, DEV_LOCK)
    assert installs == [DEV_LOCK, RUN_LOCK, DEV_LOCK]


def test_a_folder_that_is_no_environment_is_never_cleared(checkout):
    precious = checkout / "home"
    precious.mkdir()
    (precious / "letter").write_text("dear")
    with pytest.raises(CannotPrepare, match="not a virtual environment"):
        bootstrap.prepare(precious, RUN_LOCK)
    assert (precious / "letter").read_text() == "dear"


def test_a_python_without_ensurepip_names_the_package_of_debian(checkout, monkeypatch):
    monkeypatch.setattr(bootstrap.importlib.util, "find_spec", lambda _name: None)
    version = "{}.{}".format(*sys.version_info[:2])
    with pytest.raises(CannotPrepare, match=rf"apt install python{version}-venv"):
        bootstrap.prepare(checkout / ".venv", RUN_LOCK)


def test_what_cannot_be_installed_is_tried_again_the_next_time(
    checkout, made_venv, monkeypatch, capfd
):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(checkout))
    (checkout / RUN_LOCK).write_text(f"no-such-thing==1 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(CannotPrepare, match="Without a network, point pip at a mirror"):
        bootstrap.prepare(made_venv, RUN_LOCK)
    assert not list(made_venv.glob("*.sha256"))
    assert "no-such-thing" in capfd.readouterr().err


def test_a_bare_python_makes_the_environment_and_goes_on_inside_of_it(tmp_path):
    package = tmp_path / "evalsite"
    package.mkdir()
    source = (ROOT / "evalsite" / "bootstrap.py").read_text()
    (package / "bootstrap.py").write_text(source)
    (tmp_path / RUN_LOCK).write_text("# nothing\n")
    door = tmp_path / "door.py"
    door.write_text(
        "import sys\n"
        "from evalsite import bootstrap\n"
        "bootstrap.enter(sys.argv)\n"
        "print(sys.prefix, *sys.argv[1:])\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "EVALSITE_VENV"}
    for _ in range(2):
        answer = subprocess.run(
            [sys._base_executable, door, "run", "--port", "1"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert answer.stdout.split() == [str(tmp_path / ".venv"), "run", "--port", "1"]
    assert answer.stderr == "", "The second call has nothing to make."
