"""MLflow: spans and verdicts."""
