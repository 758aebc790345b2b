"""Acts of several people or workers that happen at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import close_old_connections, connection


def at_once(*acts: Callable[[], object]) -> list[object]:
    """What each of these gives or raises at the same time, on connections of their own."""
    start = threading.Barrier(len(acts))

    def run(act: Callable[[], object]) -> object:
        close_old_connections()
        start.wait()
        try:
            return act()
        except Exception as error:  # noqa: BLE001
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))
