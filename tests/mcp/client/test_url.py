"""Addresses on HTTP: what is one, how it is sent, and where a reference in one leads."""

from __future__ import annotations

import pytest

from folkmoot.mcp.client.url import HttpUrl


@pytest.mark.parametrize(
    ("text", "shown", "authority", "target"),
    [
        ("http://a.b", "http://a.b", "a.b", "/"),
        ("HTTP://A.B:80/x y?q=a b#f", "http://a.b/x%20y?q=a%20b", "a.b", "/x%20y?q=a%20b"),
        ("https://a:8443?x", "https://a:8443/?x", "a:8443", "/?x"),
        ("https://u:p%40@[::1]:443/mcp", "https://[::1]/mcp", "[::1]", "/mcp"),
        ("http://münchen.de/ä", "http://xn--mnchen-3ya.de/%C3%A4", "xn--mnchen-3ya.de", "/%C3%A4"),
        ("http://a/%7e?a=%26&b=+", "http://a/%7e?a=%26&b=+", "a", "/%7e?a=%26&b=+"),
        ("http://a/x\r\ny", "http://a/xy", "a", "/xy"),
    ],
)
def test_an_address_is_sent_in_ascii_and_shown_without_its_login(text, shown, authority, target):
    url = HttpUrl.parse(text)
    assert (str(url), url.authority, url.target) == (shown, authority, target)
    assert "p@" not in repr(url)


def test_name_and_password_are_decoded():
    assert HttpUrl.parse("http://u%3A:p%40@a").login == "u::p@"
    assert HttpUrl.parse("http://u@a").login == "u:"
    assert HttpUrl.parse("http://a").login is None


NO_URLS = "a //a ftp://a http:// http:///x http://a:0 http://a:99999 http://a:x http://a<b>/"


@pytest.mark.parametrize(
    "text", ["", *NO_URLS.split(), "http://a b/", "http://[::1", "http://" + "ä" * 80]
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the words are those of whoever noticed
        HttpUrl.parse(text)


@pytest.mark.parametrize(
    ("reference", "there"),
    [
        ("x?y#z", "http://h:1/a/x?y"),
        ("/x", "http://h:1/x"),
        ("../x", "http://h:1/x"),
        ("?y", "http://h:1/a/b?y"),
        ("", "http://h:1/a/b?c"),
        ("//o/p", "http://o/p"),
        ("https://u:p@q", "https://q"),
    ],
)
def test_a_reference_leads_from_an_address_to_another(reference, there):
    here = HttpUrl.parse("http://h:1/a/b?c")
    assert str(here.join(reference)) == there
    assert here.join(reference).login is None
    with pytest.raises(ValueError, match="HTTP"):
        here.join("mailto:x")


def test_an_origin_is_scheme_host_and_port():
    one = HttpUrl.parse("https://u@a:443/x?y")
    assert one.origin == HttpUrl.parse("HTTPS://A").origin
    assert one.origin != HttpUrl.parse("http://a:443").origin
    assert one.origin != HttpUrl.parse("https://a:444").origin
