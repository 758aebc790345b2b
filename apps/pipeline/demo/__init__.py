"""Sample traces of an invented support desk, written for this project."""
