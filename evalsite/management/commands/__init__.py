"""The commands that start the site and its tests."""
