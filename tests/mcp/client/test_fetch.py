"""A document at an address that a stranger chose is fetched, and nothing else is reached."""

from __future__ import annotations

import ssl
from contextlib import asynccontextmanager

import pytest

from folkmoot.core import errors as e
from folkmoot.mcp.client import fetch as fetching
from folkmoot.mcp.client.fetch import fetch, is_public
from tests.certificates import certificate
from tests.mcp.client.places import Place

NOT_PUBLIC = [
    "127.0.0.1", "10.1.2.3", "169.254.169.254", "192.168.1.1", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "192.0.0.8", "192.0.2.1", "255.255.255.255", "::1", "::", "::ffff:127.0.0.1", "::127.0.0.1",
    "::ffff:8.8.8.8", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::", "2001:db8::1",
    "fe80::1", "fe80::1%eth0", "fec0::1", "fd00::1", "ff02::1", "localhost", "",
]  # fmt: skip


@asynccontextmanager
async def serving(tmp_path, status=200, body=b"{}", end=True, **headers):
    """A server with TLS on this machine, as fetching from there would find it, and its requests."""
    paths = certificate(tmp_path)
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    theirs.load_cert_chain(*paths)

    async def answer(asked):
        await asked.head(status, {"content-type": "Application/JSON; a=b", **headers})
        await asked.part(body)
        if end:
            await asked.end()

    async with Place(answer).open(theirs) as place:
        place.tls = ssl.create_default_context(cafile=paths[0])
        yield place


def local(place, host="127.0.0.1"):
    return f"https://{host}:{place.port}/app.json"


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_of_no_single_public_machine_is_none(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111"])
def test_an_address_of_the_public_internet_is_one(address):
    assert is_public(address)


async def test_a_document_is_fetched_with_its_type_and_without_any_secret(tmp_path):
    async with serving(tmp_path) as place:
        found = await fetch(local(place), 100, admits=lambda _: True, tls=place.tls)
    assert found == ("application/json", b"{}")
    assert place.asked[0].method == "GET"
    assert not place.asked[0].headers.keys() & {"authorization", "cookie", "referer"}


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "\uff11\uff12\uff17.0.0.1",
        "[::ffff:127.0.0.1]",
    ],
)
async def test_no_spelling_of_this_machine_is_connected_to(tmp_path, host):
    async with serving(tmp_path) as place:
        with pytest.raises(e.ServerUnreachable):
            await fetch(local(place, host), 100, tls=place.tls)
    assert place.connections == 0


async def test_a_name_is_judged_by_the_address_that_is_connected_to(tmp_path):
    judged: list[str] = []

    def rebound(address):
        judged.append(address)
        return False

    async with serving(tmp_path) as place:
        with pytest.raises(e.ServerUnreachable, match="public internet"):
            await fetch(local(place, "localhost"), 100, admits=rebound, tls=place.tls)
    assert "127.0.0.1" in judged
    assert place.connections == 0


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 302, "location": "/other.json"},
        {"status": 404},
        {"body": b"x" * 101},
    ],
    ids=["redirect", "error", "too much"],
)
async def test_a_redirect_an_error_and_too_much_are_no_document(tmp_path, answer):
    async with serving(tmp_path, **answer) as place:
        with pytest.raises(e.ServerAnswerInvalid):
            await fetch(local(place), 100, admits=lambda _: True, tls=place.tls)
    assert len(place.asked) == 1


async def test_a_server_that_never_ends_its_answer_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "FETCH_SECONDS", 0.5)
    async with serving(tmp_path, end=False) as place:
        with pytest.raises(e.ServerTimeout):
            await fetch(local(place), 100, admits=lambda _: True, tls=place.tls)


async def test_only_https_is_fetched():
    with pytest.raises(e.ServerUnreachable):
        await fetch("http://example.org/app.json", 100)
