"""Cases of `manage.py replay` of the agent without a name: written, read again and run."""

from __future__ import annotations

import json

import pytest

from apps.engine.formats.evalsite_writer import dump
from tests.desks import desk_trace
from tests.evalsite.replaying import ASKED, Folder, found, replay
from tests.model_server import model_server


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.mark.parametrize("called", ["unnamed agent", "Unnamed-Agent", ""])
def test_a_case_of_the_agent_without_a_name_comes_back(folder, called):
    """What is written for it is read again, run, and found beside the recorded."""
    recorded = folder.path / "nameless.jsonl"
    acts = [("calls", ("lookup", {"number": 7}, "open")), ("says", "Decision: A")]
    trials = [desk_trace(("", acts), trial=one, asked=ASKED) for one in (1, 2)]
    recorded.write_bytes(b"".join(map(dump, trials)))
    cases = folder.path / "frozen.jsonl"
    asked = ("--freeze", recorded, "--agent", called, "-o", cases)
    code, _, said = replay(*asked)
    assert (code, said) == (0, "1 case.\n")
    assert json.loads(cases.read_text())["agent"] == ""
    folder.cases = cases
    with model_server(answer="Decision: A") as server:
        words = [*folder.model(server), "--recorded", recorded]
        code, runs, summary = found(*words)
        _, printed, _ = replay(*words, "--repeats", 1)
    assert (code, [one["decision"] for one in runs]) == (0, ["A"] * 5)
    assert summary["groups"][0]["recorded"]["is_exact"]
    assert "unnamed agent: " in printed


def test_an_agent_that_is_called_unnamed_agent_goes_before_the_nameless(folder):
    recorded = folder.path / "both.jsonl"
    said = [("says", "Decision: A")]
    named = desk_trace(("", said), ("unnamed agent", said), asked=ASKED)
    recorded.write_bytes(dump(named))
    _, printed, _ = replay("--freeze", recorded, "--agent", "unnamed agent")
    assert [json.loads(one)["agent"] for one in printed.splitlines()] == [
        "unnamed agent"
    ]


def test_without_anything_nameless_that_is_said(folder):
    recorded = folder.path / "named.jsonl"
    recorded.write_bytes(dump(desk_trace(("memory", [("says", "A")]))))
    code, _, said = replay("--freeze", recorded, "--agent", "unnamed agent")
    assert code == 2
    assert said == "An agent without a name acts in none of these traces.\n"
