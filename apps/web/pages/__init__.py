"""What each page needs, as dataclasses built from queries."""
