"""What each version of each check answered about each trace."""
