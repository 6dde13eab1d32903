from __future__ import annotations

from typing import Any, cast

import pytest

from folkmoot.core import errors as e
from folkmoot.mcp.server.heads import head_of
from folkmoot.transports.accept import TurnedAway
from folkmoot.transports.connections import ConnectionPeer, OpenConnections
from folkmoot.transports.credentials import read_token
from folkmoot.transports.mcp.arrivals import hash_shown, read_query, read_shown

TOKEN = "sk_" + "a" * 64


def scope(query: str = "", *authorization: str) -> dict[str, object]:
    headers = [(b"authorization", value.encode()) for value in authorization]
    return {"query_string": query.encode(), "headers": headers}


def token(query: str = "", *authorization: str) -> str:
    asked = scope(query, *authorization)
    return read_token(asked, read_query(asked).tokens)


@pytest.mark.requirement("auth.query-token", "auth.bearer-token")
@pytest.mark.parametrize(
    ("query", "authorization"),
    [
        (f"token={TOKEN}", []),
        (f"names=safe&token={TOKEN}&x=y", []),
        (f"token={TOKEN}&token=", []),
        ("", [f"Bearer {TOKEN}"]),
        ("", [f"bearer  {TOKEN} "]),
        (f"token={TOKEN}", [f"Bearer {TOKEN}"]),
        (f"token={TOKEN}", ["Basic dXNlcjpwYXNz"]),
        (f"token=%73k_{'a' * 64}", []),
    ],
)
def test_the_token_is_in_the_url_or_in_the_header(query, authorization):
    assert token(query, *authorization) == TOKEN


@pytest.mark.parametrize(
    ("query", "authorization"),
    [("", []), ("token=", []), ("Token=x", []), ("", ["Bearer"]), ("", ["Basic eDp5"])],
)
def test_no_token_is_an_empty_one(query, authorization):
    assert token(query, *authorization) == ""
    assert hash_shown("") == ""


@pytest.mark.parametrize(
    "shown",
    [
        (f"token={TOKEN}", "Bearer other"),
        (f"token={TOKEN}&token=other",),
        ("", "Bearer a", "Bearer b"),
    ],
)
def test_two_different_tokens_are_refused(shown):
    with pytest.raises(e.TokensDiffer) as refused:
        token(*shown)
    assert TOKEN not in refused.value.message


@pytest.mark.parametrize("query", ["names=", "names=Safe", "tools=none", "&".join("x" * 60)])
def test_a_query_that_means_nothing_is_refused(query):
    with pytest.raises(e.QueryInvalid):
        read_query(scope(query))


def shown_on(peer: ConnectionPeer | None, query: str = "", *authorization: str) -> tuple[str, Any]:
    asked = scope(query, *authorization)
    shown = read_shown(asked, head_of(asked), peer)
    return shown.token_hash, shown.query.names


@pytest.mark.requirement("auth.query-token", "auth.bearer-token")
def test_on_one_connection_each_request_shows_its_own_token():
    peer = ConnectionPeer(OpenConnections(10, TurnedAway()), "", cast("Any", None))
    query, header = f"token={TOKEN}", f"Bearer {TOKEN}"
    requests: list[tuple[str, ...]] = [
        *((query,), (query,), ("token=other",), ("",), ("", header), ("", header)),
        *(("", "Bearer other"), (f"{query}&names=canonical",), (query, header), (query,)),
        ("token=",),
    ]
    for each in (*requests, *reversed(requests)):
        assert shown_on(peer, *each) == shown_on(None, *each)


@pytest.mark.parametrize("last", [("", "Bearer one"), (f"token={TOKEN}",)])
def test_two_different_tokens_are_refused_whatever_came_before(last):
    peer = ConnectionPeer(OpenConnections(10, TurnedAway()), "", cast("Any", None))
    shown_on(peer, *last)
    for _ in range(2):
        with pytest.raises(e.TokensDiffer):
            shown_on(peer, last[0], "Bearer one", "Bearer other")
