"""Memory tests of `manage.py replay`: a fact is buried in turns and asked for."""

from __future__ import annotations

import json

import pytest

from evalsite.offline.replay_table import table_of
from tests.evalsite.replaying import Folder, agent_server, found
from tests.model_server import model_server


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


MEMORY = {
    "facts": [
        {
            "slug": "card",
            "value": "4471",
            "telling": "My card ends in {value}.",
            "probe": "What does my card end in?",
        }
    ],
    "depths": [0, 6],
    "repeats": 2,
}


class TestMemory:
    """A fact, buried and asked for."""

    def words(self, folder, words):
        test = folder.path / "memory.json"
        test.write_text(json.dumps(MEMORY))
        return [*words, "--memory", test]

    def test_an_agent_that_keeps_four_turns_forgets_what_is_deeper(self, folder):
        words = self.words(folder, folder.code("remembers"))
        code, trials, summary = found(*words)
        assert code == 1
        points = summary["memory"]["whole"]["points"]
        assert [(one["depth"], one["recalled"]) for one in points] == [(0, 2), (6, 0)]
        assert summary["memory"]["whole"]["first_uncertain"] == 6
        assert [one["depth"] for one in trials] == [0, 0, 6, 6]
        printed = list(table_of([*trials, summary]))
        assert "    depth    6: 0 of 2 (0 % to 65.8 %), uncertain" in printed

    def test_a_model_that_is_sent_everything_forgets_nothing(self, folder):
        def knows(body):
            return "It ends in 4471." if "4471" in json.dumps(body) else "No idea."

        with model_server(answer=knows) as server:
            words = self.words(folder, folder.model(server, concurrency=4))
            code, _, summary = found(*words)
        assert code == 0
        assert not summary["memory"]["is_uncertain"]
        assert summary["spent"]["calls"] == server.stats.calls == 2 * (2 + 8)

    def test_an_http_agent_is_sent_what_was_said_and_its_own_state(self, folder):
        def answer(asked):
            kept = [*(asked["state"] or []), asked["input"]][-3:]
            is_asked = asked["input"].endswith("?")
            return {"output": " ".join(kept) if is_asked else "Noted.", "state": kept}

        with agent_server(answer) as host:
            target = folder.target("http", {"url": f"http://{host}/"})
            words = ["--target", target, "--allow", host, "--agent", "memory"]
            code, _, summary = found(*self.words(folder, words))
        points = summary["memory"]["whole"]["points"]
        assert [one["recalled"] for one in points] == [2, 0]
        assert code == 1

    def test_a_model_that_refuses_the_key_leaves_the_answer_incomplete(self, folder):
        with model_server("echo_key") as server:
            words = self.words(folder, folder.model(server))
            code, trials, summary = found(*words)
        assert code == 3
        assert {one["error"]["kind"] for one in trials} == {"not_allowed"}
        assert summary["memory"]["errors"] == {"not_allowed": 4}
