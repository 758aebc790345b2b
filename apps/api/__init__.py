"""The same acts as JSON."""
