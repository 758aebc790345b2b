"""Langfuse: rows, usage and scores."""
