"""What lies behind an IP address: the public network, an inner one, or nothing to call.

IPv6 forms that carry an IPv4 address are unwrapped, and both are judged. Sources: the
special-purpose registries of IANA (RFC 6890, RFC 8190), RFC 4291 (mapped, compatible),
RFC 6052 and RFC 8215 (NAT64), RFC 3056 (6to4), RFC 4380 (Teredo), RFC 5214 (ISATAP), and
the documentation of cloud providers for their metadata addresses. A NAT64 prefix that a
network chose for itself cannot be told from other addresses.
"""

from __future__ import annotations

from enum import StrEnum
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, NamedTuple

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Nearness(StrEnum):
    """Who may call an address: anyone, only with the operator's word, or nobody."""

    PUBLIC = "public"
    INNER = "inner"
    NEVER = "never"


class Place(NamedTuple):
    """What lies behind an address, with words that go after "is"."""

    nearness: Nearness
    words: str


PUBLIC: Final = Place(Nearness.PUBLIC, "a public address")


def _places(
    nearness: Nearness, table: tuple[tuple[str, str], ...]
) -> tuple[tuple[Network, Place], ...]:
    return tuple(
        (ip_network(network), Place(nearness, words))
        for networks, words in table
        for network in networks.split()
    )


# The narrow ones first: a metadata address may lie inside of an inner network.
_PLACES: Final = _places(
    Nearness.NEVER,
    (
        ("168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254 fd20:ce::254 "
         "fd00:42::42 169.254.0.0/16", "an address of cloud metadata or link-local"),
        ("0.0.0.0/8 ::/128", "the unspecified address"),
        ("255.255.255.255", "the broadcast address"),
        ("224.0.0.0/4 ff00::/8", "a multicast address"),
        ("fe80::/10", "a link-local address"),
        ("64:ff9b:1::/48", "an address of local NAT64"),
        ("2002::/16", "a 6to4 address"),
        ("2001::/32", "a Teredo address"),
        ("::/96", "an IPv4-compatible address"),
        ("100::/64 100:0:0:1::/64", "an address that discards"),
    ),
) + _places(
    Nearness.INNER,
    (
        ("127.0.0.0/8 ::1", "a loopback address"),
        ("10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10",
         "a private address"),
        ("100.64.0.0/10", "an address shared behind a carrier (CGNAT)"),
        ("198.18.0.0/15 2001:2::/48", "an address for benchmarks"),
        ("192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20",
         "an address for documentation"),
        ("192.0.0.0/24 192.88.99.0/24 240.0.0.0/4 2001::/23 5f00::/16",
         "a reserved address"),
    ),
)  # fmt: skip

_LOOPBACK_V6: Final = IPv6Address("::1")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
_GLOBAL_V6: Final = IPv6Network("2000::/3")


def place_of(address: Address) -> Place:
    """What lies behind an address.

    Of an IPv6 address that carries an IPv4 address, the place that is harder to reach.
    """
    if isinstance(address, IPv6Address):
        inner = carried(address)
        if address.ipv4_mapped is not None or address in _NAT64:
            # These stand for the IPv4 address and nothing else.
            return place_of(inner or IPv4Address(0))
        own = _own_place(address)
        if own.nearness is Nearness.PUBLIC and inner is not None:
            return place_of(inner)
        return own
    return _own_place(address)


def _own_place(address: Address) -> Place:
    if address == _LOOPBACK_V6:
        return Place(Nearness.INNER, "a loopback address")
    for network, place in _PLACES:
        if address.version == network.version and address in network:
            return place
    if isinstance(address, IPv6Address) and address not in _GLOBAL_V6:
        return Place(Nearness.NEVER, "an address outside of the public IPv6 network")
    # What a newer registry sets apart.
    return (
        PUBLIC if address.is_global else Place(Nearness.INNER, "not a public address")
    )


def carried(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address carries, or `None`.

    Mapped and compatible forms, NAT64, 6to4, Teredo (the client) and ISATAP.
    """
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    number = int(address)
    is_isatap = (number >> 32) & 0xFFFFFFFF in _ISATAP
    if address in _NAT64 or is_isatap or (number >> 32 == 0 and number > 1):
        return IPv4Address(number & 0xFFFFFFFF)
    return None


def nearness_of(text: str) -> Nearness:
    """Who may call the address in a text; `ValueError` where it is none."""
    return place_of(ip_address(text)).nearness
