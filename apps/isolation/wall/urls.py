"""Checks the address of a target before it is saved, and again before each call."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import parse_qsl, unquote

import httpx
import msgspec

from apps.engine.privacy.redaction import rules_that_match
from apps.engine.privacy.vendor_keys import VENDOR_KEYS
from apps.isolation.wall.addresses import Nearness, place_of
from apps.isolation.wall.inner_hosts import NO_INNER_HOSTS, InnerHosts, written

LONGEST: Final = 2_000
_SCHEMES: Final = {"http": 80, "https": 443}
_ALPHABET: Final = re.compile(r"[A-Za-z0-9\-._~:/?\[\]!$&'()*+,;=%@#]*")
_BAD_ESCAPE: Final = re.compile(
    r"%(?![0-9A-Fa-f]{2})|%(?:0[0-9A-Fa-f]|1[0-9A-Fa-f]|7[fF])"
)
_AUTHORITY: Final = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._\-]+)(?::(?P<port>[0-9]{1,5}))?"
)
_NAME: Final = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*"
                          r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")  # fmt: skip
_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]+")
_INNER_ENDS: Final = (
    ".localhost", ".local", ".internal", ".intranet", ".lan", ".home.arpa", ".home",
    ".corp", ".private", ".localdomain",
)  # fmt: skip
_SECRET_NAME: Final = re.compile(
    r"(?:^|[_\-.]|api|access|auth|client|id|refresh|private|shared)(?:key|token|secret|"
    r"passw(?:or)?d|pwd|pass|auth|authorization|sig|signature|credentials?|bearer|jwt|"
    r"session|code)(?:$|[_\-.])",
    re.IGNORECASE,
)
# Ports of browsers' block lists and of stores that answer to a line of text.
_OTHER_PORTS: Final = frozenset({
    1719, 1720, 1723, 2049, 2375, 2376, 2379, 3306, 3389, 3659, 4045, 4190, 5060, 5061,
    5432, 5672, 5984, 6000, 6379, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697,
    7000, 7001, 9042, 9092, 9200, 9300, 10080, 10250, 11211, 27017,
})  # fmt: skip


_KEYS: Final = tuple(VENDOR_KEYS)


class RefusedAddress(Exception):
    """An address that will not be called; the message is a sentence for a person."""


class CheckedUrl(msgspec.Struct, frozen=True, kw_only=True):
    """An address whose form is in order; its name has not been resolved.

    `host` is in small letters and without brackets. `is_inner_host` says that the
    operator allowed this host and port by name.
    """

    url: str
    scheme: str
    host: str
    port: int
    is_inner_host: bool = False

    @property
    def sends_in_clear(self) -> bool:
        """Whether a key that is sent there can be read on the way."""
        return self.scheme == "http"


def checked_url(url: str, *, inner: InnerHosts = NO_INNER_HOSTS) -> CheckedUrl:
    """The address, checked without asking the network; raises `RefusedAddress`.

    Refused are other schemes than http and https, characters outside of ASCII URLs,
    user names, passwords and keys in the address, fragments, ports of other protocols
    and those below 1024 but 80 and 443, names of inner networks, addresses that are
    not public, and every spelling of an IPv4 address but four decimal numbers. What
    stands in `inner` may be private, and on any port.
    """
    scheme, authority, rest = _parted(url)
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise RefusedAddress("The address names no host that can be called.")
    host = found["host"].strip("[]").lower()
    port = int(found["port"]) if found["port"] else _SCHEMES[scheme]
    is_inner_host = (written(host), port) in inner
    _check_host(host, port, is_inner_host=is_inner_host)
    _check_port(port, is_inner_host=is_inner_host)
    _check_rest(rest)
    _check_parsed(url, host=host, port=port)
    return CheckedUrl(
        url=url, scheme=scheme, host=host, port=port, is_inner_host=is_inner_host
    )


def _parted(url: str) -> tuple[str, str, str]:
    """Scheme, authority and what follows of an address in the plain alphabet."""
    if len(url) > LONGEST:
        raise RefusedAddress(f"The address is longer than {LONGEST:,} characters.")
    if not _ALPHABET.fullmatch(url) or _BAD_ESCAPE.search(url):
        raise RefusedAddress(
            "The address holds characters that do not belong into one: only ASCII "
            "letters, digits and the signs of addresses are taken."
        )
    scheme, mark, after = url.partition("://")
    if not mark or scheme.lower() not in _SCHEMES:
        raise RefusedAddress("The address must begin with https:// or http://.")
    end = re.search(r"[/?#]|\Z", after)
    at = end.start() if end else len(after)
    authority = after[:at]
    if "@" in authority:
        raise RefusedAddress(
            "The address holds a user name or password. Leave it out and put the key "
            "into the field for it."
        )
    return scheme.lower(), authority, after[at:]


def _check_host(host: str, port: int, *, is_inner_host: bool) -> None:
    try:
        address = ip_address(host)
    except ValueError:
        _check_name(host, port, is_inner_host=is_inner_host)
        return
    place = place_of(address)
    if place.nearness is Nearness.NEVER:
        raise RefusedAddress(f"{host} is {place.words}; it is never called.")
    if place.nearness is Nearness.INNER and not is_inner_host:
        raise RefusedAddress(f"{host} is {place.words}. {how_to_allow(host, port)}")
    if isinstance(address, IPv4Address) and str(address) != host:
        raise RefusedAddress(f"Write {host} as four decimal numbers.")


def _check_name(host: str, port: int, *, is_inner_host: bool) -> None:
    if ":" in host:
        raise RefusedAddress("The address in brackets is no IPv6 address.")
    if len(host) > 253 or not _NAME.fullmatch(host):
        raise RefusedAddress("The address names no host that can be called.")
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        raise RefusedAddress(
            f"{host[:60]} is another spelling of an IP address. Write it as four decimal "
            "numbers."
        )
    is_inner_name = "." not in host or host.endswith(_INNER_ENDS)
    if is_inner_name and not is_inner_host:
        raise RefusedAddress(
            f"{host[:60]} is a name of an inner network. {how_to_allow(host, port)}"
        )


def how_to_allow(host: str, port: int) -> str:
    """A sentence that says who can allow an inner host, and how it is written."""
    shown = f"[{host}]" if isinstance(_address(host), IPv6Address) else host
    return (
        f"Only the operator of this site can allow it, as {shown}:{port} in the list of "
        "inner hosts."
    )


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _check_port(port: int, *, is_inner_host: bool) -> None:
    if not 1 <= port <= 65_535:
        raise RefusedAddress("A port lies between 1 and 65535.")
    is_usual = port in {80, 443} or (port >= 1024 and port not in _OTHER_PORTS)
    if not is_usual and not is_inner_host:
        raise RefusedAddress(
            f"Port {port} belongs to another protocol than HTTP. Ports 80, 443 and most "
            "from 1024 on can be called."
        )


def _check_rest(rest: str) -> None:
    if "#" in rest:
        raise RefusedAddress("The address has a part after #, which is never sent.")
    path, _, query = rest.partition("?")
    if any(part in {".", ".."} for part in unquote(path).split("/")):
        raise RefusedAddress('The path of the address holds "." or "..".')
    for name, value in parse_qsl(query, keep_blank_values=True):
        if value and _SECRET_NAME.search(name) and name.lower() != "api-version":
            raise RefusedAddress(
                f'The address holds a secret ("{name[:40]}"). Leave it out and put the '
                "key into the field for it."
            )
    if rules_that_match(unquote(rest).encode("utf-8", "replace"), _KEYS):
        raise RefusedAddress(
            "The address holds what looks like a key or password. Leave it out and put "
            "the key into the field for it."
        )


def _check_parsed(url: str, *, host: str, port: int) -> None:
    """The library that connects must read the same host and port."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise RefusedAddress("The address cannot be read.") from None
    theirs = (
        written(parsed.raw_host.decode("ascii")),
        parsed.port or _SCHEMES.get(parsed.scheme),
    )
    if theirs != (written(host), port) or parsed.userinfo:
        raise RefusedAddress("The address can be read in more than one way.")
