from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from folkmoot.core import errors as e
from folkmoot.transports.listen import base_url, close, listen


@contextmanager
def listening(host: str) -> Iterator[list[tuple[str, int]]]:
    """Listen on a free port: the addresses and ports."""
    sockets = listen(host, 0)
    try:
        yield [made.getsockname()[:2] for made in sockets]
    finally:
        close(sockets)


def test_port_zero_is_a_free_port_and_every_address_of_a_name_gets_the_same():
    with listening("localhost") as found:
        assert len({port for _, port in found} - {0}) == 1


def test_a_taken_port_is_named_with_what_to_do():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(e.PortTaken) as raised:
            listen("127.0.0.1", port)
    told = f"Port {port} on 127.0.0.1 is in use by another program. Stop that program, or "
    assert raised.value.message == f"{told}choose another port with --port."


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid", "2001:db8::1", "x" * 300])
def test_an_address_of_another_machine_is_one_clear_sentence(host):
    with pytest.raises(e.AddressUnusable, match="it is not an address of this machine"):
        listen(host, 0)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may listen on every port")
def test_a_privileged_port_is_one_clear_sentence():
    with pytest.raises(e.AddressUnusable, match="above 1023"):
        listen("127.0.0.1", 81)


def resolve(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let the name `many` stand for these addresses."""
    real = socket.getaddrinfo

    def found(host: str, *args: object, **options: object) -> list[object]:
        names = addresses if host == "many" else (host,)
        return [entry for name in names for entry in real(name, *args, **options)]  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", found)


@pytest.mark.parametrize(
    "addresses",
    [("2001:db8::1", "127.0.0.1"), ("127.0.0.1", "2001:db8::1"), ("192.0.2.1", "127.0.0.1")],
)
def test_an_address_that_this_machine_lacks_is_left_out(monkeypatch, addresses):
    resolve(monkeypatch, *addresses)
    with listening("many") as found:
        assert [address for address, _ in found] == ["127.0.0.1"]


def test_a_name_without_any_address_here_is_one_clear_sentence(monkeypatch):
    resolve(monkeypatch, "192.0.2.1", "2001:db8::1")
    with pytest.raises(e.AddressUnusable, match="Cannot listen on many"):
        listen("many", 0)


def test_a_port_that_is_taken_on_one_address_is_taken(monkeypatch):
    resolve(monkeypatch, "127.0.0.2", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(e.PortTaken):
        listen("many", taken.getsockname()[1])


def test_ipv6_and_every_network_work():
    for host in ("::1", "::", "0.0.0.0"):
        with listening(host) as found:
            reach = "::1" if host == "::1" else "127.0.0.1"
            socket.create_connection((reach, found[0][1]), timeout=5).close()


def test_urls_put_ipv6_addresses_in_brackets():
    assert base_url("127.0.0.1", 8420) == "http://127.0.0.1:8420"
    assert base_url("::1", 8420) == "http://[::1]:8420"
