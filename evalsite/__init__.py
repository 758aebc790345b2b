"""The site: settings, URLs, and the supervisor that runs everything in one process."""
