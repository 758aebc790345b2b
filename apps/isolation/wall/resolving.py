"""Resolves the name of a checked address once and says which address is called.

Every record must pass: one private record among public ones is how a name is turned
against the one who asks. What comes back is what the connection goes to; nothing is
resolved a second time.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv6Address, ip_address
from typing import Final

import msgspec

from apps.isolation.wall.addresses import Address, Nearness, place_of
from apps.isolation.wall.urls import CheckedUrl, RefusedAddress, how_to_allow

Resolve = Callable[[str, int], Sequence[str]]
"""Gives the IP addresses of a name for a port; raises `OSError` where it has none."""

_MOST: Final = 64


class CannotResolve(Exception):
    """The name has no address; the message is a sentence for a person."""


class Pinned(msgspec.Struct, frozen=True):
    """Where the connection goes: addresses that were checked, in order of preference."""

    host: str
    port: int
    addresses: tuple[str, ...]


def pinned(checked: CheckedUrl, *, resolve: Resolve) -> Pinned:
    """The addresses behind a checked URL, all of which passed.

    An inner host of the operator's list may be private, but never link-local, metadata,
    multicast or unspecified. Raises `RefusedAddress` or `CannotResolve`.
    """
    found = _addresses(checked, resolve)
    for address in found:
        _check(checked, address)
    return Pinned(
        checked.host, checked.port, tuple(_without_wrapper(one) for one in found)
    )


def _addresses(checked: CheckedUrl, resolve: Resolve) -> list[Address]:
    try:
        return [ip_address(checked.host)]
    except ValueError:
        pass
    try:
        records = list(dict.fromkeys(resolve(checked.host, checked.port)))
    except (OSError, UnicodeError):
        records = []
    if not records:
        raise CannotResolve(f"The name {checked.host} has no address.")
    if len(records) > _MOST:
        raise RefusedAddress(f"{checked.host} has more than {_MOST} addresses.")
    try:
        return [ip_address(record) for record in records]
    except ValueError:
        raise RefusedAddress(
            f"{checked.host} has a record that is no plain IP address."
        ) from None


def _check(checked: CheckedUrl, address: Address) -> None:
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise RefusedAddress(f"{checked.host} leads to an address of one interface.")
    place = place_of(address)
    if place.nearness is Nearness.PUBLIC:
        return
    if place.nearness is Nearness.NEVER:
        raise RefusedAddress(
            f"{checked.host} leads to {address}, {place.words}; it is never called."
        )
    if not checked.is_inner_host:
        raise RefusedAddress(
            f"{checked.host} leads to {place.words}. "
            f"{how_to_allow(checked.host, checked.port)}"
        )


def _without_wrapper(address: Address) -> str:
    """A mapped address as the IPv4 address that it stands for."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)


def system_resolve(host: str, port: int) -> Sequence[str]:
    """The addresses that the system's resolver gives, IPv4 and IPv6."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(record[4][0]) for record in found]
