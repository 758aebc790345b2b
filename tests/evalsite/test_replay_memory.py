"""Memory tests of `manage.py replay`: a fact is buried in turns and asked for."""

from __future__ import annotations

import json

import pytest

from apps.engine.trace import StepKind
from evalsite.offline.reading import traces_at
from evalsite.offline.replay_table import table_of
from tests.evalsite.replaying import Folder, agent_server, found, replay
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

    def words(self, folder, words, **more):
        test = folder.path / "memory.json"
        test.write_text(json.dumps(MEMORY | more))
        return [*words, "--memory", test]

    def test_an_agent_that_keeps_four_turns_forgets_what_is_deeper(self, folder):
        words = self.words(folder, folder.code("remembers", repeats=None))
        code, trials, summary = found(*words)
        assert code == 1
        points = summary["memory"]["whole"]["points"]
        assert [(one["depth"], one["recalled"]) for one in points] == [(0, 2), (6, 0)]
        assert summary["memory"]["whole"]["first_uncertain"] == 6
        assert [one["depth"] for one in trials] == [0, 0, 6, 6]
        printed = list(table_of([*trials, summary]))
        assert "    depth    6: 0 of 2 (0 % to 65.8 %), uncertain" in printed
        text = " ".join(" ".join(printed).split())
        assert text.count("Recall counts as certain at a depth where") == 1

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

    def test_a_dry_run_says_what_the_test_itself_says_before(self, folder):
        with model_server(answer="It ends in 4471.") as server:
            words = self.words(folder, folder.model(server, limits={"model_calls": 3}))
            code, printed, _ = replay(*words, "--dry-run")
            assert (code, server.stats.calls) == (0, 0)
            _, _, said = replay(*words)
        # Four trials of 2, 2, 8 and 8 turns, and not five runs of the case.
        assert printed.startswith("4 runs, 20 to 32 model calls (likely 20)")
        assert said.splitlines()[0] == f"Before: {printed.strip()}"

    def test_a_dry_run_refuses_a_test_that_cannot_be_made(self, folder):
        filler = {"languages": [], "texts": ["It has 4471 on it."]}
        words = self.words(
            folder, folder.code("remembers", repeats=None), filler=filler
        )
        for more in ((), ("--dry-run",)):
            code, printed, said = replay(*words, *more)
            assert (code, printed) == (2, "")
            assert "nothing is left to say in between" in said

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("repeats", "3"),
            ("regime", "own"),
            ("wording", "Say it."),
            ("contracts", "agents.yaml"),
            ("recorded", "traces.json"),
        ],
    )
    def test_what_it_would_pass_over_is_refused_before_anything_is_run(
        self, folder, name, value
    ):
        words = self.words(folder, folder.code("remembers", repeats=None))
        code, printed, said = replay(*words, f"--{name}", value)
        assert (code, printed) == (2, "")
        assert f"so --{name} would say nothing." in said

    def test_it_begins_from_one_case_and_says_so_of_more(self, folder):
        words = self.words(folder, folder.code("remembers", repeats=None))
        two = folder.cases_of({"agent": "a", "input": 1}, {"agent": "a", "input": 2})
        code, _, said = replay(*words, "--cases", two)
        assert code == 2
        assert "begins from one case; " in said
        assert "cases.jsonl has 2 cases." in said

    def test_a_command_is_run_anew_for_each_turn_with_its_own_state(self, folder):
        words = self.words(folder, folder.program(), depths=[0, 1], repeats=1)
        code, trials, summary = found(*words)
        assert code == 1
        points = summary["memory"]["whole"]["points"]
        assert [(one["depth"], one["recalled"]) for one in points] == [(0, 1), (1, 0)]
        assert [one["ending"] for one in trials] == ["finished", "finished"]
        assert summary["target"]["kind"] == "command"
        assert set(summary["levels"]) <= {"namespaces", "landlock_seccomp"}

    def test_the_recordings_of_trials_are_kept_and_can_be_read(self, folder):
        def knows(body):
            return "It ends in 4471." if "4471" in json.dumps(body) else "No idea."

        recordings = folder.path / "recordings.jsonl"
        with model_server(answer=knows) as server:
            words = self.words(folder, folder.model(server, concurrency=4))
            found(*words, "--traces", recordings)
        read = [one.trace for one in traces_at(recordings)]
        assert [(one.task[-7:], one.trial) for one in read] == [
            ("depth 0", 1),
            ("depth 0", 2),
            ("depth 6", 1),
            ("depth 6", 2),
        ]
        turns = [
            step.body.output
            for step in read[0].steps
            if step.kind is StepKind.USER_MESSAGE
        ]
        assert turns == ["My card ends in 4471.", "What does my card end in?"]
        assert read[0].metadata["replay"]["target"]["kind"] == "openai"

    def test_trials_that_never_began_for_a_cap_leave_no_recording(self, folder):
        recordings = folder.path / "recordings.jsonl"
        with model_server(answer="It ends in 4471.") as server:
            words = self.words(folder, folder.model(server, concurrency=1))
            more = ("--traces", recordings, "--max-calls", 2)
            code, trials, summary = found(*words, *more)
        assert code == 3
        assert sum(one["is_untried"] for one in trials) == 3
        assert [one.trace.trial for one in traces_at(recordings)] == [1]
        assert summary["memory"]["whole"]["points"][0]["trials"] == 1


NO_ANSWER = "No trial came to an answer: all 4 questions have none"


class TestNoAnswer:
    """A test of which no question has an answer says nothing of what is remembered."""

    words = TestMemory.words

    @pytest.fixture
    def endings(self, folder):
        """What a call of each shape ends with, and what it prints."""

        def run(words):
            shapes = [(), ("--fail-on", "red"), ("--fail-on", "never")]
            return [replay(*self.words(folder, words), *shape) for shape in shapes]

        return run

    def test_an_endpoint_that_always_breaks_is_no_lost_memory(self, folder, endings):
        with model_server("malformed", variant="html") as server:
            words = folder.model(server, concurrency=4)
            code, trials, summary = found(*self.words(folder, words))
            ended = endings(words)
        assert {one["error"]["kind"] for one in trials} == {"bad_answer"}
        memory = summary["memory"]
        assert (memory["is_uncertain"], memory["is_unanswered"]) == (None, True)
        assert memory["whole"]["first_uncertain"] is None
        assert {one["standing"] for one in memory["whole"]["points"]} == {"unanswered"}
        assert memory["sentences"][0].startswith(NO_ANSWER)
        assert [code, *[one[0] for one in ended]] == [3] * 4
        printed = " ".join(ended[0][1].split())
        assert NO_ANSWER in printed
        assert "depth 6: no answer in 2 trials" in printed
        for word in ("no longer certain", "uncertain", "lost", "(0 %"):
            assert word not in printed

    def test_an_agent_that_says_nothing_at_all_is_not_known_either(self, folder):
        with agent_server(lambda asked: {"output": ""}) as host:
            target = folder.target("http", {"url": f"http://{host}/"})
            words = self.words(folder, ["--target", target, "--allow", host])
            code, trials, summary = found(*words)
        assert {one["ending"] for one in trials} == {"finished"}
        assert (code, summary["memory"]["is_unanswered"]) == (3, True)
        assert "given no answer" in summary["memory"]["sentences"][0]

    def test_code_that_cannot_be_started_was_not_cancelled(self, folder):
        called = "agents_of_tests:remembers"
        target = folder.target("callable", {"callable": called}, code=["gone"])
        words = ["--target", target, "--callable", called]
        code, trials, summary = found(*self.words(folder, words))
        assert code == 3
        assert [one["is_untried"] for one in trials] == [False] * 4
        [said] = summary["memory"]["sentences"]
        assert said.startswith(NO_ANSWER)
        assert "gone of the agent is not there" in said
