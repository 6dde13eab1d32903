"""Redirect addresses: nothing is sent to one that was not registered."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core.limits import MAX_REDIRECT
from folkmoot.core.oauth.redirects import ANSWERS, NEVER, answered, fault, host_of, matches, split


@pytest.mark.parametrize(
    "uri",
    [
        *("https://claude.ai/api/mcp/auth_callback", "https://app.example", "https://a.b:8443/cb"),
        *("https://app.example/cb?tenant=1&x=%20", "https://[2001:db8::1]/cb"),
        *("http://localhost/callback", "http://127.0.0.1:33418", "http://[::1]:5/cb"),
        *("com.example.app:/oauth", "cursor://anysphere.cursor-mcp/oauth/callback"),
        *("vscode://vscode.github-authentication/did-authenticate?windowId=1",),
    ],
)
def test_an_address_of_an_app_can_be_registered(uri):
    assert fault(uri) is None
    assert matches([uri], uri)


@pytest.mark.parametrize(
    ("why", "uris"),
    [
        (
            "a URL",
            [
                *("", "/cb", "app.example/cb", "https:", "https:///cb", "app:cb"),
                *("https://app.example/cb#x", "https://app.example/cb#", "javascript:alert(1)"),
                *("https://user@app.example/cb", "https://user:secret@app.example/cb"),
                *("https://app.example\\@evil.example/cb", "https://app.example//evil.example"),
                *(
                    "https://app.example/c b",
                    "https://app.example/cb\n",
                    "\thttps://app.example/cb",
                ),
                *(
                    "https://app.example/\x00",
                    "https://app%2eexample/cb",
                    "https://\uff41pp.example",
                ),
                *("https://app.example/%zz", "https://app.example:99999/cb"),
                *("https://app.example:/cb", "https://app.example:x/cb"),
            ],
        ),
        ("host", ["https:/cb"]),
        ("https", ["http://app.example/cb", "http://127.0.0.2/cb", "http://2130706433/cb"]),
        ("https", ["http://localhost.evil.example/cb", "http://LOCALHOST/cb"]),
        ("scheme", ["HTTPS://app.example/cb", "JavaScript:/alert(1)", "ms-msdt:/id"]),
        ("scheme", ["javascript://app.example/%0aalert(1)", *(f"{name}://x/y" for name in NEVER)]),
        ("members", ["https://app.example/cb?code=mine", "https://app.example/cb?%69ss=mine"]),
        ("at most", ["https://app.example/" + "a" * MAX_REDIRECT]),
    ],
)
def test_any_other_address_cannot(why, uris):
    for uri in uris:
        assert why in (fault(uri) or ""), uri


@pytest.mark.parametrize(
    ("registered", "asked"),
    [
        ("http://localhost/cb", "http://localhost:54212/cb"),
        ("http://localhost:1/cb", "http://localhost:54212/cb"),
        ("http://127.0.0.1:1/cb?x=1", "http://127.0.0.1/cb?x=1"),
        ("http://[::1]/cb", "http://[::1]:9/cb"),
    ],
)
def test_an_app_on_the_device_is_answered_at_whatever_port_it_got(registered, asked):
    assert matches(["https://other.example/cb", registered], asked)
    assert not matches([], asked)


@pytest.mark.parametrize(
    ("attack", "registered", "asked"),
    [
        ("subdomain", "https://app.example/cb", "https://evil.app.example/cb"),
        ("longer host", "https://app.example/cb", "https://app.example.evil.example/cb"),
        ("path", "https://app.example/cb", "https://app.example/cb/"),
        ("folder above", "https://app.example/cb", "https://app.example/cb/../evil"),
        ("%62", "https://app.example/cb", "https://app.example/c%62"),
        ("query", "https://app.example/cb", "https://app.example/cb?next=evil"),
        ("fragment", "https://app.example/cb", "https://app.example/cb#x"),
        ("user info", "https://app.example/cb", "https://app.example@evil.example/cb"),
        ("backslash", "https://app.example/cb", "https://app.example\\@evil.example/cb"),
        ("port of https", "https://app.example/cb", "https://app.example:8443/cb"),
        ("port of https", "https://localhost/cb", "https://localhost:1/cb"),
        ("no TLS", "https://app.example/cb", "http://app.example/cb"),
        ("letters", "https://app.example/cb", "HTTPS://app.example/cb"),
        ("127.0.0.1 for localhost", "http://localhost/cb", "http://127.0.0.1/cb"),
        ("localhost for 127.0.0.1", "http://127.0.0.1/cb", "http://localhost/cb"),
        ("localhost as a user", "http://localhost/cb", "http://localhost:1@evil.example/cb"),
        ("path on the device", "http://localhost/cb", "http://localhost:1/other"),
        ("query on the device", "http://localhost/cb", "http://localhost:1/cb?x=1"),
        ("no port", "http://localhost/cb", "http://localhost:99999/cb"),
        ("javascript", "http://localhost/cb", "javascript:alert(1)"),
        ("another app's path", "cursor://auth/cb", "cursor://auth/other"),
        ("port of an app", "cursor://auth/cb", "cursor://auth:1/cb"),
    ],
)
def test_an_address_that_only_resembles_a_registered_one_does_not_match(attack, registered, asked):
    assert not matches(["https://other.example/cb", registered], asked), attack


PIECES = st.sampled_from(
    [
        *("https:", "http:", "//", "/", "\\", "@", ":", "#", "?", "&", "%2f", "%40", "%62", "."),
        *("app.example", "evil.example", "localhost", "127.0.0.1", "[::1]", "cb", ":8443", " "),
        *("\t", "\n", "\x00", "javascript:", "cursor:", "\uff0f", "\u3002", ";", "x=1", "..", "*"),
    ]
)
REGISTERED = ["http://localhost/cb", "https://app.example/cb?x=1", "cursor://auth/cb"]


@st.composite
def near(draw: st.DrawFn) -> str:
    """A registered address, but for a port or a few letters."""
    uri = draw(st.sampled_from([*REGISTERED, "http://localhost:7/cb"]))
    for _ in range(draw(st.integers(0, 2))):
        at, dropped = draw(st.integers(0, len(uri))), draw(st.integers(0, 3))
        uri = uri[:at] + draw(PIECES) + uri[at + dropped :]
    return uri


@given(near())
def test_an_address_that_is_let_through_is_read_alike_by_others(uri):
    others = urlsplit(uri) if fault(uri) is None else None
    if others is not None:
        parts = split(uri)
        port = f":{parts.port}" if parts.port else ""
        assert (others.scheme, others.netloc) == (parts.scheme, parts.host + port)
        assert (others.path, others.fragment) == (parts.path, "")
        assert others.scheme != "http" or others.hostname in ("localhost", "127.0.0.1", "::1")
    if matches(REGISTERED, uri) and uri not in REGISTERED:
        assert others is not None
        assert (others.scheme, others.hostname, others.path) == ("http", "localhost", "/cb")


@given(st.sampled_from(["https://a.b/cb", "https://a.b/cb?x=1&y", "app:/cb"]), st.text())
def test_an_answer_is_added_to_the_query_whatever_it_holds(uri, state):
    state = state.encode("utf-8", "replace").decode()
    location = answered(uri, code="ac_1", state=state, iss="https://hub.example")
    assert location.startswith(uri)
    assert location.isascii()
    kept = parse_qs(urlsplit(location).query, keep_blank_values=True)
    assert kept["code"] == ["ac_1"]
    assert kept["iss"] == ["https://hub.example"]
    assert kept.get("state", [""]) == [state]
    assert kept.get("x") == (["1"] if "?" in uri else None)
    assert kept.keys() - {"x", "y"} <= ANSWERS


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("https://Claude.ai/api", "claude.ai"),
        ("https://app.example:8443/cb", "app.example:8443"),
        ("http://localhost:5/cb", "this device"),
        ("cursor://auth/cb", "the app on this device that opens cursor: links"),
        ("https://a@b", "an unknown place"),
    ],
)
def test_a_person_is_told_where_an_address_leads(uri, words):
    assert host_of(uri) == words
