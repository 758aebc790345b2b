"""The operator's list of inner hosts: `host:port` that may be called though not public."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from typing import Final

_ENTRY: Final = re.compile(
    r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)):"
    r"(?P<port>[0-9]{1,5})"
)

InnerHosts = frozenset[tuple[str, int]]
NO_INNER_HOSTS: Final[InnerHosts] = frozenset()


class NotAHost(Exception):
    """An entry of the list that is no `host:port`; the message is a sentence."""


def inner_hosts(entries: Iterable[str]) -> InnerHosts:
    """The hosts and ports in a list such as `["vllm:8000", "[fd00::7]:80"]`.

    Blank entries are left out. Raises `NotAHost` for anything but a name or an address
    with a port: there are no wildcards, because each of them opens more than was meant.
    """
    return frozenset(_host(entry) for entry in entries if entry.strip())


def _host(entry: str) -> tuple[str, int]:
    found = _ENTRY.fullmatch(entry.strip().lower())
    port = int(found["port"]) if found else 0
    if found is None or not 1 <= port <= 65_535:
        raise NotAHost(
            f'"{entry.strip()[:100]}" is no host with a port, such as "vllm:8000", '
            '"10.1.2.3:8080" or "[fd00::7]:8080".'
        )
    return written(found["six"] or found["name"]), port


def written(host: str) -> str:
    """A host as the list holds it: small letters, and IPv6 in its short form."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.lower()
    return address.compressed if isinstance(address, IPv6Address) else str(address)
