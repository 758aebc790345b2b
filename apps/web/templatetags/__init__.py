"""Template filters for evidence."""
