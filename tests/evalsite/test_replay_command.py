"""`manage.py replay`: agents run alone out of files, without a database."""

from __future__ import annotations

import json
import sys

import pytest

from apps.engine.formats.evalsite_writer import dump
from tests.desks import desk_trace
from tests.evalsite.replaying import (
    ASKED,
    CASE,
    Folder,
    agent_server,
    found,
    post,
    replay,
)
from tests.evalsite.test_describe import call as in_a_process
from tests.model_server import call, model_server
from tests.model_server.answers import noisy

LOOKS_UP = call("lookup", number=7)
KEY = "canary-key-0123456789"


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def numbers(runs, name):
    return [run[name] for run in runs]


TOLD = {
    "deterministic": ({"answer": "Decision: A"}, {}, ["A"] * 5, {}),
    "streaming": ({"answer": "Decision: A"}, {"stream": True}, ["A"] * 5, {}),
    "rate_limited": (
        {"answer": "Decision: A", "times": 2, "retry_after": 0.05},
        {},
        ["A"] * 5,
        {"rate_limited": 2},
    ),
    "malformed": ({"variant": "html"}, {}, [None] * 5, {"bad_answer": 5}),
    "hanging": ({}, {"seconds": 1}, [None] * 5, {"timed_out": 5}),
}


@pytest.mark.parametrize("mode", sorted(TOLD))
def test_it_reports_what_the_model_was_told_to_do(folder, mode):
    settings, more, decisions, errors = TOLD[mode]
    told = "deterministic" if mode == "streaming" else mode
    with model_server(told, **settings) as server:
        words = folder.model(server, concurrency=5, **more)
        code, runs, summary = found(*words)
    assert [run["decision"] for run in runs] == decisions
    seen: dict[str, int] = {}
    for run in runs:
        for kind, number in run["errors"].items():
            seen[kind] = seen.get(kind, 0) + number
    assert seen == errors
    assert summary["spent"]["calls"] == server.stats.calls
    assert sum(numbers(runs, "model_calls")) == server.stats.calls
    [group] = summary["groups"]
    finished = sum(one is not None for one in decisions)
    assert (group["finished"]["k"], group["finished"]["n"]) == (finished, 5)
    assert summary["levels"] == ["no local code"]
    if finished:
        assert code == 0
        assert group["consistency"]["k"] == 5
        assert all(run["input_tokens"] > 0 for run in runs)
    else:
        assert code == 3
        assert group["errors"] == errors
        assert not summary["spent"]["is_tokens_known"] or mode == "malformed"


def test_a_model_that_wavers_is_unstable_in_the_share_that_it_has(folder):
    sure, other = (call("x"), call("y"))
    drawn = [
        noisy(number, seed=3, share=0.4, usual=sure, other=other) is other
        for number in range(1, 6)
    ]
    with model_server("noisy", seed=3, share=0.4) as server:
        words = folder.model(server, concurrency=1)
        code, runs, summary = found(*words)
        assert code == 1
        assert numbers(runs, "decision") == ["B" if one else "A" for one in drawn]
        [group] = summary["groups"]
        assert group["colour"] == "unstable"
        shares = {
            one["decision"]: one["agreement"] for one in group["consistency"]["answers"]
        }
        assert shares["B"]["k"] == sum(drawn)
        assert 0 < shares["B"]["low"] < sum(drawn) / 5 < shares["B"]["high"] < 1
        assert replay(*words, "--fail-on", "red")[0] == 0
        assert replay(*words, "--fail-on", "never")[0] == 0


def test_tools_are_answered_by_stubs_and_writes_are_only_intended(folder):
    folder.cases_of({**CASE, "tools": [{"name": "lookup"}, {"name": "send_mail"}]})
    script = [LOOKS_UP, call("send_mail", to="A"), call("lookup", number=9), "Done."]
    with model_server("scripted", answers=script) as server:
        stubs = {"tools": {"send_mail": {"kind": "static", "value": "sent"}}}
        code, runs, summary = found(*folder.model(server, stubs=stubs))
    assert code == 0
    [group] = summary["groups"]
    assert group["stubs"] == {
        "recorded": 5,
        "static": 5,
        "handler": 0,
        "miss": 5,
        "intended_writes": 5,
    }
    assert numbers(runs[0]["tool_calls"], "answered_by") == [
        "recorded",
        "static",
        "miss",
    ]
    assert runs[0]["proof"]["real_calls"] == 0
    assert runs[0]["proof"]["input_before"] == runs[0]["proof"]["input_after"]


def test_each_condition_is_a_group_and_what_changes_nothing_is_left_out(folder):
    words = ("--regime", "0", "--regime", "0.7", "--regime", "own")
    more = ("--regime", "quoted", "--regime", "decomposed", "--wording", "Open yet?")
    with model_server(answer="Decision: A") as server:
        asked = folder.model(server)
        code, _, summary = found(*asked, *words, *more, "--repeats", 1)
        assert code == 0
        sent = [
            (body.get("temperature"), body["messages"][-1]["content"])
            for body in server.stats.bodies
        ]
    assert {heat for heat, _ in sent} == {0.0, 0.7, None}
    assert "Open yet?" in {text for _, text in sent}
    assert [one["regime_in_words"] for one in summary["groups"]][:3] == [
        "Temperature 0",
        "Temperature 0.7",
        "The target's own temperature",
    ]
    assert len(summary["groups"]) == 5
    assert len(summary["left_out"]) == 1


CAPS = [
    (("--max-calls", 2), "2 calls"),
    (("--max-tokens", 2_500), "2,500 tokens"),
    (("--max-money", "0.000005"), "money"),
]


@pytest.mark.parametrize(("cap", "said"), CAPS)
def test_a_cap_ends_it_and_the_answer_is_incomplete(folder, cap, said):
    prices = folder.path / "prices.yaml"
    prices.write_text("prices: [{model: small, input: 0.001, output: 0.001}]")
    with model_server(answer="Decision: A", usage="missing") as server:
        words = folder.model(server, concurrency=1, limits={"output_tokens": 1_000})
        code, runs, summary = found(*words, *cap, "--prices", prices)
        assert 0 < server.stats.calls < 5
    assert code == 3
    assert said in summary["stopped"]
    endings = set(numbers(runs, "ending"))
    assert endings == {"finished", "over_budget"}
    assert summary["groups"][0]["consistency"]["n"] == server.stats.calls


def test_money_is_counted_by_the_prices_of_a_file(folder):
    prices = folder.path / "prices.yaml"
    prices.write_text("currency: EUR\nprices: [{model: 'sm*', input: 1, output: 2}]")
    with model_server(answer="Decision: A") as server:
        _, runs, summary = found(*folder.model(server), "--prices", prices)
        code, printed, _ = replay(
            *folder.model(server), "--prices", prices, "--dry-run"
        )
    used = sum(run["input_tokens"] + 2 * run["output_tokens"] for run in runs)
    spent = summary["spent"]
    assert (spent["money"], spent["currency"]) == (used / 1_000_000, "EUR")
    assert spent["is_money_known"]
    assert code == 0
    assert printed.startswith("5 runs, 5 to 100 model calls")
    assert "EUR" in printed


def test_the_key_comes_from_the_environment_and_is_never_said(folder, monkeypatch):
    monkeypatch.setenv("OF_TESTS", KEY)
    with model_server("echo_key") as server:
        words = folder.model(server, secret_env="OF_TESTS")
        for shape in ((), ("--json",)):
            code, printed, said = replay(*words, *shape)
            assert code == 3
            assert KEY not in printed + said
            assert "not allowed" in printed.replace("_", " ")
        assert KEY in server.stats.headers[0]["Authorization"]


class TestLocalCode:
    """Callables and commands, in the sandbox."""

    def test_a_callable_decides_by_its_stubs(self, folder):
        code, runs, summary = found(*folder.code("good"))
        assert code == 0
        assert numbers(runs, "decision") == ["refund", "refund"]
        assert summary["groups"][0]["stubs"]["recorded"] == 2
        assert summary["levels"][0] in {"namespaces", "landlock_seccomp"}
        assert summary["isolation"]["wall"]

    def test_a_breach_is_red_and_is_named(self, folder):
        code, printed, _ = replay(*folder.code("writes"))
        assert code == 1
        assert "x memory: order 7; temperature 0: red" in printed
        assert "BREACH in 2 of 2 runs" in printed
        assert "/etc/evalsite-was-here" in printed

    def test_code_that_breaks_everywhere_leaves_nothing_to_say(self, folder):
        code, printed, said = replay(*folder.code("breaks"))
        assert code == 3
        assert "Did not finish" in printed
        assert "KeyError" in said

    def test_a_command_gets_the_case_and_asks_for_its_tools(self, folder):
        script = folder.path / "agent.py"
        script.write_text(
            "import json\n"
            "case = json.loads(input())\n"
            'print(json.dumps({"ask": "tool", "tool": "lookup",'
            ' "arguments": {"number": 7}}), flush=True)\n'
            "found = json.loads(input())\n"
            'print(json.dumps({"output": {"decision": found["result"]}}))\n'
        )
        settings = {"command": sys.executable, "arguments": [str(script)]}
        target = folder.target("command", settings, code=["."])
        words = ["--target", target, "--cases", folder.cases, "--repeats", 1]
        code, runs, _ = found(*words, "--command", sys.executable)
        assert (code, runs[0]["decision"]) == (0, "open"), runs

    def test_nothing_runs_that_the_caller_did_not_allow(self, folder):
        *words, _, _ = folder.code("good")
        code, _, said = replay(*words[:4])
        assert code == 2
        assert "--callable MODULE:NAME" in said


class TestAgentsOverHttp:
    """Agents elsewhere, whose tools are stubs that the command serves."""

    def words(self, folder, host):
        target = folder.target("http", {"url": f"http://{host}/run"})
        words = ["--target", target, "--cases", folder.cases, "--allow", host]
        return [*words, "--repeats", 2]

    def test_its_tools_are_stubs_of_the_run(self, folder):
        addresses = []

        def answer(asked):
            [tool] = asked["tools"]
            addresses.append(tool["url"])
            said = post(tool["url"], {"number": 7})["result"]
            listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            offered = post(asked["mcp"]["url"], listing)["result"]["tools"]
            return {
                "output": {"decision": f"{said} {offered[0]['name']}"},
                "usage": {"input_tokens": 10, "output_tokens": 2},
            }

        with agent_server(answer) as host:
            code, runs, summary = found(*self.words(folder, host))
        assert code == 0
        assert numbers(runs, "decision") == ["open lookup"] * 2
        assert summary["groups"][0]["stubs"]["recorded"] == 2
        assert summary["spent"]["tokens"] == 24
        assert len(set(addresses)) == 2

    def test_a_call_that_no_stub_saw_is_a_breach(self, folder):
        steps = [{"type": "tool", "name": "lookup", "arguments": {"number": 7}}]
        with agent_server(lambda asked: {"output": "A", "steps": steps}) as host:
            code, _, summary = found(*self.words(folder, host))
        assert (code, summary["breaches"]) == (1, 2)

    def test_an_address_inside_is_refused_unless_it_is_allowed(self, folder):
        words = self.words(folder, "127.0.0.1:9")
        code, _, said = replay(*words[:4])
        assert code == 2
        assert "--allow HOST:PORT" in said


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Four trials in which memory answers A, of one task."""
    path = tmp_path_factory.mktemp("recorded") / "traces.jsonl"
    trials = [
        desk_trace(
            ("memory", [("calls", ("lookup", {"number": 7}, "open")), ("says", said)]),
            ("writer", [("says", "We will call.")]),
            trial=trial,
            asked=ASKED,
        )
        for trial, said in enumerate(["Decision: A"] * 4, start=1)
    ]
    path.write_bytes(b"".join(map(dump, trials)))
    return path


class TestRecordedTraces:
    """Cases frozen out of traces, and the pipeline beside the agent alone."""

    def test_frozen_cases_run_beside_what_was_recorded(self, folder, traces):
        cases = folder.path / "frozen.jsonl"
        code, printed, said = replay(
            "--freeze", traces, "--agent", "Memory", "-o", cases
        )
        assert (code, printed, said) == (0, "", "1 case.\n")
        [case] = [json.loads(line) for line in cases.read_text().splitlines()]
        assert case["calls"][0]["result"] == "open"
        folder.cases = cases
        recordings = folder.path / "recordings.jsonl"
        with model_server("scripted", answers=[LOOKS_UP, "Decision: B"]) as server:
            words = [*folder.model(server), "--recorded", traces]
            code, _, summary = found(
                *words, "--traces", recordings, "--fail-on", "differs"
            )
            assert code == 1
            assert replay(*words)[0] == 0
        [group] = summary["groups"]
        beside = group["recorded"]
        assert (beside["is_exact"], beside["standing"]) == (True, "differ")
        assert beside["sentence"].startswith(
            "In the pipeline it decided “A” in 4 of 4; alone it decides “B” in 5 of 5."
        )
        done = in_a_process("compare", recordings, "--json")
        again = json.loads(done.stdout)
        assert again["traces"] == 5
        assert again["tasks"][0]["agents"][0]["agreement"]["k"] == 5

    def test_a_contract_that_breaks_alone_makes_it_red(self, folder, traces):
        contracts = folder.path / "agents.yaml"
        contracts.write_text(
            "evalsite: 1\nagents:\n  memory:\n    contracts:\n"
            "      - {name: says A, kind: regex, pattern: 'Decision: A'}\n"
        )
        with model_server(answer="Decision: B") as server:
            words = [*folder.model(server), "--recorded", traces]
            code, printed, _ = replay(*words, "--contracts", contracts)
        assert code == 1
        assert ": red" in printed
        flat = " ".join(printed.split())
        assert "“says A”: broke in 0 of 4 applications in the pipeline" in flat
        assert "broke in 5 of 5 applications alone" in flat

    def test_an_agent_that_acts_nowhere_is_a_wrong_call(self, traces):
        code, _, said = replay("--freeze", traces, "--agent", "nobody")
        assert (code, said) == (2, "“nobody” acts in none of these traces.\n")


def test_it_runs_as_a_process_without_the_settings_of_a_site(folder):
    with model_server(answer="Decision: A") as server:
        out = folder.path / "out.jsonl"
        words = [*folder.model(server), "--json", "-o", out]
        done = in_a_process("replay", *words)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert len(out.read_text().splitlines()) == 6
