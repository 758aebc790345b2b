"""Isolation replays: targets, cases, batches and runs, as tables and acts."""
