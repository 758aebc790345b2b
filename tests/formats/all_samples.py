"""The samples of all formats by slug, as bytes."""

from __future__ import annotations

from apps.engine.formats.evalsite_fields import EXAMPLE
from tests.formats import (
    langfuse_files,
    otlp_files,
    phoenix_files,
    test_any_agent,
    test_atif,
    test_codex,
    test_deepeval,
    test_inspect,
    test_langfuse,
    test_langsmith,
    test_mlflow,
    test_openai_agents,
    test_openhands,
    test_opik,
    test_otel_console,
    test_otlp_shapes,
    test_phoenix,
    test_phoenix_parquet,
    test_session_logs,
    test_tau2,
)
from tests.formats.benchmark_files import (
    atif_step,
    event,
    inspect_log,
    model,
    sample,
    tool,
    trajectory,
)
from tests.formats.claude_files import SESSION, ending, retry, stream
from tests.formats.reading import as_json, lines, messages
from tests.formats.transcript_samples import SAMPLES as TRANSCRIPTS

OLDER_INSPECT = [
    event("step", 1, action="begin", type="scorer", name="s"),
    tool(3, "c1", events=[model(3, 8)], agent="helper"),
    event("approval", 3), event("compaction", 3), event("input", 3),
    event("step", 6, action="end"),
]  # fmt: skip
TAU = {"task_id": 1, "trial": 0, "reward": 1.0, "info": {}, "traj": messages("a", "b")}
IFLOW = {"sessionId": "session-0e0f0a0b-1c1d-4e1f-8a8b-2c2d2e2f3a3b", "uuid": "u",
         "type": "user", "message": {"role": "user", "content": "hi"}}  # fmt: skip
SPANS = [otlp_files.agent(1, None, "billing"), otlp_files.call(2, 1)]

FILES: dict[str, list[bytes]] = {
    "evalsite-jsonl": [EXAMPLE.encode()],
    "otlp-protobuf": [otlp_files.as_protobuf(*SPANS)],
    "otlp-json": [
        otlp_files.as_json(*SPANS),
        *map(as_json, test_otlp_shapes.SHAPES.values()),
    ],
    "mlflow": [
        *test_mlflow.SHAPES.values(),
        as_json(
            test_mlflow.document(
                test_mlflow.INFO_3
                | {
                    "assessments": [
                        test_mlflow.feedback("correctness", value=True),
                        test_mlflow.EXPECTED,
                    ]
                }
            )
        ),
    ],
    "trail": [as_json(test_any_agent.TREE)],
    "phoenix-spans": [
        *phoenix_files.SHAPES.values(),
        *map(as_json, test_phoenix.CHANGEABLE),
    ],
    "phoenix-parquet": [test_phoenix_parquet.PARQUET],
    "otel-console": [
        test_otel_console.console(*test_otel_console.SPANS),
        as_json([test_otel_console.go_span(one) for one in test_otel_console.SPANS]),
    ],
    "any-agent": [as_json(test_any_agent.RUN)],
    "trulens": [as_json(test_any_agent.EVENTS)],
    "claude-code-stream": [
        lines(*({**line, "session_id": "s"} for line in SESSION)),
        lines(
            *stream(*SESSION),
            retry(1),
            ending(
                modelUsage={"m-1": {"inputTokens": 10, "outputTokens": 20}},
                is_error=True,
            ),
        ),
    ],
    "iflow": [lines(IFLOW)],
    "claude-code": [lines(*SESSION)],
    "codex": [lines(*test_codex.SESSION)],
    "codex-exec": [lines(*test_codex.EXEC)],
    "pi": [lines(*test_session_logs.PI)],
    "openclaw-telemetry": [lines(*test_session_logs.CLAW)],
    "grok-build": [lines(*test_session_logs.GROK)],
    "gemini-cli": [as_json(test_session_logs.GEMINI)],
    "opencode": [as_json(test_session_logs.OPENCODE)],
    "openai-agents": [
        lines(*test_openai_agents.billing()),
        as_json(test_openai_agents.billing()),
    ],
    "langfuse": [
        as_json(langfuse_files.download(langfuse_files.billing())),
        langfuse_files.as_csv(langfuse_files.billing()),
        lines(*langfuse_files.billing()),
        as_json(
            langfuse_files.download(
                langfuse_files.billing(), scores=[test_langfuse.score("success", 1)]
            )
        ),
    ],
    "langsmith": [
        lines(*test_langsmith.graph()),
        as_json(test_langsmith.graph()),
        as_json(
            dict(
                zip(
                    ("post", "patch"),
                    test_langsmith.as_batches(test_langsmith.graph()[:8]),
                    strict=True,
                )
            )
        ),
    ],
    "opik": [as_json(test_opik.whole()), lines(*test_opik.billing())],
    "deepeval": [as_json(test_deepeval.billing())],
    "inspect-log": [
        as_json(test_inspect.WHOLE),
        as_json(
            inspect_log(
                sample(
                    transcript={"events": OLDER_INSPECT, "content": {}},
                    error={"message": "x"},
                )
            )
        ),
    ],
    "atif": [
        as_json(trajectory(atif_step(1, "hello"))),
        as_json(
            test_atif.SPLIT
            | {
                "subagent_trajectories": [test_atif.INNER],
                "steps": [
                    *test_atif.SPLIT["steps"],
                    test_atif.delegating(trajectory_id="in-1"),
                ],
            }
        ),
    ],
    "tau2": [as_json(test_tau2.WHOLE)],
    "openhands": [
        as_json(test_openhands.RUN),
        lines(*test_openhands.SDK_RUN),
        as_json([test_openhands.row()]),
    ],
    "tau-bench": [as_json([TAU])],
    "gptme": [lines(*test_session_logs.GPTME)],
    "mistral-vibe": [lines(*test_session_logs.VIBE)],
    "openai-chat": [
        as_json(messages("a", "b")),
        lines({"messages": messages("a", "b")}),
        lines(*messages("a", "b")),
    ],
} | {slug: [as_json(one) for one in values] for slug, values in TRANSCRIPTS.items()}
