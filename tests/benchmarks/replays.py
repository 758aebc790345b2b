"""What a replay costs beside the least that it could: a bare call, a bare process.

Each figure is the median of many runs of one process, and stands beside its floor in
the same run: a bare HTTP call for endpoints, a bare start of the interpreter for local
code. The floor does the same work without a harness.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median

from apps.engine.replay.case import Case
from apps.engine.replay.run import AnswerSource, Ending, Limits, Ran, ToolAnswer
from apps.isolation.client import Reach
from apps.isolation.hooks import Hooks
from apps.isolation.local_code import LocalOrder, run_callable
from apps.isolation.model_endpoint import EndpointOrder, run_endpoint
from apps.isolation.sandbox import Allowed, Level, SandboxOrder, probe
from apps.isolation.wall import inner_hosts
from tests.model_server import ModelServer, model_server

CALLS, STARTS = 200, 30
CASE = Case(agent="memory", input="Is order 7 open?")
AGENT = "def agent(replay):\n    return replay.input\n"
BARE = "import json, sys; print(json.dumps(json.loads(sys.stdin.readline())))"


def main() -> None:
    """Print what runs cost, as milliseconds and as a ratio to their floor."""
    print("A run of a model endpoint on loopback, one call")
    with model_server("deterministic") as server:
        floor = _typical(lambda: _bare_call(server), CALLS)
        print(f"  bare HTTP call                {floor:7.1f} ms")
        _say("run of the harness", _typical(lambda: _endpoint(server), CALLS), floor)
    print("A run of a Python callable")
    floor = _typical(_bare_process, STARTS)
    print(f"  bare start of the interpreter {floor:7.1f} ms")
    with tempfile.TemporaryDirectory(prefix="evalsite-bench-") as folder:
        Path(folder).chmod(0o755)
        Path(folder, "bench_agent.py").write_text(AGENT)
        for level in (Level.NAMESPACES, Level.LANDLOCK_SECCOMP):
            if probe(at_most=level).level is not level:
                print(f"  {level.value}: not reached on this machine")
                continue
            run = _callable(Path(folder), level)
            _say(level.value, _typical(run, STARTS), floor)


def _say(what: str, spent: float, floor: float) -> None:
    print(f"  {what:<29} {spent:7.1f} ms, {spent / floor:.1f} times the floor")


def _typical(act: Callable[[], object], times: int) -> float:
    act()
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        act()
        taken.append(time.perf_counter() - begun)
    return 1_000 * median(taken)


def _bare_call(server: ModelServer) -> None:
    host, _, port = server.host.partition(":")
    connection = http.client.HTTPConnection(host, int(port))
    asked = {"model": "m", "messages": [{"role": "user", "content": CASE.input}]}
    connection.request("POST", "/v1/chat/completions", json.dumps(asked))
    json.loads(connection.getresponse().read())
    connection.close()


def _endpoint(server: ModelServer) -> None:
    ran = run_endpoint(
        EndpointOrder(
            case=CASE,
            base_url=server.url,
            model="m",
            reach=Reach(inner=inner_hosts([server.host])),
        ),
        answer=_no_tools,
        hooks=Hooks(
            before_call=lambda _: None,
            after_call=lambda _: None,
            wait=time.sleep,
            stop=lambda: False,
            clock_ns=time.time_ns,
            random=Random(1),
        ),
    )
    _check(ran)


def _bare_process() -> None:
    subprocess.run(
        [sys.executable, "-I", "-c", BARE],
        input=b'{"input": "Is order 7 open?"}\n',
        capture_output=True,
        check=True,
    )


def _callable(folder: Path, level: Level) -> Callable[[], None]:
    order = LocalOrder(
        case=CASE,
        sandbox=SandboxOrder(
            target="bench_agent:agent",
            allowed=Allowed(callables=frozenset({"bench_agent:agent"})),
            limits=Limits(seconds=20),
            code=(folder,),
            at_most=level,
        ),
    )

    def run() -> None:
        _check(
            run_callable(
                order,
                answer=_no_tools,
                stop=lambda: False,
                clock_ns=time.time_ns,
            )
        )

    return run


def _no_tools(tool: str, arguments: object) -> ToolAnswer:
    return ToolAnswer(source=AnswerSource.MISS, error="There are no tools here.")


def _check(ran: Ran) -> None:
    if ran.ending is not Ending.FINISHED:
        raise SystemExit(f"A run did not finish: {ran.error}.")


if __name__ == "__main__":
    main()
