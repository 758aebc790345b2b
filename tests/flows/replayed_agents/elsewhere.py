"""The agents behind HTTP, in one process: POST /<agent>/<how>/<port of the model>.

It prints its own port, and ends when its input does.
"""

import asyncio
import importlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from asked import Asked, OneTool


def called(url):
    def call(**arguments):
        said = httpx.post(url, json=arguments, timeout=20).json()
        if "error" in said:
            raise RuntimeError(said["error"])
        return said["result"]

    return call


def asked_of(body, how, port):
    tools = [
        OneTool(one["name"], one["description"], one["parameters"], called(one["url"]))
        for one in body["tools"]
    ]
    return Asked(
        question=body["input"],
        model_url=f"http://127.0.0.1:{port}/v1",
        tools=tools,
        mcp_url=body["mcp"]["url"] if how == "mcp" else "",
        is_streamed=how == "stream",
        temperature=body["regime"]["temperature"],
    )


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        _, agent, how, port = self.path.split("/")
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            found = importlib.import_module(f"of_{agent}")
            # All in one loop: SDKs keep connections of the loop that opened them.
            answering = found.answer(asked_of(body, how, port))
            waiting = asyncio.run_coroutine_threadsafe(answering, loop)
            output, given, made = waiting.result()
            usage = {"input_tokens": given, "output_tokens": made}
            self.say(200, {"output": output, "model": "small", "usage": usage})
        except Exception as error:  # noqa: BLE001 - whatever broke is its answer
            self.say(500, {"error": f"{type(error).__name__}: {error}"})

    def say(self, status, value):
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Say nothing."""


loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
# Once, and not in several threads at the same time.
for name in sys.argv[1:]:
    importlib.import_module(f"of_{name}")
print(server.server_address[1], flush=True)
sys.stdin.read()
