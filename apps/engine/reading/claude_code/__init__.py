"""Claude Code: the lines of a session, its events, its traces."""
