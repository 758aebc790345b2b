"""The queue: claims, decisions, history."""
