from __future__ import annotations

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from folkmoot.transports.guard import MOST_KNOWN, Hosts, host_of
from tests.harness import ask, read_answer, serving


async def deaf(_: Request) -> Response:
    return PlainTextResponse("did not listen")


SERVED = {"routes": [Route("/deaf", deaf, methods=["POST"])]}


SPELLINGS = {
    "localhost:8420": "localhost",
    "LOCALHOST.": "localhost",
    "localhost:": "localhost",
    "[::1]:8420": "::1",
    "[0:0:0:0:0:0:0:1]": "::1",
    "[::ffff:127.0.0.1]": "127.0.0.1",
    "127.0.0.1": "127.0.0.1",
    "a_b-c.localhost": "a_b-c.localhost",
    "[fe80::1%25eth0]": "fe80::1%25eth0",
    "[FE80::A]:80": "fe80::a",
}
NO_HOSTS = r"""
localhost:port localhost:99999 localhost@evil.example localhost/evil localhost#evil localhost]
localhost,evil.example localhost;evil.example localhost?evil.example localhost.. ..localhost
localhost:80"><script> evil.example\.localhost "><script>.localhost evil.example%2f.localhost
évil.localhost .localhost [::1 evil.example[::1] evil.example[::1]:80 [::1]evil.example [] [:]
[::1].evil.example [::1]:80.evil.example [::1]:80:80 [[::1]] [evil.example][::1]
evil.example:80[::1] [::1]:80] [localhost] [127.0.0.1] [::1%] ::1
"""
NO_HOSTS_EITHER = (
    *("", "evil example.localhost", "local\tho\nst", "localhost\n", "localhost ", " localhost"),
    *("localhost\0", "localhost:\u0661", "loca\u212ahost"),
)


def test_a_host_has_one_spelling_or_none():
    assert {netloc: host_of(netloc) for netloc in SPELLINGS} == SPELLINGS
    assert [it for it in (*NO_HOSTS.split(), *NO_HOSTS_EITHER) if host_of(it)] == []


OURS = (
    *("localhost", "hub.localhost", "127.0.0.1", "127.8.9.1", "::1", "10.0.0.5", "moot.example"),
    *("a.b.wild.example", "listed.example"),
)
OTHERS = (
    *("", "evil.example", "localhost.evil.example", "wild.example", "notwild.example", "10.0.0.6"),
    *("moot.example.evil", "0.0.0.0", "127.0.0.1.evil.example", "2130706433"),
)


def test_our_own_names_are_allowed_and_no_others():
    hosts = Hosts("10.0.0.5", "https://moot.example:8443/x", ["listed.example", "*.wild.example"])
    assert [host for host in OURS if not hosts.allows(host)] == []
    assert [host for host in OTHERS if hosts.allows(host)] == []
    # The address that a connection reached is ours.
    assert Hosts("0.0.0.0").allows("192.168.1.5", reached="192.168.1.5")
    assert not Hosts("0.0.0.0").allows("192.168.1.5", reached="192.168.1.6")


def test_hosts_that_are_remembered_are_bounded_and_others_are_never_among_them():
    hosts = Hosts("10.0.0.5", "", ["*.wild.example"])
    for number in range(3 * MOST_KNOWN):
        for _ in range(2):
            assert hosts.answers_to(b"a%d.wild.example:80" % number, "10.0.0.5")
            assert not hosts.answers_to(b"a%d.evil.example" % number, "10.0.0.5")
    assert hosts.answers_to(b"192.168.1.5", "192.168.1.5")
    assert not hosts.answers_to(b"192.168.1.5", "192.168.1.6")
    assert hosts.known <= MOST_KNOWN


@pytest.mark.parametrize("path", ["/", "/deaf", "/nowhere"])
async def test_a_request_for_another_host_is_refused_on_every_path(hub, path):
    answer = await ask(hub.port, path, headers={"host": "rebound.evil.example"})
    assert answer.status == 421
    assert answer.json()["error"]["code"] == "host_not_allowed"
    assert "evil" not in answer.text


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"host: localhost\r\nhost: evil.example\r\n",
        b"host: \r\n",
        b"host: \xff\r\n",
        b"host: evil.example[::1]\r\n",
        b"host: [::1]evil.example\r\n",
    ],
)
async def test_a_request_without_one_clear_host_is_refused(dial, head):
    reader, _ = await dial(b"GET / HTTP/1.1\r\n" + head + b"\r\n")
    assert (await read_answer(reader)).status == 421


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:3000", 200),
        ("http://127.0.0.1:8420", 200),
        ("https://moot.example", 200),
        ("https://evil.example", 403),
        ("null", 403),
        ("http://localhost.evil.example", 403),
        ("http://localhost@evil.example", 403),
        ("garbage", 403),
        ("http://[", 403),
        ("http://evil.example[::1]", 403),
    ],
)
async def test_only_our_own_pages_may_change_something(origin, status):
    hosts = Hosts("127.0.0.1", "https://moot.example")
    async with serving(hosts=hosts, **SERVED) as hub:
        headers = {"origin": origin}
        assert (await ask(hub.port, "/deaf", method="POST", headers=headers)).status == status
        assert (await ask(hub.port, "/", headers=headers)).status == 200


@pytest.mark.parametrize("path", ["/deaf", "/", "/nowhere"])
@pytest.mark.settings(max_body_bytes=1024)
async def test_an_announced_body_over_the_limit_is_refused_unread(hub, path):
    answer = await ask(hub.port, path, method="POST", headers={"content-length": "1025"})
    assert answer.status == 413
    assert answer.json()["error"]["limit"] == 1024
