"""A deterministic corpus in the shape of a tau-bench results file.

Same seed, same bytes. `copies` multiplies the traces under new task ids.
"""

from __future__ import annotations

import json
import random

TOOLS = (
    "get_user_details",
    "get_reservation_details",
    "search_direct_flight",
    "search_onestop_flight",
    "calculate",
    "think",
    "update_reservation_flights",
    "book_reservation",
    "cancel_reservation",
    "transfer_to_human_agents",
)
WORDS = [
    "flight",
    "reservation",
    "passenger",
    "baggage",
    "certificate",
    "refund",
    "insurance",
    "economy",
    "cabin",
    "seat",
    "gate",
    "morning",
    "evening",
    "delay",
    "policy",
    "confirm",
    "payment",
    "method",
    "details",
    "number",
]


def _text(source: random.Random, length: int) -> str:
    return " ".join(source.choices(WORDS, k=length))


def _trial(source: random.Random, task: int, trial: int) -> dict[str, object]:
    messages: list[dict[str, object]] = [
        {"role": "system", "content": _text(source, 900)},
        {"role": "user", "content": _text(source, 20)},
    ]
    for turn in range(source.randint(4, 16)):
        if source.random() < 0.5:
            call_id = f"call_{task}_{trial}_{turn}"
            name = source.choice(TOOLS)
            arguments = json.dumps({"id": source.randrange(10**6)})
            messages += [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": call_id,
                            "type": "function",
                            "function": {"name": name, "arguments": arguments},
                        }
                    ],
                },
                {
                    "role": "tool",
                    "tool_call_id": call_id,
                    "name": name,
                    "content": _text(source, 120),
                },
            ]
        else:
            messages += [
                {"role": "assistant", "content": _text(source, 40)},
                {"role": "user", "content": _text(source, 15)},
            ]
    return {
        "task_id": task,
        "trial": trial,
        "reward": float(source.random() < 0.42),
        "info": {},
        "traj": messages,
    }


def results_file(*, copies: int = 1, seed: int = 7) -> bytes:
    """A results file of `copies` x 50 tasks x 4 trials, as JSON bytes."""
    source = random.Random(seed)
    trials = [
        _trial(source, task, trial) for task in range(50 * copies) for trial in range(4)
    ]
    return json.dumps(trials).encode()


def multiplied(content: bytes, copies: int) -> bytes:
    """A real results file repeated under new task ids."""
    trials = json.loads(content)
    step = max(trial["task_id"] for trial in trials) + 1
    return json.dumps(
        [
            {**trial, "task_id": trial["task_id"] + step * copy}
            for copy in range(copies)
            for trial in trials
        ]
    ).encode()
