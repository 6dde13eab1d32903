"""The address a request came from, as far as proxies are trusted."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final, TypeAlias

from folkmoot.transports.limits import MAX_CACHED_PEERS, MAX_FORWARDED_HOPS, SUBSCRIBER_BITS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import Scope

Address: TypeAlias = IPv4Address | IPv6Address

UNKNOWN = "unknown"
FORWARDED_KEY: Final = "folkmoot.forwarded"
"""In the scope of a request that another node forwarded: the address of its client, as that node
found it. Such a request is not forwarded again.
"""


class Addresses:
    """Tells the address of a client; `X-Forwarded-For` is believed from trusted proxies alone."""

    def __init__(self, trusted_proxies: Iterable[str] = ()) -> None:
        self._trusted = [ip_network(network) for network in trusted_proxies]

    @property
    def believes_proxies(self) -> bool:
        """Whether there are trusted proxies."""
        return bool(self._trusted)

    def of(self, scope: Scope) -> str:
        """The address, as a key to count by."""
        if known := scope.get(FORWARDED_KEY):
            return str(known)
        client = scope.get("client")
        found = address_of_peer(client[0]) if client else None
        if found is None:
            return UNKNOWN
        if not self._trusted:
            return key_of(found)
        # The nearest hop is the last: each proxy adds whom it saw, so the first one that is not a
        # proxy of ours is the client, and whatever stands before it may be made up.
        for hop in reversed(forwarded(scope)[-MAX_FORWARDED_HOPS:]):
            if not self._is_proxy(found):
                break
            named = read_address(hop)
            if named is None:
                break
            found = named
        return key_of(found)

    def of_peer(self, host: str) -> str:
        """What connections from a host are counted by; empty for a proxy, which many share."""
        found = address_of_peer(host)
        return "" if found is None or self._is_proxy(found) else key_of(found)

    def _is_proxy(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)


def forwarded(scope: Scope) -> list[str]:
    """Every hop that `X-Forwarded-For` names, the farthest first."""
    lines = [v.decode("latin-1") for name, v in scope["headers"] if name == b"x-forwarded-for"]
    return [hop for line in lines for hop in line.split(",")]


def read_address(text: str) -> Address | None:
    """An address in one spelling; proxies may write it with a port or in brackets."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped
    return address


@lru_cache(maxsize=MAX_CACHED_PEERS)
def address_of_peer(text: str) -> Address | None:
    """The address of whoever is connected to us; the same few ask again and again."""
    return read_address(text)


@lru_cache(maxsize=MAX_CACHED_PEERS)
def key_of(address: Address) -> str:
    """The address of an IPv4 client, the network of an IPv6 one."""
    if isinstance(address, IPv4Address):
        return str(address)
    return str(IPv6Network((address, SUBSCRIBER_BITS), strict=False))
