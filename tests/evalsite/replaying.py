"""Files of targets and cases, and what `manage.py replay` says of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

from tests.evalsite.calling import call_here

ASKED = "Is order 7 open?"
CASE = {
    "agent": "memory",
    "name": "order 7",
    "input": ASKED,
    "messages": [{"role": "user", "content": ASKED}],
    "tools": [{"name": "lookup", "parameters": {"type": "object"}}],
    "calls": [{"tool": "lookup", "arguments": {"number": 7}, "result": "open"}],
}
CODE = '''
import asyncio


def good(replay):
    """Decides by what its tool says."""
    is_open = replay.tools["lookup"](number=7) == "open"
    return {"decision": "refund" if is_open else "keep"}


def writes(replay):
    try:
        open("/etc/evalsite-was-here", "w")
    except OSError:
        pass
    return {"decision": "refund"}


def breaks(replay):
    raise KeyError("order")


class remembers:
    def start(self, state):
        self.said = []

    def turn(self, text):
        self.said = [*self.said, text][-4:]
        return " ".join(self.said) if text.endswith("?") else "Noted."

    def state(self):
        return self.said
'''


def replay(*words: object) -> tuple[int, str, str]:
    """The exit code of a call in this process, what it printed, and what it said."""
    done = call_here("replay", *words)
    return done.returncode, done.stdout, done.stderr


def found(*words: object) -> tuple[int, list[dict[str, Any]], dict[str, Any]]:
    """The exit code, the runs and the summary of a call with --json."""
    code, printed, said = replay(*words, "--json")
    assert printed, said
    *runs, summary = [json.loads(line) for line in printed.splitlines()]
    assert summary["exit_code"] == code
    return code, runs, summary


class Folder:
    """A folder with the files of a call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "agents_of_tests.py").write_text(CODE)
        self.cases = self.cases_of(CASE)

    def cases_of(self, *cases: dict[str, Any], name: str = "cases.jsonl") -> Path:
        file = self.path / name
        file.write_text("".join(json.dumps(one) + "\n" for one in cases))
        return file

    def target(self, kind: str, settings: dict[str, Any], **more: Any) -> Path:
        """JSON is YAML."""
        value = {"name": "billing", "kind": kind, "settings": settings, **more}
        file = self.path / "target.yaml"
        file.write_text(json.dumps(value))
        return file

    def model(self, server: Any, *, seconds: int = 20, **more: Any) -> list[object]:
        """The words of a call that runs the case against a model server."""
        settings = {"base_url": server.url, "model": "small", "seconds": seconds}
        limits = {"seconds": seconds, **more.pop("limits", {})}
        rest = {
            name: more.pop(name) for name in ("secret_env", "stubs") if name in more
        }
        target = self.target("openai", {**settings, **more}, limits=limits, **rest)
        return ["--target", target, "--cases", self.cases, "--allow", server.host]

    def program(self) -> list[object]:
        """The words of a call that runs a command, which knows the last two turns."""
        script = self.path / "agent.py"
        script.write_text(COMMAND)
        settings = {"command": sys.executable, "arguments": ["-S", str(script)]}
        target = self.target("command", settings, code=["."])
        return ["--target", target, "--command", sys.executable]

    def code(self, name: str, *, repeats: int | None = 2) -> list[object]:
        """The words of a call that runs a callable of this folder."""
        called = f"agents_of_tests:{name}"
        target = self.target("callable", {"callable": called}, code=["."])
        words = ["--target", target, "--cases", self.cases, "--callable", called]
        return words if repeats is None else [*words, "--repeats", repeats]


COMMAND = """
import json
case = json.loads(input())
kept = [*(case["state"] or []), case["input"]][-2:]
said = " ".join(kept) if case["input"].endswith("?") else "Noted."
print(json.dumps({"output": said, "state": kept}))
"""


def post(url: str, value: Any) -> Any:
    return httpx.post(url, json=value, timeout=20, trust_env=False).json()


@contextmanager
def agent_server(answer: Any) -> Iterator[str]:
    """An HTTP agent on loopback: `answer` makes its JSON of the JSON that it is sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(answer(asked)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
