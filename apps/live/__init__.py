"""Spans that arrive live over OTLP/HTTP and wait to become traces."""
