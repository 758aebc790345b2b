"""OpenHands: events of three generations and their calls."""
