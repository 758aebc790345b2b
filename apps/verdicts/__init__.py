"""The verdict of each agent beside the outcome; masking; patterns."""
