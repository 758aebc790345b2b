"""Users, projects, memberships, tokens."""
