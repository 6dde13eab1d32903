"""Authorization requests: what is told on a page, and what is told to the app."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.limits import MAX_OAUTH_PARAMETER
from folkmoot.core.oauth.authorize import (
    AuthorizationRequest,
    Redirected,
    client_id_of,
    denied,
    granted,
    is_ours,
    read,
)
from folkmoot.core.oauth.redirects import matches
from folkmoot.core.oauth.scopes import DEFAULT
from tests.core.oauth.support import APP, BACK, CHALLENGE, ISSUER, RESOURCE

GOOD = {
    "client_id": APP.id,
    "redirect_uri": "http://localhost:1/callback",
    "response_type": "code",
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
    "state": "s 1",
    "resource": RESOURCE,
    "scope": "mail.read tools:github offline_access",
    "prompt": "consent",
}


def ask(*more: tuple[str, str], **members: str | None) -> AuthorizationRequest:
    given = {name: value for name, value in {**GOOD, **members}.items() if value is not None}
    return read([*given.items(), *more], APP, issuer=ISSUER, resource=RESOURCE)


def told(location: str) -> dict[str, str]:
    query = parse_qs(urlsplit(location).query, strict_parsing=True)
    return {name: value for name, [value] in query.items()}


def test_a_request_says_what_the_app_asks_for():
    asked = ask()
    assert asked == AuthorizationRequest(
        client_id=APP.id,
        redirect_uri="http://localhost:1/callback",
        state="s 1",
        scope=("mail.read", "tools:github"),
        resource=RESOURCE,
        code_challenge=CHALLENGE,
    )
    plain = ask(state=None, scope=None, resource=None, prompt="x" * 9, unknown="ignored")
    assert (plain.state, plain.scope, plain.resource) == ("", DEFAULT, RESOURCE)


def test_the_issuer_is_named_on_success_and_on_refusal():
    asked = ask()
    assert granted(asked, ISSUER, "ac_1").startswith("http://localhost:1/callback?code=ac_1&")
    assert told(granted(asked, ISSUER, "ac_1")) == {"code": "ac_1", "state": "s 1", "iss": ISSUER}
    refusal = {"error": "access_denied", "error_description": "Not now."}
    refused = told(denied(asked.redirect_uri, asked.state, ISSUER, *refusal.values()))
    assert refused == {**refusal, "state": "s 1", "iss": ISSUER}
    kept = ask(redirect_uri="https://app.example/cb?tenant=1", state=None)
    assert told(granted(kept, ISSUER, "ac_1")) == {"tenant": "1", "code": "ac_1", "iss": ISSUER}


@pytest.mark.parametrize(
    ("fault", "error", "members"),
    [
        ("no type", "unsupported_response_type", {"response_type": None}),
        ("implicit", "unsupported_response_type", {"response_type": "code id_token"}),
        ("PKCE absent", "invalid_request", {"code_challenge": None, "code_challenge_method": None}),
        ("no challenge", "invalid_request", {"code_challenge": None}),
        ("no method", "invalid_request", {"code_challenge_method": None}),
        ("PKCE plain", "invalid_request", {"code_challenge_method": "plain"}),
        ("PKCE short", "invalid_request", {"code_challenge": CHALLENGE[:-1]}),
        ("PKCE padded", "invalid_request", {"code_challenge": CHALLENGE[:-1] + "="}),
        ("other host", "invalid_target", {"resource": "https://other.example/mcp"}),
        ("other path", "invalid_target", {"resource": "https://hub.example/mcp/other"}),
        ("never an app's", "invalid_scope", {"scope": "operate"}),
        ("unknown", "invalid_scope", {"scope": "claude *"}),
        ("no consent", "interaction_required", {"prompt": "none"}),
    ],
)
def test_what_the_app_did_wrong_is_told_to_the_app(fault, error, members):
    with pytest.raises(Redirected) as refusal:
        ask(**members)
    location, words = refusal.value.location, refusal.value.message
    assert location.startswith("http://localhost:1/callback?"), fault
    answer = {"error": error, "error_description": words, "state": "s 1", "iss": ISSUER}
    assert told(location) == answer
    assert refusal.value.error == error


@pytest.mark.parametrize(
    ("more", "state", "kept"),
    [
        ([("scope", "rooms")], "s", "s"),
        ([("resource", RESOURCE)], "s", "s"),
        ([("state", "other")], "s", None),
        ([], "s" * (MAX_OAUTH_PARAMETER + 1), None),
        ([], "a\r\nb", None),
        ([], "\ud800", None),
        ([], "é", None),
    ],
)
def test_a_repeated_parameter_or_an_unfit_state_is_refused(more, state, kept):
    with pytest.raises(Redirected) as refusal:
        ask(*more, state=state)
    answer = told(refusal.value.location)
    assert (answer["error"], answer.get("state")) == ("invalid_request", kept)


@pytest.mark.parametrize(
    ("attack", "more", "members"),
    [
        ("no app", [], {"client_id": None}),
        ("another app", [], {"client_id": "app-2"}),
        ("endless id", [], {"client_id": "x" * 5000}),
        ("two apps", [("client_id", APP.id)], {}),
        ("many parameters", [("x", "y")] * 40, {}),
        ("no redirect", [], {"redirect_uri": None}),
        ("unknown redirect", [], {"redirect_uri": "https://evil.example/cb"}),
        ("other query", [], {"redirect_uri": "https://app.example/cb"}),
        ("127.0.0.1 for localhost", [], {"redirect_uri": "http://127.0.0.1:1/callback"}),
        ("fragment", [], {"redirect_uri": f"{BACK}#x"}),
        ("user info", [], {"redirect_uri": "http://localhost:1@evil.example/callback"}),
        ("two redirects", [("redirect_uri", "https://evil.example/cb")], {}),
        ("the same twice", [("redirect_uri", GOOD["redirect_uri"])], {}),
    ],
)
def test_an_unknown_app_or_redirect_is_told_on_a_page_and_never_redirected(attack, more, members):
    for wrong in ({}, {"response_type": "token"}):
        with pytest.raises(e.OAuthError) as refusal:
            ask(*more, **members, **wrong)
        assert type(refusal.value) is e.OAuthError, attack


def test_an_app_that_the_hub_does_not_know_is_told_on_a_page():
    with pytest.raises(e.OAuthError, match="does not know the app") as refusal:
        read([*GOOD.items()], None, issuer=ISSUER, resource=RESOURCE)
    assert type(refusal.value) is e.OAuthError
    assert client_id_of([*GOOD.items()]) == APP.id


@pytest.mark.parametrize(
    "uri", ["javascript://x/%0aalert(1)", "https://app.example/cb#x", "http://evil.example/cb"]
)
def test_an_address_that_was_once_registered_but_cannot_be_is_not_redirected_to(uri):
    client = type(APP)(APP.id, APP.name, (uri,))
    with pytest.raises(e.OAuthError) as refusal:
        read([*{**GOOD, "redirect_uri": uri}.items()], client, issuer=ISSUER, resource=RESOURCE)
    assert type(refusal.value) is e.OAuthError


@pytest.mark.parametrize(
    ("asked", "ours"),
    [
        *((RESOURCE, True), (f"{RESOURCE}/", True), (f"{RESOURCE}?tools=search", True)),
        *((ISSUER, True), (f"{ISSUER}/", True), ("HTTPS://HUB.example:443/mcp", True)),
        *(("http://hub.example/mcp", False), ("https://hub.example:8443/mcp", False)),
        *(("https://hub.example/MCP", False), ("https://hub.example.evil.example/mcp", False)),
        *(("https://hub.example@evil.example/mcp", False), ("hub.example", False), ("", False)),
        *(("cursor://hub.example/mcp", False), (f"{RESOURCE}?{'x' * 3000}", False)),
    ],
)
def test_a_resource_is_the_hubs_by_origin_and_path(asked, ours):
    assert is_ours(asked, RESOURCE, ISSUER) is ours


VALUES = st.sampled_from(
    [
        *GOOD.values(),
        *APP.redirect_uris,
        *("https://evil.example/cb", "http://localhost:7/callback", "javascript:alert(1)", ""),
        *("https://app.example/cb?tenant=1#x", "cursor://auth/cb/", "plain", "\ud800", "operate"),
    ]
)


@given(st.lists(st.tuples(st.sampled_from([*GOOD, "x"]), VALUES), max_size=4), st.booleans())
def test_no_redirect_is_ever_made_to_an_address_that_the_app_has_not_registered(changes, added):
    pairs = [*GOOD.items(), *changes] if added else [*{**GOOD, **dict(changes)}.items()]
    try:
        request = read(pairs, APP, issuer=ISSUER, resource=RESOURCE)
        location = granted(request, ISSUER, "ac_1")
    except Redirected as refusal:
        location = refusal.location
    except e.OAuthError:
        return
    back = next(value for name, value in pairs if name == "redirect_uri")
    assert matches(APP.redirect_uris, back)
    assert location.startswith((f"{back}?", f"{back}&"))
    assert told(location)["iss"] == ISSUER
