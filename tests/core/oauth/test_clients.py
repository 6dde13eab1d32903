"""Apps: those that registered, and those that publish a document."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.limits import MAX_APP_DOCUMENT_BYTES, MAX_APP_NAME, MAX_REGISTRATION_BYTES
from folkmoot.core.oauth.clients import (
    Client,
    cleaned,
    from_document,
    imitates,
    is_document_id,
    registered,
)
from tests.core.oauth.support import BACK, DESCRIPTION, metadata, registrations
from tests.core.strategies import JSON

DOCUMENT = "https://app.example/oauth/client.json"
METADATA, REDIRECT = "invalid_client_metadata", "invalid_redirect_uri"


def test_an_id_holds_what_was_registered():
    apps = registrations()
    answer = apps.register(metadata(scope="anything", logo_uri=["ignored"]), 1_700_000_000.9)
    assert answer == {
        "client_id": answer["client_id"],
        "client_id_issued_at": 1_700_000_000,
        "client_name": "Claude Code",
        "redirect_uris": [BACK],
        "grant_types": [
            *("authorization_code", "refresh_token"),
            "urn:ietf:params:oauth:grant-type:device_code",
        ],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    client = apps.client(answer["client_id"])
    assert client == Client(answer["client_id"], "Claude Code", (BACK,))
    assert client.host == ""
    assert len(answer["client_id"]) <= 120
    assert apps.authenticated(client, "")
    assert not apps.authenticated(client, "anything")


@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic", None, ...])
def test_an_app_that_wants_a_secret_gets_one_that_follows_from_its_id(method):
    apps = registrations()
    one, other = (apps.register(metadata(token_endpoint_auth_method=method), 0) for _ in range(2))
    assert one["client_secret_expires_at"] == 0
    assert one["token_endpoint_auth_method"] == (
        "client_secret_post" if method == "client_secret_post" else "client_secret_basic"
    )
    client = apps.client(one["client_id"])
    assert client is not None
    assert apps.authenticated(client, one["client_secret"])
    # The secret of another id, a part of the own one, none, and what is no text.
    for wrong in (other["client_secret"], one["client_secret"][:-1], "", "\ud800"):
        assert not apps.authenticated(client, wrong)


def test_a_forged_or_cut_id_is_nobodys():
    apps = registrations()
    client_id = apps.register(metadata(), 0)["client_id"]
    forged = registrations(b"x").register(metadata(), 0)["client_id"]
    swapped = client_id[:60] + ("A" if client_id[60] != "A" else "B") + client_id[61:]
    for wrong in (client_id[:-1], client_id + "A", swapped, forged, "", "x" * 5000, DOCUMENT, "é"):
        assert apps.client(wrong) is None, wrong


@pytest.mark.parametrize(
    ("error", "name", "values"),
    [
        (
            REDIRECT,
            "redirect_uris",
            [..., None, [], [BACK, "javascript:alert(1)"], ["https://a/#x"]],
        ),
        (REDIRECT, "redirect_uris", [[f"https://app.example/{n}" for n in range(11)]]),
        (METADATA, "redirect_uris", [BACK, [1], [f"https://a/{n}{'a' * 900}" for n in range(4)]]),
        (METADATA, "client_name", [["Claude"], 1]),
        (METADATA, "grant_types", [["urn:ietf:params:oauth:grant-type:jwt-bearer"], ["password"]]),
        (METADATA, "grant_types", [["authorization_code", "client_credentials"]]),
        (METADATA, "token_endpoint_auth_method", ["private_key_jwt", "tls_client_auth"]),
    ],
)
def test_what_cannot_be_registered_is_refused_by_its_code(error, name, values):
    for value in values:
        with pytest.raises(e.OAuthError) as refusal:
            registrations().register(metadata(**{name: value}), 0)
        words = refusal.value.message
        assert refusal.value.body() == {"error": error, "error_description": words}
        assert refusal.value.status == 400


@pytest.mark.parametrize(
    "name",
    [
        *("Folkmoot", " F o l k m o o t ", "FOLKMOOT Hub", "FoIkm00t!", "f\u00f6lkrnoot"),
        *(
            "\u0192\u043e\u04cf\u043am\u043e\u03bf\u0442",
            "\uff26\uff4f\uff4c\uff4b\uff4d\uff4f\uff4f\uff54",
        ),
        "folk\u200bmo\u3164ot\u202e",
    ],
)
def test_a_name_that_imitates_the_hub_is_refused(name):
    with pytest.raises(e.OAuthError, match="that of the hub"):
        registered(metadata(client_name=name))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b"{", b'{"a":1,"a":2}', b"[" * 9000, b"\xff"]
)
def test_what_is_no_metadata_is_refused(body):
    with pytest.raises(e.OAuthError, match="JSON object"):
        registered(body)


def test_a_registration_of_ten_megabytes_is_not_decoded():
    for read, most in ((registered, MAX_REGISTRATION_BYTES), (document, MAX_APP_DOCUMENT_BYTES)):
        for size in (most + 1, 10_000_000):
            with pytest.raises(e.OAuthError) as refusal:
                read(b"x" * size)
            assert refusal.value.status == 413


def test_an_app_that_only_uses_the_device_grant_needs_no_redirect():
    grant = "urn:ietf:params:oauth:grant-type:device_code"
    found = registered(metadata(grant_types=[grant], redirect_uris=..., client_name=None))
    assert (found.name, found.redirect_uris) == ("App", ())


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Claude Code", "Claude Code"),
        ("  two\n\tlines\u2028here ", "two lines here"),
        ("evil\u202egnp\u200b\x00.exe\x1b[0m", "evilgnp.exe[0m"),
        ("\u3164\u2800", "App of this device"),
        ("", "App of this device"),
        (None, "App of this device"),
        ("x" * 500, "x" * MAX_APP_NAME),
        ("Folkmoot login", "Folkmoot login"),
        ("Møte", "Møte"),
    ],
)
def test_a_name_is_one_line_that_can_be_seen(given, shown):
    assert registered(metadata(client_name=given)).name == shown


@given(st.text())
def test_no_name_hides_something_or_imitates_the_hub(text):
    name = cleaned(text)
    assert name.isprintable()
    assert len(name) <= MAX_APP_NAME
    assert cleaned(name) == name
    assert imitates(f"{text[:5]}folkmoot") is imitates(f"{text[:5]}FOLKMOOT")


@given(JSON)
def test_whatever_is_sent_is_registered_or_refused(value):
    apps = registrations()
    try:
        answer = apps.register(json.dumps(value).encode(), 0)
    except e.OAuthError as refusal:
        words = refusal.message
    else:
        words = apps.client(answer["client_id"]).name
    assert DESCRIPTION.fullmatch(words)


def test_an_id_that_is_a_plain_url_leads_to_a_document():
    for client_id in (
        *("https://claude.ai/oauth/claude-code-client-metadata", DOCUMENT),
        *("https://app.example:8443/client", "https://app.example/client?v=2"),
    ):
        assert is_document_id(client_id), client_id
    for client_id in (
        *("https://app.example", "https://app.example/", "https:/client", "app-1"),
        *("http://app.example/client", "https://app.example/client#x", "cursor://app/client"),
        *("https://user@app.example/client", "https://app.example/a/../client"),
        *("https://app.example/./client", "https://app.example/%2e%2E/client"),
        "https://app.example/" + "a" * 2048,
    ):
        assert not is_document_id(client_id), client_id


def document(body: bytes = b"", kind: str = "application/json", at: str = DOCUMENT) -> Client:
    return from_document(at, body, kind)


@pytest.mark.parametrize("kind", ["application/json", "Application/cimd+JSON ; charset=utf-8"])
def test_a_document_tells_of_its_app(kind):
    body = metadata(client_id=DOCUMENT, redirect_uris=["http://127.0.0.1/callback", BACK])
    client = document(body, kind)
    assert client == Client(
        DOCUMENT, "Claude Code", ("http://127.0.0.1/callback", BACK), document=True
    )
    assert client.host == "app.example"
    assert document(metadata(client_id=DOCUMENT, token_endpoint_auth_method=...)).auth == "none"


@pytest.mark.parametrize(
    ("attack", "kind", "members"),
    [
        ("no client_id", "application/json", {"client_id": ...}),
        ("foreign client_id", "application/json", {"client_id": "https://other.example/c.json"}),
        ("other letters", "application/json", {"client_id": DOCUMENT.upper()}),
        ("wrong type", "text/html", {}),
        ("wrong type", "application/jsonp", {}),
        ("no type", "", {}),
        ("secret", "application/json", {"client_secret": "s"}),
        ("secret", "application/json", {"token_endpoint_auth_method": "client_secret_post"}),
        ("keys", "application/json", {"token_endpoint_auth_method": "private_key_jwt"}),
        ("dangerous redirect", "application/json", {"redirect_uris": ["data:text/html,x"]}),
        ("no redirect", "application/json", {"redirect_uris": []}),
        ("other grants", "application/json", {"grant_types": ["implicit"]}),
        ("the hub's name", "application/json", {"client_name": "Folkmoot"}),
    ],
)
def test_a_document_that_is_anothers_or_of_a_wrong_type_is_refused(attack, kind, members):
    with pytest.raises(e.OAuthError):
        document(metadata(**{"client_id": DOCUMENT, **members}), kind)
    with pytest.raises(e.OAuthError):
        document(metadata(client_id=f"{DOCUMENT}#x"), at=f"{DOCUMENT}#x")
