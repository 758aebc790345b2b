"""Agents as they should be, in every form that a callable may have."""
# ruff: noqa: S310
# An agent is written as agents are.

import asyncio
import threading
import urllib.request


def plain(replay):
    found = replay.tools["look_up"](number=7)
    replay.say("thinking")
    return {"found": found, "input": replay.input, "case": replay.case_name}


def with_state(replay):
    replay.state["seen"] += 1
    return {"output": replay.messages, "state": replay.state}


async def waiting(replay):
    await asyncio.sleep(0)
    return await asyncio.to_thread(replay.tools["look_up"], number=7)


def in_pieces(_replay):
    yield "a"
    yield "b"


def in_pieces_with_output(_replay):
    yield "a"
    yield {"output": {"decision": "A"}}
    yield "b"


async def waiting_in_pieces(_replay):
    for piece in ("a", "b"):
        await asyncio.sleep(0)
        yield piece


def knows_its_tools(replay):
    return [
        [tool.name, tool.description, sorted(tool.parameters)] for tool in replay.tools
    ]


def sees_a_failure(replay):
    try:
        return replay.tools["look_up"](number=0)
    except replay.ToolFailed as error:
        return f"failed: {error}"


def from_many_threads(replay):
    found = []

    def ask(number):
        found.append(replay.tools["look_up"](number=number))

    threads = [threading.Thread(target=ask, args=(one,)) for one in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found)


def asks_its_model(replay):
    request = urllib.request.Request(
        f"{replay.model_url}/v1/chat/completions", data=b'{"model": "m"}'
    )
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()


class Remembers:
    def __init__(self, replay):
        self.replay = replay

    def start(self, state):
        self.said = list(state or [])

    async def turn(self, text):
        if text == "crash":
            raise ValueError("forgot how to")
        self.replay.tools["look_up"](number=len(self.said))
        self.said.append(text)
        return f"heard {len(self.said)}"

    def state(self):
        return self.said
