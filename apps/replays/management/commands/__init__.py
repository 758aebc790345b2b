"""Commands of replays."""
