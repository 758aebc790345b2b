"""What each agent did in each trace, and what the trials of a task have in common."""
