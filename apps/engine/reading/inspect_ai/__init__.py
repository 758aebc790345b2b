"""Inspect AI: samples, events, owners and scores."""
