"""What the harness adds to one run of each kind of target, at each level of isolation.

A run and a bare call of the same agent without a harness are measured in turn (A B A B
…), both from this process; figures are medians of such pairs. The agents do next to
nothing, so that what the harness adds is not lost in their own time. No database takes
part: see `replay_workers` for runs that are claimed, watched and written down.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from apps.engine.replay.case import Case
from apps.engine.replay.run import AnswerSource, Ending, Limits, Ran, ToolAnswer
from apps.isolation import http_agent, model_endpoint
from apps.isolation.client import Reach
from apps.isolation.hooks import Hooks
from apps.isolation.http_agent import HttpAgentOrder, run_http_agent
from apps.isolation.local_code import (
    LocalOrder,
    given_of,
    run_callable,
    run_command,
)
from apps.isolation.model_endpoint import EndpointOrder, run_endpoint
from apps.isolation.sandbox import Allowed, Level, SandboxOrder, probe
from apps.isolation.wall import inner_hosts
from tests.model_server import ModelServer, model_server

CALLS, STARTS = 200, 30
CASE = Case(agent="memory", input="Is order 7 open?")
LIMITS = Limits(seconds=20)
MODULE, NAME = "bench_agent", "bench_agent:agent"
AGENT = "def agent(replay):\n    return replay.input\n"
CALLED = """
import json, sys, types
sys.path.insert(0, sys.argv[1])
from bench_agent import agent
given = json.loads(sys.stdin.readline())
print(json.dumps({"output": agent(types.SimpleNamespace(**given))}))
"""
"""The callable without a harness: it is imported, called, and its answer printed."""
COMMAND = """
import json, sys
print(json.dumps({"output": json.loads(sys.stdin.readline())["input"]}))
"""

Act = Callable[[], object]


@dataclass(frozen=True)
class Beside:
    """Milliseconds of a run and of its agent alone; what is more, and how many times."""

    run: float
    alone: float
    more: float
    times: float

    def in_words(self, what: str) -> str:
        return (
            f"  {what:<18} agent alone {self.alone:6.1f} ms, run {self.run:6.1f} ms: "
            f"{self.more:6.1f} ms more, {self.times:.1f} times"
        )


def beside(
    run: Act, alone: Act, rounds: int, *, now: Callable[[], float] = time.perf_counter
) -> Beside:
    """Both in turn, after each was done once to be warm; `now` gives seconds."""
    run(), alone()
    pairs = [(_took(run, now), _took(alone, now)) for _ in range(rounds)]
    return Beside(
        run=median(one for one, _ in pairs),
        alone=median(bare for _, bare in pairs),
        more=median(one - bare for one, bare in pairs),
        times=median(one / bare for one, bare in pairs),
    )


def _took(act: Act, now: Callable[[], float]) -> float:
    begun = now()
    act()
    return 1_000 * (now() - begun)


def report(*, calls: int, starts: int) -> Iterator[str]:
    """A heading for each kind, and a line for each level of it."""
    yield "A run of a model endpoint on loopback, one call"
    with model_server("deterministic") as server:
        found = beside(_endpoint(server), lambda: bare_call(server), calls)
        yield found.in_words(model_endpoint.LEVEL)
    yield "A run of an HTTP agent on loopback that calls no tool"
    with model_server("json", value={"output": "It is open."}) as server:
        found = beside(_http(server), lambda: _bare_post(server), calls)
        yield found.in_words(http_agent.LEVEL)
    with tempfile.TemporaryDirectory(prefix="evalsite-bench-") as folder:
        # Local code runs as an account that must be able to read it.
        Path(folder).chmod(0o755)
        Path(folder, f"{MODULE}.py").write_text(AGENT)
        words = ("-I", "-c", CALLED, folder)
        yield "A run of a Python callable, a new interpreter each"
        yield from _levels(NAME, folder, words, starts)
        yield "A run of a command, the same interpreter"
        words = ("-I", "-c", COMMAND)
        yield from _levels((sys.executable, *words), folder, words, starts)


def _levels(
    target: str | tuple[str, ...], folder: str, bare: tuple[str, ...], starts: int
) -> Iterator[str]:
    for level in Level:
        reached = probe(at_most=level).level
        if reached is not level:
            yield f"  {level.value:<18} not reached on this machine, only {reached.value}"
            continue
        order = _local(target, folder, level)
        found = beside(_isolated(order), lambda: _bare_process(bare), starts)
        yield found.in_words(level.value)


def bare_call(server: ModelServer) -> None:
    """Ask a model endpoint as a client without a harness does."""
    asked = {"model": "m", "messages": [{"role": "user", "content": CASE.input}]}
    found = _posted(server, "/v1/chat/completions", asked)
    assert found["choices"], found


def _bare_post(server: ModelServer) -> None:
    found = _posted(server, "/agent", {"input": CASE.input})
    assert found["output"], found


def _posted(server: ModelServer, path: str, body: Any) -> Any:
    host, _, port = server.host.partition(":")
    connection = http.client.HTTPConnection(host, int(port))
    connection.request("POST", path, json.dumps(body))
    found = json.loads(connection.getresponse().read())
    connection.close()
    return found


def _bare_process(words: tuple[str, ...]) -> None:
    given = json.dumps(given_of(_local(NAME, "", Level.NONE)))
    done = subprocess.run(
        [sys.executable, *words],
        input=f"{given}\n".encode(),
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"output": CASE.input}, done.stdout


def _endpoint(server: ModelServer) -> Act:
    order = EndpointOrder(
        case=CASE,
        base_url=server.url,
        model="m",
        reach=Reach(inner=inner_hosts([server.host])),
    )
    return lambda: _check(run_endpoint(order, answer=_no_tools, hooks=_hooks()))


def _http(server: ModelServer) -> Act:
    order = HttpAgentOrder(
        case=CASE,
        url=f"{server.origin}/agent",
        run="run-1",
        reach=Reach(inner=inner_hosts([server.host])),
    )
    return lambda: _check(run_http_agent(order, hooks=_hooks()))


def _hooks() -> Hooks:
    return Hooks(clock_ns=time.time_ns, random=Random(1))


def _local(target: str | tuple[str, ...], folder: str, level: Level) -> LocalOrder:
    is_command = not isinstance(target, str)
    allowed = Allowed(
        callables=frozenset() if is_command else frozenset({NAME}),
        commands=frozenset({sys.executable}) if is_command else frozenset(),
    )
    sandbox = SandboxOrder(
        target=target,
        allowed=allowed,
        limits=LIMITS,
        code=(Path(folder),),
        least=level,
        at_most=level,
    )
    return LocalOrder(case=CASE, sandbox=sandbox)


def _isolated(order: LocalOrder) -> Act:
    start = run_command if order.sandbox.is_command else run_callable

    def run() -> None:
        ran = start(order, answer=_no_tools, stop=lambda: False, clock_ns=time.time_ns)
        _check(ran)
        assert (ran.output, ran.proof.level) == (CASE.input, order.sandbox.least)

    return run


def _no_tools(_tool: str, _arguments: object) -> ToolAnswer:
    return ToolAnswer(source=AnswerSource.MISS, error="There are no tools here.")


def _check(ran: Ran) -> None:
    if ran.ending is not Ending.FINISHED:
        raise SystemExit(f"A run did not finish: {ran.error}.")
