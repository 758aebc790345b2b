"""The names under which instrumentations write what a span means.

Three generations of the GenAI conventions, Traceloop's older names, OpenInference,
the Vercel AI SDK, Pydantic AI and Logfire, Google's ADK, Langfuse, LangSmith, MLflow,
TruLens and Semantic Kernel. Of several names the first recorded one counts.
Names: https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/ and
https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md
"""

from __future__ import annotations

from typing import Final

from apps.engine.trace import StepKind

OPENINFERENCE: Final = {
    "LLM": StepKind.MODEL_CALL,
    "TOOL": StepKind.TOOL_CALL,
    "AGENT": StepKind.AGENT,
    "RETRIEVER": StepKind.RETRIEVAL,
    "RERANKER": StepKind.RETRIEVAL,
    "GUARDRAIL": StepKind.GUARDRAIL,
}
VERCEL: Final = {
    "doGenerate": StepKind.MODEL_CALL,
    "doStream": StepKind.MODEL_CALL,
    "toolCall": StepKind.TOOL_CALL,
    "generateText": StepKind.AGENT,
    "streamText": StepKind.AGENT,
    "generateObject": StepKind.AGENT,
    "streamObject": StepKind.AGENT,
}
_OPERATIONS: Final = {
    "chat": StepKind.MODEL_CALL,
    "generate_content": StepKind.MODEL_CALL,
    "text_completion": StepKind.MODEL_CALL,
    "completion": StepKind.MODEL_CALL,
    "chat.completions": StepKind.MODEL_CALL,
    "text.completions": StepKind.MODEL_CALL,
    "text_completions": StepKind.MODEL_CALL,
    "chat_completion": StepKind.MODEL_CALL,
    "responses": StepKind.MODEL_CALL,
    "call_llm": StepKind.MODEL_CALL,
    "execute_tool": StepKind.TOOL_CALL,
    "invoke_agent": StepKind.AGENT,
    "agent": StepKind.AGENT,
    "retrieval": StepKind.RETRIEVAL,
    "retrieve": StepKind.RETRIEVAL,
    "handoff": StepKind.HANDOFF,
}
_REQUESTS: Final = {
    "chat": StepKind.MODEL_CALL,
    "completion": StepKind.MODEL_CALL,
    "rerank": StepKind.RETRIEVAL,
}
_TRACELOOP: Final = {"tool": StepKind.TOOL_CALL, "agent": StepKind.AGENT}
# What a word of these means is also decided by the names of others, where the word
# itself says nothing.
_MLFLOW: Final = {
    "CHAT_MODEL": StepKind.MODEL_CALL,
    "LLM": StepKind.MODEL_CALL,
    "TOOL": StepKind.TOOL_CALL,
    "AGENT": StepKind.AGENT,
    "RETRIEVER": StepKind.RETRIEVAL,
    "RERANKER": StepKind.RETRIEVAL,
    "MEMORY": StepKind.MEMORY,
    "GUARDRAIL": StepKind.GUARDRAIL,
    "CHAIN": StepKind.OTHER,
    "EMBEDDING": StepKind.OTHER,
}
_LANGFUSE: Final = {
    "generation": StepKind.MODEL_CALL,
    "tool": StepKind.TOOL_CALL,
    "agent": StepKind.AGENT,
    "retriever": StepKind.RETRIEVAL,
    "guardrail": StepKind.GUARDRAIL,
    "embedding": StepKind.OTHER,
    "evaluator": StepKind.OTHER,
}
# LangSmith calls its prompt templates chats and its retrievers embeddings.
_LANGSMITH: Final = {
    "llm": StepKind.MODEL_CALL,
    "tool": StepKind.TOOL_CALL,
    "retriever": StepKind.RETRIEVAL,
}
_TRULENS: Final = {
    "generation": StepKind.MODEL_CALL,
    "tool": StepKind.TOOL_CALL,
    "MCP": StepKind.TOOL_CALL,
    "agent": StepKind.AGENT,
    "retrieval": StepKind.RETRIEVAL,
    "reranking": StepKind.RETRIEVAL,
    "guardrail": StepKind.GUARDRAIL,
    "eval": StepKind.OTHER,
    "eval_root": StepKind.OTHER,
}
DECLARATIONS: Final = (
    ("langsmith.span.kind", _LANGSMITH),
    ("gen_ai.operation.name", _OPERATIONS),
    ("llm.request.type", _REQUESTS),
    ("traceloop.span.kind", _TRACELOOP),
)
WEAK_DECLARATIONS: Final = (
    ("mlflow.spanType", _MLFLOW),
    ("langfuse.observation.type", _LANGFUSE),
    ("ai.observability.span_type", _TRULENS),
)
# Logfire writes a span once more when it begins, and log lines as spans of their own.
NO_SPANS_OF_THEIR_OWN: Final = ("pending_span", "log")
# What ADK writes once more for all tools of one turn together.
MERGED_TOOLS: Final = "(merged tools)"

INPUT: Final = (
    "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt", "llm.usage.prompt_tokens",
    "ai.usage.inputTokens", "ai.usage.promptTokens",
    "gen_ai.response.prompt_tokens", "ai.observability.cost.num_prompt_tokens",
    "gen_ai.aggregated_usage.input_tokens",
)  # fmt: skip
OUTPUT: Final = (
    "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens",
    "llm.token_count.completion", "llm.usage.completion_tokens",
    "ai.usage.outputTokens", "ai.usage.completionTokens",
    "gen_ai.response.completion_tokens", "ai.observability.cost.num_completion_tokens",
    "gen_ai.aggregated_usage.output_tokens",
)  # fmt: skip
TOTAL: Final = (
    "gen_ai.usage.total_tokens", "llm.token_count.total", "llm.usage.total_tokens",
    "ai.usage.totalTokens", "ai.usage.tokens", "ai.observability.cost.num_tokens",
)  # fmt: skip
CACHED: Final = (
    "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens", "ai.usage.cachedInputTokens",
    "ai.usage.inputTokenDetails.cacheReadTokens",
    "llm.token_count.prompt_details.cache_read",
    "gen_ai.usage.cached_tokens", "gen_ai.usage.cached_input_tokens",
    "gen_ai.usage.input_token_details.cache_read",
)  # fmt: skip
CACHE_WRITE: Final = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.cache_write_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
    "ai.usage.inputTokenDetails.cacheWriteTokens",
    "llm.token_count.prompt_details.cache_write",
    "gen_ai.usage.input_token_details.cache_creation",
)
REASONING: Final = (
    "gen_ai.usage.reasoning_tokens", "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.usage.details.reasoning_tokens", "ai.usage.reasoningTokens",
    "ai.usage.outputTokenDetails.reasoningTokens",
    "llm.token_count.completion_details.reasoning", "llm.usage.reasoning_tokens",
    "gen_ai.usage.experimental.reasoning_tokens",
    "gen_ai.usage.output_token_details.reasoning",
    "ai.observability.cost.num_reasoning_tokens",
)  # fmt: skip
# Attributes that hold all counts in one object, and the names inside it.
USAGE_OBJECTS: Final = (
    "mlflow.chat.tokenUsage", "mlflow.spanOutputs.usage",
    "langfuse.observation.usage_details",
)  # fmt: skip
OBJECT_INPUT: Final = (
    "input_tokens", "prompt_tokens", "input", "inputTokens", "promptTokens",
)  # fmt: skip
OBJECT_OUTPUT: Final = (
    "output_tokens", "completion_tokens", "output", "outputTokens", "completionTokens",
)  # fmt: skip
OBJECT_TOTAL: Final = ("total_tokens", "total", "totalTokens")
OBJECT_CACHED: Final = (
    "cache_read_input_tokens", "input_cached_tokens", "input_cache_read",
)  # fmt: skip
OBJECT_CACHE_WRITE: Final = (
    "cache_creation_input_tokens", "input_cache_creation",
)  # fmt: skip
OBJECT_REASONING: Final = ("output_reasoning_tokens", "output_reasoning")

MODEL: Final = (
    "gen_ai.response.model", "ai.response.model", "llm.model_name",
    "gen_ai.request.model", "ai.model.id", "mlflow.llm.model",
    "langfuse.observation.model.name", "ai.observability.cost.model",
)  # fmt: skip
PROVIDER: Final = (
    "gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system",
    "ai.model.provider", "mlflow.llm.provider",
)  # fmt: skip
FINISH: Final = (
    "gen_ai.response.finish_reasons", "gen_ai.completion.0.finish_reason",
    "llm.finish_reason", "ai.response.finishReason", "llm.response.finish_reason",
    "gen_ai.response.finish_reason", "gen_ai.response.stop_reason",
    "llm.response.stop_reason",
)  # fmt: skip
RESPONSE_ID: Final = ("gen_ai.response.id", "ai.response.id")
CALL_ID: Final = (
    "gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id", "tool.id", "tool_call_id",
)  # fmt: skip
TOOL_NAME: Final = (
    "gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name",
    "tool_call.function.name",
)  # fmt: skip
AGENT_NAME: Final = ("gen_ai.agent.name", "agent.name", "agent_name")
AGENT_SPAN_NAME: Final = (
    *AGENT_NAME, "graph.node.id", "traceloop.entity.name", "crewai.agent.role",
    "ai.telemetry.functionId",
)  # fmt: skip
SESSION: Final = (
    "gen_ai.conversation.id", "session.id",
    "traceloop.association.properties.session_id", "ai.telemetry.metadata.sessionId",
    "langfuse.session.id", "gcp.vertex.agent.session_id", "mlflow.trace.session",
    "ai.observability.conversation_id", "langsmith.metadata.session_id",
    "langsmith.metadata.thread_id",
)  # fmt: skip
TASK: Final = (
    "evalsite.task", "metadata.task", "ai.telemetry.metadata.task",
    "traceloop.association.properties.task", "langfuse.trace.metadata.task",
    "langsmith.metadata.task", "langfuse.experiment.item.id",
    "ai.observability.input_id",
)  # fmt: skip
TRIAL: Final = (
    "evalsite.trial", "metadata.trial", "ai.telemetry.metadata.trial",
    "traceloop.association.properties.trial", "langfuse.trace.metadata.trial",
    "langsmith.metadata.trial",
)  # fmt: skip
# Expected answers: they belong to the labels of a trace and to no step.
LABELS: Final = frozenset(
    {
        "langfuse.experiment.item.expected_output",
        "ai.observability.record_root.ground_truth_output",
        "ai.observability.ground_truth_output", "evalsite.expected",
    }
)  # fmt: skip
NATIVE_KINDS: Final = (
    "openinference.span.kind", "ai.operationId", "gen_ai.operation.name",
    "traceloop.span.kind", "llm.request.type", "mlflow.spanType",
    "langfuse.observation.type", "langsmith.span.kind", "ai.observability.span_type",
)  # fmt: skip
AGENT_PREFIXES: Final = ("invoke_agent ", "agent run ", "agent_run ")
TOOL_PREFIXES: Final = ("execute_tool ", "running tool: ")
