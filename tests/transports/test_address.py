from __future__ import annotations

import pytest

from folkmoot.transports.address import Addresses


def scope(client: str | None, *forwarded: str) -> dict[str, object]:
    headers = [(b"x-forwarded-for", line.encode()) for line in forwarded]
    return {"client": (client, 50_000) if client else None, "headers": headers}


@pytest.mark.parametrize(
    ("client", "forwarded", "address"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["6.6.6.6, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["6.6.6.6", "198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1, nonsense"], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::/64"),
        ("10.0.0.1", ["2001:db8::1%eth0"], "2001:db8::/64"),
        ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("::ffff:203.0.113.9", [], "203.0.113.9"),
        ("2001:db8::1", [], "2001:db8::/64"),
        ("2001:db8::2", [], "2001:db8::/64"),
        ("10.0.0.1", [", ".join(["6.6.6.6"] * 10_000)], "6.6.6.6"),
        (None, ["198.51.100.1"], "unknown"),
        ("testclient", [], "unknown"),
    ],
)
def test_only_trusted_proxies_are_believed(client, forwarded, address):
    assert Addresses(["10.0.0.0/8"]).of(scope(client, *forwarded)) == address


def test_without_proxies_nobody_is_believed():
    assert Addresses().of(scope("127.0.0.1", "198.51.100.1")) == "127.0.0.1"


def test_connections_of_trusted_proxies_are_not_counted_by_their_own_address():
    addresses = Addresses(["127.0.0.1", "10.0.0.0/8"])
    assert addresses.of_peer("127.0.0.1") == addresses.of_peer("10.1.2.3") == ""
    assert addresses.of_peer("127.0.0.2") == "127.0.0.2"
    assert Addresses().of_peer("127.0.0.1") == "127.0.0.1"
    assert Addresses().of_peer("2001:db8::1") == Addresses().of_peer("2001:db8::2")
    assert Addresses().of_peer("a socket") == ""
