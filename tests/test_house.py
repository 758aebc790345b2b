"""Rules about the code itself, so that it stays the house that it is."""

from __future__ import annotations

import ast
import inspect
import json
import re
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps as registry

from apps.accounts.permissions import _WORDS, LEAST_ROLE, Permission
from apps.engine.checks import CHECKS
from apps.engine.formats import FORMATS
from apps.engine.trace import StepKind
from apps.review import transitions as review
from apps.traces import transitions as uploads
from apps.web.pages.blind import BLIND_MEANINGS
from apps.web.pages.signal import MEANINGS
from apps.web.pages.steps import ICONS, KIND_WORDS
from evalsite.celery import app as celery
from evalsite.running import Serving
from evalsite.settings import Environment
from tests.conftest import ROOT
from tests.each import for_each
from tests.tree import dotted, files, imports, syntax, text

ENGINE = files(".py", under=("apps/engine",))
QUESTIONS = ("observes", "null_model", "material_when", "next_step")


class TestChecks:
    """A check says what it does before it says anything else."""

    every = for_each("check", CHECKS, ids=lambda check: check.slug)

    @every
    def test_it_answers_its_four_questions(self, check):
        for question in QUESTIONS:
            assert len(getattr(check, question)) > 40, question

    @every
    def test_it_has_a_name_a_version_and_parameters(self, check):
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", check.slug)
        assert check.label[0].isupper()
        assert check.version >= 1
        assert json.loads(json.dumps(check.parameters)) == check.parameters
        assert isinstance(check.needs_bodies, bool)

    @every
    def test_it_lives_in_a_file_of_its_own_that_has_a_test(self, check):
        name = check.slug.replace("-", "_")
        assert type(check).__module__ == f"apps.engine.checks.{name}"
        tested = syntax(Path(f"tests/engine/checks/test_{name}.py"))
        assert _tests_in(tested)

    def test_every_rule_that_lies_there_is_registered(self):
        modules = {
            path.stem
            for path in ENGINE
            if path.parent.name == "checks" and path.stem != "__init__"
        }
        assert modules == {check.slug.replace("-", "_") for check in CHECKS}


class TestFormats:
    """A format is described to people and named in tests."""

    every = for_each("reader", FORMATS, ids=lambda one: one.slug)

    @every
    def test_it_is_described(self, reader):
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", reader.slug)
        assert len(reader.slug) <= 40
        assert reader.label
        assert reader.version >= 1
        assert reader.description.endswith(".")
        assert len(reader.description) > 40

    @every
    def test_it_has_a_test(self, reader):
        named = [
            path
            for path in files(".py", under=("tests/formats",))
            if f'"{reader.slug}"' in text(path) and _tests_in(syntax(path))
        ]
        assert named

    def test_slugs_are_unique(self):
        assert len({one.slug for one in FORMATS}) == len(FORMATS)


def _tests_in(module: ast.Module) -> list[str]:
    return [
        node.name
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def _settings() -> dict[str, Any]:
    """Every environment variable that is a setting, with its default."""
    found = {}
    for model in (Environment, Serving):
        for name, field in model.model_fields.items():
            variable = field.validation_alias or f"EVALSITE_{name.upper()}"
            found[str(variable)] = field.default
    return found


# Read by the commands before there are settings, or by docker-compose.yml.
OTHER_VARIABLES = {
    "EVALSITE_VENV",
    "EVALSITE_CHROMIUM",
    "EVALSITE_SKIP_BROWSER",
    "EVALSITE_SOAK",
    "EVALSITE_PUBLISH",
    "POSTGRES_PASSWORD",
}


class TestSettings:
    """What can be set is written down where people look for it."""

    def example(self) -> dict[str, str]:
        lines = (ROOT / ".env.example").read_text().splitlines()
        matches = [re.match(r"#?([A-Z_]+)=(.*)$", line) for line in lines]
        return {match[1]: match[2] for match in matches if match}

    def test_the_example_has_every_setting_and_no_other(self):
        assert set(self.example()) == set(_settings()) | OTHER_VARIABLES

    @for_each("name", _settings())
    def test_the_example_shows_the_default(self, name):
        default, shown = _settings()[name], self.example()[name]
        if isinstance(default, bool):
            assert shown == str(default).lower()
        elif isinstance(default, int):
            assert int(shown) == default
        elif isinstance(default, str):
            assert shown == default

    @for_each("name", sorted(OTHER_VARIABLES))
    def test_what_else_is_in_the_example_is_read_somewhere(self, name):
        places = [ROOT / "docker-compose.yml", ROOT / "manage.py", ROOT / "Makefile"]
        places += [ROOT / path for path in files(".py", under=("evalsite", "tests"))]
        this = Path(__file__)
        assert any(name in path.read_text() for path in places if path != this)

    @for_each("name", _settings())
    def test_the_readme_has_it_in_its_table(self, name):
        readme = (ROOT / "README.md").read_text()
        part = readme[readme.index("\n## Configuration") :]
        part = part[: part.find("\n## ", 5)]
        rows = [line for line in part.splitlines() if line.startswith("| `")]
        assert any(f"`{name}`" in row.split("|")[1] for row in rows)


def _tasks() -> dict[str, Any]:
    celery.loader.import_default_modules()
    return {
        name: task
        for name, task in celery.tasks.items()
        if not name.startswith("celery.")
    }


class TestTasks:
    """A message holds ids only: the truth lies in the database."""

    def test_there_are_some_and_all_belong_to_the_pipeline(self):
        assert len(_tasks()) >= 3
        assert all(name.startswith("pipeline.") for name in _tasks())

    @for_each("name", sorted(_tasks()))
    def test_it_takes_ids_by_name_and_arguments_of_later_versions(self, name):
        parameters = list(inspect.signature(_tasks()[name].run).parameters.values())
        *ids, later = parameters
        assert (later.kind, later.name) == (inspect.Parameter.VAR_KEYWORD, "_later")
        for parameter in ids:
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
            assert re.fullmatch(r"[a-z_]+_ids?", parameter.name)
            assert "int" in str(parameter.annotation)

    def test_every_task_of_the_schedule_exists(self):
        planned = {entry["task"] for entry in celery.conf.beat_schedule.values()}
        assert planned <= set(_tasks())


FORBIDDEN_IMPORTS = ("socket", "os", "subprocess", "urllib.request", "http", "django")
CLOCKS = {
    "datetime.now",
    "datetime.datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
    "time.time",
    "time.monotonic",
    "time.sleep",
}


@for_each("path", ENGINE, ids=str)
def test_the_engine_reads_no_clock_no_network_and_no_chance(path):
    named = list(imports(path))
    for name in named:
        assert not any(
            name == banned or name.startswith(f"{banned}.")
            for banned in FORBIDDEN_IMPORTS
        ), name
        if name.startswith("random."):
            assert name == "random.Random"
    for node in ast.walk(syntax(path)):
        chain = dotted(node)
        assert chain not in CLOCKS
        if chain.startswith("random."):
            assert chain == "random.Random"


@for_each("path", ENGINE, ids=str)
def test_what_waits_on_the_disk_is_sealed(path):
    """A project may keep no bodies: a plain temporary file would hold them in clear."""
    is_the_sealed_one = path.as_posix().endswith("apps/engine/privacy/sealed.py")
    named = {name.partition(".")[0] for name in imports(path)}
    assert "tempfile" not in named or is_the_sealed_one


# Longer than 400 lines, each with the reason why it is not two files.
LONG_FILES: dict[str, str] = {}


def test_no_file_is_longer_than_400_lines_without_a_reason():
    long = {
        path.as_posix()
        for path in files(".py", ".html", ".js", ".css", ".typ")
        if len(text(path).splitlines()) > 400
    }
    assert long == set(LONG_FILES)


VAGUE = {"util", "utils", "helper", "helpers", "common", "core", "manager", "managers",
         "service", "services", "misc", "base_classes"}  # fmt: skip


def test_no_path_has_a_name_that_could_hold_anything():
    found = [
        path
        for path in files(".py", ".html", ".js", ".css")
        if VAGUE & {part.split(".")[0] for part in path.parts}
    ]
    assert found == []


def test_nothing_is_faked_with_mock():
    # Most files need not be parsed to know that they import nothing of this name.
    named = [path for path in files(".py") if "mock" in text(path)]
    assert Path("tests/test_house.py") in named
    users = [
        path
        for path in named
        if any(name.startswith(("unittest.mock", "mock.")) for name in imports(path))
    ]
    assert users == []


def test_lock_files_hold_no_address():
    for name in ("requirements.lock", "requirements-dev.lock"):
        lock = (ROOT / name).read_text()
        assert "://" not in lock
        pinned = re.findall(r"^[a-z0-9._\[\],-]+==", lock, re.MULTILINE | re.IGNORECASE)
        assert len(pinned) > 10
        assert lock.count("--hash=sha256:") >= len(pinned)


class TestTheArchitecturePage:
    """`apps/README.md` names every part of the house."""

    page = property(lambda self: (ROOT / "apps/README.md").read_text())

    @for_each(
        "name", sorted(p.parent.name for p in (ROOT / "apps").glob("*/__init__.py"))
    )
    def test_it_names_every_app(self, name):
        assert re.search(rf"\b{name}/|`{name}`|^{name}\b", self.page, re.MULTILINE)

    @for_each(
        "name",
        sorted(
            path.name if path.suffix else f"{path.name}/"
            for path in (ROOT / "apps/engine").iterdir()
            if not path.name.startswith("__")
        ),
    )
    def test_it_names_every_part_of_the_engine(self, name):
        assert f"engine/{name}" in self.page

    def test_every_path_that_it_names_exists(self):
        named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`", self.page))
        assert len(named) > 10
        missing = {
            name
            for name in named
            if not (ROOT / name).exists()
            and not any(ROOT.glob(f"apps/{name}"))
            and not any(ROOT.glob(f"apps/*/{name}"))
        }
        assert missing == set()


OUR_MODELS = [
    model for model in registry.get_models() if model.__module__.startswith("apps.")
]


@for_each("model", OUR_MODELS, ids=lambda model: model.__name__)
def test_what_may_be_missing_has_no_default_that_looks_recorded(model):
    guessed = [
        field.name
        for field in model._meta.get_fields()
        if getattr(field, "null", False)
        and hasattr(field, "has_default")
        and field.has_default()
    ]
    assert guessed == []


TOTAL: list[tuple[str, dict[Any, Any], type[Enum]]] = [
    ("states of an upload", uploads.NEXT, uploads.UploadState),
    ("least roles", LEAST_ROLE, Permission),
    ("words of permissions", _WORDS, Permission),
    ("icons of steps", ICONS, StepKind),
    ("words of steps", KIND_WORDS, StepKind),
    ("meanings of verdicts", MEANINGS, review.Verdict),
    ("meanings of blind verdicts", BLIND_MEANINGS, review.BlindVerdict),
]


@for_each(("table", "enum"), [pytest.param(t, e, id=name) for name, t, e in TOTAL])
def test_a_table_over_an_enum_has_a_row_for_each_of_its_members(table, enum):
    assert set(table) == set(enum)


class TestStateMachines:
    """Every state is reached and left, every act happens somewhere."""

    def test_every_state_of_a_signal_is_left_and_reached(self):
        states = set(review.SignalState)
        assert {state for state, _ in review.NEXT} == states
        assert set(review.NEXT.values()) == states

    def test_every_act_but_the_first_leads_from_a_state(self):
        acts = {act for _, act in review.NEXT}
        assert set(review.Act) - acts == {review.Act.OPENED}

    @for_each("state", review.SignalState)
    @for_each("act", review.Act)
    def test_what_may_not_follow_is_refused_in_a_sentence(self, state, act):
        if (state, act) in review.NEXT:
            assert review.following(state, act) is review.NEXT[state, act]
            return
        with pytest.raises(review.NotPossibleNow, match="cannot be"):
            review.following(state, act)

    def test_every_state_of_an_upload_is_reached(self):
        reached = {state for following in uploads.NEXT.values() for state in following}
        assert reached == set(uploads.UploadState)

    @for_each("state", uploads.UploadState)
    @for_each("following", uploads.UploadState)
    def test_what_may_not_follow_an_upload_is_refused(self, state, following):
        if following in uploads.NEXT[state]:
            uploads.check_can_follow(state, following)
            return
        with pytest.raises(uploads.NotPossibleNow, match=r"cannot become .+\."):
            uploads.check_can_follow(state, following)


def test_every_test_name_is_a_sentence():
    short = [
        f"{path}::{name}"
        for path in files(".py", under=("tests",))
        for name in re.findall(r"^ *def (test_\w+)", text(path), re.MULTILINE)
        if len(name.split("_")) < 4
    ]
    assert short == []
