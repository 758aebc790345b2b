"""`manage.py screen --sarif`: a log that other tools read, by the rules of its format."""

from __future__ import annotations

import json
from urllib.parse import unquote

import pytest

from apps.engine.checks import CHECKS
from evalsite.offline.sarif import uri_of
from tests.evalsite.screening import file_of, sarif
from tests.factories import decay_trace


@pytest.fixture
def falling(tmp_path):
    return file_of(tmp_path, decay_trace(100, 90, 80, 70, 60, name="run 1"))


@pytest.fixture
def calm(tmp_path):
    return file_of(tmp_path, decay_trace(60, 90, 80, 70, 100), name="calm.jsonl")


def test_a_signal_is_a_result_and_never_an_error(tmp_path, falling):
    tied = file_of(tmp_path, decay_trace(9, 9, 9, 9, 5), name="tied file.jsonl")
    log, code = sarif(falling, tied, "--check", "output-decay")
    assert code == 1
    assert (log["version"], set(log)) == ("2.1.0", {"$schema", "version", "runs"})
    [run] = log["runs"]
    first, second = run["results"]
    assert (first["level"], second["level"]) == ("warning", "note")
    assert first["ruleId"] == "output-decay"
    assert run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == "output-decay"
    assert "kind" not in first, "a kind other than fail would forbid a level"
    assert first["message"]["text"].endswith(".")
    [place] = first["locations"]
    uri = place["physicalLocation"]["artifactLocation"]["uri"]
    assert unquote(uri) == f"file://{falling}"
    assert [one["kind"] for one in place["logicalLocations"]] == ["trace", "step"]
    assert "tied%20file" in json.dumps(second)
    fingerprints = [one["partialFingerprints"] for one in run["results"]]
    assert len({one["input/v1"] for one in fingerprints}) == 2
    assert first["properties"]["p"]["denominator"] == 120


def test_the_four_texts_of_each_check_are_in_its_rule(calm):
    log, code = sarif(calm, "--fail-on", "never")
    [run] = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert code == 0
    assert [rule["id"] for rule in rules] == [check.slug for check in CHECKS]
    for rule, check in zip(rules, CHECKS, strict=True):
        for text in (check.observes, check.null_model, check.material_when):
            assert text in rule["help"]["text"]
        assert check.next_step in rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in {"note", "warning"}
        assert rule["name"].isalnum()


def test_silence_is_counted_in_the_properties_of_the_run(tmp_path, calm):
    short = file_of(tmp_path, decay_trace(3, 2, 1))
    [run] = sarif(calm, short, "--check", "output-decay")[0]["runs"]
    counts = run["properties"]["checks"]["output-decay"]
    assert (counts["quiet"], counts["not_applicable"]) == (1, 1)
    assert counts["by_chance"]["expected"] == pytest.approx(1 / 120)
    assert run["properties"]["traces"] == 2


def test_what_was_not_read_is_a_notification(tmp_path, calm):
    bad = tmp_path / "bad.json"
    bad.write_bytes(b"")
    log, code = sarif(calm, bad)
    [invocation] = log["runs"][0]["invocations"]
    assert (code, invocation["exitCode"]) == (3, 3)
    assert invocation["executionSuccessful"] is False
    [said] = invocation["toolExecutionNotifications"]
    assert said["level"] == "warning"
    assert "no bytes" in said["message"]["text"]


def test_a_path_below_the_working_folder_is_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert uri_of("../x.json") == f"file://{tmp_path.parent}/x.json"
    assert uri_of("a b/ü.json") == "a%20b/%C3%BC.json"
    assert uri_of(str(tmp_path / "a.json")) == "a.json"
    assert uri_of("/x/a b.json") == "file:///x/a%20b.json"


def test_the_place_of_a_member_of_a_folder_is_its_own_file(tmp_path):
    (tmp_path / "runs").mkdir()
    file_of(tmp_path / "runs", decay_trace(100, 90, 80, 70, 60), name="one.jsonl")
    log, _ = sarif(tmp_path / "runs", "--check", "output-decay")
    [result] = log["runs"][0]["results"]
    [place] = result["locations"]
    uri = place["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.endswith("/runs/one.jsonl")


def test_chance_gives_no_number_of_what_was_not_checked(tmp_path):
    short = file_of(tmp_path, decay_trace(3, 2, 1))
    [run] = sarif(short, "--check", "output-decay")[0]["runs"]
    assert run["properties"]["checks"]["output-decay"]["by_chance"] is None
