"""Codex: the items of a session and its usage lines."""
