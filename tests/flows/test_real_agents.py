"""Agents of real SDKs run alone: over HTTP, over MCP stubs, and in the sandbox.

The model is a server on loopback that does what a test told it to do; the harness has
to report just that.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.evalsite.replaying import CASE, Folder, found
from tests.flows.test_live import skip_without
from tests.model_server import call, model_server
from tests.model_server.answers import as_answer, noisy, rounds_in
from tests.model_server.rendering import usage_of

FOLDER = ROOT / "tests" / "flows" / "replayed_agents"
AGENTS = {
    "openai_agents": ("agents", "openai"),
    "langgraph": ("langgraph", "langchain_openai"),
    "pydantic_ai": ("pydantic_ai", "openai"),
}
SCRIPT = [call("lookup", number=7), "Decision: open"]
NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}}
TOOLS = [{"name": "lookup", "description": "Look up one.", "parameters": NUMBER}]
BILLING = {**CASE, "agent": "billing", "tools": TOOLS}


@pytest.fixture(scope="module")
def elsewhere():
    """The address of the agents' own process, which imports the SDKs once."""
    skip_without("mcp", *(name for names in AGENTS.values() for name in names))
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(FOLDER / "elsewhere.py"), *AGENTS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    port = int(process.stdout.readline())
    yield f"127.0.0.1:{port}"
    process.stdin.close()
    process.stdout.close()
    process.wait(timeout=20)


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path)
    made.cases = made.cases_of(BILLING)
    return made


def over_http(folder, host, agent, how, server, *, seconds: int = 30, repeats: int = 2):
    """Code, runs and summary of an agent elsewhere whose model is at the server."""
    url = f"http://{host}/{agent}/{how}/{server.port}"
    limits = {"seconds": seconds}
    settings = {"url": url, "concurrency": 1, "seconds": seconds}
    target = folder.target("http", settings, limits=limits)
    words = ["--target", target, "--cases", folder.cases, "--allow", host]
    return found(*words, "--repeats", repeats)


def by_script(body):
    """What the model says: it looks up, then it decides."""
    return SCRIPT[min(rounds_in(body), 1)]


def told_usage(bodies) -> tuple[int, int]:
    """Tokens in and out that the server told for these requests."""
    given = made = 0
    for body in bodies:
        usage = usage_of(body, as_answer(by_script(body)), is_chat=True)
        given += usage["prompt_tokens"]
        made += usage["completion_tokens"]
    return given, made


@pytest.mark.parametrize("how", ["tools", "mcp", "stream"])
@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_elsewhere_works_with_stubs_for_tools(folder, elsewhere, agent, how):
    with model_server("scripted", answers=SCRIPT) as server:
        code, runs, summary = over_http(folder, elsewhere, agent, how, server)
    assert code == 0, runs
    assert [run["decision"] for run in runs] == ["open", "open"]
    [group] = summary["groups"]
    assert group["stubs"]["recorded"] == 2
    assert group["stubs"]["miss"] == group["breaches"] == 0
    assert server.stats.calls == 4
    given, made = told_usage(server.stats.bodies)
    assert sum(run["input_tokens"] for run in runs) == given
    assert sum(run["output_tokens"] for run in runs) == made
    assert summary["spent"]["tokens"] == given + made
    heats = {body.get("temperature") for body in server.stats.bodies}
    assert heats == {0.0}


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_whose_model_wavers_is_counted_as_it_does(folder, elsewhere, agent):
    usual, other = as_answer("Decision: A"), as_answer("Decision: B")
    drawn = [
        noisy(number, seed=3, share=0.4, usual=usual, other=other).text[-1]
        for number in range(1, 6)
    ]
    with model_server("noisy", seed=3, share=0.4) as server:
        code, runs, summary = over_http(
            folder, elsewhere, agent, "tools", server, repeats=5
        )
    assert code == 1
    assert [run["decision"] for run in runs] == drawn
    answers = summary["groups"][0]["consistency"]["answers"]
    assert {one["decision"]: one["agreement"]["k"] for one in answers} == {
        "A": drawn.count("A"),
        "B": drawn.count("B"),
    }


@pytest.mark.parametrize("agent", AGENTS)
def test_what_its_model_does_to_it_is_what_is_reported(folder, elsewhere, agent):
    limited = {"times": 2, "retry_after": 0.01, "answer": "Decision: A"}
    with model_server("rate_limited", **limited) as server:
        code, runs, _ = over_http(folder, elsewhere, agent, "tools", server, repeats=1)
        assert (code, runs[0]["decision"]) == (0, "A")
        assert server.stats.calls == 3
    with model_server("malformed", variant="html") as server:
        code, [run], _ = over_http(folder, elsewhere, agent, "tools", server, repeats=1)
        assert code == 3
        assert (run["ending"], run["error"]["kind"]) == ("failed", "target")
    with model_server("hanging") as server:
        code, [run], summary = over_http(
            folder, elsewhere, agent, "tools", server, seconds=1, repeats=1
        )
        assert (code, run["error"]["kind"]) == (3, "timed_out")
        assert not summary["spent"]["is_tokens_known"]


def in_the_sandbox(folder, agent, server, *, repeats: int = 1):
    """Code, runs and summary of an agent as a callable, its model behind the relay."""
    name = f"alone:{agent}"
    settings = {"callable": name, "base_url": server.url, "model": "small"}
    limits = {"seconds": 60, "memory_bytes": 4 * 1024**3}
    code = [str(FOLDER)]
    target = folder.target(
        "callable", {**settings, "seconds": 60}, code=code, limits=limits
    )
    words = ["--target", target, "--cases", folder.cases, "--callable", name]
    return found(*words, "--allow", server.host, "--repeats", repeats)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_in_the_sandbox_reaches_its_model_and_nothing_else(folder, agent):
    skip_without(*AGENTS[agent])
    limited = {"times": 1, "retry_after": 0.01}
    with model_server("rate_limited", **limited, answer=by_script) as server:
        code, [run], summary = in_the_sandbox(folder, agent, server)
    assert (code, run["decision"]) == (0, "open"), (run["error"], run["printed"])
    assert [one["answered_by"] for one in run["tool_calls"]] == ["recorded"]
    assert (run["model_calls"], server.stats.calls) == (3, 3)
    assert run["errors"] == {"rate_limited": 1}
    given, made = told_usage(server.stats.bodies[1:])
    assert (run["input_tokens"], run["output_tokens"]) == (given, made)
    assert not run["has_breach"]
    assert summary["levels"][0] in {"namespaces", "landlock_seccomp"}
