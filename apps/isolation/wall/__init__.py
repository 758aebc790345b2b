"""The wall around calls to other machines: which addresses may be called at all.

An address is checked when it is saved (`urls`), and again at each call, where its name
is resolved once and the connection goes to the address that was checked (`resolving`).
It does not claim that what answers there is friendly, nor that a name in the operator's
list of inner hosts stays what it was.
"""

from apps.isolation.wall.addresses import Nearness, nearness_of
from apps.isolation.wall.inner_hosts import (
    NO_INNER_HOSTS,
    InnerHosts,
    NotAHost,
    inner_hosts,
)
from apps.isolation.wall.resolving import (
    CannotResolve,
    Pinned,
    Resolve,
    pinned,
    system_resolve,
)
from apps.isolation.wall.urls import CheckedUrl, RefusedAddress, checked_url

__all__ = [
    "NO_INNER_HOSTS",
    "CannotResolve",
    "CheckedUrl",
    "InnerHosts",
    "Nearness",
    "NotAHost",
    "Pinned",
    "RefusedAddress",
    "Resolve",
    "checked_url",
    "inner_hosts",
    "nearness_of",
    "pinned",
    "system_resolve",
]
