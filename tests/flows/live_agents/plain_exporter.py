"""A run of an agent by the OpenTelemetry SDK alone, exported as its environment says."""

import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

outputs = [int(number) for number in sys.argv[1].split(",")]
runs = int(sys.argv[2]) if len(sys.argv) > 2 else 1
provider = TracerProvider(resource=Resource.create({"service.name": "billing"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("tests")
for _ in range(runs):
    with (
        tracer.start_as_current_span("run"),
        tracer.start_as_current_span(
            "invoke_agent billing",
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "billing",
            },
        ),
    ):
        for output in outputs:
            with tracer.start_as_current_span("chat m") as span:
                span.set_attributes(
                    {
                        "gen_ai.operation.name": "chat",
                        "gen_ai.request.model": "m",
                        "gen_ai.usage.input_tokens": 10,
                        "gen_ai.usage.output_tokens": output,
                    }
                )
assert provider.force_flush(60_000)
provider.shutdown()
