"""What the hub publishes of itself, and the challenge that leads there."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core.oauth.challenges import INSUFFICIENT_SCOPE, INVALID_TOKEN, challenge
from folkmoot.core.oauth.metadata import (
    authorization_server,
    own_client,
    protected_resource,
    resource_metadata_url,
)
from folkmoot.core.oauth.scopes import DEFAULT
from tests.core.oauth.support import ISSUER, RESOURCE

URL = "https://hub.example/.well-known/oauth-protected-resource/mcp"


def test_the_resource_names_its_authorization_server():
    assert protected_resource(RESOURCE, ISSUER, DEFAULT) == {
        "resource": RESOURCE,
        "resource_name": "Folkmoot",
        "authorization_servers": [ISSUER],
        "scopes_supported": list(DEFAULT),
        "bearer_methods_supported": ["header"],
    }


@pytest.mark.parametrize("documents", [True, False])
def test_the_server_offers_what_it_can_do(documents):
    grant = "urn:ietf:params:oauth:grant-type:device_code"
    said = authorization_server(ISSUER, DEFAULT, documents=documents)
    assert said["issuer"] == ISSUER
    for name in ("authorization", "token", "registration", "revocation", "device_authorization"):
        assert said[f"{name}_endpoint"].startswith(f"{ISSUER}/")
    assert grant in said["grant_types_supported"]
    assert said["client_id_metadata_document_supported"] is documents
    assert said["code_challenge_methods_supported"] == ["S256"]
    assert said["authorization_response_iss_parameter_supported"] is True
    assert said["response_types_supported"] == ["code"]
    assert "none" in said["token_endpoint_auth_methods_supported"]


def test_the_metadata_of_a_resource_is_at_the_well_known_path():
    assert resource_metadata_url(RESOURCE) == URL
    assert resource_metadata_url(f"{ISSUER}/") == URL.removesuffix("/mcp")
    below = resource_metadata_url("http://127.0.0.1:8420/a/mcp")
    assert below == "http://127.0.0.1:8420/.well-known/oauth-protected-resource/a/mcp"


@pytest.mark.parametrize(
    ("given", "header"),
    [
        (("mail.read tools",), f'Bearer resource_metadata="{URL}", scope="mail.read tools"'),
        (("", INVALID_TOKEN), f'Bearer error="invalid_token", resource_metadata="{URL}"'),
        (
            ("decide", INSUFFICIENT_SCOPE, "It needs decide."),
            (
                'Bearer error="insufficient_scope", error_description="It needs decide.", '
                f'resource_metadata="{URL}", scope="decide"'
            ),
        ),
    ],
)
def test_a_challenge_says_where_to_sign_in_and_for_what(given, header):
    assert challenge(URL, *given) == header


@given(st.text(), st.text(), st.text())
def test_nothing_breaks_out_of_a_challenge(scope, error, description):
    header = challenge(URL, scope, error, description)
    quoted = r'[a-z_]+="[ !#-\[\]-~]*"'
    assert re.fullmatch(rf"Bearer {quoted}(?:, {quoted})*", header)


def test_the_document_about_the_hub_names_itself_and_the_way_back():
    told = own_client("https://hub.example")
    assert told["client_id"] == "https://hub.example/oauth/client.json"
    assert told["redirect_uris"] == ["https://hub.example/oauth/callback"]
    assert told["token_endpoint_auth_method"] == "none"
