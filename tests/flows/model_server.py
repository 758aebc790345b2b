"""A model server on loopback: it asks for a tool until its last answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def _answer(number: int, output: int, *, is_last: bool) -> dict:
    asked = {
        "id": f"call_{number}",
        "type": "function",
        "function": {
            "name": "lookup_invoice",
            "arguments": json.dumps({"number": number}),
        },
    }
    message: dict = {"role": "assistant", "content": "All are open."}
    if not is_last:
        message = {"role": "assistant", "content": None, "tool_calls": [asked]}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_796_000_000 + number,
        "model": "gpt-4o-2024-11-20",
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "stop" if is_last else "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 50,
            "completion_tokens": output,
            "total_tokens": 50 + output,
        },
    }


@contextmanager
def model_server(outputs: Sequence[int]) -> Iterator[str]:
    """Serve chat completions of these output lengths, in order; yields the address."""
    answers = iter(enumerate(outputs, start=1))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            number, output = next(answers)
            is_last = number == len(outputs)
            body = json.dumps(_answer(number, output, is_last=is_last)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
