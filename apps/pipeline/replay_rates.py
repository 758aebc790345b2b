"""How often a target is called, one number for all workers: a rate kept in Redis.

The generic cell rate algorithm (ITU-T I.371, virtual scheduling): one key per target
holds when the next call is due at the rate. Emptied, it lets a burst of a few seconds
through and holds the rate again. It is no safeguard: where Redis is away, only the
number of runs at a time limits the calls.
"""

from __future__ import annotations

import logging
import math
from typing import Final

import redis
from django.conf import settings

logger = logging.getLogger(__name__)

BURST_SECONDS: Final = 5.0
"""A target that was not called for a while may get what comes in so many seconds."""
_KEY: Final = "evalsite:replays:due:"
_ASK: Final = """
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local apart, burst, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local due = tonumber(redis.call('GET', KEYS[1]) or '0')
if due < now then due = now end
local wait = due - burst - now
if wait < 0 then wait = 0 end
if wait > most then return {0, string.format('%.6f', wait)} end
local after = due + apart
redis.call('SET', KEYS[1], string.format('%.6f', after), 'PX', math.ceil((after - now + 1) * 1000))
return {1, string.format('%.6f', wait)}
"""


class Rates:
    """The rates of targets in one Redis; safe to make and throw away."""

    def __init__(self, url: str = "") -> None:
        address = (url or str(settings.REDIS_URL)).replace("redis+socket://", "unix://")
        self._client = redis.Redis.from_url(
            address, socket_connect_timeout=1, socket_timeout=2
        )
        self._ask = self._client.register_script(_ASK)

    def take(
        self, target_id: int, *, per_minute: int, most: float
    ) -> tuple[bool, float]:
        """Take the next turn to call a target if it comes within `most` seconds.

        Returns whether it was taken, and the seconds until it. At no rate (0), and
        where Redis is away, the turn is now.
        """
        if per_minute <= 0:
            return True, 0.0
        apart = 60 / per_minute
        burst = apart * max(0, math.floor(BURST_SECONDS / apart) - 1)
        try:
            taken, wait = self._ask(
                keys=[f"{_KEY}{target_id}"],
                args=[repr(apart), repr(burst), repr(most)],
            )
        except redis.RedisError:
            logger.warning(
                "Redis is away; target %s is called without a rate", target_id
            )
            return True, 0.0
        return bool(taken), float(wait)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()
