"""Placeholder while the servers are written."""
from pathlib import Path
def default_data_dir() -> Path: return Path("/tmp/w/data")
def embedded_urls(data_dir: Path) -> tuple[str, str]: return ("postgresql://x@/x?host=/tmp/w/pg", "redis+socket:///tmp/w/v.sock")
