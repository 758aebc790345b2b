"""The agents of a project, what they decide and what they must hold."""
