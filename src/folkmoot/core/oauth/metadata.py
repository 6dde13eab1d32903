"""What the hub publishes of itself: as a protected resource, and as an authorization server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from folkmoot.core.oauth.clients import AUTH_METHODS, CODE_GRANT, GRANT_TYPES, REFRESH_GRANT
from folkmoot.core.oauth.redirects import host_of

RESOURCE_PATH: Final = "/.well-known/oauth-protected-resource"
SERVER_PATH: Final = "/.well-known/oauth-authorization-server"
OPENID_PATH: Final = "/.well-known/openid-configuration"
CLIENT_PATH: Final = "/oauth/client.json"
CALLBACK_PATH: Final = "/oauth/callback"


def resource_metadata_url(resource: str) -> str:
    """Where the metadata of a resource is: its path comes behind the well-known one."""
    parts = urlsplit(resource)
    return f"{parts.scheme}://{parts.netloc}{RESOURCE_PATH}{parts.path.rstrip('/')}"


def protected_resource(resource: str, issuer: str, scopes: Sequence[str]) -> dict[str, Any]:
    """The metadata of the resource, by RFC 9728."""
    return {
        "resource": resource,
        "resource_name": "Folkmoot",
        "authorization_servers": [issuer],
        "scopes_supported": list(scopes),
        "bearer_methods_supported": ["header"],
    }


def authorization_server(issuer: str, scopes: Sequence[str], *, documents: bool) -> dict[str, Any]:
    """The metadata of the authorization server, by RFC 8414.

    `documents` says whether the id of an app can be the URL of a document.
    """
    base = issuer.rstrip("/")
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{base}/authorize",
        "token_endpoint": f"{base}/token",
        "registration_endpoint": f"{base}/register",
        "revocation_endpoint": f"{base}/revoke",
        "device_authorization_endpoint": f"{base}/device_authorization",
        "scopes_supported": list(scopes),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list(GRANT_TYPES),
        "token_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "revocation_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": documents,
    }


def name_at(url: str) -> str:
    """What the hub calls itself elsewhere: a hub takes no app that has its own name alone."""
    return f"Folkmoot ({host_of(url)})"


def own_client(base: str) -> dict[str, Any]:
    """The hub as a client of other authorization servers: its id is where this document is."""
    return {
        "client_id": f"{base}{CLIENT_PATH}",
        "client_name": name_at(base),
        "client_uri": base,
        "redirect_uris": [f"{base}{CALLBACK_PATH}"],
        "grant_types": [CODE_GRANT, REFRESH_GRANT],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "web",
    }
